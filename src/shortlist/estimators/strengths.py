"""How strongly the weights of a linear model are drawn to zero, chosen by cross-validation.

From a middling strength the search walks both ways, half a power of ten at a time, for as long as the held-out loss
falls; each step starts from the weights of the one before. Every row is held out once, so the best strength leaves a
score for each row from a model that has not seen it: what rules and thresholds are calibrated on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from shortlist.data import Dataset, split
from shortlist.estimators.rows import take
from shortlist.training.full_batch import Curvature, Loss, fit_linear, log_odds, times

FOLDS = 3
_FIRST, _FACTOR, _MOST = 10.0, 10**-0.5, 9  # a strength of 10 is C = 0.1; at most so many steps one way
_TOLERANCE = 3e-3  # to compare strengths; the weights that stay are fitted more closely
USUAL = 1.0  # where there are too few rows to choose


@dataclass
class Chosen:
    """What did best on held-out rows: which form of the inputs, the strength, scores of rows while they were held out,
    weights to start from; and what every strength tried lost."""

    form: str
    strength: float
    loss: float
    scores: Tensor
    weights: list[Tensor]
    tried: list[dict[str, Any]]

    @property
    def start(self) -> Tensor:
        return torch.stack(self.weights).mean(0)


def choose_strength(
    forms: dict[str, Any], curvatures: dict[str, Curvature | None], target: Tensor, names: tuple[str, ...], loss: Loss,
    seed: int,
) -> Chosen:  # fmt: skip
    """The strength whose loss on held-out rows is smallest, over three folds, of the form of the inputs that does
    better with the first strength."""
    folds = _folds(target, names, seed)
    attempts: list[Chosen] = []
    tried: list[dict[str, Any]] = []

    def attempt(form: str, strength: float, starts: list[Tensor] | None) -> Chosen:
        weights, scores, total = [], torch.zeros(len(target), len(names)), 0.0
        for fold, (rest, held) in enumerate(folds):
            here = take(forms[form], rest), target[rest]
            start = zero_weights(here, len(names)) if starts is None else starts[fold]
            found = fit_linear(*here, start, loss, strength, curvatures[form], tolerance=_TOLERANCE).weights
            scores[held] = times(take(forms[form], held), found)
            total += float(loss(scores[held], target[held])[0].sum())
            weights.append(found)
        tried.append({"scale": form, "weight_decay": strength, "loss": total / len(target)})
        attempts.append(Chosen(form, strength, total / len(target), scores, weights, tried))
        return attempts[-1]

    first = min((attempt(form, _FIRST, None) for form in forms), key=_loss)
    for factor in (_FACTOR, 1 / _FACTOR):
        before = first
        for _ in range(_MOST):
            after = attempt(first.form, before.strength * factor, before.weights)
            if after.loss >= before.loss:
                break
            before = after
        if before is not first:
            break  # weaker was better than the first, so stronger is worse
    return min(attempts, key=_loss)


def _loss(chosen: Chosen) -> float:
    return chosen.loss


def zero_weights(data: tuple[Any, Tensor], num_labels: int) -> Tensor:
    """Weights of zero, and the biases that fit them best."""
    inputs, target = data
    start = torch.zeros(inputs.shape[1] + 1, num_labels)
    start[-1] = log_odds(target, num_labels)
    return start


def _folds(target: Tensor, names: tuple[str, ...], seed: int) -> list[tuple[Tensor, Tensor]]:
    """The rows to learn from and the rows held out, of each fold; every one has its share of each label."""
    numbered = Dataset(torch.arange(len(target))[:, None], target, names)
    sizes = [len(target) * (fold + 1) // FOLDS - len(target) * fold // FOLDS for fold in range(FOLDS)]
    parts = [part.inputs[:, 0] for part in split(numbered, sizes, seed=seed, stratify=True)]
    return [(torch.cat(parts[:fold] + parts[fold + 1 :]).sort().values, parts[fold]) for fold in range(FOLDS)]
