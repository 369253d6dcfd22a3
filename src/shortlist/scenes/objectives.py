"""Objectives for scenes: how features of pairs become scores of every (pair, predicate) and a loss of whole images."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from shortlist.errors import ShortlistError
from shortlist.objectives.base import Objective
from shortlist.scenes.found import with_classes
from shortlist.scenes.losses import draw_predicates, lml_losses, softmax_losses, truncated_entropy_losses
from shortlist.scenes.pair_sampling import sample_pairs
from shortlist.scenes.scorer import PairFeatures

_LAST = 1e4  # below the scores of all pairs that may come first


class SceneObjective(Objective):
    """A linear head on the features of pairs; scores start from the frequencies that the backbone brings along.

    ``forward`` gives (pairs, predicates), image after image, whose order within an image is the answer; ``loss`` takes
    the recorded relations as (pair, predicate) entries. Where the backbone decides the classes of objects, their
    cross-entropy is added; scores are then those of triples, with the logarithms of both classes' probabilities, and
    have the classes in two more columns (`found.with_classes`).
    """

    @dataclass(frozen=True)
    class Config:
        """``others``: how many unrelated pairs are drawn for each related one at every step; None takes all of them."""

        others: float | None = None

        def __post_init__(self) -> None:
            if self.others is not None and not self.others >= 0:
                raise ShortlistError(f"others must be at least 0, got {self.others}")

    accepts = ("scenes",)
    link = "none"
    monitor = "scene-recall@50"
    has_none: ClassVar[bool] = False  # a column for "no relation"

    def __init__(self, in_features: int, num_labels: int, config: Any = None, **training_set: Any) -> None:
        super().__init__(in_features, num_labels, config, **training_set)
        self.head = nn.Linear(in_features, num_labels + self.has_none)
        nn.init.zeros_(self.head.weight)  # training starts at the frequencies
        nn.init.zeros_(self.head.bias)

    def columns(self, features: PairFeatures) -> Tensor:
        """The scores of all columns of the head."""
        if not isinstance(features, PairFeatures):
            raise ShortlistError(f"objective {self.name!r} takes the features of pairs: set backbone.name=motifnet")
        return self.head(features.values) + features.frequency[:, : self.head.out_features]

    def predicate_scores(self, features: PairFeatures) -> Tensor:
        """The scores of all predicates of every pair, (pairs, predicates)."""
        return self.columns(features)

    def forward(self, features: Any) -> Tensor:
        scores, decided = self.predicate_scores(features), features.decided
        if features.last is not None:
            scores = scores - _LAST * features.last[:, None]
        if decided is None:
            return scores
        certain = decided.scores.log_softmax(1).gather(1, decided.chosen[:, None])
        scores = scores + certain[decided.subjects] + certain[decided.objects]
        return with_classes(scores, decided.chosen[decided.subjects], decided.chosen[decided.objects])

    def image_losses(self, features: PairFeatures, entries: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of each image, and which images count."""
        if self.config.others is not None:
            rows, entries, pair_counts = sample_pairs(entries, features.pair_counts, self.config.others)
            features = replace(
                features, values=features.values[rows], frequency=features.frequency[rows], pair_counts=pair_counts
            )
        losses = self.row_losses(self.columns(features), entries, features.pair_counts)
        counts = torch.tensor(features.pair_counts, device=losses.device)
        first = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        counted = torch.zeros(len(counts), dtype=torch.bool, device=losses.device)
        counted[torch.searchsorted(first, entries[:, 0].contiguous(), right=True) - 1] = True
        return losses, counted

    def loss(self, features: Any, target: Tensor, index: Tensor | None = None) -> Tensor:
        losses, counted = self.image_losses(features, target)
        mean = (losses * counted).sum() / counted.sum().clamp(min=1)
        if features.decided is None:
            return mean
        of_classes = F.cross_entropy(features.decided.scores, features.decided.recorded, reduction="sum")
        return mean + of_classes / max(1, len(features.decided.recorded))  # a detector may find nothing in a batch

    def row_losses(self, scores: Tensor, entries: Tensor, pair_counts: tuple[int, ...]) -> Tensor:
        raise NotImplementedError


class SceneSoftmax(SceneObjective):
    """The usual way: every pair has one predicate or none, by softmax; of several predicates one is drawn each time.

    Scores for prediction are the logarithms of the predicates' probabilities, so that pairs can be compared.

    >>> objective = SceneSoftmax(in_features=4, num_labels=3)
    >>> pairs = PairFeatures(torch.zeros(2, 4), torch.zeros(2, 4), (2,))
    >>> objective(pairs).exp()[0], objective.loss(pairs, torch.tensor([[0, 1]]))
    (tensor([0.2500, 0.2500, 0.2500], grad_fn=...), tensor(2.7726, grad_fn=...))
    """

    name, plain = "scene-softmax", "cross-entropy"
    has_none = True

    def predicate_scores(self, features: PairFeatures) -> Tensor:
        return self.columns(features).log_softmax(1)[:, :-1]

    def row_losses(self, scores: Tensor, entries: Tensor, pair_counts: tuple[int, ...]) -> Tensor:
        chosen = draw_predicates(entries, len(scores), self.num_labels)
        return softmax_losses(scores, chosen, pair_counts)


class _OfK(SceneObjective):
    """One of k relations per image."""

    @dataclass(frozen=True)
    class Config(SceneObjective.Config):
        """``k``: how many relations are predicted per image while training: a number, or a share (below 1) of its
        pairs; ``others``: as in `SceneSoftmax`."""

        k: int | float = 20

        def __post_init__(self) -> None:
            super().__post_init__()
            if not (0 < self.k < 1 or (1 <= self.k < math.inf and self.k == int(self.k))):
                raise ShortlistError(f"k must be a whole number, or a share of an image's pairs below 1, got {self.k}")


class SceneLML(_OfK):
    """All candidates of an image are projected together onto k relations: the likelihood of the recorded ones.

    >>> objective = SceneLML(in_features=4, num_labels=3, config=SceneLML.Config(k=2))
    >>> pairs = PairFeatures(torch.zeros(2, 4), torch.zeros(2, 4), (2,))
    >>> objective.loss(pairs, torch.tensor([[0, 1]]))
    tensor(1.0986, grad_fn=...)
    """

    name, plain = "scene-lml", "lml"

    def row_losses(self, scores: Tensor, entries: Tensor, pair_counts: tuple[int, ...]) -> Tensor:
        return lml_losses(scores, entries, pair_counts, self.config.k)


class SceneTruncatedEntropy(_OfK):
    """Each recorded relation of an image against its candidates but the k - 1 strongest.

    >>> objective = SceneTruncatedEntropy(4, num_labels=3, config=SceneTruncatedEntropy.Config(k=2))
    >>> pairs = PairFeatures(torch.zeros(2, 4), torch.zeros(2, 4), (2,))
    >>> objective.loss(pairs, torch.tensor([[0, 1]]))
    tensor(1.6094, grad_fn=...)
    """

    name, plain = "scene-truncated-entropy", "truncated-entropy"

    def row_losses(self, scores: Tensor, entries: Tensor, pair_counts: tuple[int, ...]) -> Tensor:
        return truncated_entropy_losses(scores, entries, pair_counts, self.config.k)
