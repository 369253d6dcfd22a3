"""From rows (image, subject, object, predicate) to scenes; every wrong row is noted with its image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from shortlist.data.dataset import Dataset
from shortlist.data.readers.findings import Findings
from shortlist.files import PathLike
from shortlist.scenes.containers import Scenes, scene_dataset

Numbers = NDArray[Any]


@dataclass
class SceneRows:
    """One relation per row; boxes are xmin, ymin, xmax, ymax."""

    image: Numbers  # (R,)
    classes: Numbers  # (R, 2): of subject and object
    boxes: Numbers  # (R, 2, 4)
    predicate: Numbers  # (R,)

    def check(
        self, file: PathLike, place: Callable[[int], str], num_classes: int, num_predicates: int, findings: Findings
    ) -> None:
        """Note every row that cannot be used; ``place`` says where a row stands."""
        for role, name in enumerate(("subject", "object")):
            classes, boxes = self.classes[:, role], self.boxes[:, role]
            with np.errstate(over="ignore", invalid="ignore"):
                corners = boxes.astype(np.float32)  # as they are kept
                sizes = corners[:, 2:] - corners[:, :2]
            for row in _where((classes < 0) | (classes >= num_classes)):
                message = f"the {name}'s class {classes[row]} is none of 0..{num_classes - 1}"
                findings.add(file, f"{place(row)}: {message}")
            for row in _where(~(sizes > 0).all(1) | ~np.isfinite(sizes).all(1)):
                width, height = sizes[row]
                message = f"the {name}'s box has the size {width:g} x {height:g}: both must be above 0"
                findings.add(file, f"{place(row)}: {message}")
        for row in _where((self.predicate < 0) | (self.predicate >= num_predicates)):
            message = f"the predicate {self.predicate[row]} is none of 0..{num_predicates - 1}"
            findings.add(file, f"{place(row)}: {message}")


def scenes_of(
    rows: SceneRows,
    names: Sequence[str],
    sizes: Numbers,
    class_names: Sequence[str],
    predicates: Sequence[str],
    *,
    name: str,
    word_vectors: Numbers | None = None,
) -> Dataset:
    """The data set of checked rows. An object is what has the same image, class and box; relations of an object with
    itself are dropped."""
    ends = np.concatenate(
        [np.concatenate([rows.image[:, None], rows.classes[:, role, None], rows.boxes[:, role]], 1) for role in (0, 1)]
    ).astype(np.float64)
    objects, place = np.unique(ends, axis=0, return_inverse=True)
    subject, thing = place.reshape(2, -1)
    object_offsets = np.searchsorted(objects[:, 0], np.arange(len(names) + 1))
    kept = subject != thing
    image = rows.image[kept].astype(np.int64)
    order = np.argsort(image, kind="stable")
    relations = np.stack([subject[kept], thing[kept], rows.predicate[kept]], 1)[order].astype(np.int64)
    relations[:, :2] -= object_offsets[image[order], None]
    scenes = Scenes(
        boxes=torch.from_numpy(objects[:, 2:].astype(np.float32)),
        classes=torch.from_numpy(objects[:, 1].astype(np.int64)),
        object_offsets=torch.from_numpy(object_offsets.astype(np.int64)),
        relations=torch.from_numpy(relations),
        relation_offsets=torch.from_numpy(np.searchsorted(image[order], np.arange(len(names) + 1)).astype(np.int64)),
        class_names=tuple(class_names),
        num_predicates=len(predicates),
        sizes=torch.from_numpy(np.asarray(sizes, dtype=np.int64)),
        word_vectors=None if word_vectors is None else torch.from_numpy(word_vectors.astype(np.float32)),
    )
    return scene_dataset(scenes, names, predicates, name)


def _where(bad: Any) -> list[int]:
    """The rows that are bad, as many as anybody will read."""
    rows: list[int] = np.flatnonzero(bad).tolist()
    return rows[:1000]
