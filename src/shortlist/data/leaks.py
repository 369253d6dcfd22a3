"""Columns that tell the label alone: a copy of it, a code for it, or what is only known afterwards."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from shortlist.data.column_use import as_option, listed
from shortlist.data.dataset import Dataset
from shortlist.data.table_rows import TableRows

_ROWS = 50  # with fewer, a column tells the label by chance
_FIRST_LOOK = 1000  # rows that show of most columns that they do not
_ROWS_PER_VALUE = 10  # with fewer on average, values nearly name the row
_ROWS_PER_RANGE = 5  # of numbers: with fewer, a label may lie apart by chance
_WRONG = 0.005  # of all rows, and a tenth of what the commonest label leaves wrong


def leak_concerns(dataset: Dataset, features: tuple[str, ...]) -> list[str]:
    """The features of which each value has nearly always the same label, where values are few beside the rows; numbers
    of which each label has a range for itself, as it has where it was made of them; and texts that name it.

    >>> import torch
    >>> X = torch.stack([torch.randn(100), torch.arange(100) % 2], 1)
    >>> print(*leak_concerns(Dataset(X, torch.arange(100) % 2, ("paid", "default")), ("income", "code")))
    'code' alone tells the label in 100 % of the rows: is it known before the label is? If not: other_columns='["code"]'
    """
    inputs, target = dataset.inputs, dataset.target
    if not dataset.is_single or not isinstance(inputs, Tensor | TableRows) or len(inputs.shape) != 2:
        return []
    known = np.flatnonzero(target.numpy() >= 0)
    if len(known) < _ROWS:
        return []
    some = known[:: -(-len(known) // _FIRST_LOOK)]
    labels = target.numpy()
    found = {}
    for place, name in enumerate(features):
        column = inputs[:, place].numpy() if isinstance(inputs, Tensor) else inputs.column(name)
        first = _told(_codes(column, some), labels[some], rows_per_value=2, wrong=4 * _WRONG)
        told = first and _told(_codes(column, known), labels[known], rows_per_value=_ROWS_PER_VALUE, wrong=_WRONG)
        told = told or float(all(_has_ranges(column, rows, labels) for rows in (some, known)))
        told = told or (_named(column, some, dataset) and _named(column, known, dataset))
        if told:
            found[name] = told
    if not found:
        return []
    names, least = list(found), f"{int(1000 * min(found.values())) / 10:g} %"
    if len(names) == 1:
        said = f"{names[0]!r} alone tells the label in {least} of the rows: is it known before the label is?"
    else:
        shown = listed([repr(name) for name in names], 3)
        said = f"each of {shown} alone tells the label in {least} of the rows or more: are they known before it is?"
    return [f"{said} If not: other_columns={as_option(names)}"]


def _codes(column: Any, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for each different value; blank is one."""
    if isinstance(column, np.ndarray):
        return np.unique(column[rows], return_inverse=True)[1]
    codes: NDArray[np.int64] = column.iloc[rows].factorize(use_na_sentinel=False)[0]
    return codes


def _named(column: Any, rows: NDArray[np.int64], dataset: Dataset) -> float:
    """The share of the rows whose label is the one that their text names, as `_told`; 0 where many do not name it."""
    if isinstance(column, np.ndarray) or column.dtype.kind in "iufb":
        return 0.0
    texts, plain = [str(cell).casefold() for cell in column.iloc[rows]], [one.casefold() for one in dataset.vocabulary]
    labels = dataset.target.numpy()[rows]
    missed = sum(plain[label] not in text for text, label in zip(texts, labels.tolist(), strict=True))
    if missed > 4 * _WRONG * len(rows):  # found soon
        return 0.0
    words = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(plain, key=len, reverse=True)))})(?!\w)")
    place = {name: number for number, name in enumerate(plain, 1)}
    codes = np.array([place[one.group()] if (one := words.search(text)) else 0 for text in texts])
    return _told(codes, labels, rows_per_value=2, wrong=_WRONG)


def _has_ranges(column: Any, rows: NDArray[np.int64], labels: NDArray[np.int64]) -> bool:
    """Whether the column holds numbers, none of them blank, that each label has a range of for itself."""
    values = np.asarray(column)[rows]
    if values.dtype.kind not in "iuf" or np.isnan(values).any():
        return False
    order = np.argsort(values)
    values, found = values[order], labels[rows][order]
    changes = found[1:] != found[:-1]
    _, counts = np.unique(found, return_counts=True)
    if len(counts) < 2 or counts.min() < _ROWS_PER_RANGE or changes.sum() >= len(counts):
        return False
    return bool((values[1:] != values[:-1])[changes].all())


def _told(codes: NDArray[np.int64], labels: NDArray[np.int64], rows_per_value: int, wrong: float) -> float:
    """The share of the rows that have the commonest label of their value; 0 where that is not nearly all, where values
    are many, or where one label is nearly everywhere."""
    rows, values = len(codes), int(codes.max()) + 1
    if values * rows_per_value > rows:
        return 0.0
    pairs, times = np.unique(codes * (int(labels.max()) + 1) + labels, return_counts=True)
    most = np.zeros(values, np.int64)
    np.maximum.at(most, pairs // (int(labels.max()) + 1), times)
    left, by_commonest = rows - int(most.sum()), rows - int(np.bincount(labels).max())
    return 1 - left / rows if left <= wrong * rows and 10 * left <= by_commonest and by_commonest else 0.0
