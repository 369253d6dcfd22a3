"""Rows of features, dense tensors or sparse matrices alike."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

_LATEST = 5000  # held-out rows that partial_fit keeps from earlier calls


def take(inputs: Any, rows: Tensor) -> Any:
    """These rows; the same object where they are all of them."""
    if len(rows) == inputs.shape[0]:
        return inputs
    return inputs[rows] if isinstance(inputs, Tensor) else inputs[rows.numpy()]


def latest(parts: list[tuple[Any, Tensor]]) -> list[tuple[Any, Tensor]]:
    """The last parts that have enough rows together, without empty ones."""
    kept: list[tuple[Any, Tensor]] = []
    for inputs, target in reversed(parts):
        if len(target) and sum(len(one) for _, one in kept) < _LATEST:
            kept.insert(0, (inputs, target))
    return kept


def joined(parts: Sequence[Any]) -> Any:
    """Features below one another; sparse where some of them are."""
    if all(isinstance(part, Tensor) for part in parts):
        return torch.cat(list(parts))
    from scipy.sparse import csr_matrix, vstack

    return vstack([csr_matrix(part) for part in parts], format="csr")
