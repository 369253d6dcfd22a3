"""Rows of features, dense tensors or sparse matrices alike, and which of them are held out."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from torch import Tensor

from shortlist.data import Dataset, split
from shortlist.errors import ShortlistError, ShortlistWarning
from shortlist.labels import LabelSets
from shortlist.labels.counts import present_pairs
from shortlist.labels.label_set_inputs import check_stored
from shortlist.labels.sparse_labels import SparseLabels, dense_labels
from shortlist.objectives import count_labels

_HEAVIEST = 1e15  # that the losses take
_ALONE, _ALONE_SHARE = 10, 0.05  # rows that are the only ones of their class, and their share, to be told
_COPIES, _COPIES_SHARE = 10, 0.1  # rows that are there again, and their share, to be told
_COMPARED = 10_000  # different rows, to tell how often they are alike by chance
_LATEST = 5000  # held-out rows that partial_fit keeps from earlier calls


def read_weights(sample_weight: Any, rows: int) -> Tensor:
    """One weight per row, float32 (N,), some of them above 0."""
    check_stored(sample_weight, "sample_weight")
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ShortlistError(f"sample_weight must hold numbers, one per row: {error}") from None
    if weights.ndim != 1:
        raise ShortlistError(f"sample_weight must hold one number per row, shape ({rows},), got shape {weights.shape}")
    if len(weights) != rows:
        raise ShortlistError(f"sample_weight holds {len(weights)} weights, and X has {rows} rows: give one per row")
    bad = np.flatnonzero(~((weights >= 0) & (weights <= _HEAVIEST)))
    if len(bad):
        allowed = f"weights are finite numbers from 0 to {_HEAVIEST:g}"
        raise ShortlistError(f"sample_weight[{bad[0]}] is {weights[bad[0]]:g}: {allowed}")
    if not weights.any():
        raise ShortlistError("sample_weight is zero in every row: there is nothing to learn from")
    return torch.from_numpy(weights.astype(np.float32))


def chosen_rows(values: Any, rows: Tensor) -> Any:
    """These rows of ``X`` or ``y`` in any of their forms."""
    if isinstance(values, SparseLabels | LabelSets | Tensor):
        return values[rows.numpy()]
    return _safe_indexing(values, rows.numpy())


def held_out(target: Tensor | SparseLabels, count: int, names: tuple[str, ...], seed: int) -> tuple[Tensor, Tensor]:
    """The rows to learn from, and so many others, drawn at random so that every label is left to learn from."""
    everything = torch.arange(len(target))
    numbered = Dataset(everything[:, None], target, names)
    held = split(numbered, [count, len(target) - count], seed=seed, stratify=True)[0].inputs[:, 0]
    rest = torch.ones(len(target), dtype=torch.bool)
    rest[held] = False
    missing = count_labels(target[rest], len(names)) == 0
    if isinstance(target, Tensor) and target.ndim == 1:
        needed = missing[target[held]]
    else:
        rows, labels = present_pairs(target[held])
        needed = torch.zeros(len(held), dtype=torch.bool)
        needed[rows[missing[labels]]] = True
    rest[held[needed]] = True
    return everything[rest], held[~needed]


def warn_of_single_rows(target: Tensor | SparseLabels, labels: int) -> None:
    """Of rows that are the only ones of their class, where they are many: a model that did not learn from such a row
    does not know its class, so that nothing is learnt of them by holding rows out."""
    alone = int((count_labels(target, labels) == 1).sum()) if target.ndim == 1 else 0
    if alone >= _ALONE and alone > _ALONE_SHARE * len(target):
        warnings.warn(
            f"{alone} of {len(target)} rows are the only ones of their class, and cannot calibrate the sets: those of "
            "new rows may have another size than asked for, and miss more than promised; join such classes, or leave "
            "them out",
            ShortlistWarning,
            stacklevel=4,
        )


def warn_of_copies(inputs: Any, target: Any) -> None:
    """Of rows that are there again with the same labels, where chance does not repeat them: their columns have too many
    values. What holds out one of them learns from the other."""
    if not isinstance(inputs, Tensor) or not isinstance(target, Tensor):
        return
    rows = inputs.numpy()
    different = np.unique(31 * _marks(rows) + _marks(target.numpy()), return_index=True)[1]
    copies = len(rows) - len(different)
    if copies < max(_COPIES, _COPIES_SHARE * len(rows)):
        return
    by_chance = len(rows) ** 2 / 2 * _chance(rows[different[:_COMPARED]])  # in no order
    if copies < 2 * by_chance:
        return
    warnings.warn(
        f"{copies} of {len(rows)} rows are copies of others, with the same labels: held-out rows "
        "were learnt from as their copies, so that settings are chosen wrongly, and sets are too small and miss more "
        "than promised; give each row once, with how often it came as its sample_weight",
        ShortlistWarning,
        stacklevel=3,
    )


def _chance(rows: NDArray[Any]) -> float:
    """How often two rows would be copies, were they alike in two columns alone: in the one that repeats its values
    least, and in the next one that it does not tell, as the sine of a day nearly tells the cosine."""
    first, *others = sorted(rows.T, key=_alike)
    eighths = _eighths(first)
    for other in others:
        if _alike(8 * eighths + _eighths(other)) < 2.5 * _alike(eighths) * _alike(_eighths(other)):
            return _alike(first) * _alike(other)
    return _alike(first)


def _eighths(column: NDArray[Any]) -> NDArray[Any]:
    return np.searchsorted(np.quantile(column, np.arange(1, 8) / 8), column)


def _alike(column: NDArray[Any]) -> float:
    """How often two rows have the same value."""
    return float((np.unique(column, return_counts=True)[1] ** 2).sum() / len(column) ** 2)


def _marks(rows: NDArray[Any]) -> NDArray[np.uint64]:
    """A number of each row: equal rows, equal numbers."""
    bits = np.ascontiguousarray(rows, dtype=np.float32).reshape(len(rows), -1).view(np.uint32)
    factors = np.random.default_rng(0).integers(2**63, size=bits.shape[1], dtype=np.uint64)
    return np.asarray(np.einsum("ij,j->i", bits, factors))


def latest(parts: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The last parts that have enough rows together, without empty ones."""
    kept: list[tuple[Any, Any]] = []
    for inputs, target in reversed(parts):
        if len(target) and sum(len(one) for _, one in kept) < _LATEST:
            kept.insert(0, (inputs, target))
    return kept


def joined_targets(parts: Sequence[Any]) -> Any:
    """Targets below one another; sparse where all of them are."""
    if all(isinstance(part, SparseLabels) for part in parts) and len({part.rest for part in parts}) == 1:
        return SparseLabels.concatenate(list(parts))
    return torch.cat([dense_labels(part) for part in parts])


def joined(parts: Sequence[Any]) -> Any:
    """Features below one another; sparse where some of them are."""
    if all(isinstance(part, Tensor) for part in parts):
        return torch.cat(list(parts))
    from scipy.sparse import csr_matrix, vstack

    return vstack([csr_matrix(part) for part in parts], format="csr")
