"""Batch size and epochs by the size of the data, where the settings leave them open."""

import math
from typing import TypeVar

from shortlist.errors import ShortlistError
from shortlist.training.settings import TrainSettings, check_warm_up

_Settings = TypeVar("_Settings", bound=TrainSettings)

_BATCHES = 50  # an epoch of small data has about so many
_SMALLEST, _LARGEST = 8, 128  # batch size
_STEPS = 1000  # training has at least so many optimizer steps,
_FEWEST, _MOST = 10, 100  # in so many epochs


def settled(settings: _Settings, examples: int) -> _Settings:
    """The settings with a batch size and a number of epochs, those given or what suits so many training examples.

    The batch size is a fiftieth of the examples, between 8 and 128; the epochs make 1,000 optimizer steps, but are
    between 10 and 100. ``lbfgs`` sees all of them at once, in one epoch. What a run stores are these numbers.

    >>> small, large = settled(TrainSettings(), 66), settled(TrainSettings(), 50_000)
    >>> (small.batch_size, small.epochs), (large.batch_size, large.epochs)
    ((8, 100), (128, 10))
    >>> settled(TrainSettings(batch_size=16, epochs=3), 66).epochs
    3
    """
    if settings.optimizer.name == "lbfgs":
        whole = {"batch_size": settings.batch_size or examples, "epochs": settings.epochs or 1}
        return settings.model_copy(update=whole)
    size = settings.batch_size or max(_SMALLEST, 2 * settings.devices, min(_LARGEST, examples // _BATCHES))
    found = settings.model_copy(update={"batch_size": size})
    if found.epochs is None:
        if settings.schedule.name == "step":
            raise ShortlistError("a step schedule steps at given epochs: say how many epochs there are, epochs: 90")
        many = math.ceil(_STEPS / steps_per_epoch(found, examples))
        found = found.model_copy(update={"epochs": max(_FEWEST, min(_MOST, many))})
    check_warm_up(found)
    return found


def steps_per_epoch(settings: TrainSettings, examples: int) -> int:
    assert settings.batch_size is not None
    return math.ceil(max(1, math.ceil(examples / settings.batch_size)) / settings.accumulate)
