"""VRD, Visual Relationship Detection: the annotation JSON, and the same packed into arrays."""

from __future__ import annotations

from pathlib import Path
from reprlib import repr as short
from typing import Any, Literal, Unpack

import numpy as np

from shortlist.checks import check_choice
from shortlist.data.dataset import Dataset
from shortlist.data.readers.arrays import get_array, open_arrays
from shortlist.data.readers.findings import Findings
from shortlist.data.readers.json_files import read_json
from shortlist.files import PathLike
from shortlist.scenes.readers.given import Given, lists_given, with_given
from shortlist.scenes.readers.rows import SceneRows, scenes_of

_OTHER_ORDER = [2, 0, 3, 1]  # VRD writes ymin, ymax, xmin, xmax


@lists_given
def read_vrd(
    path: PathLike,
    *,
    objects: PathLike | None = None,
    predicates: PathLike | None = None,
    **given: Unpack[Given],
) -> Dataset:
    """Scenes from ``annotations_train.json`` or ``annotations_test.json``: image -> its relations, each with a subject,
    an object (category and bbox: ymin, ymax, xmin, xmax) and a predicate.

    Only annotated objects are known: those of some relation, the same class and box being the same object. The file
    has no image sizes: they are those of the ``images``, or else an image is taken to reach as far as its boxes do.

    Args:
        path: the annotations.
        objects: the list of class names; ``objects.json`` beside the annotations where not given.
        predicates: the list of predicates; ``predicates.json`` beside the annotations where not given.
        task: ``predcls`` (boxes and classes are given), ``sgcls`` (boxes are given) or ``sgdet`` (boxes of a detector).
        features: a file of what a detector saw in each box, or a backbone that looks at the images: its name and
            options, the ``size`` to which images are scaled, and ``pooled: false`` for whole maps of each box.
        detections: the file of a detector's boxes, for the task ``sgdet``.
        most_boxes: how many of these are kept of each image, those with the highest scores.
        word_vectors: a text file of word vectors (GloVe), for the vectors of object classes.
        images: the folder of the images, for such a backbone and to draw on.

    Example:
        ```yaml
        data:
          train: {reader: vrd, path: annotations_train.json}
          test: {reader: vrd, path: annotations_test.json}
        backbone: relations-light
        objective: scene-lml
        ```
    """
    findings = Findings()
    folder = Path(path).parent
    content = read_json(path, dict, findings)
    findings.stop_if_any()
    class_names = _names(objects or folder / "objects.json", findings)
    vocabulary = _names(predicates or folder / "predicates.json", findings)
    findings.stop_if_any()
    numbers, places = [], []
    for image, (name, relations) in enumerate(content.items()):
        if not isinstance(relations, list):
            findings.add(path, f"image {name!r} has {type(relations).__name__} where a list of relations should be")
            continue
        for row, relation in enumerate(relations):
            place = f"image {name!r}, relation {row}"
            found = _row(path, place, relation, findings)
            if found is not None:
                numbers.append([image, *found])
                places.append(place)
    findings.stop_if_any()
    table = np.array(numbers, dtype=np.float64).reshape(-1, 12)
    rows = SceneRows(
        image=table[:, 0].astype(np.int64),
        predicate=table[:, 1].astype(np.int64),
        classes=table[:, [2, 7]].astype(np.int64),
        boxes=np.stack([table[:, 3:7], table[:, 8:]], 1)[..., _OTHER_ORDER],
    )
    rows.check(path, places.__getitem__, len(class_names), len(vocabulary), findings)
    findings.stop_if_any()
    sizes = np.zeros((len(content), 2))
    dataset = scenes_of(rows, list(content), sizes, class_names, vocabulary, name=Path(path).stem)
    return with_given(dataset, **given)


