"""How SetClassifier trains in batches: which learning rate and how many epochs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from pydantic import ValidationError
from torch import Tensor

from shortlist.data import Dataset, split
from shortlist.errors import ShortlistError
from shortlist.metrics.functional import mean_average_precision, top_k_accuracy
from shortlist.options import in_our_words
from shortlist.training.full_batch import take
from shortlist.training.settings import TrainSettings

if TYPE_CHECKING:
    from shortlist.estimators.set_classifier import SetClassifier

LR, _RATES, _DECAY = 0.005, (0.001, 0.003, 0.01), 0.01  # of adamw


def choices_of(model: SetClassifier, examples: int) -> list[tuple[Any, Any]]:
    """Learning rates and epochs to choose from; one where both are given, or rows are few."""
    few = examples < 50
    rates = [model.lr] if model.lr != "auto" else [LR] if few else list(_RATES)
    if model.epochs != "auto":
        return [(rate, model.epochs) for rate in rates]
    usual = max(20, min(100, 1000 * _batch_size(model, examples) // examples))
    return [(rate, number) for rate in rates for number in ([usual] if few else [usual // 4, usual])]


def settings_of(model: SetClassifier, examples: int, lr: Any, epochs: Any, schedule: str, seed: int) -> TrainSettings:
    """What the training loop is told."""
    decay = _DECAY if model.weight_decay == "auto" else model.weight_decay
    # steps of one size for all columns ask for columns on one scale
    name = "adamw" if model.hidden_ or model.preprocess is None else "adamw-rows"
    optimizer = {"name": name, "lr": lr, "weight_decay": decay}
    try:
        return TrainSettings.model_validate({
            "epochs": epochs, "batch_size": _batch_size(model, examples), "optimizer": optimizer,
            "schedule": {"name": schedule}, "seed": seed,
        })  # fmt: skip
    except ValidationError as error:
        first = error.errors()[0]
        raise ShortlistError(f"{first['loc'][-1]}: {in_our_words(first['msg'])}, got {first['input']!r}") from None


def _batch_size(model: SetClassifier, examples: int) -> Any:
    return max(8, min(256, examples // 50)) if model.batch_size == "auto" else model.batch_size


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
