"""A run behind HTTP: ``shortlist serve``."""
