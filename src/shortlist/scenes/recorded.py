"""What is recorded: of each image, and of which kinds of triples."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from shortlist.scenes.containers import Scenes
from shortlist.scenes.matching import RecordedGraph


def seen_triples(scenes: Scenes) -> Tensor:
    """Subject class, predicate and object class of every relation of some images, each once, int64 (T, 3).

    >>> at = torch.tensor
    >>> boxes = at([[0.0, 0, 9, 9], [5, 5, 9, 9]])
    >>> scenes = Scenes(boxes, at([1, 0]), at([0, 2]), at([[0, 1, 2]]), at([0, 1]), ("hat", "man"), 3, at([[9, 9]]))
    >>> seen_triples(scenes).tolist()
    [[1, 2, 0]]
    """
    subject, thing = scenes.classes[scenes.ends_of_relations()].T
    return torch.stack([subject, scenes.relations[:, 2], thing], 1).unique(dim=0)


def recorded_images(scenes: Scenes) -> Iterator[RecordedGraph]:
    """What is recorded of each image."""
    objects, relations = (offsets.diff().tolist() for offsets in (scenes.object_offsets, scenes.relation_offsets))
    parts = (scenes.boxes.split(objects), scenes.classes.split(objects), scenes.relations.split(relations))
    for boxes, classes, own in zip(*parts, strict=True):
        yield RecordedGraph(boxes, classes, own)
