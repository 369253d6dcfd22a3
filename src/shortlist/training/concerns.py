"""What makes it unlikely that training will work: before it begins, and by the loss of its epochs."""

import torch
from torch import Tensor

from shortlist.data import Dataset
from shortlist.training.auto_settings import steps_per_epoch
from shortlist.training.settings import TrainSettings

_TOO_FEW = 100  # steps in all, with which nobody learns much
_TOO_FAR = 1000.0  # times as far as another column spreads
_ROWS = 10_000  # looked at
_ROSE = 2.0  # times the loss of the first epoch
_NOTHING = 1e-5  # a loss of nearly everything right, in which only chance moves
_ROSE_AT_ONCE, _EARLY = 4.0, 10  # times the loss of the first batch, which can be low by luck; steps to tell


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
    if steps * settings.epochs < _TOO_FEW and settings.optimizer.name != "lbfgs":
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

    >>> rose(28.7, 6.5), rose(6.6, 6.5), rose(4e-7, 8e-8)
    (True, False, False)
    """
    return start > 0 and loss > max(_ROSE * start, _NOTHING)


def rose_at_once(loss: float, first: float, steps: int) -> bool:
    """Whether the loss of the first epoch, of so many steps, is far above that of its first batch.

    >>> rose_at_once(28.7, 6.5, steps=100), rose_at_once(12.0, 6.5, steps=100), rose_at_once(28.7, 6.5, steps=2)
    (True, False, False)
    """
    return steps >= _EARLY and first > 0 and loss > max(_ROSE_AT_ONCE * first, _NOTHING)
