"""The learning rate as a plain function of how far training has come: a resumed run needs no schedule state."""

import math
from collections.abc import Sequence

from shortlist.training.settings import ScheduleSettings


def rate_at(
    schedule: ScheduleSettings, progress: float, epochs: int, step: float = 0.0, values: Sequence[float] = ()
) -> float:
    """The learning rate, as a multiple of the given one, after ``progress`` epochs (fractions within an epoch).

    ``step``: the length of an optimizer step in epochs, so that a warm-up starts above zero and ends at the full rate;
    ``values``: the watched metric of the epochs so far, for the plateau schedule.

    >>> stairs = ScheduleSettings(name="step", at=(2, 4))
    >>> [round(rate_at(stairs, p, 5), 4) for p in (0, 1.9, 2.0, 4.5)]
    [1.0, 1.0, 0.1, 0.01]
    >>> round(rate_at(ScheduleSettings(name="cosine"), 2.5, 5), 4)
    0.5
    >>> gently = ScheduleSettings(warm_up=0.5)
    >>> [rate_at(gently, p, 5, step=0.25) for p in (0.0, 0.25, 0.5)]
    [0.5, 1.0, 1.0]
    """
    warm_up, factor = schedule.warm_up, schedule.factor or 1.0
    warmth = min(1.0, (progress + step) / warm_up) if progress < warm_up else 1.0
    if schedule.name == "step":
        return warmth * factor ** sum(progress >= epoch for epoch in schedule.at or ())
    if schedule.name == "cosine":
        return warmth * 0.5 * (1 + math.cos(math.pi * max(0.0, progress - warm_up) / (epochs - warm_up)))
    if schedule.name == "plateau":
        return warmth * factor ** plateaus(values[math.ceil(warm_up) :], schedule.patience or 1)
    return warmth


def plateaus(values: Sequence[float], patience: int) -> int:
    """How often ``patience`` values in a row were no better than the best before them; higher is better, NaN never.

    >>> plateaus([0.1, 0.2, 0.2, 0.1, 0.3, 0.3, 0.3, 0.2], patience=2)
    2
    """
    best, waited, found = -math.inf, 0, 0
    for value in values:
        if value > best:
            best, waited = value, 0
        else:
            waited += 1
        if waited == patience:
            found, waited = found + 1, 0
    return found
