"""The relation scorer: objects in boxes -> features of every ordered pair of objects of an image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from shortlist.checks import whole
from shortlist.errors import ShortlistError
from shortlist.scenes.containers import SceneBatch, Scenes, shape_for
from shortlist.scenes.context import LeftRightContext
from shortlist.scenes.frequency import log_frequencies
from shortlist.scenes.geometry import OBJECT_NUMBERS, PAIR_NUMBERS, object_geometry, pair_geometry


@dataclass(frozen=True, eq=False)
class DecidedClasses:
    """The classes of objects, where a scorer decides them itself: one row per object, image after image."""

    scores: Tensor  # (objects, classes + 1); the last column is background
    recorded: Tensor  # (objects,): what they are, for the loss; the number of classes stands for background
    chosen: Tensor  # (objects,)
    subjects: Tensor  # (pairs,): which of them each pair is of
    objects: Tensor  # (pairs,)


@dataclass(frozen=True, eq=False)
class PairFeatures:
    """What an objective sees of a batch: one row per pair, image after image."""

    values: Tensor  # (pairs, out_features)
    frequency: Tensor  # (pairs, predicates + 1): the starting scores; the last column is "no relation"
    pair_counts: tuple[int, ...]  # pairs of each image
    decided: DecidedClasses | None = None  # None: the classes were given
    last: Tensor | None = None  # bool (pairs,): those that come after all others in an answer


class RelationScorer(nn.Module):
    """Features of pairs for predicate classification, where boxes and object classes are given.

    An object is its class's vector (learned, from word vectors where the data has them), its box and, where the data
    has them, what a detector saw in it; a bidirectional LSTM from left to right adds what else is in the image. A pair
    is its subject, its object and the geometry of both boxes and their union. The frequency of every predicate between
    the two classes in the training images is what scores start from.

    Args:
        in_shape: as in ``Scenes.shape``.
        embedding: length of a class's vector, where there are no word vectors.
        context: size of the LSTM's state in each direction.
        hidden: length of a pair's features.
        dropout: of objects and of pair features.
        learn_frequency: whether training changes the frequencies.

    >>> boxes = torch.tensor([[0.0, 0, 10, 10], [5, 5, 9, 9], [0, 0, 4, 4]])
    >>> at = torch.tensor
    >>> scenes = Scenes(
    ...     boxes, at([0, 1, 1]), at([0, 3]), at([[0, 1, 0]]), at([0, 1]), ("man", "hat"), 2, sizes=at([[10, 10]])
    ... )
    >>> scorer = RelationScorer(scenes.shape, hidden=8)
    >>> scorer.start_from(scenes)
    >>> pairs = scorer(scenes.batch(at([0]))[0])
    >>> pairs.values.shape, pairs.frequency.shape, pairs.pair_counts
    (torch.Size([6, 8]), torch.Size([6, 3]), (6,))
    """

    not_decayed = ("frequency",)  # a table: a batch teaches the pairs of classes that are in it

    def __init__(
        self,
        in_shape: Sequence[int],
        *,
        embedding: int = 100,
        context: int = 128,
        hidden: int = 256,
        dropout: float = 0.1,
        learn_frequency: bool = True,
    ) -> None:
        super().__init__()
        classes, predicates, words, features, _, _, decide = shape_for("relations-light", in_shape)
        for name, value in (("embedding", embedding), ("context", context), ("hidden", hidden)):
            whole(value, name, 1)
        if not 0 <= dropout < 1:
            raise ShortlistError(f"dropout must be at least 0 and below 1, got {dropout!r}")
        self.embedding = nn.Embedding(classes, words or embedding)
        own = self.embedding.embedding_dim + OBJECT_NUMBERS + features
        self.context = LeftRightContext(own, context)
        joined = own + self.context.out_features
        self.ends = nn.Linear(joined, 2 * hidden)  # as a subject, and as an object
        self.place = nn.Linear(PAIR_NUMBERS, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)
        self.frequency = nn.Parameter(
            torch.zeros(classes * classes, predicates + 1), requires_grad=learn_frequency
        )
        self.decide = nn.Linear(joined, classes + 1) if decide else None  # the last is background
        self.features, self.out_features = features, hidden

    @torch.no_grad()
    def start_from(self, scenes: Scenes) -> None:
        """Take word vectors and frequencies from the training images."""
        if scenes.word_vectors is not None:
            self.embedding.weight.copy_(scenes.word_vectors)
        self.frequency.copy_(log_frequencies(scenes.as_recorded()))

    def forward(self, batch: SceneBatch) -> PairFeatures:
        if not isinstance(batch, SceneBatch):
            raise ShortlistError(
                f"the backbone 'relations-light' takes scenes, got {type(batch).__name__}: see shortlist.scenes"
            )
        boxes = batch.boxes.to(self.place.weight.dtype)
        parts = [self._class_vectors(batch), object_geometry(boxes)]
        if self.features:
            if batch.features is None:
                raise ShortlistError(f"the scorer was built for {self.features} features per box, the images have none")
            parts.append(batch.features.to(boxes.dtype))
        objects = self.dropout(torch.cat(parts, 1))
        middle = boxes[:, 0] + boxes[:, 2]
        objects = torch.cat([objects, self.context(objects, middle, batch.counts)], 1)
        as_subject, as_object = self.ends(objects).chunk(2, 1)
        geometry = self.place(pair_geometry(boxes, batch.subjects, batch.objects))
        pairs = torch.relu(as_subject[batch.subjects] + as_object[batch.objects] + geometry)
        values = torch.relu(self.mix(self.dropout(pairs)))
        decided = None if self.decide is None else self._decided(self.decide(objects), batch)
        known = batch.classes if decided is None else decided.chosen
        kind = known[batch.subjects] * self.embedding.num_embeddings + known[batch.objects]
        return PairFeatures(values, nn.functional.embedding(kind, self.frequency), batch.pair_counts, decided)

    def _class_vectors(self, batch: SceneBatch) -> Tensor:
        """Of the given classes; else of those that a detector takes the objects for, by its probabilities."""
        if self.decide is None:
            return self.embedding(batch.classes)
        if batch.class_scores is None:
            return self.embedding.weight.new_zeros(len(batch.classes), self.embedding.embedding_dim)
        return batch.class_scores.to(self.embedding.weight.dtype).softmax(1)[:, :-1] @ self.embedding.weight

    def _decided(self, scores: Tensor, batch: SceneBatch) -> DecidedClasses:
        """What a detector says, corrected by what the context says; background is never chosen."""
        scores = scores if batch.class_scores is None else scores + batch.class_scores.to(scores.dtype)
        chosen = scores.detach()[:, :-1].argmax(1)
        if self.training:  # frequencies are learned of the recorded classes
            chosen = torch.where(batch.classes < self.embedding.num_embeddings, batch.classes, chosen)
        return DecidedClasses(scores, batch.classes, chosen, batch.subjects, batch.objects)
