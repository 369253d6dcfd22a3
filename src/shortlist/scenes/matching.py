"""Which recorded relations an answer finds: the usual matching of PredCls, SGCls and SGDet."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from shortlist.metrics.top import top_labels


def box_overlaps(first: Tensor, second: Tensor, *, whole_pixels: bool = False) -> Tensor:
    """Overlap over union of all boxes (xmin, ymin, xmax, ymax), (first, second).

    Args:
        first, second: (boxes, 4).
        whole_pixels: a box contains the pixels of both its edges, as in the public evaluators.

    >>> box_overlaps(torch.tensor([[0.0, 0, 2, 2]]), torch.tensor([[1.0, 0, 3, 2], [2, 2, 3, 3]]))
    tensor([[0.3333, 0.0000]])
    """
    more = 1 if whole_pixels else 0
    low = torch.maximum(first[:, None, :2], second[None, :, :2])
    high = torch.minimum(first[:, None, 2:], second[None, :, 2:])
    shared = (high - low + more).clamp(min=0).prod(2)
    areas = [(boxes[:, 2:] - boxes[:, :2] + more).prod(1) for boxes in (first, second)]
    return shared / (areas[0][:, None] + areas[1][None] - shared)


def overlap(first: Tensor, second: Tensor) -> Tensor:
    """Whether each box has more than an edge in common with the one beside it, bool (boxes,).

    >>> overlap(torch.tensor([[0.0, 0, 2, 2], [0, 0, 2, 2]]), torch.tensor([[1.0, 0, 3, 2], [2, 0, 3, 2]]))
    tensor([ True, False])
    """
    return (torch.minimum(first[:, 2:], second[:, 2:]) > torch.maximum(first[:, :2], second[:, :2])).all(1)


def standing_for(near: Tensor, ends: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Which two different boxes stand for subject and object of a relation: relation, subject and object, by number.

    Args:
        near: bool (boxes, recorded): which boxes stand for which recorded ones.
        ends: (M, 2): subject and object of each relation, recorded boxes.
    """
    subjects, objects = (near.T[ends[:, end]] for end in (0, 1))
    both = subjects[:, :, None] & objects[:, None, :] & ~torch.eye(len(near), dtype=torch.bool)
    relation, subject, thing = both.nonzero().unbind(1)
    return relation, subject, thing


@dataclass(frozen=True, eq=False)
class RecordedGraph:
    """What is recorded of an image."""

    boxes: Tensor  # (objects, 4): xmin, ymin, xmax, ymax
    classes: Tensor  # int64 (objects,)
    relations: Tensor  # int64 (M, 3): subject, object, predicate


@dataclass(frozen=True, eq=False)
class ScoredGraph:
    """What a model says of an image: its own boxes (SGDet) or the recorded ones, its own classes or the recorded ones
    (PredCls), and a score for every predicate of every pair that it looked at."""

    boxes: Tensor  # (objects, 4)
    classes: Tensor  # int64 (objects,)
    pairs: Tensor  # int64 (P, 2): subject and object
    scores: Tensor  # (P, predicates): logarithms of probabilities, or anything whose order is the answer
    certainty: Tensor | None = None  # (objects,): the probabilities of the classes; None: they are given


def best_triples(answer: ScoredGraph, k: int, constrained: bool = True) -> Tensor:
    """Subject, object and predicate of the k best triples, best first, int64 (at most k, 3).

    A triple's score is that of its predicate plus the logarithms of both certainties: the product, where scores are
    logarithms of probabilities. Of equal ones the earlier pair comes first, then the lower predicate.

    Args:
        answer: of a model.
        k: how many.
        constrained: a pair has its best predicate only.

    >>> boxes, pairs = torch.tensor([[0.0, 0, 1, 1], [0, 0, 2, 2]]), torch.tensor([[0, 1], [1, 0]])
    >>> answer = ScoredGraph(boxes, torch.tensor([3, 4]), pairs, torch.tensor([[5.0, 4.0], [1.0, 3.0]]))
    >>> best_triples(answer, 2).tolist(), best_triples(answer, 2, constrained=False).tolist()
    ([[0, 1, 0], [1, 0, 1]], [[0, 1, 0], [0, 1, 1]])
    """
    pair, predicate, _ = ranked(answer, k, constrained)
    return torch.cat([answer.pairs[pair], predicate[:, None]], 1)


def ranked(answer: ScoredGraph, k: int, constrained: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Of the k best triples the row of ``pairs``, the predicate and the score."""
    scores, predicates = answer.scores, answer.scores.shape[1]
    if answer.certainty is not None:
        scores = scores + answer.certainty.log()[answer.pairs].sum(1, keepdim=True)
    values, place = scores.flatten(), torch.arange(scores.numel())
    if constrained and len(scores):
        place = place[::predicates] + scores.argmax(1)
        values = values[place]
    if len(values):
        chosen = top_labels(values[None], min(k, len(values)))[0]
        values, place = values[chosen], place[chosen]
    return place // predicates, place % predicates, values


def matches(
    answer: ScoredGraph, triples: Tensor, recorded: RecordedGraph, *, overlap: float = 0.5, whole_pixels: bool = False
) -> Tensor:
    """Which triples find which recorded relations, bool (triples, M): predicate and both classes are the same, and both
    boxes overlap those of the relation by ``overlap`` or more."""
    near = box_overlaps(answer.boxes.double(), recorded.boxes.double(), whole_pixels=whole_pixels) >= overlap
    same = near & (answer.classes[:, None] == recorded.classes[None])  # (objects, recorded objects)
    subject, thing, predicate = recorded.relations.unbind(1)
    found = same[triples[:, 0]][:, subject] & same[triples[:, 1]][:, thing]
    return found & (triples[:, 2, None] == predicate[None])
