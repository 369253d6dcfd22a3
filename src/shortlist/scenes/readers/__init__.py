"""Readers of scenes, one file per format; ``shortlist.verticals`` lists them by name."""
