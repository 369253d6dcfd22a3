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
from shortlist.training.full_batch import Loss, fit_linear, log_odds, times

FOLDS = 3
_FIRST, _FACTOR, _MOST = 10.0, 10**-0.5, 9  # a strength of 10 is C = 0.1; at most so many steps one way
_TOLERANCE = 3e-3  # to compare strengths; the weights that stay are fitted more closely
USUAL = 1.0  # where there are too few rows to choose


@dataclass
class Chosen:
    """The strength, what every strength tried lost on held-out rows, scores of held-out rows, weights to start from."""

    strength: float
    loss: float
    tried: list[dict[str, Any]]
    scores: Tensor
    start: Tensor


def choose_strength(
    inputs: Any, target: Tensor, names: tuple[str, ...], loss: Loss, seed: int, *, walk: bool = True
) -> Chosen:
    """The strength whose loss on held-out rows is smallest, over three folds; without a walk, the first one alone."""
    folds = _folds(target, names, seed)
    tried: dict[float, float] = {}
    best: tuple[float, float, Tensor, list[Tensor]] | None = None

    def attempt(strength: float, starts: list[Tensor]) -> tuple[float, list[Tensor]]:
        nonlocal best
        weights, scores, total = [], torch.zeros(len(target), len(names)), 0.0
        for (here, held), start in zip(folds, starts, strict=True):
            found = fit_linear(here[0], here[1], start, loss, strength, tolerance=_TOLERANCE).weights
            scores[held] = times(take(inputs, held), found)
            total += float(loss(scores[held], target[held])[0].sum())
            weights.append(found)
        tried[strength] = total / len(target)
        if best is None or tried[strength] < best[1]:
            best = (strength, tried[strength], scores, weights)
        return tried[strength], weights

    def training_part(held: Tensor) -> tuple[Any, Tensor]:
        rest = torch.ones(len(target), dtype=torch.bool)
        rest[held] = False
        rows = rest.nonzero()[:, 0]
        return take(inputs, rows), target[rows]

    folds = [(training_part(held), held) for held in folds]
    first, middle = attempt(_FIRST, [zero_weights(here, len(names)) for here, _ in folds])
    for factor in (_FACTOR, 1 / _FACTOR) if walk else ():
        before, weights, strength = first, middle, _FIRST
        for _ in range(_MOST):
            strength *= factor
            lost, weights = attempt(strength, weights)
            if lost >= before:
                break
            before = lost
        if factor == _FACTOR and tried[_FIRST * _FACTOR] < first:
            break  # weaker was better than the first, so stronger is worse
    assert best is not None
    table = [{"weight_decay": strength, "loss": lost} for strength, lost in sorted(tried.items(), reverse=True)]
    return Chosen(best[0], best[1], table, best[2], torch.stack(best[3]).mean(0))


def zero_weights(data: tuple[Any, Tensor], num_labels: int) -> Tensor:
    """Weights of zero, and the biases that fit them best."""
    inputs, target = data
    start = torch.zeros(inputs.shape[1] + 1, num_labels)
    start[-1] = log_odds(target, num_labels)
    return start


def _folds(target: Tensor, names: tuple[str, ...], seed: int) -> list[Any]:
    """The rows of each fold, every one with its share of each label."""
    numbered = Dataset(torch.arange(len(target))[:, None], target, names)
    sizes = [len(target) * (fold + 1) // FOLDS - len(target) * fold // FOLDS for fold in range(FOLDS)]
    return [part.inputs[:, 0] for part in split(numbered, sizes, seed=seed, stratify=True)]
