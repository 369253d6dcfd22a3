"""Recall of scene graphs over many batches."""

from typing import Any

import torch
from torch import Tensor

from shortlist.checks import whole
from shortlist.metrics.states import RowMean, synced
from shortlist.scenes.recall import found_at, image_recalls, predicate_recalls, scene_inputs


class SceneRecallAtK(RowMean):
    """Mean over images of the share of an image's recorded relations among its k best triples.

    ``constrained`` answers a pair of objects with its best predicate only. ``per_predicate()`` gives the recall of each
    predicate, ``mean_recall()`` their mean, to which rare predicates count as much as frequent ones. Images without
    relations are left out; a relation recorded twice counts once; of equal scores the earlier pair, then the lower
    predicate comes first. For the arguments of ``update`` see `functional.scene_recall_at_k`.

    >>> metric = SceneRecallAtK(k=1)
    >>> scores = torch.tensor([[5.0, 4.0], [1.0, 3.0], [2.0, 0.0]])
    >>> metric.update(scores, torch.tensor([[0, 0], [1, 1], [2, 0]]), offsets=torch.tensor([0, 2, 3]))
    >>> metric.compute(), metric.per_predicate(), metric.mean_recall()
    (tensor(0.7500), tensor([1., 0.]), tensor(0.5000))
    """

    predicate_total: Tensor
    predicate_count: Tensor

    def __init__(self, k: int, constrained: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.k, self.constrained = whole(k, "k", 1), constrained
        self._start("predicate_total", default=torch.zeros(1, dtype=torch.float64))
        self._start("predicate_count")

    def update(self, scores: Any, relations: Any, offsets: Any = None) -> None:
        inputs = scene_inputs(scores, relations, offsets)
        found = found_at(inputs, (self.k,), self.constrained)[0]
        total, count = predicate_recalls(inputs, found)
        self._add_rows(image_recalls(inputs, found))
        self._add(predicate_total=total, predicate_count=count)

    @synced
    def per_predicate(self) -> Tensor:
        """The recall of each predicate over the images that have it; NaN for one that no image has."""
        return (self.predicate_total / self.predicate_count).float()

    @synced
    def mean_recall(self) -> Tensor:
        """The mean over the predicates that occur."""
        found = self.predicate_count > 0
        return (self.predicate_total[found] / self.predicate_count[found]).mean().float()
