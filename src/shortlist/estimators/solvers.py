"""How SetClassifier trains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from shortlist.data import Dataset, split
from shortlist.estimators.rows import take
from shortlist.metrics.functional import mean_average_precision, top_k_accuracy
from shortlist.objectives import Objective
from shortlist.training.full_batch import Loss, binary_columns, softmax_rows, whole

# one linear head and a smooth loss of its scores
FULL_BATCH = (
    "cross-entropy", "binary", "smooth-topk", "truncated-entropy", "lml", "assume-negative", "expected-positive",
    "two-way", "asymmetric", "lsep", "multilabel-softmax", "partial-binary",
)  # fmt: skip
_MOST_SCORES, _MOST_WEIGHTS, _MOST_PRODUCTS = 10**8, 10**7, 4 * 10**9  # a gigabyte, and minutes on two cores


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


def choose_training(
    attempt: Callable[..., Tensor],
    inputs: Any,
    target: Tensor,
    names: tuple[str, ...],
    choices: list[tuple[Any, Any]],
    seed: int,
) -> tuple[list[tuple[Any, Any]], list[dict[str, float]]]:
    """The best learning rate and epochs on a sixth of the rows, and what each of the choices reached there.

    What counts is accuracy for single labels, mean average precision over examples for several.
    """
    numbered = Dataset(torch.arange(len(target))[:, None], target, names)
    held, rest = (part.inputs[:, 0] for part in split(numbered, (1 / 6, 5 / 6), seed=seed, stratify=True))
    reached = []
    for lr, epochs in choices:
        scores = attempt(take(inputs, rest), target[rest], take(inputs, held), lr, epochs)
        reached.append(_quality(scores, target[held]))
    best = max(range(len(choices)), key=reached.__getitem__)
    table = [{"lr": lr, "epochs": epochs, "score": score} for (lr, epochs), score in zip(choices, reached, strict=True)]
    return [choices[best]], table


def _quality(scores: Tensor, target: Tensor) -> float:
    if target.ndim == 1:
        return float(top_k_accuracy(scores, target, 1))
    return float(mean_average_precision(scores, target, average="sample"))
