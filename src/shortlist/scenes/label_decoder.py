"""Object classes decided one after another, each with those before it in view; and duplicates of a detector removed."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from shortlist.scenes.highway import HighwayCell
from shortlist.scenes.matching import box_overlaps

_APART = 0.3  # boxes of one class that overlap more are the same object


class LabelDecoder(nn.Module):
    """Classes of objects in the order of a packed batch (Neural Motifs' decoder): a highway LSTM sees an object's
    context and the class given to the object before it.

    While training the class before is the recorded one, or the best guess where the object is background; afterwards
    it is always the best guess, which is never background. Scores have background as their last column.

    >>> decoder = LabelDecoder(in_features=5, classes=3, embedding=4, hidden=6)
    >>> scores, chosen = decoder(torch.randn(3, 5), torch.tensor([2, 1]), labels=torch.tensor([0, 2, 1]))
    >>> scores.shape, chosen  # of two images: their first objects, then the second of the longer one
    (torch.Size([3, 4]), tensor([0, 2, 1]))
    """

    def __init__(
        self, in_features: int, classes: int, embedding: int = 100, hidden: int = 512, dropout: float = 0.1
    ) -> None:
        super().__init__()
        self.classes, self.dropout = classes, dropout
        self.before = nn.Embedding(classes + 1, embedding)  # the last is "the first object of an image"
        self.cell = HighwayCell(in_features + embedding, hidden, way_bias=True)
        self.out = nn.Linear(hidden, classes + 1)

    def forward(self, inputs: Tensor, sizes: Tensor, labels: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Scores (objects, classes + 1) and classes.

        Args:
            inputs: (objects, in_features), packed: the first objects of all images, their second ones, ...
            sizes: how many there are of each.
            labels: the recorded classes while training; ``classes`` stands for background.
        """
        counts = sizes.tolist()
        h = c = inputs.new_zeros(counts[0], self.cell.hidden)
        before = self.before.weight[-1].expand(counts[0], -1)
        kept = torch.ones_like(h)
        if self.training and self.dropout:
            kept = kept.bernoulli_(1 - self.dropout) / (1 - self.dropout)
        given = [None] * len(counts) if labels is None else labels.split(counts)
        scores, chosen = [], []
        for count, own, known in zip(counts, inputs.split(counts), given, strict=True):
            projected = self.cell.project(torch.cat([own, before[:count]], 1))
            h, c = self.cell(projected, h[:count], c[:count])
            h = h * kept[:count]
            scores.append(self.out(h))
            best = scores[-1].detach()[:, :-1].argmax(1)
            if known is not None:
                best = torch.where(known < self.classes, known, best)
            chosen.append(best)
            before = self.before(best)
        return torch.cat(scores), torch.cat(chosen)


def without_duplicates(
    scores: Tensor, boxes: Tensor, counts: Sequence[int], apart: float = _APART
) -> Tensor:
    """A class for every detected box, (objects,), so that boxes of one class do not lie upon each other.

    In each image the most probable (box, class) is decided first; the boxes that overlap it by ``apart`` or more
    cannot have that class any more, and so on (Neural Motifs' suppression while decoding). Background, the last column
    of ``scores``, is chosen by no box, unless nothing else is left.

    >>> boxes = torch.tensor([[0.0, 0, 10, 10], [0, 0, 10, 9]])
    >>> without_duplicates(torch.tensor([[3.0, 1, 0], [2.0, 1, 0]]), boxes, [2])
    tensor([0, 1])
    """
    chosen = []
    for own, places in zip(scores.softmax(1).split(list(counts)), boxes.split(list(counts)), strict=True):
        left = own.clone()
        left[:, -1] = 0
        near = box_overlaps(places, places) >= apart
        classes = torch.full((len(own),), own.shape[1] - 1, dtype=torch.int64, device=own.device)
        for _ in range(len(own)):
            box, label = divmod(int(left.argmax()), own.shape[1])
            if left[box, label] > 0:
                classes[box] = label
            left[near[box], label] = 0
            left[box] = -1
        chosen.append(classes)
    return torch.cat(chosen) if chosen else torch.zeros(0, dtype=torch.int64)
