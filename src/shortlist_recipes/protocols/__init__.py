"""The published protocols, one file for each recipe; `shortlist_recipes.protocol` says what a protocol is."""
