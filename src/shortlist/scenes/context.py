"""Context: every object sees the others of its image, from left to right and back."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence


class LeftRightContext(nn.Module):
    """A bidirectional LSTM over the objects of each image, ordered by the middle of their boxes (Neural Motifs'
    left-right order). All images run together, packed: nothing is padded.

    >>> context = LeftRightContext(in_features=3, hidden=4)
    >>> context(torch.randn(5, 3), torch.rand(5), counts=[2, 0, 3]).shape
    torch.Size([5, 8])
    """

    def __init__(self, in_features: int, hidden: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(in_features, hidden, bidirectional=True)
        self.out_features = 2 * hidden

    def forward(self, objects: Tensor, middle: Tensor, counts: Sequence[int]) -> Tensor:
        if not len(objects):
            return with_all_weights(objects.new_zeros(0, self.out_features), self.lstm)
        order = packed_order(middle, counts)
        return order.back(self.lstm(order.packed(objects))[0].data)


def with_all_weights(values: Tensor, network: nn.Module) -> Tensor:
    """Values that a network had nothing to do with, so that each of its weights has a gradient nevertheless, which is
    0: processes that train together, and fused optimizers, want one of every weight in every step."""
    return values + 0.0 * sum(weight.sum() for weight in network.parameters())


class PackedOrder(NamedTuple):
    """Objects in the order of a packed batch, and the way back."""

    rows: Tensor
    sizes: Tensor

    def packed(self, objects: Tensor) -> PackedSequence:
        return PackedSequence(objects[self.rows], self.sizes)

    def back(self, packed: Tensor) -> Tensor:
        return torch.empty_like(packed).index_copy(0, self.rows, packed)


def packed_order(middle: Tensor, counts: Sequence[int]) -> PackedOrder:
    """The objects in the order of a packed batch: all firsts from the left, all seconds, ...; images with more objects
    first. And how many there are of each; objects at the same place keep their order.

    >>> packed_order(torch.tensor([0.9, 0.1, 0.5, 0.2, 0.7]), [2, 3])
    PackedOrder(rows=tensor([3, 1, 2, 0, 4]), sizes=tensor([2, 2, 1]))
    """
    each = torch.tensor(counts)
    rank = torch.empty_like(each)
    rank[torch.argsort(each, descending=True, stable=True)] = torch.arange(len(each))
    image = torch.arange(len(each)).repeat_interleave(each)
    place = torch.arange(len(image)) - (each.cumsum(0) - each).repeat_interleave(each)
    from_left = torch.argsort(middle, stable=True)
    from_left = from_left[torch.argsort(image.to(middle.device)[from_left], stable=True)]
    turn = torch.argsort(place * len(each) + rank[image], stable=True)
    return PackedOrder(from_left[turn.to(middle.device)], torch.bincount(place))