@lists_given
def read_vrd_pairs(
    path: PathLike,
    *,
    part: Literal["train", "test"] = "train",
    objects: PathLike | None = None,
    predicates: PathLike | None = None,
    **given: Unpack[Given],
) -> Dataset:
    """Scenes from an .npz with one row per (image, subject box, object box) and a multi-hot row of predicates:
    ``train_image``, ``train_subj``, ``train_obj``, ``train_subj_box_ymin_ymax_xmin_xmax``,
    ``train_obj_box_ymin_ymax_xmin_xmax``, ``train_Y``, ``train_image_names``, ``train_image_wh``, the same for
    ``test``, and, if there, ``object_word2vec``. Objects are found as in `read_vrd`.

    Args:
        path: the .npz.
        part: which of its parts.
        objects: the list of class names; ``objects.json`` beside the file where not given.
        predicates: the list of predicates; ``predicates.json`` beside the file where not given.
        task, features, detections, most_boxes, word_vectors, images: as for ``read_vrd``.

    Example:
        ```yaml
        data:
          train: {reader: vrd-pairs, path: vrd_pairs.npz}
          test: {reader: vrd-pairs, path: vrd_pairs.npz, part: test}
        backbone: relations-light
        objective: scene-lml
        ```
    """
    check_choice(part, "part", ("train", "test"))
    findings = Findings()
    folder = Path(path).parent
    file = open_arrays(path, findings)
    findings.stop_if_any()
    class_names = _names(objects or folder / "objects.json", findings)
    vocabulary = _names(predicates or folder / "predicates.json", findings)
    keys = ["image", "subj", "obj", *(f"{x}_box_ymin_ymax_xmin_xmax" for x in ("subj", "obj"))]
    keys += ["Y", "image_names", "image_wh"]
    found = {key: get_array(file, f"{part}_{key}", findings) for key in keys}
    vectors = get_array(file, "object_word2vec", findings) if file and "object_word2vec" in file.keys else None
    findings.stop_if_any()
    pairs, total = len(found["image"]), len(found["image_names"])
    shapes = [(pairs,), (pairs,), (pairs,), (pairs, 4), (pairs, 4), (pairs, len(vocabulary)), (total,), (total, 2)]
    for key, shape in zip(keys, shapes, strict=True):
        if found[key].shape != shape:
            findings.add(path, f"{part}_{key} must have the shape {shape}, got {found[key].shape}")
    if vectors is not None and (vectors.ndim != 2 or len(vectors) != len(class_names) or not vectors.shape[1]):
        findings.add(path, f"object_word2vec must have {len(class_names)} rows, got the shape {vectors.shape}")
    findings.stop_if_any()
    called = found["image_names"].tolist()
    names = [name.decode(errors="replace") if isinstance(name, bytes) else name for name in called]
    if len({*names}) < total:
        findings.add(path, f"{part}_image_names must be different names")
    for key in keys:
        if key == "image_names":
            continue
        if not _are_numbers(found[key], whole="box" not in key):
            findings.add(path, f"{part}_{key} must be {'numbers' if 'box' in key else 'whole numbers'}")
    if vectors is not None and not _are_numbers(vectors):
        findings.add(path, "object_word2vec must be finite numbers of 32 bits")
    findings.stop_if_any()
    if not np.isin(found["Y"], (0, 1)).all():
        findings.add(path, f"{part}_Y must be 0 and 1")
        findings.stop_if_any()
    outside = np.flatnonzero((found["image"] < 0) | (found["image"] >= total)).tolist()
    findings.rows(path, outside, lambda row: f"the image {found['image'][row]} is none of 0..{total - 1}")
    findings.stop_if_any()
    row, predicate = np.nonzero(found["Y"])
    rows = SceneRows(
        image=found["image"][row].astype(np.int64),
        predicate=predicate,
        classes=np.stack([found["subj"][row], found["obj"][row]], 1).astype(np.int64),
        boxes=np.stack([found[key][row].astype(np.float64) for key in keys[3:5]], 1)[..., _OTHER_ORDER],
    )
    rows.check(
        path, lambda at: f"row {row[at]}, image {names[rows.image[at]]!s}", len(class_names), len(vocabulary), findings
    )
    findings.stop_if_any()
    dataset = scenes_of(
        rows, names, found["image_wh"], class_names, vocabulary, name=f"vrd-{part}", word_vectors=vectors
    )
    return with_given(dataset, **given)


def _row(path: PathLike, place: str, relation: Any, findings: Findings) -> list[float] | None:
    """Predicate, and of subject and object class and box; None with the reason noted."""
    if not isinstance(relation, dict) or not {"predicate", "subject", "object"} <= relation.keys():
        findings.add(path, f"{place}: a relation has a predicate, a subject and an object, got {short(relation)}")
        return None
    if not _is_whole(relation["predicate"]):
        findings.add(path, f"{place}: the predicate must be a whole number, got {short(relation['predicate'])}")
        return None
    values = [relation["predicate"]]
    for role in ("subject", "object"):
        thing = relation[role]
        box = thing.get("bbox") if isinstance(thing, dict) else None
        if not isinstance(box, list) or len(box) != 4 or not all(map(_is_number, box)):
            findings.add(path, f"{place}: the {role} has no bbox of four numbers, got {short(thing)}")
            return None
        if not _is_whole(thing.get("category")):
            findings.add(path, f"{place}: the {role}'s category must be a whole number, got {short(thing)}")
            return None
        values += [thing["category"], *box]
    return values


def _are_numbers(array: Any, whole: bool | None = None) -> bool:
    """Whether an array is numbers: ``whole`` ones; any (False: boxes are looked at one by one); finite ones of 32 bits
    (None)."""
    if array.dtype.kind not in "biuf" or whole is False:
        return array.dtype.kind in "biuf"
    if whole:
        return array.dtype.kind != "f" or bool(((np.abs(array) < 2**53) & (array == np.round(array))).all())
    return bool((np.abs(array.astype(np.float64)) <= np.finfo(np.float32).max).all())


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or (type(value) is int and abs(value) < 2**53)


def _is_whole(value: Any) -> bool:
    return _is_number(value) and abs(value) < 2**53 and int(value) == value


def _names(path: PathLike, findings: Findings) -> list[str]:
    """A list of different names."""
    names: list[str] = read_json(path, list, findings)
    if names is not None and (not all(isinstance(name, str) for name in names) or len({*names}) < len(names)):
        findings.add(path, f"must be a list of different names, got {short(names)}")
    return names
