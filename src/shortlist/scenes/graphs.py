"""Scene graphs to look at and to keep: objects with names and boxes, and relations between them; JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from shortlist.data import Dataset
from shortlist.errors import ShortlistError, errors_name
from shortlist.files import PathLike, written_whole
from shortlist.scenes.containers import SAME_PLACE, Scenes
from shortlist.scenes.found import scored_images
from shortlist.scenes.matching import RecordedGraph, ScoredGraph, box_overlaps, ranked
from shortlist.scenes.recorded import recorded_images

_BACKGROUND = "(no object)"


@dataclass(frozen=True)
class SceneObject:
    """A name and a box: xmin, ymin, xmax, ymax in pixels."""

    name: str
    box: tuple[float, float, float, float]


@dataclass(frozen=True)
class SceneRelation:
    """Subject and object are numbers of the graph's objects; a recorded relation has no score."""

    subject: int
    predicate: str
    object: int
    score: float | None = None


@dataclass(frozen=True)
class SceneGraph:
    """The graph of one image; predicted relations come best first.

    >>> objects = (SceneObject("man", (10.0, 5.0, 50.0, 75.0)), SceneObject("hat", (20.0, 5.0, 40.0, 15.0)))
    >>> graph = SceneGraph("1.jpg", 60, 80, objects, (SceneRelation(0, "wears", 1),))
    >>> graph.sentences()
    ['man wears hat']
    >>> SceneGraph.from_json(graph.to_json()) == graph
    True
    """

    image: str
    width: int
    height: int
    objects: tuple[SceneObject, ...]
    relations: tuple[SceneRelation, ...]

    def names(self) -> list[str]:
        """What to call each object: its class, and a number where the image has several of it ("table 2")."""
        classes = [thing.name for thing in self.objects]
        return [
            f"{name} {classes[: place + 1].count(name)}" if classes.count(name) > 1 else name
            for place, name in enumerate(classes)
        ]

    def sentences(self) -> list[str]:
        """Each relation in words."""
        names = self.names()
        return [f"{names[one.subject]} {one.predicate} {names[one.object]}" for one in self.relations]

    def related(self) -> SceneGraph:
        """Without the objects that are in no relation: a detector finds many, of which few are spoken of.

        >>> objects = tuple(SceneObject(name, (0.0, 0.0, 9.0, 9.0)) for name in ("man", "tree", "hat"))
        >>> SceneGraph("1.jpg", 9, 9, objects, (SceneRelation(0, "wears", 2),)).related().relations
        (SceneRelation(subject=0, predicate='wears', object=1, score=None),)
        """
        kept = sorted({end for one in self.relations for end in (one.subject, one.object)})
        new = {old: place for place, old in enumerate(kept)}
        relations = tuple(replace(one, subject=new[one.subject], object=new[one.object]) for one in self.relations)
        return replace(self, objects=tuple(self.objects[old] for old in kept), relations=relations)

    def to_json(self) -> str:
        """One line: image, width, height, objects (name, box) and relations (subject, predicate, object, score)."""
        return json.dumps(asdict(self), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> SceneGraph:
        """The graph of a line; a ValueError says what is missing."""
        content = json.loads(text)
        try:
            objects = tuple(SceneObject(one["name"], tuple(map(float, one["box"]))) for one in content["objects"])  # type: ignore[arg-type]
            relations = tuple(SceneRelation(**one) for one in content["relations"])
            graph = cls(content["image"], content["width"], content["height"], objects, relations)
        except (KeyError, TypeError) as error:
            raise ShortlistError(f"not a scene graph of shortlist: {error}") from None
        for relation in relations:
            if not {relation.subject, relation.object} <= set(range(len(objects))):
                raise ShortlistError(f"{relation} is between objects of which the graph has {len(objects)}")
        return graph


def predicted_graphs(dataset: Dataset, scores: Tensor, k: int, *, constrained: bool = True) -> Iterator[SceneGraph]:
    """The k best triples of each image of a scene data set, as graphs; fewer where there are fewer candidates.

    Args:
        dataset: scenes, as a reader gives them.
        scores: (pairs, predicates) of all its images, as a run gives them.
        k: how many relations.
        constrained: a pair of objects has at most one relation.
    """
    scenes: Scenes = dataset.inputs
    offsets = scenes.pair_offsets()
    if scores.shape[0] != int(offsets[-1]) or scores.shape[1] not in (dataset.num_labels, dataset.num_labels + 2):
        raise ShortlistError(
            f"scores must have a row for each of the {int(offsets[-1])} pairs and a column for each of the "
            f"{dataset.num_labels} predicates, got {tuple(scores.shape)}"
        )
    for image, answer in enumerate(scored_images(scenes, scores)):
        pair, predicate, score = ranked(answer, k, constrained)
        columns = *answer.pairs[pair].T.tolist(), predicate.tolist(), score.tolist()
        yield _graph(dataset, scenes, image, answer, zip(*columns, strict=True))


def recorded_graphs(dataset: Dataset) -> Iterator[SceneGraph]:
    """What is recorded of each image of a scene data set."""
    scenes: Scenes = dataset.inputs.recorded or dataset.inputs
    for image, graph in enumerate(recorded_images(scenes)):
        once = dict.fromkeys(map(tuple, graph.relations.tolist()))
        yield _graph(dataset, scenes, image, graph, ((*relation, None) for relation in once))


def agreement(graph: SceneGraph, right: SceneGraph) -> tuple[list[bool], list[bool]]:
    """Which relations of a graph are recorded too, and which recorded ones the graph has.

    Objects of the same list are compared by their places in it. Those of a detector, or whose classes were found, are
    the same if they have the same name and their boxes overlap (overlap over union of at least 0.5).

    >>> man, hat = SceneObject("man", (10.0, 5.0, 50.0, 75.0)), SceneObject("hat", (20.0, 5.0, 40.0, 15.0))
    >>> graph = SceneGraph("1.jpg", 60, 80, (man, hat), (SceneRelation(0, "wears", 1), SceneRelation(1, "on", 0)))
    >>> agreement(graph, SceneGraph("1.jpg", 60, 80, (hat, man), (SceneRelation(1, "wears", 0),)))
    ([True, False], [True])
    """
    ours = [(one.subject, one.predicate, one.object) for one in graph.relations]
    theirs = [(one.subject, one.predicate, one.object) for one in right.relations]
    if graph.objects == right.objects:
        known, found = set(theirs), set(ours)
        return [one in known for one in ours], [one in found for one in theirs]
    boxes = (torch.tensor([one.box for one in each.objects]).reshape(-1, 4) for each in (graph, right))
    near = (box_overlaps(*boxes) >= SAME_PLACE).tolist()
    same = [
        [is_near and mine.name == other.name for is_near, other in zip(row, right.objects, strict=True)]
        for row, mine in zip(near, graph.objects, strict=True)
    ]
    both = [[said == q and same[s][t] and same[o][u] for t, q, u in theirs] for s, said, o in ours]
    return [any(row) for row in both], [any(row[at] for row in both) for at in range(len(theirs))]


def write_graphs(path: PathLike, graphs: Iterable[SceneGraph]) -> int:
    """One graph per line (.jsonl), the whole file or nothing; how many there were."""
    number = 0
    with written_whole(path) as file:
        for graph in graphs:
            file.write(graph.to_json().encode() + b"\n")
            number += 1
    return number


def read_graphs(path: PathLike) -> list[SceneGraph]:
    """The graphs of a file that ``write_graphs`` wrote; an error names the file and the line."""
    graphs = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            with errors_name(f"{path}, line {number}"):
                graphs.append(SceneGraph.from_json(line))
    return graphs


def _graph(
    dataset: Dataset,
    scenes: Scenes,
    image: int,
    found: ScoredGraph | RecordedGraph,
    relations: Iterable[tuple[Any, ...]],
) -> SceneGraph:
    boxes, classes = found.boxes.tolist(), found.classes.tolist()
    names = [scenes.class_names[c] if c < len(scenes.class_names) else _BACKGROUND for c in classes]
    size = scenes.sizes[image].clamp(min=1).float()
    width, height = torch.cat([size[None], found.boxes[:, 2:]]).amax(0).ceil().int().tolist()
    return SceneGraph(
        image=str(image) if dataset.ids is None else dataset.ids[image],
        width=width,
        height=height,
        objects=tuple(SceneObject(name, tuple(box)) for name, box in zip(names, boxes, strict=True)),
        relations=tuple(SceneRelation(s, dataset.vocabulary[p], o, score) for s, o, p, score in relations),
    )
