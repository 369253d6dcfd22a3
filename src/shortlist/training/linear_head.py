"""A linear head that is fitted to all rows at once: which scale of the columns, or similarities in their place, which
strength, and the weights."""

from __future__ import annotations

import copy
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

    def mean_with(self, columns: Fitted, shares: tuple[float, float]) -> Fitted:
        """The sum of so much of these scores, of ``similarities``, and so much of those of the columns."""
        layer, held, (own, other) = copy.deepcopy(self.similarities), None, shares
        assert layer is not None
        layer.with_columns = True
        if self.held_out_scores is not None and columns.held_out_scores is not None:
            held = own * self.held_out_scores + other * columns.held_out_scores
        return replace(
            self,
            weights=torch.cat([own * self.weights, other * columns.weights], 1),
            biases=own * self.biases + other * columns.biases,
            similarities=layer,
            evaluations=self.evaluations + columns.evaluations,
            held_out_scores=held,
        )


@dataclass(frozen=True)
class Choice:
    """A head that is decided on, but for its weights: to what it is fitted, and how. Where there is another one,
    ``with_columns``, both have their ``shares`` of the scores. ``beside`` is what columns and similarities, or that
    sum, reached on the same held-out rows, where both were tried."""

    columns: HeadColumns
    target: Tensor
    loss: Loss
    found: Chosen
    tried: list[dict[str, Any]]
    beside: tuple[dict[str, float], dict[str, float]] | None = None
    tolerance: float = _TOLERANCE
    seconds: float = 0.0  # that it took to decide, where that was before training
    weights: Tensor | None = None  # of rows
    with_columns: Choice | None = None
    shares: tuple[float, float] = (1.0, 0.0)

    def of_more(self, inputs: Any, target: Tensor, names: tuple[str, ...], single: bool, seed: int) -> Choice:
        """The same for all rows, where a share of them has chosen: its strength, judged by three folds of all."""
        columns, search = HeadColumns.scaled(inputs, None, None), StrengthSearch(target, names, self.loss, single, seed)
        found = search.only(self.found, columns)
        return Choice(columns, target, self.loss, found, [*self.tried, *search.tried])

    def fit(self) -> Fitted:
        fitted = self._fit()
        return fitted if self.with_columns is None else fitted.mean_with(self.with_columns._fit(), self.shares)

    def _fit(self) -> Fitted:
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
    similarities to so many rows take the place of the columns, or a share beside them, for which that has to do better
    in every fold. A layer of similarities takes it in any case. Rows with ``weights`` count so many times."""
    layer, count = (landmarks, 0) if isinstance(landmarks, Similarities) else (None, landmarks)
    forms = _scaled(inputs, scales) if layer is None or layer.with_columns else {}
    if weight_decay != "auto" or len(target) < 2 * FOLDS:
        strength = USUAL if weight_decay == "auto" else float(weight_decay)

        def given(form: str, columns: HeadColumns) -> Choice:
            start = zero_weights((columns.columns, target), len(names), weights)
            return Choice(columns, target, loss, Chosen.given(form, strength, start), [], weights=weights)

        if layer is None:
            return given(OWN_SCALE, forms[OWN_SCALE])
        linear = given(OWN_SCALE, forms[OWN_SCALE]) if forms else None
        return replace(given(_SIMILARITIES, HeadColumns.similar(inputs, layer)), with_columns=linear, shares=(0.5, 0.5))
    search = StrengthSearch(target, names, loss, single, seed, weights)
    if layer is not None and not forms:
        return _of_similarities(search, _SIMILARITIES, HeadColumns.similar(inputs, layer))
    found = search.best(forms, wide=inputs.shape[1] > inputs.shape[0])
    linear = Choice(forms[found.form], target, loss, found, search.tried, weights=weights)
    form, first = _SIMILARITIES, None
    if layer is None:
        if not count or search.is_sure(found):
            return linear
        # distances are those of one scale, or of each column's own, whichever did better
        scaled = [one for one in search.tried if one["scale"] != BETWEEN]
        likely = min(scaled, key=lambda one: one["loss"] - one["precision_at_1"])["scale"]
        scale = forms[likely].scale
        layer = Similarities.to_some(inputs, count, torch.ones(inputs.shape[1]) if scale is None else scale, seed)
        if layer is None:
            return linear
        layer.one_scale, form, first = likely == ONE_SCALE, f"{_SIMILARITIES}, {likely}", found
    other = _of_similarities(search, form, HeadColumns.similar(inputs, layer), first)
    shares, mean = search.best_mean(other.found, found, both=first is None)
    beside = search.reached(found, mean.folds), search.reached(mean, mean.folds)
    if not shares[0]:
        return replace(linear, beside=beside)
    return replace(other, beside=beside, with_columns=linear if shares[1] else None, shares=shares)


def _of_similarities(search: StrengthSearch, form: str, columns: HeadColumns, other: Chosen | None = None) -> Choice:
    found = search.quick(form, columns, other) if search.single else search.best({form: columns})
    data = columns, search.target, search.loss, found, search.tried
    return Choice(*data, tolerance=_QUICK if search.single else _TOLERANCE, weights=search.weights)


def _scaled(inputs: Any, scales: Scales) -> dict[str, HeadColumns]:
    return {form: HeadColumns.scaled(inputs, scales.centre, each) for form, each in scales.tried(inputs).items()}
