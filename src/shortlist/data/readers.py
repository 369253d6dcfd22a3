"""Every reader by name."""

from collections.abc import Callable
from typing import Any

from shortlist.data._problems import DataError, Problem, thorough
from shortlist.data.ambiguous_numbers import ambiguous_numbers
from shortlist.data.dataset import Dataset
from shortlist.data.features import read_features

READERS: dict[str, Callable[..., Dataset]] = {
    "ambiguous-numbers": ambiguous_numbers,
    "features": read_features,
}


def read(reader: str, **options: Any) -> Dataset:
    """The data set that a reader makes of these options (see ``READERS`` for the names).

    >>> read("ambiguous-numbers", size=100, seed=1)
    Dataset('ambiguous-numbers': 100 examples, 128 features, one of 100 labels each)
    """
    return _named(reader)(**options)


def problems(reader: str, **options: Any) -> list[Problem]:
    """Everything that is wrong with the files a reader would read, images included; empty when all is well.

    >>> for problem in problems("features", path="nowhere.npz"):
    ...     print(problem)
    nowhere.npz: no such file
    """
    try:
        with thorough():
            _named(reader)(**options)
    except DataError as error:
        return error.problems
    return []


def _named(reader: str) -> Callable[..., Dataset]:
    if reader not in READERS:
        raise ValueError(f"there is no reader {reader!r}; there are {', '.join(sorted(READERS))}")
    return READERS[reader]
