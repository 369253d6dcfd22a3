"""Optimizers, and the learning rate as a plain function of how far training has come."""

import math
from collections.abc import Iterable

from torch.nn import Parameter
from torch.optim import SGD, AdamW, Optimizer

from shortlist.training.settings import OptimizerSettings, ScheduleSettings


def make_optimizer(parameters: Iterable[Parameter], settings: OptimizerSettings) -> Optimizer:
    """Fused: one pass over weights, gradients and state per step, which counts on small models and on large ones."""
    lr, decay = settings.lr, settings.weight_decay
    if settings.name == "adamw":
        return AdamW(parameters, lr=lr, betas=settings.betas, weight_decay=decay, fused=True)
    return SGD(parameters, lr=lr, momentum=settings.momentum, nesterov=True, weight_decay=decay, fused=True)


def rate_at(schedule: ScheduleSettings, progress: float, epochs: int) -> float:
    """The learning rate, as a multiple of the first one, after ``progress`` epochs (fractions within an epoch).

    A function of progress alone: a resumed run needs no schedule state.

    >>> step = ScheduleSettings(name="step", at=(2, 4))
    >>> [round(rate_at(step, p, 5), 4) for p in (0, 1.9, 2.0, 4.5)]
    [1.0, 1.0, 0.1, 0.01]
    >>> round(rate_at(ScheduleSettings(name="cosine"), 2.5, 5), 4)
    0.5
    """
    if schedule.name == "step":
        return schedule.factor ** sum(progress >= epoch for epoch in schedule.at)
    if schedule.name == "cosine":
        return 0.5 * (1 + math.cos(math.pi * progress / epochs))
    return 1.0
