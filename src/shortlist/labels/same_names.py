"""The names of labels, compared with those of the training data."""

from collections.abc import Sequence

from shortlist.errors import ShortlistError


def check_same_names(ours: Sequence[str], theirs: Sequence[str], what: str, thing: str) -> None:
    """Raise a ShortlistError where ``what`` has other names of things than the training data, or another order.

    >>> check_same_names(["cat", "dog"], ["cat", "owl"], "test.csv", "label")
    Traceback (most recent call last):
    shortlist.ShortlistError: test.csv: label 1 is 'owl', in the training data it is 'dog'
    """
    if list(ours) == list(theirs):
        return
    if len(ours) != len(theirs):
        many = f"{thing}es" if thing.endswith("s") else f"{thing}s"
        raise ShortlistError(f"{what}: it has {len(theirs)} {many}, the training data has {len(ours)}")
    label = next(i for i in range(len(ours)) if ours[i] != theirs[i])
    raise ShortlistError(f"{what}: {thing} {label} is {theirs[label]!r}, in the training data it is {ours[label]!r}")
