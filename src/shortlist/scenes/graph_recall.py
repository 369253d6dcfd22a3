"""Recall of whole graphs over many images: R@K, mean recall and zero-shot recall of PredCls, SGCls and SGDet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from shortlist.checks import whole
from shortlist.errors import ShortlistError
from shortlist.metrics.states import CountMetric
from shortlist.scenes.matching import RecordedGraph, ScoredGraph, best_triples, matches

Counting = Literal["once", "public"]


class SceneGraphRecall(CountMetric):
    """Recall of an image's recorded relations among its k best triples, where triples find relations by their classes
    and by where their boxes are. One image at a time goes into ``update``; images without relations are left out.

    ``compute()`` gives ``recall@k``, the mean over images; ``mean-recall@k``, the mean over predicates of each one's
    mean over the images that have it; and, where ``seen`` is given, ``zero-shot-recall@k``, over relations of which no
    training image has the like.

    Args:
        ks: how many triples.
        constrained: a pair of objects has its best predicate only; otherwise any number of them (no graph constraint).
        counting: ``once`` counts a relation that is recorded twice once, leaves out those of an object with itself, and
            takes the mean over the predicates that occur. ``public`` counts as the evaluators of Xu et al. 2017,
            Zellers et al. 2018 and Tang et al. 2020 do: every record counts, also of an object with itself; boxes
            contain the pixels of both their edges; a predicate that never occurs counts as 0 in the mean recall.
        seen: int (T, 3): subject class, predicate and object class of the training images' relations, see
            `seen_triples`.
        overlap: overlap over union from which a box is where another one is.

    >>> boxes = torch.tensor([[0.0, 0, 9, 9], [5, 5, 9, 9]])
    >>> truth = RecordedGraph(boxes, torch.tensor([0, 1]), torch.tensor([[0, 1, 1], [0, 1, 1], [1, 0, 0]]))
    >>> scores = torch.tensor([[0.0, 2.0], [-1.0, 1.0]])
    >>> answer = ScoredGraph(boxes, truth.classes, torch.tensor([[0, 1], [1, 0]]), scores)
    >>> for counting in ("once", "public"):
    ...     metric = SceneGraphRecall([1], counting=counting)
    ...     metric.update(answer, truth)
    ...     print({name: round(float(value), 3) for name, value in metric.compute().items()})
    {'recall@1': 0.5, 'mean-recall@1': 0.5}
    {'recall@1': 0.667, 'mean-recall@1': 0.5}
    """

    total: Tensor
    images: Tensor
    predicate_total: Tensor
    predicate_images: Tensor
    unseen_total: Tensor
    unseen_images: Tensor

    def __init__(
        self,
        ks: Sequence[int] = (20, 50, 100),
        *,
        constrained: bool = True,
        counting: Counting = "once",
        seen: Tensor | None = None,
        overlap: float = 0.5,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if counting not in get_args(Counting):
            raise ShortlistError(f"counting is 'once' or 'public', got {counting!r}")
        if not 0 < overlap <= 1:
            raise ShortlistError(f"overlap is a share above 0 and up to 1, got {overlap}")
        if seen is not None and (seen.ndim != 2 or seen.shape[1] != 3):
            raise ShortlistError(f"seen must have the shape (triples, 3), got {tuple(seen.shape)}")
        self.ks = [whole(k, "k", 1) for k in ks]
        self.constrained, self.counting, self.overlap = constrained, counting, overlap
        self.seen = None if seen is None else {tuple(triple) for triple in seen.tolist()}
        sums = torch.zeros(len(self.ks), dtype=torch.float64)
        self._start("total", "unseen_total", default=sums)
        self._start("images", "unseen_images", default=torch.zeros((), dtype=torch.int64))
        self._start("predicate_total", default=torch.zeros(1, dtype=torch.float64))
        self._start("predicate_images")

    def update(self, answer: ScoredGraph, recorded: RecordedGraph) -> None:
        predicates = answer.scores.shape[1]
        if self.counting == "once":
            relations = recorded.relations.unique(dim=0)
            relations = relations[relations[:, 0] != relations[:, 1]]
            recorded = RecordedGraph(recorded.boxes, recorded.classes, relations)
        if not len(recorded.relations):
            return
        triples = best_triples(answer, max(self.ks), self.constrained)
        found = matches(
            answer, triples, recorded, overlap=self.overlap, whole_pixels=self.counting == "public"
        )
        hits = torch.stack([found[:k].any(0) for k in self.ks]).double()  # (ks, relations)
        predicate = recorded.relations[:, 2]
        number = torch.bincount(predicate, minlength=predicates)
        share = torch.zeros(len(self.ks), predicates, dtype=torch.float64).index_add(1, predicate, hits)
        self._add(
            total=hits.mean(1),
            images=torch.tensor(1),
            predicate_total=share / number.clamp(min=1),
            predicate_images=(number > 0).long(),
        )
        if self.seen is not None:
            classes = recorded.classes[recorded.relations[:, :2]]
            kinds = torch.stack([classes[:, 0], predicate, classes[:, 1]], 1).tolist()
            unseen = torch.tensor([tuple(kind) not in self.seen for kind in kinds])
            if bool(unseen.any()):
                self._add(unseen_total=hits[:, unseen].mean(1), unseen_images=torch.tensor(1))

    def compute(self) -> dict[str, Tensor]:
        occurs = self.predicate_images > 0
        each = self.predicate_total / self.predicate_images.clamp(min=1)
        counted = occurs if self.counting == "once" else torch.ones_like(occurs)
        names = {"recall": self.total / self.images, "mean-recall": each[..., counted].mean(-1).expand(len(self.ks))}
        if self.seen is not None:
            names["zero-shot-recall"] = self.unseen_total / self.unseen_images
        return {
            f"{name}@{k}": value.float()
            for name, values in names.items()
            for k, value in zip(self.ks, values, strict=True)
        }
