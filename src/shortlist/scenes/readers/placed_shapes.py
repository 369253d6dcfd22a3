"""Made-up scenes: shapes placed on a canvas, and some of what can be said about where they are."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, Unpack

import numpy as np
import torch
from numpy.typing import NDArray

from shortlist.checks import check_choice, whole
from shortlist.data.dataset import Dataset
from shortlist.data.seeded import random_for
from shortlist.errors import ShortlistError
from shortlist.scenes.containers import Scenes, scene_dataset
from shortlist.scenes.readers.given import Given, lists_given, with_given

SHAPES = ("circle", "square", "star", "frame", "table", "lamp")
SAYINGS = ("left of", "above", "inside", "larger than", "overlaps", "stands on")
_CANVAS = 240
_FRAME, _TABLE, _LAMP = 3, 4, 5


@lists_given
def placed_shapes(
    size: int = 400,
    *,
    part: Literal["train", "val", "test"] = "train",
    seed: int = 0,
    recorded: float = 0.5,
    **given: Unpack[Given],
) -> Dataset:
    """Images of 2 to 7 shapes with the relations that hold between them, of which only some are recorded.

    Relations follow from the boxes, and "stands on" from the classes, so that there is something to learn from both;
    which of them are recorded is left to chance, as in annotations by people. There are no pixels and no files.

    Args:
        size: number of images.
        part: parts of one seed are drawn apart.
        seed: the same seed gives the same images.
        recorded: the share of the relations that is recorded.
        task, features, detections, most_boxes, word_vectors, images: as for ``read_vrd``.

    >>> placed_shapes(100)
    Dataset('placed-shapes': Scenes(100 images, 450 objects, 461 relations), 6 predicates)
    """
    check_choice(part, "part", ("train", "val", "test"))
    whole(size, "size", 1)
    if not 0 <= recorded <= 1:
        raise ShortlistError(f"recorded must be between 0 and 1, got {recorded!r}")
    random = random_for(f"placed shapes, {part}", seed)
    counts = random.integers(2, 8, size)
    classes = random.integers(0, len(SHAPES), counts.sum())
    sides = random.uniform(20, 60, (len(classes), 2))
    sides[classes == _FRAME] *= 2
    corners = random.uniform(0, 1, sides.shape) * (_CANVAS - sides)
    boxes = np.concatenate([corners, corners + sides], 1).round().astype(np.float32)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    found, ends = [], [0]
    for first, last in pairwise(offsets):
        true = _relations(boxes[first:last], classes[first:last])
        found.append(true[random.random(len(true)) < recorded])
        ends.append(ends[-1] + len(found[-1]))
    scenes = Scenes(
        boxes=torch.from_numpy(boxes),
        classes=torch.from_numpy(classes),
        object_offsets=torch.from_numpy(offsets),
        relations=torch.from_numpy(np.concatenate(found)),
        relation_offsets=torch.tensor(ends),
        class_names=SHAPES,
        num_predicates=len(SAYINGS),
        sizes=torch.full((size, 2), _CANVAS),
    )
    dataset = scene_dataset(scenes, [f"{part}-{row}" for row in range(size)], SAYINGS, "placed-shapes")
    return with_given(dataset, **given)


def _relations(boxes: NDArray[np.float32], classes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Everything that is true of one image: (subject, object, predicate)."""
    subject, thing = np.nonzero(~np.eye(len(boxes), dtype=bool))
    a, b = boxes[subject], boxes[thing]
    area, other = ((box[:, 2] - box[:, 0]) * (box[:, 3] - box[:, 1]) for box in (a, b))
    beside = (a[:, 0] < b[:, 2]) & (b[:, 0] < a[:, 2])
    level = (a[:, 1] < b[:, 3]) & (b[:, 1] < a[:, 3])
    within = (a[:, :2] >= b[:, :2]).all(1) & (a[:, 2:] <= b[:, 2:]).all(1)
    holds = [
        (a[:, 2] <= b[:, 0]) & level,
        (a[:, 3] <= b[:, 1]) & beside,
        within & (classes[thing] == _FRAME),
        area > 4 * other,
        beside & level & ~within,
        (classes[subject] == _LAMP) & (classes[thing] == _TABLE),
    ]
    predicate, row = np.nonzero(np.stack(holds))
    return np.stack([subject[row], thing[row], predicate], 1)
