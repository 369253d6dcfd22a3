"""Scenes: images as objects in boxes and the relations between them, in flat arrays with offsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from shortlist.data.dataset import Dataset
from shortlist.errors import ShortlistError
from shortlist.labels.label_set_inputs import as_positions
from shortlist.scenes.matching import box_overlaps, standing_for
from shortlist.scenes.stored_rows import StoredRows

SceneTaskName = Literal["predcls", "sgcls", "sgdet"]
SAME_PLACE = 0.5  # overlap over union from which a box lies where another one does


class Candidates(NamedTuple):
    """Where the classes of objects have to be found too: which pairs lie where a recorded relation does."""

    relation: Tensor  # int64 (C,): a row of ``classes``, ``predicate`` and ``image``
    pair: Tensor  # int64 (C,): a row of the pairs of all images, both of whose boxes overlap those of the relation
    classes: Tensor  # int64 (M, 2): of subject and object of every recorded relation
    predicate: Tensor  # int64 (M,)
    image: Tensor  # int64 (M,)


class Relations(NamedTuple):
    """The recorded relations of some images: what the scores of all their pairs are measured against."""

    entries: Tensor  # int64 (M, 2): a pair's row among the pairs of all images, and a predicate; each once
    offsets: Tensor  # int64 (images + 1,): where the pairs of each image begin
    candidates: Candidates | None = None  # where classes are not given: what ``entries`` do not say
    scenes: Scenes | None = None  # whose relations they are, with every record
    unseen: Tensor | None = None  # bool: of which of `Scenes.answers_of_relations` no training image has the like


@dataclass(eq=False)  # not frozen: Fabric changes the type of its tensors
class SceneBatch:
    """Some images as a scorer sees them: everything about objects is flat, image after image.

    Every ordered pair of different objects of an image is a candidate; pairs come by subject, then by object.
    """

    boxes: Tensor  # float32 (objects, 4): xmin, ymin, xmax, ymax as shares of the image's width and height
    classes: Tensor  # int64 (objects,)
    subjects: Tensor  # int64 (pairs,): rows of boxes
    objects: Tensor  # int64 (pairs,)
    counts: tuple[int, ...]  # objects of each image
    features: Tensor | None = None  # float32 (objects, F)
    union_features: Tensor | None = None  # float32 (pairs, U)
    class_scores: Tensor | None = None  # float32 (objects, classes + 1): what a detector says; the last is background
    classes_given: bool = True  # otherwise ``classes`` are for the loss alone

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def pair_counts(self) -> tuple[int, ...]:
        """Pairs of each image."""
        return tuple(count * (count - 1) for count in self.counts)

    def to(self, device: Any) -> SceneBatch:
        moved: dict[str, Any] = {name: x.to(device) for name, x in vars(self).items() if isinstance(x, Tensor)}
        return replace(self, **moved)


@dataclass(frozen=True, eq=False, repr=False)
class Scenes:
    """The inputs of a scene data set. Nothing is padded: an image takes the room of its own objects.

    Args:
        boxes: float (objects, 4): xmin, ymin, xmax, ymax in pixels, each box with a positive width and height.
        classes: int64 (objects,), numbers of ``class_names``.
        object_offsets: int64 (N + 1,): where each image's objects begin.
        relations: int64 (M, 3): subject and object (places within their image) and predicate. One that is recorded
            twice counts once.
        relation_offsets: int64 (N + 1,): where each image's relations begin.
        class_names: the names of the object classes.
        num_predicates: how many predicates there are.
        sizes: int64 (N, 2): width and height of each image; 0 or less where they are not known.
        word_vectors: float (classes, D), a vector for each object class.
        features: float (objects, F), what a detector saw in each box; a tensor, or `StoredRows` of a file.
        union_features: float (pairs, U), what it saw in the box around each pair, in the order of ``batch``.
        class_scores: float (objects, classes + 1), what it says of each box; the last column is background.
        classes_given: whether a scorer may see the classes (PredCls). Otherwise it has to find them (SGCls), and
            ``classes`` may be background, the number of classes.
        recorded: where boxes are those of a detector (SGDet), the recorded scenes of the same images. The classes and
            relations of detected boxes are then those of the recorded ones that they lie on, to learn from.

    >>> boxes = torch.tensor([[0.0, 0, 10, 10], [5, 5, 9, 9], [0, 0, 4, 4]])
    >>> scenes = Scenes(
    ...     boxes, torch.tensor([0, 1, 1]), torch.tensor([0, 3]), torch.tensor([[0, 2, 1], [0, 2, 0]]),
    ...     torch.tensor([0, 2]), ("man", "hat"), num_predicates=2, sizes=torch.tensor([[10, 20]]),
    ... )
    >>> scenes
    Scenes(1 images, 3 objects, 2 relations)
    >>> batch, entries = scenes.batch(torch.tensor([0]))
    >>> batch.subjects.tolist(), batch.objects.tolist(), entries.tolist()
    ([0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1], [[1, 0], [1, 1]])
    """

    kind: ClassVar[str] = "scenes"

    boxes: Tensor
    classes: Tensor
    object_offsets: Tensor
    relations: Tensor
    relation_offsets: Tensor
    class_names: tuple[str, ...]
    num_predicates: int
    sizes: Tensor
    word_vectors: Tensor | None = None
    features: Any = None
    union_features: Any = None
    class_scores: Any = None
    classes_given: bool = True
    recorded: Scenes | None = None

    def __post_init__(self) -> None:
        objects, images = len(self.classes), len(self.sizes)
        pairs = int(self.pair_offsets()[-1])
        for name, found, wanted in (
            ("boxes", self.boxes, (objects, 4)),
            ("sizes", self.sizes, (images, 2)),
            ("relations", self.relations, (len(self.relations), 3)),
            ("object_offsets", self.object_offsets, (images + 1,)),
            ("relation_offsets", self.relation_offsets, (images + 1,)),
            ("word_vectors", self.word_vectors, (len(self.class_names), -1)),
            ("features", self.features, (objects, -1)),
            ("union_features", self.union_features, (pairs, -1)),
            ("class_scores", self.class_scores, (objects, len(self.class_names) + 1)),
        ):
            if found is not None and not _fits(tuple(found.shape), wanted):
                raise ShortlistError(f"{name} must have the shape {wanted}, got {tuple(found.shape)}")
        for name, offsets, end in (
            ("object_offsets", self.object_offsets, objects),
            ("relation_offsets", self.relation_offsets, len(self.relations)),
        ):
            if int(offsets[0]) != 0 or int(offsets[-1]) != end or bool((offsets.diff() < 0).any()):
                raise ShortlistError(f"{name} must rise from 0 to {end}, got {offsets.tolist()[:5]}...")
        self._check_objects()
        self._check_relations()

    def _check_objects(self) -> None:
        bad = (self.classes < 0) | (self.classes >= len(self.class_names) + (not self.classes_given))
        if bool(bad.any()):
            row = int(bad.nonzero()[0])
            number = int(self.classes[row])
            raise ShortlistError(f"object {row} has the class {number}: allowed are 0..{len(self.class_names) - 1}")
        bad = ~((self.boxes[:, 2:] > self.boxes[:, :2]).all(1) & self.boxes.isfinite().all(1))
        if bool(bad.any()):
            row = int(bad.nonzero()[0])
            box = self.boxes[row].tolist()
            raise ShortlistError(f"object {row} has the box {box}: xmin < xmax and ymin < ymax must hold")

    def _check_relations(self) -> None:
        counts = self.object_offsets.diff().repeat_interleave(self.relation_offsets.diff())
        subject, thing, predicate = self.relations.unbind(1)
        inside = (self.relations[:, :2] >= 0).all(1) & (subject < counts) & (thing < counts) & (subject != thing)
        bad = ~inside | (predicate < 0) | (predicate >= self.num_predicates)
        if bool(bad.any()):
            row = int(bad.nonzero()[0])
            raise ShortlistError(
                f"relation {row} is {self.relations[row].tolist()} in an image of {int(counts[row])} objects: subject "
                f"and object must be two of them, and the predicate one of 0..{self.num_predicates - 1}"
            )

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def rows_each(self) -> int:
        """So many that the pairs of all images that are looked at together are a few thousand."""
        return max(16, int(self.pair_offsets()[-1]) // max(1, 4 * len(self)))

    @property
    def shape(self) -> tuple[int, ...]:
        """Object classes, predicates, numbers per word vector and numbers per box's features (0: there are none); where
        there is more to say, also numbers per union box's features, whether there are a detector's class scores, and
        whether classes have to be found."""
        words, features, unions = (
            0 if x is None else int(x.shape[1]) for x in (self.word_vectors, self.features, self.union_features)
        )
        more = (unions, int(self.class_scores is not None), int(not self.classes_given))
        return len(self.class_names), self.num_predicates, words, features, *(more if any(more) else ())

    @property
    def task(self) -> SceneTaskName:
        """PredCls, SGCls or SGDet, by what is given."""
        return "predcls" if self.classes_given else "sgcls" if self.recorded is None else "sgdet"

    @property
    def in_memory(self) -> bool:
        """Whether nothing has to be read from a file."""
        return not any(isinstance(rows, StoredRows) for rows in (self.features, self.union_features))

    def batch(self, index: Tensor) -> tuple[SceneBatch, Tensor]:
        """These images, and their recorded relations as (pair, predicate) entries."""
        chosen = self.subset(index)
        counts = chosen.object_offsets.diff()
        first, subjects, objects = pairs_of(counts)
        scale = _extents(chosen).repeat_interleave(counts, 0)
        batch = SceneBatch(
            boxes=chosen.boxes.float() / scale.repeat(1, 2),
            classes=chosen.classes,
            subjects=subjects + chosen.object_offsets[:-1].repeat_interleave(first.diff()),
            objects=objects + chosen.object_offsets[:-1].repeat_interleave(first.diff()),
            counts=tuple(counts.tolist()),
            features=None if chosen.features is None else chosen.features.float(),
            union_features=None if chosen.union_features is None else chosen.union_features.float(),
            class_scores=None if chosen.class_scores is None else chosen.class_scores.float(),
            classes_given=self.classes_given,
        )
        return batch, chosen._entries(first)

    def pairs(self) -> Tensor:
        """Subject and object of every pair, as places within their image, int64 (pairs, 2)."""
        return torch.stack(pairs_of(self.object_offsets.diff())[1:], 1)

    def pair_offsets(self) -> Tensor:
        """Where the pairs of each image begin, int64 (N + 1,)."""
        counts = self.object_offsets.diff()
        return _offsets(counts * (counts - 1))

    def answers(self) -> Relations:
        """The relations of all images, each once, as rows of the pairs of all images."""
        first = self.pair_offsets()
        return Relations(self._entries(first), first, None if self.classes_given else self._candidates, self)

    def _entries(self, first: Tensor) -> Tensor:
        counts = self.object_offsets.diff()
        image = torch.arange(len(self)).repeat_interleave(self.relation_offsets.diff())
        subject, thing, predicate = self.relations.unbind(1)
        pair = first[image] + subject * (counts[image] - 1) + thing - (thing > subject).long()
        once = (pair * self.num_predicates + predicate).unique()
        return torch.stack([once // self.num_predicates, once % self.num_predicates], 1)

    @cached_property
    def _candidates(self) -> Candidates:
        """Which pairs lie where each recorded relation does; the classes are compared when they have been found."""
        truth = self.recorded or self
        right = truth.answers_of_relations()
        found: list[tuple[Tensor, Tensor]] = []
        places = zip(_each(self.boxes, self.object_offsets), _each(truth.boxes, truth.object_offsets), strict=True)
        first = self.pair_offsets()
        begin = torch.searchsorted(right[:, 0].contiguous(), torch.arange(len(self) + 1))
        for row, (boxes, recorded) in enumerate(places):
            own = right[begin[row] : begin[row + 1]]
            if not len(own) or not len(boxes):
                continue
            near = box_overlaps(boxes, recorded) >= SAME_PLACE
            relation, subject, thing = standing_for(near, own[:, 1:3])
            pair = first[row] + subject * (len(boxes) - 1) + thing - (thing > subject).long()
            found.append((begin[row] + relation, pair))
        relation, pair = (torch.cat(part) for part in zip(*found, strict=True)) if found else (first[:0], first[:0])
        image = right[:, 0]
        ends = right[:, 1:3] + truth.object_offsets[image, None]
        return Candidates(relation, pair, truth.classes[ends], right[:, 3], image)

    def ends_of_relations(self) -> Tensor:
        """Which objects, of those of all images, are subject and object of each relation, int64 (M, 2)."""
        begin = self.object_offsets[:-1].repeat_interleave(self.relation_offsets.diff())
        return self.relations[:, :2] + begin[:, None]

    def answers_of_relations(self) -> Tensor:
        """Image, subject, object and predicate of every recorded relation, each once, in order, int64 (M, 4)."""
        image = torch.arange(len(self)).repeat_interleave(self.relation_offsets.diff())
        return torch.cat([image[:, None], self.relations], 1).unique(dim=0)

    def subset(self, rows: Any) -> Scenes:
        """The images at these positions, in this order."""
        at = torch.from_numpy(as_positions(rows, len(self), "example"))
        objects, object_offsets = _pieces(self.object_offsets, at)
        relations, relation_offsets = _pieces(self.relation_offsets, at)
        chosen = object.__new__(Scenes)  # what is checked once need not be checked for every batch
        chosen.__dict__.update(
            self.__dict__,
            boxes=self.boxes[objects],
            classes=self.classes[objects],
            object_offsets=object_offsets,
            relations=self.relations[relations],
            relation_offsets=relation_offsets,
            sizes=self.sizes[at],
            features=None if self.features is None else self.features[objects],
            class_scores=None if self.class_scores is None else self.class_scores[objects],
            recorded=None if self.recorded is None else self.recorded.subset(rows),
        )
        if self.union_features is not None:
            pairs, _ = _pieces(self.pair_offsets(), at)
            chosen.__dict__["union_features"] = self.union_features[pairs]
        chosen.__dict__.pop("_candidates", None)
        return chosen

    def kinds_of_relations(self) -> Tensor:
        """A number for subject class, predicate and object class of each of `answers_of_relations`, int64 (M,)."""
        image, subject, thing, predicate = self.answers_of_relations().unbind(1)
        first, second = (self.classes[self.object_offsets[image] + place] for place in (subject, thing))
        return (first * self.num_predicates + predicate) * len(self.class_names) + second

    def as_recorded(self) -> Scenes:
        """The recorded scenes alone, without what a detector saw: what frequencies are counted in."""
        truth = self.recorded or self
        return replace(truth, features=None, union_features=None, class_scores=None, classes_given=True)

    def predicates_present(self) -> Tensor:
        """Which predicates occur in each image: a label matrix, int8 (N, predicates)."""
        found = torch.zeros(len(self), self.num_predicates, dtype=torch.int8)
        recorded = (self.recorded or self).answers_of_relations()
        found[recorded[:, 0], recorded[:, 3]] = 1
        return found

    # ---- what a data set asks of its inputs

    def with_target(self, index: Tensor, target: Tensor) -> tuple[SceneBatch, Tensor]:
        return self.batch(index)

    def answers_or(self, target: Tensor) -> Relations:
        return self.answers()

    def facts(self) -> dict[str, Any]:
        task = {} if self.classes_given else {"task": self.task}
        kinds = (self.recorded or self).kinds_of_relations().unique().tolist()
        widths = {"features": self.features, "union_features": self.union_features}
        seen = {name: int(rows.shape[1]) for name, rows in widths.items() if rows is not None}
        return {"objects": list(self.class_names), **task, **seen, "seen": kinds}

    def counts(self) -> dict[str, int]:
        relations = len((self.recorded or self).answers_of_relations())
        return {"object_classes": len(self.class_names), "objects": len(self.classes), "relations": relations}

    def in_words(self, num_labels: int, single: bool) -> str:
        return f"{self}, {num_labels} predicates"

    def __repr__(self) -> str:
        return f"Scenes({len(self)} images, {len(self.classes)} objects, {len(self.relations)} relations)"


def scene_dataset(scenes: Scenes, names: Sequence[str], predicates: Sequence[str], name: str) -> Dataset:
    """With the predicates that occur in each image as its labels: what parts are balanced by."""
    return Dataset(scenes, scenes.predicates_present(), tuple(predicates), ids=tuple(map(str, names)), name=name)


def pairs_of(counts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """All ordered pairs of different objects: where each image's begin, and the places of subject and object.

    >>> [x.tolist() for x in pairs_of(torch.tensor([2, 1, 2]))]
    [[0, 2, 2, 4], [0, 1, 0, 1], [1, 0, 1, 0]]
    """
    pairs = counts * (counts - 1)
    first = _offsets(pairs)
    others = (counts - 1).repeat_interleave(pairs)
    within = torch.arange(int(first[-1])) - first[:-1].repeat_interleave(pairs)
    subject, thing = within // others, within % others
    return first, subject, thing + (thing >= subject).long()


def _extents(scenes: Scenes) -> Tensor:
    """Width and height of each image, at least as far as its boxes reach: files have sizes too small, or none."""
    image = torch.arange(len(scenes)).repeat_interleave(scenes.object_offsets.diff())
    reach = scenes.sizes.float().clamp(min=1)
    return reach.scatter_reduce(0, image[:, None].expand(-1, 2), scenes.boxes[:, 2:].float(), "amax")


def shape_for(backbone: str, in_shape: Sequence[int]) -> tuple[int, ...]:
    """All seven numbers of ``Scenes.shape``; a ShortlistError where the inputs of a backbone are no scenes."""
    if len(in_shape) not in (4, 7):
        raise ShortlistError(
            f"backbone {backbone!r} takes scenes (readers vrd, vrd-pairs and visual-genome), got inputs of shape "
            f"{tuple(in_shape)}: use 'identity' or 'mlp' for features, a convolutional network for images"
        )
    return (*in_shape, 0, 0, 0)[:7]


def _offsets(counts: Tensor) -> Tensor:
    return torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])


def _each(rows: Tensor, offsets: Tensor) -> tuple[Tensor, ...]:
    return rows.split(offsets.diff().tolist())


def _pieces(offsets: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
    """Where the members of these images are, and their new offsets."""
    counts = offsets.diff()[at]
    new = _offsets(counts)
    return torch.arange(int(new[-1])) + (offsets[:-1][at] - new[:-1]).repeat_interleave(counts), new


def _fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    return len(shape) == len(wanted) and all(want in (-1, size) for size, want in zip(shape, wanted, strict=True))
