"""The attack: every function of ``shortlist.functional`` on random and extreme input, native against twin.

``python -m tests.fuzz --cases N --seed S`` (or ``make fuzz CASES=N SEED=S``). A case is one row of scores with its
target and options; rows that share a call are one batch, and ``--batch B`` runs one again. ``draw.py`` draws the input,
``functions.py`` says how each function is called, ``compare.py`` what must agree and how closely.
"""
