"""Is there enough training in these settings? Batch size and epochs by the size of the data, and what cannot work."""

import math
from typing import TypeVar

import torch
from torch import Tensor

from shortlist.data import Dataset
from shortlist.errors import ShortlistError
from shortlist.training.settings import TrainSettings, check_warm_up

_Settings = TypeVar("_Settings", bound=TrainSettings)

_BATCHES = 50  # an epoch of small data has about so many
_SMALLEST, _LARGEST = 8, 128  # batch size
_STEPS = 1000  # training has at least so many optimizer steps,
_FEWEST, _MOST = 10, 100  # in so many epochs
_TOO_FEW = 100  # steps in all, with which nobody learns much
_TOO_FAR = 1000.0  # times as far as another column spreads
_ROWS = 10_000  # looked at
_ROSE = 2.0  # times the loss of the first epoch
_ROSE_AT_ONCE, _EARLY = 4.0, 10  # times the loss of the first batch, which can be low by luck; steps to tell


def settled(settings: _Settings, examples: int) -> _Settings:
    """The settings with a batch size and a number of epochs, those given or what suits so many training examples.

    The batch size is a fiftieth of the examples, between 8 and 128; the epochs make 1,000 optimizer steps, but are
    between 10 and 100. What a run stores are these numbers.

    >>> small, large = settled(TrainSettings(), 66), settled(TrainSettings(), 50_000)
    >>> (small.batch_size, small.epochs), (large.batch_size, large.epochs)
    ((8, 100), (128, 10))
    >>> settled(TrainSettings(batch_size=16, epochs=3), 66).epochs
    3
    """
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


def concerns(settings: TrainSettings, train_set: Dataset) -> list[str]:
    """What makes it unlikely that settled settings learn from this data, and what would mend it.

    >>> data = Dataset(torch.tensor([[0.1, 2e4], [0.3, 5e4]]), torch.tensor([0, 1]), ("a", "b"))
    >>> for concern in concerns(TrainSettings(batch_size=2, epochs=20), data):
    ...     print(concern)
    only 20 optimizer steps in all (1 an epoch): raise epochs or lower batch_size (2), or leave both out
    features of very different scale: column 1 spreads 1.5e+05 times as far as column 0: divide each column by its
    standard deviation before training (scikit-learn: StandardScaler)
    """
    assert settings.epochs is not None
    found = []
    steps = steps_per_epoch(settings, len(train_set))
    if steps * settings.epochs < _TOO_FEW:
        found.append(
            f"only {steps * settings.epochs} optimizer steps in all ({steps} an epoch): "
            f"raise epochs or lower batch_size ({settings.batch_size}), or leave both out"
        )
    of_one_kind = train_set.encoder is not None  # the spread of a network's features says how much they matter
    if train_set.kind == "features" and not of_one_kind and not hasattr(train_set.inputs, "tocsr"):
        found += _scales(train_set)
    return found


def _scales(train_set: Dataset) -> list[str]:
    rows = torch.linspace(0, len(train_set) - 1, min(len(train_set), _ROWS)).long()
    inputs: Tensor = train_set.batch(rows)[0]
    spread = inputs.double().std(0, unbiased=False)
    varying = (spread > 1e-12).nonzero().squeeze(1)
    if len(varying) < 2:
        return []
    wide, narrow = int(varying[spread[varying].argmax()]), int(varying[spread[varying].argmin()])
    ratio = float(spread[wide] / spread[narrow])
    if ratio < _TOO_FAR:
        return []
    names = train_set.columns.features if train_set.columns is not None else ()
    wider, other = (repr(names[column]) if len(names) == len(spread) else str(column) for column in (wide, narrow))
    return [
        f"features of very different scale: column {wider} spreads {ratio:.2g} times as far as column {other}: divide "
        f"each column by its standard deviation before training (scikit-learn: StandardScaler)"
    ]


def rose(loss: float, start: float) -> bool:
    """Whether the loss of an epoch is far above that of the first one.

    >>> rose(28.7, 6.5), rose(6.6, 6.5)
    (True, False)
    """
    return start > 0 and loss > _ROSE * start


def rose_at_once(loss: float, first: float, steps: int) -> bool:
    """Whether the loss of the first epoch, of so many steps, is far above that of its first batch.

    >>> rose_at_once(28.7, 6.5, steps=100), rose_at_once(12.0, 6.5, steps=100), rose_at_once(28.7, 6.5, steps=2)
    (True, False, False)
    """
    return steps >= _EARLY and first > 0 and loss > _ROSE_AT_ONCE * first
