"""Corruptions: ways to make clean labels noisy, incomplete or rare, as the papers do. Each one is recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from shortlist.checks import whole
from shortlist.data.dataset import Dataset
from shortlist.data.seeded import random_for
from shortlist.errors import ShortlistError
from shortlist.labels.counts import present_pairs
from shortlist.labels.label_sets import LabelSets
from shortlist.labels.sparse_labels import SparseLabels, Target
from shortlist.registry import Registry

_BLOCK = 2**24  # entries of a label matrix that are made at a time, where it is sparse


def noise_within_groups(dataset: Dataset, *, p: float, block: int | None = None, seed: int = 0) -> Dataset:
    """With probability ``p`` a label is replaced by one from the same coarse group, which may be the same one.

    So that predicting all labels of the right group is never wrong (Berrada et al. 2018, section 5.1).

    Args:
        dataset: with class indices.
        p: the probability.
        block: so many consecutive labels are a group, whatever the coarse groups are: with 5, what the program of
            Berrada et al. does on CIFAR-100. The number of labels must be a multiple of it.
        seed: the same seed draws the same labels.

    >>> from shortlist.data import ambiguous_numbers
    >>> clean = ambiguous_numbers(1000)
    >>> noisy = noise_within_groups(clean, p=1.0)
    >>> bool((noisy.target // 10 == clean.target // 10).all()), noisy.corruptions
    (True, ({'name': 'noise-within-groups', 'p': 1.0, 'seed': 0},))
    """
    _check_share("p", p)
    _need_indices(dataset, "noise-within-groups")
    if block is not None:
        block = whole(block, "block", 1)
        if dataset.num_labels % block:
            raise ShortlistError(
                f"block must divide the number of labels, {dataset.num_labels} of {dataset.name!r}, got {block}"
            )
        groups = np.arange(dataset.num_labels) // block
    elif dataset.groups is not None:
        groups = dataset.groups.numpy()
    else:
        raise ShortlistError(
            f"noise-within-groups needs coarse groups of labels, and {dataset.name!r} has none: give block, the number "
            f"of consecutive labels that are a group"
        )
    by_group = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    starts = np.cumsum(sizes) - sizes
    random = random_for("noise-within-groups", seed)
    target = dataset.target.numpy().copy()
    chosen = np.flatnonzero((random.random(len(target)) < p) & (target >= 0))
    group = groups[target[chosen]]
    target[chosen] = by_group[starts[group] + np.floor(random.random(len(chosen)) * sizes[group]).astype(np.int64)]
    blocks = {} if block is None else {"block": block}
    return relabelled(dataset, torch.from_numpy(target), "noise-within-groups", p=p, **blocks, seed=seed)


def symmetric_noise(dataset: Dataset, *, p: float, seed: int = 0) -> Dataset:
    """With probability ``p`` a label is replaced by one of the others, all equally likely.

    >>> data = Dataset(torch.eye(3), torch.tensor([0, 0, 1]), ("cat", "dog"))
    >>> symmetric_noise(data, p=1.0).target
    tensor([1, 1, 0])
    """
    _check_share("p", p)
    _need_indices(dataset, "symmetric-noise")
    if dataset.num_labels < 2:
        raise ShortlistError("symmetric-noise needs at least two labels")
    random = random_for("symmetric-noise", seed)
    target = dataset.target.numpy().copy()
    chosen = np.flatnonzero((random.random(len(target)) < p) & (target >= 0))
    target[chosen] = (target[chosen] + random.integers(1, dataset.num_labels, len(chosen))) % dataset.num_labels
    return relabelled(dataset, torch.from_numpy(target), "symmetric-noise", p=p, seed=seed)


def missing_labels(dataset: Dataset, *, rate: float, seed: int = 0) -> Dataset:
    """Each entry of the label matrix becomes unknown with probability ``rate``.

    >>> data = Dataset(torch.eye(2), torch.tensor([[1, 0], [0, 1]]), ("cat", "dog"))
    >>> missing_labels(data, rate=1.0).target
    tensor([[-1, -1], [-1, -1]], dtype=torch.int8)
    """
    _check_share("rate", rate)
    _need_matrix(dataset, "missing-labels")
    random, rows, labels = random_for("missing-labels", seed), len(dataset), dataset.num_labels
    if isinstance(dataset.target, SparseLabels):
        # by blocks of rows, the same draws; what there is less of is stored afterwards
        rest = -1 if rate > 0.5 else dataset.target.rest
        parts = []
        for start in range(0, max(rows, 1), step := max(1, _BLOCK // labels)):
            block = dataset.target[start : start + step].to_dense()
            hidden = torch.from_numpy(random.random(tuple(block.shape)) < rate)
            parts.append(SparseLabels.from_dense(block.masked_fill_(hidden, -1), rest))
        target: Any = SparseLabels.concatenate(parts)
    else:
        target = dataset.target.masked_fill(torch.from_numpy(random.random((rows, labels)) < rate), -1)
    return relabelled(dataset, target, "missing-labels", rate=rate, seed=seed)


def single_positive(dataset: Dataset, *, indices: bool = False, seed: int = 0) -> Dataset:
    """Of the labels present in an example, one is kept, all equally likely; everything else becomes unknown.

    Args:
        dataset: with a label matrix. An example without a present label becomes all unknown.
        indices: give class indices instead of a label matrix.
        seed: the same seed keeps the same labels.

    >>> data = Dataset(torch.eye(2), torch.tensor([[1, 0], [0, 0]]), ("cat", "dog"))
    >>> single_positive(data).target
    tensor([[ 1, -1], [-1, -1]], dtype=torch.int8)
    >>> single_positive(data, indices=True).target
    tensor([ 0, -1])
    """
    _need_matrix(dataset, "single-positive")
    if isinstance(dataset.target, SparseLabels):
        return _one_stored(dataset, dataset.target, indices, seed)
    present = dataset.target.numpy() == 1
    draws = random_for("single-positive", seed).random(present.shape)
    kept = np.where(present, draws, -1.0).argmax(1)
    kept = torch.from_numpy(np.where(present.any(1), kept, -1))
    if indices:
        target = kept
    else:
        own = kept[:, None] == torch.arange(dataset.num_labels)
        target = torch.where(own, 1, -1).to(torch.int8)
    return relabelled(dataset, target, "single-positive", indices=indices, seed=seed)


def _one_stored(dataset: Dataset, labels: SparseLabels, indices: bool, seed: int) -> Dataset:
    """`single_positive` of what is stored: a draw for each present label, none for the others."""
    row, label = (part.numpy() for part in present_pairs(labels))
    draws = random_for("single-positive", seed).random(len(row))
    order = np.lexsort((draws, row))
    first = np.ones(len(row), dtype=bool)
    first[1:] = row[order][1:] != row[order][:-1]
    kept = np.full(len(labels), -1, dtype=np.int64)
    kept[row[order][first]] = label[order][first]
    target: Any = torch.from_numpy(kept)
    if not indices:
        sizes = (kept >= 0).astype(np.int64)
        target = LabelSets(np.concatenate([[0], np.cumsum(sizes)]), kept[kept >= 0], dataset.num_labels, rest=-1)
    return relabelled(dataset, target, "single-positive", indices=indices, seed=seed)


def long_tailed(dataset: Dataset, *, ratio: float = 100.0, seed: int = 0) -> Dataset:
    """Keep ever fewer examples of each label, so that the first has ``ratio`` times as many as the last.

    Label c of L keeps ``most * ratio ** (-c / (L - 1))`` examples, at least one and at most what it has, where
    ``most`` is the size of the largest (Cui et al. 2019). Examples of unknown label are dropped.

    >>> data = Dataset(torch.zeros(30, 1), torch.arange(30) % 3, ("a", "b", "c"))
    >>> long_tailed(data, ratio=10).label_counts()
    tensor([10, 3, 1])
    """
    _need_indices(dataset, "long-tailed")
    if not ratio >= 1:
        raise ShortlistError(f"ratio must be at least 1, got {ratio}")
    random = random_for("long-tailed", seed)
    target = dataset.target.numpy()
    most = int(dataset.label_counts().max())
    kept = []
    for label in range(dataset.num_labels):
        keep = most * ratio ** (-label / max(dataset.num_labels - 1, 1))
        of_label = np.flatnonzero(target == label)
        # the tiny addition keeps an exact whole number from falling to the one below it
        kept.append(random.permutation(of_label)[: max(1, int(keep + 1e-9))])
    smaller = dataset.subset(np.sort(np.concatenate(kept)))
    return replace(smaller, corruptions=(*smaller.corruptions, {"name": "long-tailed", "ratio": ratio, "seed": seed}))


CORRUPTIONS: Registry[Callable[..., Dataset]] = Registry(
    "corruption",
    {
        "noise-within-groups": noise_within_groups,
        "symmetric-noise": symmetric_noise,
        "missing-labels": missing_labels,
        "single-positive": single_positive,
        "long-tailed": long_tailed,
    },
)


def corrupt(dataset: Dataset, corruption: str, *, allow_import: Sequence[str] = (), **options: Any) -> Dataset:
    """Apply a corruption by its name (see ``CORRUPTIONS``), or one of your own.

    >>> data = Dataset(torch.eye(2), torch.tensor([0, 1]), ("cat", "dog"))
    >>> corrupt(data, "symmetric-noise", p=0.0).target
    tensor([0, 1])
    """
    return CORRUPTIONS.find(corruption, allow_import)(dataset, **options)


def relabelled(dataset: Dataset, target: Target, corruption: str, **options: Any) -> Dataset:
    """The data set with this target; what was right before is kept as the truth, for evaluation, and the corruption is
    recorded. Corruptions end with it, yours too."""
    truth = dataset.truth
    if truth is None:
        if isinstance(dataset.target, SparseLabels):
            truth = dataset.target.to_sets().present.named(dataset.vocabulary)
        else:
            rows = dataset.target.numpy()
            sets = rows[:, None] == np.arange(dataset.num_labels) if dataset.is_single else rows == 1
            truth = LabelSets.from_dense(sets, dataset.vocabulary)
    if dataset.answers is not dataset.target:
        raise ShortlistError(f"{corruption} changes labels; {dataset.kind} are answered with something else")
    done = (*dataset.corruptions, {"name": corruption, **options})
    return replace(dataset, target=target, truth=truth, corruptions=done)


def _check_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ShortlistError(f"{name} must be a probability from 0 to 1, got {value!r}")


def _need_indices(dataset: Dataset, corruption: str) -> None:
    if not dataset.is_single:
        raise ShortlistError(
            f"{corruption} is for class indices, and {dataset.name!r} has a label matrix: use missing-labels or "
            f"single-positive"
        )


def _need_matrix(dataset: Dataset, corruption: str) -> None:
    if dataset.is_single:
        raise ShortlistError(
            f"{corruption} is for a label matrix, and {dataset.name!r} has class indices: convert them with "
            f"shortlist.labels.from_indices"
        )
