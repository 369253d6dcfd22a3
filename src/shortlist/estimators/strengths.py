"""How strongly the weights of a linear model are drawn to zero, chosen by cross-validation.

From a middling strength the search walks both ways, half a power of ten at a time, for as long as the held-out loss
falls; each step starts from the weights of the one before. Every row is held out once, so the best strength leaves a
score for each row from a model that has not seen it: what rules and thresholds are calibrated on.

Of three or more single labels, strong decay ranks well but makes scores too small, which the loss would punish. What
counts there is the loss after the scores are stretched away from the base rates, all by the one factor that suits the
held-out rows best; the weights that stay are stretched alike. Of two labels, or several at a time, this is no better.
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
_FIRST, _FACTOR, _MOST = 10**1.5, 10**-0.5, 9  # a strength of 10 is C = 0.1; at most so many steps one way
_TOLERANCE = 3e-3  # to compare strengths; the weights that stay are fitted more closely
_MOST_DOUBLINGS, _HALVINGS = 2.0, 10  # of the stretch: between a quarter and four times, and how closely it is found
USUAL = 1.0  # where there are too few rows to choose


@dataclass
class Chosen:
    """What did best on held-out rows: which form of the inputs, the strength, the stretch, scores of rows while they
    were held out (stretched), weights to start from (not stretched); and what every strength tried lost."""

    form: str
    strength: float
    stretch: float
    loss: float
    scores: Tensor
    weights: list[Tensor]
    tried: list[dict[str, Any]]

    @property
    def start(self) -> Tensor:
        return torch.stack(self.weights).mean(0)


def choose_strength(
    forms: dict[str, Any], curvatures: dict[str, Curvature | None], target: Tensor, names: tuple[str, ...], loss: Loss,
    single: bool, seed: int,
) -> Chosen:  # fmt: skip
    """The strength whose loss on held-out rows is smallest, over three folds, of the form of the inputs that does
    better with the first strength."""
    folds = _folds(target, names, seed)
    base, stretches = log_odds(target, len(names)), single and len(names) > 2
    attempts: list[Chosen] = []
    tried: list[dict[str, Any]] = []

    def attempt(form: str, strength: float, starts: list[Tensor] | None) -> Chosen:
        weights, scores = [], torch.zeros(len(target), len(names))
        for fold, (rest, held) in enumerate(folds):
            here = take(forms[form], rest), target[rest]
            start = zero_weights(here, len(names)) if starts is None else starts[fold]
            found = fit_linear(*here, start, loss, strength, curvatures[form], tolerance=_TOLERANCE).weights
            scores[held] = times(take(forms[form], held), found)
            weights.append(found)
        stretch, lost = best_stretch(scores, base, target, loss, stretches)
        tried.append({"scale": form, "weight_decay": strength, "stretch": stretch, "loss": lost})
        attempts.append(Chosen(form, strength, stretch, lost, stretched(scores, base, stretch), weights, tried))
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


def stretched(scores: Tensor, base: Tensor, stretch: float) -> Tensor:
    """Scores, or biases, so many times as far from the base rates."""
    return base + stretch * (scores - base)


def best_stretch(
    scores: Tensor, base: Tensor, target: Tensor, loss: Loss, stretches: bool = True
) -> tuple[float, float]:
    """The stretch with the smallest loss, by halving where its slope changes sign, and the mean loss it leaves; unless
    something ``stretches``, it is 1."""

    def mean_loss(stretch: float) -> float:
        return float(loss(stretched(scores, base, stretch), target)[0].sum()) / len(target)

    if not stretches:
        return 1.0, mean_loss(1.0)
    low, high = -_MOST_DOUBLINGS, _MOST_DOUBLINGS
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        slope = (loss(stretched(scores, base, 2**middle), target)[1] * (scores - base)).sum()
        low, high = (middle, high) if slope < 0 else (low, middle)
    return min(((stretch, mean_loss(stretch)) for stretch in (1.0, 2 ** ((low + high) / 2))), key=lambda one: one[1])


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
