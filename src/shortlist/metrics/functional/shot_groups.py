"""A per-class metric averaged over classes with few, medium and many training examples."""

from typing import Any

from torch import Tensor

from shortlist.errors import ShortlistError
from shortlist.metrics.inputs import as_tensor

GROUPS = ("few", "medium", "many")


def shot_groups(values: Any, train_counts: Any, *, few: float = 20, many: float = 100) -> dict[str, Tensor]:
    """Mean of a value per class over the classes with few, medium and many training examples.

    Few is fewer than ``few`` examples, many is more than ``many``, medium is the rest. Classes whose value is NaN (no
    test example) are left out; a group without classes is NaN.

    >>> import torch
    >>> shot_groups(torch.tensor([0.2, 0.4, 0.9]), train_counts=torch.tensor([5, 19, 300]))
    {'few': tensor(0.3000), 'medium': tensor(nan), 'many': tensor(0.9000)}
    """
    values = as_tensor(values, "values")
    group = shot_group_of(train_counts, few=few, many=many).to(values.device)
    if values.shape != group.shape:
        raise ShortlistError(
            f"the metric must give one value for each of the {len(group)} classes of train_counts, "
            f"got shape {tuple(values.shape)}"
        )
    return {name: values[group == number].nanmean() for number, name in enumerate(GROUPS)}


def shot_group_of(train_counts: Any, *, few: float = 20, many: float = 100) -> Tensor:
    """The group of every class: 0 few, 1 medium, 2 many.

    >>> import torch
    >>> shot_group_of(torch.tensor([19, 20, 100, 101]))
    tensor([0, 1, 1, 2])
    """
    counts = as_tensor(train_counts, "train_counts")
    if counts.ndim != 1 or not bool((counts >= 0).all()):
        raise ShortlistError(f"train_counts must be one number >= 0 per class, got shape {tuple(counts.shape)}")
    if not few <= many:
        raise ShortlistError(f"few must be at most many, got few={few!r} and many={many!r}")
    return (counts >= few).long() + (counts > many).long()
