"""Splitting a data set into parts, at random but repeatably."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.data.dataset import Dataset
from shortlist.data.seeded import random_for
from shortlist.data.stratify import dealt
from shortlist.errors import ShortlistError
from shortlist.labels.counts import present_pairs


def split(
    dataset: Dataset,
    parts: Sequence[float] | Sequence[int],
    *,
    seed: int = 0,
    stratify: bool = False,
    groups: Any = None,
    time: Any = None,
) -> tuple[Dataset, ...]:
    """Disjoint parts of a data set: random ones, or one after the other in time.

    Args:
        dataset: what to split.
        parts: how much each part gets: fractions (floats) or numbers of examples (ints). What is left over is in no
            part.
        seed: the same seed gives the same parts.
        stratify: give every part its share of each label; of a label matrix by iterative stratification. Unknown
            labels do not count.
        groups: what each example belongs to (N,), such as a patient: numbers or texts. All examples of a group are in
            the same part, so that parts have about, not exactly, the size asked for.
        time: when each example was made (N,): numbers, dates or texts that sort. The parts follow each other in time,
            and nothing is drawn; what is left over is the oldest.

    >>> import torch
    >>> data = Dataset(torch.arange(10.0)[:, None], torch.tensor([0, 1] * 5), ("cat", "dog"))
    >>> train, test = split(data, (0.8, 0.2), stratify=True)
    >>> train.label_counts(), len(test)
    (tensor([4, 4]), 2)
    >>> [len(part) for part in split(data, (2, 3))]
    [2, 3]
    >>> train, test = split(data, (0.8, 0.2), groups=["a"] * 5 + ["b"] * 3 + ["c"] * 2)
    >>> train.inputs.flatten(), test.inputs.flatten()
    (tensor([0., 1., 2., 3., 4., 5., 6., 7.]), tensor([8., 9.]))
    >>> split(data, (0.7, 0.3), time=[9, 8, 7, 6, 5, 4, 3, 2, 1, 0])[1].inputs.flatten()
    tensor([0., 1., 2.])
    """
    if groups is not None and time is not None:
        raise ShortlistError("parts are cut by groups or by time, not by both: give one of them")
    ends = _ends(parts, len(dataset))
    random = random_for("split", seed)
    if time is not None:
        order = np.argsort(_column(time, len(dataset), "time"), kind="stable")
        order = order[len(order) - ends[-1] :]
    elif groups is not None or (stratify and not dataset.is_single):
        return _dealt(dataset, ends, random, stratify, groups)
    else:
        order = random.permutation(len(dataset))
        if stratify:
            target = dataset.target.numpy()
            order = _spread(order, np.where(target < 0, dataset.num_labels, target), random)
    return tuple(dataset.subset(np.sort(order[begin:end])) for begin, end in zip([0, *ends], ends, strict=False))


def _dealt(
    dataset: Dataset, ends: list[int], random: np.random.Generator, stratify: bool, groups: Any
) -> tuple[Dataset, ...]:
    """Parts of whole groups (without groups, of single examples), with each label in proportion if stratified."""
    total, labels = len(dataset), dataset.num_labels
    if groups is None:
        group = np.arange(total)
    else:
        group = np.unique(_column(groups, total, "groups"), return_inverse=True)[1]
    sizes = np.bincount(group)
    if dataset.is_single:
        target = dataset.target.numpy()
        row, label = np.flatnonzero(target >= 0), target[target >= 0]
    else:
        row, label = (part.numpy() for part in present_pairs(dataset.target))
    if not stratify:
        row, label = row[:0], label[:0]
    pairs, count = np.unique(group[row] * labels + label, return_counts=True)
    wanted = np.diff([0, *ends, total])
    part = dealt(sizes, pairs // labels, pairs % labels, count, wanted, random)[group]
    found = tuple(dataset.subset(np.flatnonzero(part == number)) for number in range(len(ends)))
    for number, (piece, size) in enumerate(zip(found, wanted.tolist(), strict=False)):
        if size and not len(piece):
            raise ShortlistError(
                f"{len(sizes)} groups, the largest of {sizes.max()} of {total} examples, leave nothing for part "
                f"{number}, which should have {size}: ask for fewer parts or for larger ones, or give smaller groups"
            )
    return found


def _column(values: Any, total: int, what: str) -> NDArray[Any]:
    """One value per example that can be told apart and sorted, none of them missing."""
    array = np.asarray(values)
    if array.shape != (total,):
        raise ShortlistError(f"{what} must have one value for each of {total} examples, got shape {array.shape}")
    # a value that is not equal to itself is NaN, or a date that is none
    missing = np.array([value is None for value in array], dtype=bool) | np.asarray(array != array, dtype=bool)
    if missing.any():
        raise ShortlistError(f"{what}[{int(missing.argmax())}] is missing: every example needs one")
    if array.dtype.kind == "O":
        kinds = sorted({type(value).__name__ for value in array.tolist()})
        if len(kinds) > 1:
            raise ShortlistError(f"{what} must be all numbers, all dates or all texts, got {' and '.join(kinds)}")
    return array


def _ends(parts: Sequence[float] | Sequence[int], total: int) -> list[int]:
    """Where each part ends in the shuffled order."""
    whole = all(isinstance(part, int) and not isinstance(part, bool) for part in parts)
    alike = whole or all(isinstance(part, float) for part in parts)
    if not parts or not alike or not all(part >= 0 for part in parts):
        raise ShortlistError(f"parts must be all fractions (floats) or all numbers of examples (ints), got {parts!r}")
    allowed = total if whole else 1
    if sum(parts) > allowed + 1e-9:
        raise ShortlistError(
            f"parts sum to {sum(parts)}, but there {'are' if whole else 'is'} only {allowed}: {parts!r}"
        )
    ends = np.cumsum(parts) if whole else np.round(np.cumsum(parts) * total)
    return [min(int(end), total) for end in ends]


def _spread(order: NDArray[np.int64], strata: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
    """Reorder so that every stretch holds each stratum in proportion: sorted by the place within the own stratum."""
    _, stratum, sizes = np.unique(strata[order], return_inverse=True, return_counts=True)
    by_stratum = np.argsort(stratum, kind="stable")
    place = np.empty(len(order), dtype=np.float64)
    place[by_stratum] = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    # each stratum starts at a random offset, or else all small ones would end up in the same part
    place = (place + random.random(len(sizes))[stratum]) / sizes[stratum]
    return order[np.argsort(place, kind="stable")]
