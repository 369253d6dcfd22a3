"""A linear head fitted to all rows at once: which scale of the columns, or similarities in their place, which strength,
and the weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shortlist.models.similarities import Similarities
from shortlist.objectives import Objective
from shortlist.training.full_batch import Curvature, Loss, binary_columns, fit_linear, softmax_rows, whole
from shortlist.training.similarity_columns import SimilarityColumns
from shortlist.training.strengths import FOLDS, USUAL, choose_strength, does_better, stretched, zero_weights

# one linear head and a smooth loss of its scores
FULL_BATCH = (
    "cross-entropy", "binary", "smooth-topk", "truncated-entropy", "lml", "assume-negative", "expected-positive",
    "two-way", "asymmetric", "lsep", "multilabel-softmax", "partial-binary",
)  # fmt: skip
_MOST_SCORES, _MOST_WEIGHTS, _MOST_PRODUCTS = 10**8, 10**7, 4 * 10**9  # a gigabyte, and minutes on two cores
_TOLERANCE = 1e-4  # of the weights that stay
_ONE_KIND = 100  # times as wide a column may spread as another one of the same unit
_OWN_SCALE, _ONE_SCALE, _SIMILARITIES = "each column's own", "one for all columns", "of similarities"


def fits_full_batch(inputs: Any, num_labels: int) -> bool:
    """Whether scores, curvature and the time of some hundred passes stay within bounds."""
    rows, columns = inputs.shape
    stored = inputs.nnz if hasattr(inputs, "nnz") else rows * columns
    return (
        rows * num_labels <= _MOST_SCORES
        and (columns + 1) * num_labels <= _MOST_WEIGHTS
        and stored * num_labels <= _MOST_PRODUCTS
    )


def loss_of(objective: Objective) -> Loss:
    """The objective's loss for the full-batch solver; label by label where it is a plain sum over labels, and without
    autograd where its gradient is known."""
    if objective.name == "binary" and objective.config.pos_weight is None:
        return binary_columns
    if objective.name == "cross-entropy" and objective.config.label_smoothing == 0 and objective.weight is None:
        return softmax_rows
    score_loss: Callable[[Tensor, Tensor], Tensor] = objective.score_loss  # type: ignore[assignment]
    return whole(score_loss)


@dataclass(frozen=True)
class Fitted:
    """Weights (L, D) and biases on the columns, or on ``similarities``; what was used, and what was tried on held-out
    rows to choose it."""

    weights: Tensor
    biases: Tensor
    similarities: Similarities | None
    weight_decay: float
    stretch: float
    evaluations: int
    tried: list[dict[str, Any]]
    held_out_scores: Tensor | None  # of every row, from when a fold held it out


def fit_head(
    loss: Loss, inputs: Any, target: Tensor, names: tuple[str, ...], weight_decay: float | str, *,
    common_scale: NDArray[Any] | None, landmarks: int, single: bool, seed: int,
) -> Fitted:  # fmt: skip
    """A ``weight_decay`` of "auto" is chosen by folds, where there are rows enough. With a ``common_scale``, so is
    whether columns are standardised or have, times it, one scale for all; with ``landmarks``, so is whether
    similarities to so many rows take the place of the columns, for which they have to do better in every fold."""
    forms = {_OWN_SCALE: inputs}
    if common_scale is not None:
        one = {_ONE_SCALE: inputs * torch.from_numpy(common_scale)}
        small, large = np.quantile(common_scale, [0.01, 0.99])
        forms = one | forms if large <= _ONE_KIND * small else forms | one  # the likely one first
    curvatures = {form: Curvature.of(columns) for form, columns in forms.items()}
    if weight_decay != "auto" or len(target) < 2 * FOLDS:
        strength = USUAL if weight_decay == "auto" else float(weight_decay)
        start = zero_weights((inputs, target), len(names))
        solution = fit_linear(inputs, target, start, loss, strength, curvatures[_OWN_SCALE], tolerance=_TOLERANCE)
        weights, biases = solution.weights[:-1].T, solution.weights[-1]
        return Fitted(weights, biases, None, strength, 1.0, solution.evaluations, [], None)
    found = choose_strength(forms, curvatures, target, names, loss, single, seed)
    scale = torch.ones(inputs.shape[1])
    if common_scale is not None and found.form == _ONE_SCALE:
        scale = torch.from_numpy(common_scale)
    columns, curvature, tried = forms[found.form], curvatures[found.form], found.tried
    similar = SimilarityColumns.of(inputs, landmarks, scale, seed) if landmarks else None
    if similar is not None:
        forms = {f"{_SIMILARITIES}, {found.form}": similar.columns}
        curvatures = {form: Curvature.of(similar.columns) for form in forms}
        other = choose_strength(forms, curvatures, target, names, loss, single, seed)
        tried = tried + other.tried
        if does_better(other, found, target, loss):
            found, columns, curvature = other, similar.columns, curvatures[other.form]
        else:
            similar = None
    solution = fit_linear(columns, target, found.start, loss, found.strength, curvature, tolerance=_TOLERANCE)
    weights = found.stretch * solution.weights[:-1]
    biases = stretched(solution.weights[-1], found.centre, found.stretch)
    if similar is None:
        layer, weights = None, weights * scale[:, None]  # of the standardised columns again
    else:
        layer, (weights, biases) = similar.layer, similar.head(weights, biases)
    used = found.strength, found.stretch, solution.evaluations
    return Fitted(weights.T, biases, layer, *used, tried, found.scores)
