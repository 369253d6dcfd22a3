"""Rare labels: what the training labels say about how often each one occurs. Unknown labels do not count."""

from typing import Any, Literal

import torch
from torch import Tensor

from shortlist.labels.counts import count_labels, present_pairs
from shortlist.links import Link

Imbalance = Literal["none", "class-weights", "logit-adjustment", "balanced-sampling"]


def class_weights(target: Any, num_labels: int) -> Tensor:
    """The weight of each class: inverse to its count, 1 on average over the examples; of a class without examples 1.
    Of a label matrix: the weight of a label's presence, so that present and absent weigh the same.

    >>> class_weights(torch.tensor([0, 0, 0, 1, -1]), 2)
    tensor([0.6667, 2.0000])
    >>> class_weights(torch.tensor([[1, -1], [0, 1], [0, -1]]), 2)
    tensor([2., 1.])
    """
    if target.ndim == 1:
        counts = count_labels(target, num_labels).float()
        weights = counts.sum() / ((counts > 0).sum().clamp(min=1) * counts.clamp(min=1))
        return torch.where(counts > 0, weights, 1.0)
    present, absent = (target == 1).sum(0).float(), (target == 0).sum(0).float()
    return torch.where((present > 0) & (absent > 0), absent / present.clamp(min=1), 1.0)


def log_prior(target: Any, num_labels: int, link: Link) -> Tensor:
    """What scores would be if nothing but the labels' frequencies were known: the logarithm of a class's share, or with
    a sigmoid the log odds of a label among the examples where it is known. Half an example is added to every count.

    >>> log_prior(torch.tensor([0, 0, 0, 1]), 2, "softmax").exp()
    tensor([0.7000, 0.3000])
    >>> log_prior(torch.tensor([[1, -1], [0, 1], [0, -1]]), 2, "sigmoid")
    tensor([-0.5108,  1.0986])
    """
    present = count_labels(target, num_labels).float()
    absent = present.sum() - present if target.ndim == 1 else (target == 0).sum(0).float()
    if link == "sigmoid":
        return (present + 0.5).log() - (absent + 0.5).log()
    return (present + 0.5).log() - (present + 0.5).sum().log()


def rarity(target: Any, num_labels: int) -> Tensor:
    """How often to draw each example, so that every class is drawn as often as any other; of a label matrix by the
    rarest present label, examples without a present label standing for one label more. Where nothing is known: never.

    >>> rarity(torch.tensor([0, 0, 1, -1]), 2)
    tensor([0.5000, 0.5000, 1.0000, 0.0000], dtype=torch.float64)
    >>> rarity(torch.tensor([[1, 0], [1, 1], [0, 0], [-1, -1]]), 2)
    tensor([0.5000, 1.0000, 1.0000, 0.0000], dtype=torch.float64)
    """
    if target.ndim == 1:
        counts = count_labels(target, num_labels)
        return torch.where(target >= 0, 1.0 / counts[target.clamp(min=0).long()].clamp(min=1).double(), 0.0)
    rows, labels = present_pairs(target)
    counts = torch.bincount(labels, minlength=num_labels)
    rarest = torch.full((len(target),), len(target) + 1).scatter_reduce(0, rows, counts[labels], "amin")
    some = (target == 1).any(1)
    empty = (target == 0).any(1) & ~some
    return torch.where(some, 1.0 / rarest.double(), torch.where(empty, 1.0 / empty.sum().double(), 0.0))
