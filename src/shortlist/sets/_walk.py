"""A walk over every threshold that changes a set of the calibration rows, with the loss of each row on the way.

Sets are the labels with linked score >= threshold. The walk begins with empty sets and lets labels in, from the highest
score to the lowest; or it begins with all labels and takes them out, from the lowest to the highest. It goes in chunks,
so that its memory is bounded, and whoever walks may stop.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shortlist.sets._blocks import BLOCK
from shortlist.sets.risks import Risk

_CHUNK = 1 << 17  # entries that are sorted together
_SAMPLE = 1 << 16
_CELLS = 1 << 24  # memberships that are looked at together


class Steps(NamedTuple):
    """Some entries (label of a row) in the order of the walk."""

    value: NDArray[Any]  # their linked scores
    row: NDArray[Any]
    change: NDArray[np.float64]  # of the row's loss as the label comes in, or goes out

    @property
    def ends(self) -> NDArray[np.bool_]:
        """Whether the entry is the last of those with its score: only there do the sets belong to a threshold."""
        return np.append(self.value[1:] != self.value[:-1], True)


def walk(values: NDArray[Any], target: NDArray[Any], risk: Risk, inwards: bool = True) -> Iterator[Steps]:
    """Over linked scores and label matrix, both (rows, labels). Entries of equal score are in one chunk."""
    if risk.of_counts is not None and not inwards:
        raise AssertionError("losses of counts are walked inwards")
    present = np.count_nonzero(target == 1, axis=-1)
    hits, listed = np.zeros_like(present), np.zeros_like(present)
    loss = risk.at_start(target, inwards)
    for flat in _chunks(values, inwards, _CHUNK if risk.of_counts else max(1, _CELLS // values.shape[1])):
        value = values.reshape(-1)[flat]
        order = np.argsort(-value if inwards else value, kind="stable")
        flat, value = flat[order], value[order]
        row = flat // values.shape[1]
        if risk.of_counts is not None:
            known = target.reshape(-1)[flat]
            flat, value, row, known = (part[known >= 0] for part in (flat, value, row, known))
            by_row = np.argsort(row, kind="stable")
            sorted_row = row[by_row]
            hits_then = hits[sorted_row] + _running((known == 1)[by_row], sorted_row)
            listed_then = listed[sorted_row] + _running(np.ones_like(known, dtype=bool), sorted_row)
            after = risk.of_counts(hits_then, listed_then, present[sorted_row])
            last = _lasts(sorted_row)
            hits[sorted_row[last]], listed[sorted_row[last]] = hits_then[last], listed_then[last]
        else:
            by_row = np.argsort(row, kind="stable")
            own = values[row[by_row]]
            inside = own >= value[by_row, None] if inwards else own > value[by_row, None]
            after = risk.losses(inside, target[row[by_row]])
        differences = _differences(after, row[by_row], loss)
        change = np.empty_like(differences)
        change[by_row] = differences
        if len(row):
            yield Steps(value, row, change)


def _differences(after: NDArray[np.float64], row: NDArray[np.int64], loss: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how much each step changes the loss of its row; ``loss`` is brought up to date."""
    before = np.empty_like(after)
    before[1:] = after[:-1]
    first, last = _firsts(row), _lasts(row)
    before[first] = loss[row[first]]
    loss[row[last]] = after[last]
    return after - before


def _firsts(row: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Where another row begins (rows are sorted)."""
    return np.append(True, row[1:] != row[:-1]) if len(row) else np.zeros(0, bool)


def _lasts(row: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Where a row ends."""
    return np.append(row[1:] != row[:-1], True) if len(row) else np.zeros(0, bool)


def _running(what: NDArray[np.bool_], row: NDArray[np.int64]) -> NDArray[np.int64]:
    """The running count within each row (rows are sorted)."""
    count = what.cumsum()
    begin = np.flatnonzero(_firsts(row))
    base = np.repeat(count[begin] - what[begin], np.diff(np.append(begin, len(row))))
    return count - base


def _chunks(values: NDArray[Any], inwards: bool, size: int) -> Iterator[NDArray[np.int64]]:
    """Flat positions of the entries between bounds that cut them into parts of about ``size``, in order of the walk."""
    flat = values.reshape(-1)
    parts = -(-len(flat) // size)
    bounds = np.zeros(0)
    if parts > 1:
        sample = np.sort(flat[:: max(1, len(flat) // max(_SAMPLE, 16 * parts))])
        bounds = np.unique(sample[(np.arange(1, parts) * len(sample)) // parts])
    parts_between = list(pairwise([None, *bounds.tolist(), None]))
    for low, high in reversed(parts_between) if inwards else parts_between:
        found = []
        for start in range(0, len(flat), BLOCK):  # block by block: masks of all entries would take much memory
            block = flat[start : start + BLOCK]
            inside = np.ones_like(block, dtype=bool) if low is None else block > low
            if high is not None:
                inside &= block <= high
            found.append(np.flatnonzero(inside) + start)
        yield np.concatenate(found)
