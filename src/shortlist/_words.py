"""Words in messages."""

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """ "; did you mean ...?", or nothing where no known word is near.

    >>> nearest("epohcs", ["epochs", "seed"])
    "; did you mean 'epochs'?"
    """
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""
