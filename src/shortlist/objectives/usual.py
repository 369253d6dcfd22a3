"""The objective for a target, where nothing is asked for."""

import warnings
from typing import Any

import torch
from torch import Tensor

from shortlist.errors import ShortlistWarning
from shortlist.labels.counts import knows_absent
from shortlist.labels.sparse_labels import SparseLabels

_ENOUGH = 50  # examples with one label each, to believe that all have one


def usual_objective(target: Tensor | SparseLabels) -> tuple[str, bool]:
    """The objective for this target, and whether unknown labels are to be taken as absent.

    >>> usual_objective(torch.tensor([0, 2, 1])), usual_objective(torch.tensor([[1, 0], [-1, 1]]))
    (('cross-entropy', False), ('binary', False))
    """
    if target.ndim == 1:
        return "cross-entropy", False
    unknown = bool((target == -1).any())
    if not unknown or knows_absent(target):
        return "binary", False
    name = "assume-negative" if bool(((target == 1).sum(1) <= 1).all()) else "binary"
    absent, present = int((target == 0).sum()), int((target == 1).sum())
    few = "no label is known to be absent (the target holds no 0)"
    if absent:
        few = f"few labels are known to be absent ({absent} entries of the target, {present} to be present)"
    warnings.warn(
        f"{few}: unknown ones are taken as absent, by the objective {name!r}, and sets hold as many labels as were "
        f"recorded, give k if more apply; objective='binary' learns from what is known alone; see the guide to partial "
        f"labels for objectives made for this",
        ShortlistWarning,
        stacklevel=4,
    )
    return name, True


def is_one_hot(target: Tensor | SparseLabels) -> bool:
    """Whether every row of a label matrix has exactly one present label, and nothing is unknown, in enough rows and
    labels to believe that labels exclude each other.

    >>> is_one_hot(torch.eye(3).repeat(20, 1)), is_one_hot(torch.eye(3))
    (True, False)
    """
    if target.ndim != 2 or len(target) < _ENOUGH or target.shape[1] < 3:
        return False
    return bool(((target == 1).sum(1) == 1).all()) and not bool((target == -1).any())


def unknown_as_absent(target: Any) -> Any:
    """Unknown labels become absent ones, in the rows that have a present one; other rows say nothing.

    >>> unknown_as_absent(torch.tensor([[1, -1], [-1, -1]]))
    tensor([[ 1,  0],
            [-1, -1]])
    """
    if isinstance(target, SparseLabels):
        return _stored_as_absent(target)
    return torch.where((target == -1) & (target == 1).any(1, keepdim=True), 0, target)


def _stored_as_absent(target: SparseLabels) -> SparseLabels:
    """The same of what is stored. A row without a present label keeps all it has: all of it is stored then."""
    says = (target == 1).any(1)
    stored = target.values[:-1]
    values = torch.cat([stored.masked_fill(says[target.rows()] & (stored == -1), 0), target.values[-1:]])
    known = SparseLabels.made(target.offsets, target.indices, values, target.num_labels)
    if target.rest == 0:
        return known
    parts = []
    for row, length in _runs(says):
        part = known[row : row + length]
        part.values[-1] = 0
        parts.append(part if bool(says[row]) else SparseLabels.from_dense(known[row : row + length].to_dense()))
    return SparseLabels.concatenate(parts) if parts else known


def _runs(flags: Tensor) -> list[tuple[int, int]]:
    """Where stretches of equal flags begin, and how long they are."""
    _, lengths = torch.unique_consecutive(flags, return_counts=True)
    starts = lengths.cumsum(0) - lengths
    return list(zip(starts.tolist(), lengths.tolist(), strict=True))
