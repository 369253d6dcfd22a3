"""A linear head that is fitted to all rows at once: which scale of the columns, or similarities in their place, which
strength, and the weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from shortlist.models.similarities import Similarities
from shortlist.objectives import Objective
from shortlist.training.full_batch import Loss, binary_columns, fit_linear, softmax_rows, whole
from shortlist.training.head_columns import BETWEEN, ONE_SCALE, OWN_SCALE, HeadColumns, Scales
from shortlist.training.strengths import FOLDS, USUAL, Chosen, StrengthSearch, stretched, zero_weights

# one linear head and a smooth loss of its scores
FULL_BATCH = (
    "cross-entropy", "binary", "smooth-topk", "truncated-entropy", "lml", "assume-negative", "expected-positive",
    "two-way", "asymmetric", "lsep", "multilabel-softmax", "partial-binary",
)  # fmt: skip
_MOST_SCORES, _MOST_WEIGHTS, _MOST_PRODUCTS = 10**8, 10**7, 4 * 10**9  # a gigabyte, and minutes on two cores
_TOLERANCE, _QUICK = 1e-4, 1e-3  # of the weights that stay, and of those that were chosen quickly
_SIMILARITIES = "of similarities"


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
    score_loss: Callable[..., Tensor] = objective.score_loss  # type: ignore[assignment]
    return whole(score_loss)


@dataclass(frozen=True)
class Fitted:
    """Weights (L, D) and biases on the inputs, or on ``similarities``; what was used, and what was tried on held-out
    rows to choose it."""

    weights: Tensor
    biases: Tensor
    similarities: Similarities | None
    weight_decay: float
    stretch: float
    evaluations: int
    tried: list[dict[str, Any]]
    held_out_scores: Tensor | None  # of every row, from when a fold held it out


@dataclass(frozen=True)
class Choice:
    """A head that is decided on, but for its weights: to what it is fitted, and how. ``beside`` is what columns
    and similarities reached on the same held-out rows, where both were tried."""

    columns: HeadColumns
    target: Tensor
    loss: Loss
    found: Chosen
    tried: list[dict[str, Any]]
    beside: tuple[dict[str, float], dict[str, float]] | None = None
    tolerance: float = _TOLERANCE
    seconds: float = 0.0  # that it took to decide, where that was before training
    weights: Tensor | None = None  # of rows

    def of_more(self, inputs: Any, target: Tensor, names: tuple[str, ...], single: bool, seed: int) -> Choice:
        """The same for all rows, where a share of them has chosen: its strength, judged by three folds of all."""
        columns, search = HeadColumns.scaled(inputs, None, None), StrengthSearch(target, names, self.loss, single, seed)
        found = search.only(self.found, columns)
        return Choice(columns, target, self.loss, found, [*self.tried, *search.tried])

    def fit(self) -> Fitted:
        found, columns = self.found, self.columns
        data = columns.columns, self.target
        solution = fit_linear(
            *data, found.start, self.loss, found.strength, columns.variances, self.weights, tolerance=self.tolerance
        )
        weights = found.stretch * solution.weights[:-1]
        biases = stretched(solution.weights[-1], found.centre, found.stretch)
        weights, biases = columns.head(weights, biases)
        used = found.strength, found.stretch, solution.evaluations
        return Fitted(weights.T, biases, columns.layer, *used, self.tried, found.scores if found.folds else None)


def choose_head(
    loss: Loss, inputs: Any, target: Tensor, names: tuple[str, ...], weight_decay: float | str, *,
    scales: Scales, landmarks: int | Similarities = 0, single: bool, seed: int, weights: Tensor | None = None,
) -> Choice:  # fmt: skip
    """A ``weight_decay`` of "auto" is chosen by folds, where there are rows enough. With scales of both kinds, so is
    whether columns have each their own, one for all or what is between; with a number of ``landmarks``, so is whether
    similarities to so many rows take the place of the columns, for which they have to do better in every fold. A layer
    of similarities takes it in any case. Rows with ``weights`` count so many times."""
    layer, count = (landmarks, 0) if isinstance(landmarks, Similarities) else (None, landmarks)
    forms = _scaled(inputs, scales) if layer is None else {_SIMILARITIES: HeadColumns.similar(inputs, layer)}
    if weight_decay != "auto" or len(target) < 2 * FOLDS:
        form = OWN_SCALE if layer is None else _SIMILARITIES
        strength = USUAL if weight_decay == "auto" else float(weight_decay)
        given = Chosen.given(form, strength, zero_weights((forms[form].columns, target), len(names), weights))
        return Choice(forms[form], target, loss, given, [], weights=weights)
    search = StrengthSearch(target, names, loss, single, seed, weights)
    if layer is not None and single:
        found = search.quick(_SIMILARITIES, forms[_SIMILARITIES])
        return Choice(forms[_SIMILARITIES], target, loss, found, search.tried, tolerance=_QUICK, weights=weights)
    found = search.best(forms, wide=inputs.shape[1] > inputs.shape[0])
    choice = Choice(forms[found.form], target, loss, found, search.tried, weights=weights)
    if not count or search.is_sure(found):
        return choice
    # distances are those of one scale, or of each column's own, whichever did better
    scaled = [one for one in search.tried if one["scale"] != BETWEEN]
    likely = min(scaled, key=lambda one: one["loss"] - one["precision_at_1"])["scale"]
    scale = forms[likely].scale
    layer = Similarities.to_some(inputs, count, torch.ones(inputs.shape[1]) if scale is None else scale, seed)
    if layer is None:
        return choice
    layer.one_scale = likely == ONE_SCALE
    similar, form = HeadColumns.similar(inputs, layer), f"{_SIMILARITIES}, {likely}"
    other = search.quick(form, similar, found) if single else search.best({form: similar})
    choice = replace(choice, beside=(search.reached(found, other.folds), search.reached(other, other.folds)))
    if search.does_better(other, found):
        choice = replace(choice, columns=similar, found=other, tolerance=_QUICK if single else _TOLERANCE)
    return choice


def _scaled(inputs: Any, scales: Scales) -> dict[str, HeadColumns]:
    return {form: HeadColumns.scaled(inputs, scales.centre, each) for form, each in scales.tried(inputs).items()}
