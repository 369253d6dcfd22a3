"""A linear head fitted to all rows at once: which scale of the columns, which strength, and the weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shortlist.objectives import Objective
from shortlist.training.full_batch import Curvature, Loss, binary_columns, fit_linear, softmax_rows, whole
from shortlist.training.strengths import FOLDS, USUAL, choose_strength, stretched, zero_weights

# one linear head and a smooth loss of its scores
FULL_BATCH = (
    "cross-entropy", "binary", "smooth-topk", "truncated-entropy", "lml", "assume-negative", "expected-positive",
    "two-way", "asymmetric", "lsep", "multilabel-softmax", "partial-binary",
)  # fmt: skip
_MOST_SCORES, _MOST_WEIGHTS, _MOST_PRODUCTS = 10**8, 10**7, 4 * 10**9  # a gigabyte, and minutes on two cores
_TOLERANCE = 1e-4  # of the weights that stay
_ONE_KIND = 100  # times as wide a column may spread as another one of the same unit
_OWN_SCALE, _ONE_SCALE = "each column's own", "one for all columns"


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
    """What was used, and what was tried on held-out rows to choose it."""

    weight_decay: float
    stretch: float
    evaluations: int
    tried: list[dict[str, Any]]
    held_out_scores: Tensor | None  # of every row, from when a fold held it out


def fit_head(
    objective: Objective, inputs: Any, target: Tensor, names: tuple[str, ...], weight_decay: float | str, *,
    common_scale: NDArray[Any] | None, single: bool, seed: int,
) -> Fitted:  # fmt: skip
    """Fit the objective's head in place. A ``weight_decay`` of "auto" is chosen by folds, where there are rows enough;
    with a ``common_scale``, so is whether columns are standardised or have, times it, one scale for all."""
    loss = loss_of(objective)
    forms = {_OWN_SCALE: inputs}
    if common_scale is not None:
        one = {_ONE_SCALE: inputs * torch.from_numpy(common_scale)}
        small, large = np.quantile(common_scale, [0.01, 0.99])
        forms = one | forms if large <= _ONE_KIND * small else forms | one  # the likely one first
    curvatures = {form: Curvature.of(columns) for form, columns in forms.items()}
    start = zero_weights((inputs, target), len(names))
    form, stretch, centre, scores, tried = _OWN_SCALE, 1.0, start[-1], None, []
    if weight_decay == "auto" and len(target) >= 2 * FOLDS:
        found = choose_strength(forms, curvatures, target, names, loss, single, seed)
        form, strength, scores, tried = found.form, found.strength, found.scores, found.tried
        stretch, centre, start = found.stretch, found.centre, found.start
    else:
        strength = USUAL if weight_decay == "auto" else float(weight_decay)
    solution = fit_linear(forms[form], target, start, loss, strength, curvatures[form], tolerance=_TOLERANCE)
    weights, bias = stretch * solution.weights[:-1].T, stretched(solution.weights[-1], centre, stretch)
    if common_scale is not None and form == _ONE_SCALE:
        weights = weights * torch.from_numpy(common_scale)  # of the standardised columns again
    objective.load_state_dict({**objective.state_dict(), "head.weight": weights, "head.bias": bias})
    return Fitted(strength, stretch, solution.evaluations, tried, scores)
