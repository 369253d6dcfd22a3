"""Splitting a data set into parts, at random but repeatably."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shortlist.data._random import random_for
from shortlist.data.dataset import Dataset
from shortlist.errors import ShortlistError


def split(
    dataset: Dataset, parts: Sequence[float] | Sequence[int], *, seed: int = 0, stratify: bool = False
) -> tuple[Dataset, ...]:
    """Disjoint random parts of a data set.

    Args:
        dataset: what to split.
        parts: how much each part gets: fractions (floats) or numbers of examples (ints). What is left over is in no
            part.
        seed: the same seed gives the same parts.
        stratify: give every part its share of each label. In a label matrix an example counts for the rarest of the
            labels that are present in it.

    >>> import torch
    >>> data = Dataset(torch.arange(10.0)[:, None], torch.tensor([0, 1] * 5), ("cat", "dog"))
    >>> train, test = split(data, (0.8, 0.2), stratify=True)
    >>> train.label_counts(), len(test)
    (tensor([4, 4]), 2)
    >>> [len(part) for part in split(data, (2, 3))]
    [2, 3]
    """
    ends = _ends(parts, len(dataset))
    random = random_for("split", seed)
    order = random.permutation(len(dataset))
    if stratify:
        order = _spread(order, _strata(dataset), random)
    return tuple(dataset.subset(np.sort(order[begin:end])) for begin, end in zip([0, *ends], ends, strict=False))


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


def _strata(dataset: Dataset) -> NDArray[np.int64]:
    """One number per example: its label, or the rarest of its labels; num_labels for examples without any."""
    target = dataset.target.numpy()
    if dataset.is_single:
        return np.where(target < 0, dataset.num_labels, target)
    rarity = np.argsort(np.argsort(-dataset.label_counts().numpy(), kind="stable"))
    rarest = np.where(target == 1, rarity, -1).argmax(1)
    return np.where((target == 1).any(1), rarest, dataset.num_labels)


def _spread(order: NDArray[np.int64], strata: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
    """Reorder so that every stretch holds each stratum in proportion: sorted by the place within the own stratum."""
    _, stratum, sizes = np.unique(strata[order], return_inverse=True, return_counts=True)
    by_stratum = np.argsort(stratum, kind="stable")
    place = np.empty(len(order), dtype=np.float64)
    place[by_stratum] = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    # each stratum starts at a random offset, or else all small ones would end up in the same part
    place = (place + random.random(len(sizes))[stratum]) / sizes[stratum]
    return order[np.argsort(place, kind="stable")]
