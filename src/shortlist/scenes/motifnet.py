"""MotifNet (Zellers et al. 2018, Neural Motifs): every object in the context of the others, every pair as a product."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from shortlist.checks import whole
from shortlist.errors import ShortlistError, nearest
from shortlist.scenes.containers import SceneBatch, Scenes, shape_for
from shortlist.scenes.context import PackedOrder, packed_order, with_all_weights
from shortlist.scenes.frequency import overlap_frequencies
from shortlist.scenes.highway import AlternatingHighwayLSTM
from shortlist.scenes.label_decoder import LabelDecoder, without_duplicates
from shortlist.scenes.matching import overlap
from shortlist.scenes.regions import SIDE
from shortlist.scenes.scorer import DecidedClasses, PairFeatures
from shortlist.scenes.union_boxes import union_masks

Order = Literal["left-right", "confidence", "size", "random"]
_POSITION = 128  # numbers that describe where a box is


class MotifNet(nn.Module):
    """Features of pairs by MotifNet; the defaults are the published MotifNet-LeftRight.

    An object is what was seen in its box, its class's vector and its place. A highway LSTM over the objects of an image
    (the object context) decides the classes, where these are not given; another one over classes and object context
    (the edge context) describes every object as a subject and as an object. A pair is the product of its subject, its
    object and what is seen in the box around both, in which both are drawn as rectangles. Scores start from how often
    each predicate joined the two classes in the training images (`overlap_frequencies`).

    Args:
        in_shape: as in ``Scenes.shape``: object classes, predicates, numbers of a word vector (0: there are none),
            numbers seen in each box (0: none), and, if there is more to say, numbers seen in each union box, whether a
            detector guessed the classes, and whether they have to be found (SGCls, SGDet).
        embedding: length of a class's vector, where there are no word vectors.
        hidden: size of the LSTMs' states.
        pooling: length of a pair's features.
        object_layers: layers of the object context; 0 leaves it out.
        edge_layers: layers of the edge context; 0 takes a vector of each class instead (the baseline NoContext, if
            there is no object context either).
        order: in which order the LSTMs read: ``left-right`` by the middle of the boxes, ``size`` largest first,
            ``confidence`` of a detector in its classes, highest first (as listed where there is none), or ``random``
            (in training; as listed otherwise).
        union_channels: channels of the network that sees the two rectangles.
        dropout: of the LSTMs' states.
        apart: where classes have to be found, boxes that overlap as much cannot have the same class: 0.3 for those of
            a detector (SGDet); None lets them (SGCls).
        overlapping: pairs of boxes that do not overlap come last in an answer, as published for SGDet.
        regions: what was seen in a box is a map of union_channels x 7 x 7 and not a vector; two layers follow it.
        region_dropout: between those layers, and those of the union box.
        learn_frequency: whether training changes the frequencies.

    >>> boxes = torch.tensor([[0.0, 0, 10, 10], [5, 5, 9, 9], [0, 0, 4, 4]])
    >>> at = torch.tensor
    >>> scenes = Scenes(
    ...     boxes, at([0, 1, 1]), at([0, 3]), at([[0, 1, 0]]), at([0, 1]), ("man", "hat"), 2, sizes=at([[10, 10]])
    ... )
    >>> net = MotifNet(scenes.shape, hidden=8, pooling=16, union_channels=4)
    >>> net.start_from(scenes)
    >>> pairs = net(scenes.batch(at([0]))[0])
    >>> pairs.values.shape, pairs.frequency.shape, pairs.pair_counts
    (torch.Size([6, 16]), torch.Size([6, 3]), (6,))
    """

    not_decayed = ("frequency",)  # a table: a batch teaches the pairs of classes that are in it

    def __init__(
        self,
        in_shape: Sequence[int],
        *,
        embedding: int = 200,
        hidden: int = 512,
        pooling: int = 4096,
        object_layers: int = 2,
        edge_layers: int = 4,
        order: Order = "left-right",
        union_channels: int = 512,
        dropout: float = 0.1,
        apart: float | None = None,
        overlapping: bool = False,
        regions: bool = False,
        region_dropout: float = 0.5,
        learn_frequency: bool = True,
    ) -> None:
        super().__init__()
        self.classes, predicates, words, features, union_features, _, decode = shape_for("motifnet", in_shape)
        for name, value, least in (
            ("embedding", embedding, 1), ("hidden", hidden, 1), ("pooling", pooling, 1),
            ("union_channels", union_channels, 2), ("object_layers", object_layers, 0), ("edge_layers", edge_layers, 0),
        ):  # fmt: skip
            whole(value, name, least)
        for name, share in (("dropout", dropout), ("region_dropout", region_dropout)):
            if not 0 <= share < 1:
                raise ShortlistError(f"{name} must be at least 0 and below 1, got {share!r}")
        if apart is not None and not 0 < apart <= 1:
            raise ShortlistError(f"apart is an overlap over union, above 0 and at most 1, got {apart!r}")
        if order not in get_args(Order):
            raise ShortlistError(
                f"order is one of {', '.join(get_args(Order))}, got {order!r}{nearest(order, get_args(Order))}"
            )
        if decode and not object_layers:
            raise ShortlistError("classes are found from the object context: set object_layers to 1 or more")
        self.order, self.apart, self.overlapping = order, apart, overlapping
        self.features, self.union_features = features, union_features
        if regions and not features == union_features == union_channels * SIDE**2:
            raise ShortlistError(
                f"regions of boxes and of union boxes must be {union_channels} x {SIDE} x {SIDE} numbers, "
                f"got {features} and {union_features}"
            )
        embedding = words or embedding
        self.seen = _region_layers(features, pooling, region_dropout) if regions else None
        self.class_vectors = nn.Embedding(self.classes + 1, embedding)  # the last one is background
        self.position_norm = nn.BatchNorm1d(4, momentum=0.001)
        self.position = nn.Sequential(nn.Linear(4, _POSITION), nn.ReLU(), nn.Dropout(0.1))
        width = (pooling if regions else features) + embedding + _POSITION
        self.object_context = None
        if object_layers:
            self.object_context = AlternatingHighwayLSTM(width, hidden, object_layers, dropout)
            width = hidden
        self.decoder = LabelDecoder(hidden, self.classes, words or 100, hidden, dropout) if decode else None
        self.edge_context, self.edge_vectors = None, None
        if edge_layers:
            self.edge_vectors = nn.Embedding(self.classes + 1, embedding)
            self.edge_context = AlternatingHighwayLSTM(embedding + width, hidden, edge_layers, dropout)
            self.ends: nn.Module = nn.Linear(hidden, 2 * pooling)
            nn.init.normal_(self.ends.weight, std=10 / math.sqrt(hidden))  # the LSTM's numbers are about 0.1
            nn.init.zeros_(self.ends.bias)
        else:
            self.ends = nn.Embedding(self.classes + 1, 2 * pooling)
        self.union = UnionNetwork(union_channels, pooling, 0 if regions else union_features, region_dropout)
        self.frequency = nn.Parameter(
            torch.zeros((self.classes + 1) ** 2, predicates + 1), requires_grad=learn_frequency
        )
        self.out_features = pooling

    @torch.no_grad()
    def start_from(self, scenes: Scenes) -> None:
        """Take word vectors and frequencies from the training images."""
        if scenes.word_vectors is not None:
            for table in (self.class_vectors, self.edge_vectors, self.decoder and self.decoder.before):
                if isinstance(table, nn.Embedding):
                    table.weight[: self.classes] = scenes.word_vectors
        self.frequency.copy_(overlap_frequencies(scenes.as_recorded()))

    def forward(self, batch: SceneBatch) -> PairFeatures:
        if not isinstance(batch, SceneBatch):
            raise ShortlistError(
                f"the backbone 'motifnet' takes scenes, got {type(batch).__name__}: see shortlist.scenes"
            )
        boxes = batch.boxes.to(self.frequency.dtype)
        seen = _wanted(batch.features, self.features, "box")
        around = _wanted(batch.union_features, self.union_features, "union box")
        if not len(boxes):
            none = None
            if self.decoder is not None:
                scores = boxes.new_zeros(0, self.classes + 1)
                none = DecidedClasses(scores, batch.classes, batch.classes, batch.subjects, batch.objects)
            nothing = with_all_weights(boxes.new_zeros(0, self.out_features), self)
            return PairFeatures(nothing, self.frequency[:0], batch.pair_counts, none)
        objects, order = self._described(batch, boxes, seen)
        classes, decided = batch.classes, None
        if self.decoder is not None:
            decided = self._decided(objects, order, batch)
            classes = batch.classes if self.training else decided.chosen
        edges = self._edges(objects, classes, order)
        as_subject, as_object = self.ends(classes if edges is None else edges).chunk(2, 1)
        values = as_subject[batch.subjects] * as_object[batch.objects]
        if len(values):
            values = values * self.union(union_masks(boxes, batch.subjects, batch.objects), around)
        else:
            values = with_all_weights(values, self.union)
        kind = classes[batch.subjects] * (self.classes + 1) + classes[batch.objects]
        last = None
        if self.overlapping and not self.training:
            last = ~overlap(boxes[batch.subjects], boxes[batch.objects])
        return PairFeatures(values, F.embedding(kind, self.frequency), batch.pair_counts, decided, last)

    def _described(self, batch: SceneBatch, boxes: Tensor, seen: Tensor | None) -> tuple[Tensor, PackedOrder]:
        """Every object in its context, and the order in which the LSTMs read."""
        guess = None if batch.class_scores is None else batch.class_scores.to(boxes.dtype).softmax(1)
        if guess is not None:
            own = guess @ self.class_vectors.weight
        elif batch.classes_given:
            own = self.class_vectors(batch.classes)
        else:
            own = self.class_vectors.weight.mean(0).expand(len(boxes), -1)  # they may be anything
        parts = [own, self._place(boxes)]
        if seen is not None:
            parts.insert(0, seen if self.seen is None else self.seen(seen))
        objects = torch.cat(parts, 1)
        order = packed_order(self._order_key(boxes, guess), batch.counts)
        if self.object_context is not None:
            objects = order.back(self.object_context(order.packed(objects)).data)
        return objects, order

    def _decided(self, objects: Tensor, order: PackedOrder, batch: SceneBatch) -> DecidedClasses:
        assert self.decoder is not None
        known = batch.classes[order.rows] if self.training else None
        scores, chosen = map(order.back, self.decoder(objects[order.rows], order.sizes, known))
        if self.apart is not None and not self.training:
            chosen = without_duplicates(scores, batch.boxes, batch.counts, self.apart)
        return DecidedClasses(scores, batch.classes, chosen, batch.subjects, batch.objects)

    def _edges(self, objects: Tensor, classes: Tensor, order: PackedOrder) -> Tensor | None:
        """Every object as the end of an edge, knowing all classes."""
        if self.edge_context is None or self.edge_vectors is None:
            return None
        ends = torch.cat([self.edge_vectors(classes), objects], 1)
        return order.back(self.edge_context(order.packed(ends)).data)

    def _place(self, boxes: Tensor) -> Tensor:
        """Of the middle, width and height of each box."""
        sides = boxes[:, 2:] - boxes[:, :2]
        place = torch.cat([boxes[:, :2] + sides / 2, sides], 1)
        norm = self.position_norm
        place = F.batch_norm(
            place, norm.running_mean, norm.running_var, norm.weight, norm.bias,
            training=self.training and len(place) > 1, momentum=norm.momentum or 0.0, eps=norm.eps,
        )  # fmt: skip
        return self.position(place)

    def _order_key(self, boxes: Tensor, guess: Tensor | None) -> Tensor:
        """What objects are sorted by, lowest first; equal ones stay as listed."""
        if self.order == "left-right":
            return boxes[:, 0] + boxes[:, 2]
        if self.order == "size":
            return -(boxes[:, 2:] - boxes[:, :2]).prod(1)
        if self.order == "confidence" and guess is not None:
            return -guess[:, :-1].amax(1)
        if self.order == "random" and self.training:
            return torch.rand(len(boxes), device=boxes.device)
        return torch.zeros(len(boxes), device=boxes.device)


class UnionNetwork(nn.Module):
    """What the box around a pair says, (pairs, pooling): from the two rectangles in it, and from what was seen in it.

    The rectangles become channels x 7 x 7, and two layers follow. What was seen is added if it is such a map, and
    stands beside it if it is a vector of ``features`` numbers.

    >>> network = UnionNetwork(4, pooling=8)
    >>> network(torch.zeros(3, 2, 27, 27)).shape
    torch.Size([3, 8])
    """

    def __init__(self, channels: int, pooling: int, features: int = 0, dropout: float = 0.5) -> None:
        super().__init__()
        self.rectangles = nn.Sequential(
            nn.Conv2d(2, channels // 2, 7, stride=2, padding=3),
            nn.ReLU(),
            nn.BatchNorm2d(channels // 2, momentum=0.01),
            nn.MaxPool2d(3, stride=2, padding=1),
            nn.Conv2d(channels // 2, channels, 3, padding=1),
            nn.ReLU(),
            nn.BatchNorm2d(channels, momentum=0.01),
        )
        self.features = features
        self.layers = _region_layers(channels * SIDE**2 + features, pooling, dropout)[:-2]  # not the last ReLU

    def forward(self, masks: Tensor, seen: Tensor | None = None) -> Tensor:
        masks = masks.contiguous(memory_format=torch.channels_last)  # faster on a CPU
        drawn = self.rectangles(masks).flatten(1)
        if seen is not None:
            drawn = torch.cat([drawn, seen], 1) if self.features else drawn + seen
        return self.layers(drawn)


def _region_layers(inside: int, outside: int, dropout: float) -> nn.Sequential:
    """The two layers that VGG has behind a 7 x 7 map."""
    return nn.Sequential(
        nn.Linear(inside, outside), nn.ReLU(), nn.Dropout(dropout),
        nn.Linear(outside, outside), nn.ReLU(), nn.Dropout(dropout),
    )  # fmt: skip


def _wanted(features: Tensor | None, numbers: int, what: str) -> Tensor | None:
    if not numbers:
        return None
    if features is None:
        raise ShortlistError(f"the scorer was built for {numbers} features per {what}, the images have none")
    return features.float()
