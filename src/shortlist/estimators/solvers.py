"""Which learning rate and how many epochs SetClassifier trains in batches with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from shortlist.data import Dataset, split
from shortlist.metrics.functional import mean_average_precision, top_k_accuracy
from shortlist.training.full_batch import take


def choose_training(
    attempt: Callable[..., Tensor],
    inputs: Any,
    target: Tensor,
    weights: Tensor | None,
    names: tuple[str, ...],
    choices: list[tuple[Any, Any]],
    seed: int,
) -> tuple[list[tuple[Any, Any]], list[dict[str, float]]]:
    """The best learning rate and epochs on a sixth of the rows, and what each of the choices reached there.

    What counts is accuracy for single labels; for several the mean average precision of examples and of labels, half
    each: the one does not see whether scores of different rows compare, which sets and ``predict`` need.
    """
    numbered = Dataset(torch.arange(len(target))[:, None], target, names)
    held, rest = (part.inputs[:, 0] for part in split(numbered, (1 / 6, 5 / 6), seed=seed, stratify=True))
    reached = []
    for lr, epochs in choices:
        weigh = None if weights is None else weights[rest]
        scores = attempt(take(inputs, rest), target[rest], weigh, take(inputs, held), lr, epochs)
        reached.append(_quality(scores, target[held]))
    best = max(range(len(choices)), key=reached.__getitem__)
    table = [{"lr": lr, "epochs": epochs, "score": score} for (lr, epochs), score in zip(choices, reached, strict=True)]
    return [choices[best]], table


def _quality(scores: Tensor, target: Tensor) -> float:
    if target.ndim == 1:
        return float(top_k_accuracy(scores, target, 1))
    of_each = (mean_average_precision(scores, target, average=one) for one in ("sample", "class"))
    return float(sum(of_each)) / 2
