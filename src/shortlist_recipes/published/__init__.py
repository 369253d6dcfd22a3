"""The published algorithms, written from their papers, to measure Shortlist against.

They are rivals, not oracles: each keeps the weaknesses its paper has (overflow, an approximate gradient, a fixed
bracket), and is checked against enumeration only where it claims to be right.
"""
