"""Visual Genome as prepared for scene graphs (Xu et al. 2017): VG-SGG.h5, its dictionaries and the image list."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np
import torch
from numpy.typing import NDArray

from shortlist.checks import check_choice, whole
from shortlist.data.dataset import Dataset
from shortlist.data.limits import check_unpacked
from shortlist.data.readers.findings import DataError, Findings
from shortlist.data.readers.json_files import read_json
from shortlist.errors import ShortlistError
from shortlist.files import PathLike
from shortlist.optional import require
from shortlist.scenes.containers import Scenes, scene_dataset
from shortlist.scenes.matching import overlap
from shortlist.scenes.readers.given import Given, lists_given, with_given

_LONG_SIDE = 1024  # boxes_1024: pixels of an image scaled to this length
_FAR = 2**24  # pixels: whole numbers below are exact in 32 bits
_LEFT_OUT = {1592, 1722, 4616, 4617}  # images of image_data.json that could not be opened and are not in the file
_PARTS = {"train": 0, "validation": 0, "test": 2}  # as the array split has them
_ARRAYS = {  # name -> columns (None: one number each)
    "split": None, "labels": 1, "boxes_1024": 4, "predicates": 1, "relationships": 2,
    "img_to_first_box": None, "img_to_last_box": None, "img_to_first_rel": None, "img_to_last_rel": None,
}  # fmt: skip
_OF_IMAGES = [name for name in _ARRAYS if name.startswith("img_to_")]
Numbers = NDArray[Any]


@lists_given
def read_visual_genome(
    path: PathLike,
    *,
    dicts: PathLike | None = None,
    image_data: PathLike | None = None,
    part: Literal["train", "validation", "test"] = "train",
    validation: int = 5000,
    empty: bool = False,
    overlapping: bool = False,
    **given: Unpack[Given],
) -> Dataset:
    """Scenes from ``VG-SGG.h5`` with the published splits: 150 object classes and 50 predicates in the usual file.

    Args:
        path: the HDF5 file.
        dicts: names of classes and predicates; ``VG-SGG-dicts.json`` beside the file where not given.
        image_data: ``image_data.json``, which has image numbers and sizes; without it, images are called by their row
            and reach as far as their boxes do.
        part: the validation images are the first of the file's training images, as in Zellers et al. 2018.
        validation: how many they are.
        empty: keep images without relations too.
        overlapping: leave out relations between boxes that do not overlap, and images that have no others: the
            published training images of SGDet.
        task, features, detections, most_boxes, word_vectors, images: as for ``read_vrd``.

    Example:
        ```yaml
        data:
          train: {reader: visual-genome, path: VG-SGG.h5}
          validation: {reader: visual-genome, path: VG-SGG.h5, part: validation}
          test: {reader: visual-genome, path: VG-SGG.h5, part: test}
        backbone: motifnet
        objective: scene-lml
        ```
    """
    check_choice(part, "part", _PARTS)
    whole(validation, "validation", 0)
    if given.get("images") is not None and image_data is None:
        raise ShortlistError("images are found by their numbers, which are in image_data.json: set image_data")
    findings = Findings()
    findings.file(path)
    findings.stop_if_any()
    dicts = Path(path).parent / "VG-SGG-dicts.json" if dicts is None else dicts
    names = read_json(dicts, dict, findings)
    listed = None if image_data is None else read_json(image_data, list, findings)
    findings.stop_if_any()
    arrays = _arrays(path)
    classes = _vocabulary(dicts, names, "label_to_idx", findings)
    predicates = _vocabulary(dicts, names, "predicate_to_idx", findings)
    ids, sizes = _images(image_data or path, listed, len(arrays["split"]), findings)
    findings.stop_if_any()
    rows = np.flatnonzero(arrays["split"] == _PARTS[part])
    rows = rows[arrays["img_to_first_box"][rows] >= 0]
    if not empty:
        rows = rows[arrays["img_to_first_rel"][rows] >= 0]
    if part != "test":
        if part == "train" and 0 < len(rows) <= validation:
            raise ShortlistError(
                f"{path}: all of its {len(rows)} training images are validation images: lower validation, which is "
                f"{validation}, for every part"
            )
        rows = rows[:validation] if part == "validation" else rows[validation:]
    scenes = _scenes(path, arrays, rows, sizes, classes, predicates, findings)
    if overlapping:
        scenes = _of_overlapping(scenes)
        kept = torch.ones(len(scenes), dtype=torch.bool) if empty else scenes.relation_offsets.diff() > 0
        scenes, rows = scenes.subset(kept.nonzero()[:, 0]), rows[kept.numpy()]
    dataset = scene_dataset(scenes, [ids[row] for row in rows], predicates, f"visual-genome-{part}")
    return with_given(dataset, **given)


def _scenes(
    path: PathLike,
    arrays: dict[str, Numbers],
    rows: Numbers,
    sizes: Numbers,
    classes: tuple[str, ...],
    predicates: tuple[str, ...],
    findings: Findings,
) -> Scenes:
    boxes_at, object_offsets = _members(path, arrays, "box", rows, len(arrays["labels"]), findings)
    found_at, relation_offsets = _members(path, arrays, "rel", rows, len(arrays["relationships"]), findings)
    findings.stop_if_any()
    image = np.repeat(np.arange(len(rows)), np.diff(relation_offsets))
    first = arrays["img_to_first_box"].astype(np.int64)
    ends = arrays["relationships"][found_at].astype(np.int64) - first[rows[image], None]
    number = np.diff(object_offsets)[image]
    predicate = arrays["predicates"][found_at, 0].astype(np.int64) - 1  # 0 is "no relation"
    for at in np.flatnonzero(((ends < 0) | (ends >= number[:, None])).any(1)):
        _note(path, rows[image[at]], f"relation {found_at[at]} is between boxes of another image", findings)
    for at in np.flatnonzero((predicate < 0) | (predicate >= len(predicates))):
        message = f"relation {found_at[at]} has the predicate {predicate[at] + 1}: allowed are 1..{len(predicates)}"
        _note(path, rows[image[at]], message, findings)
    centre, extent = np.hsplit(arrays["boxes_1024"][boxes_at].astype(np.float64), 2)
    label = arrays["labels"][boxes_at, 0].astype(np.int64) - 1
    owner = np.repeat(rows, np.diff(object_offsets))
    for at in np.flatnonzero(~((extent > 0) & (np.abs(centre) + extent < _FAR)).all(1)):
        size, middle = (" x ".join(f"{side:g}" for side in of[at]) for of in (extent, centre))
        message = f"box {boxes_at[at]} has the size {size} and its middle at {middle}: sides must be above 0, and all "
        _note(path, owner[at], f"{message}of them below {_FAR:,} pixels", findings)
    for at in np.flatnonzero((label < 0) | (label >= len(classes))):
        message = f"box {boxes_at[at]} has the label {label[at] + 1}: allowed are 1..{len(classes)}"
        _note(path, owner[at], message, findings)
    findings.stop_if_any()
    different = ends[:, 0] != ends[:, 1]  # an object has no relation with itself
    counts = np.bincount(image[different], minlength=len(rows))
    return Scenes(
        boxes=torch.from_numpy(np.concatenate([centre - extent / 2, centre + extent / 2], 1).astype(np.float32)),
        classes=torch.from_numpy(label),
        object_offsets=torch.from_numpy(object_offsets),
        relations=torch.from_numpy(np.concatenate([ends, predicate[:, None]], 1)[different]),
        relation_offsets=torch.from_numpy(np.concatenate([[0], np.cumsum(counts)])),
        class_names=classes,
        num_predicates=len(predicates),
        sizes=torch.from_numpy(sizes[rows]),
    )


def _of_overlapping(scenes: Scenes) -> Scenes:
    """With the relations between boxes that overlap alone."""
    kept = overlap(*scenes.boxes[scenes.ends_of_relations()].unbind(1))
    number = torch.cat([torch.zeros(1, dtype=torch.int64), kept.cumsum(0)])
    return replace(scenes, relations=scenes.relations[kept], relation_offsets=number[scenes.relation_offsets])


def _members(
    path: PathLike, arrays: dict[str, Numbers], kind: str, rows: Numbers, total: int, findings: Findings
) -> tuple[Numbers, Numbers]:
    """Which rows of the file belong to these images, and where each image's begin."""
    first, last = (arrays[f"img_to_{end}_{kind}"][rows].astype(np.int64) for end in ("first", "last"))
    counts = np.where(first >= 0, last - first + 1, 0)
    for at in np.flatnonzero((counts < 0) | ((first >= 0) & (last >= total))):
        message = f"img_to_first_{kind} and img_to_last_{kind} are {first[at]} and {last[at]}, of {total} rows"
        _note(path, rows[at], message, findings)
        counts[at] = 0
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return np.arange(offsets[-1]) + np.repeat(first - offsets[:-1], counts), offsets


def _arrays(path: PathLike) -> dict[str, Numbers]:
    h5py = require("h5py")
    findings = Findings()
    try:
        with h5py.File(path, "r") as file:
            stored = {name: file[name] for name in _ARRAYS if isinstance(file.get(name), h5py.Dataset)}
            check_unpacked(path, sum(math.prod(array.shape) * array.dtype.itemsize for array in stored.values()))
            found = {name: np.asarray(array) for name, array in stored.items()}
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:  # what h5py raises about damaged files
        findings.add(path, f"cannot be read: {error}")
        raise DataError(findings.problems) from None
    for name, columns in _ARRAYS.items():
        if name not in found:
            findings.add(path, f"there is no array {name!r}; the file has {', '.join(found)}")
        elif found[name].ndim != (1 if columns is None else 2) or columns not in (None, found[name].shape[-1]):
            wanted = "(images,)" if columns is None else f"(rows, {columns})"
            findings.add(path, f"{name} must have the shape {wanted}, got {found[name].shape}")
        elif found[name].dtype.kind not in "iu" and not (name == "boxes_1024" and found[name].dtype.kind == "f"):
            findings.add(path, f"{name} must be whole numbers, got {found[name].dtype}")
    findings.stop_if_any()
    for same in (("labels", "boxes_1024"), ("relationships", "predicates"), ("split", *_OF_IMAGES)):
        for name in same[1:]:
            if len(found[name]) != len(found[same[0]]):
                findings.add(path, f"{name} has {len(found[name])} rows, {same[0]} has {len(found[same[0]])}")
    findings.stop_if_any()
    return found


def _vocabulary(path: PathLike, names: dict[str, Any], key: str, findings: Findings) -> tuple[str, ...]:
    """The names in the order of their numbers, which start from 1."""
    numbers = names.get(key)
    if not isinstance(numbers, dict) or sorted(map(str, numbers.values())) != sorted(
        str(number) for number in range(1, len(numbers) + 1)
    ):
        findings.add(path, f"{key} must give every name one of the numbers 1, 2, ...")
        return ()
    return tuple(sorted(numbers, key=lambda name: int(numbers[name])))


def _images(
    path: PathLike, listed: list[Any] | None, total: int, findings: Findings
) -> tuple[list[str], NDArray[np.int64]]:
    """What the images are called, and their sizes in the scale of the boxes."""
    if listed is None:
        return [str(row) for row in range(total)], np.zeros((total, 2), dtype=np.int64)
    for row, one in enumerate(listed):
        values = [one.get(key) for key in ("image_id", "width", "height")] if isinstance(one, dict) else [None]
        if not all(type(value) is int and 0 <= value < 2**31 for value in values) or 0 in values[1:]:
            wanted = "an image_id, a width and a height, all whole numbers, sides above 0"
            findings.add(path, f"an image has {wanted}, got {str(one)[:80]}", row=row)
            if len(findings.problems) >= 1000:
                break
    findings.stop_if_any()
    number: dict[int, int] = {}
    for row, one in enumerate(listed):
        if number.setdefault(one["image_id"], row) != row:
            findings.add(path, f"the image_id {one['image_id']} is that of row {number[one['image_id']]} too", row=row)
    findings.stop_if_any()
    kept = listed if len(listed) == total else [one for one in listed if one["image_id"] not in _LEFT_OUT]
    if len(kept) != total:
        findings.add(path, f"it lists {len(kept)} images, the HDF5 file has {total}")
        return [], np.zeros((0, 2), dtype=np.int64)
    sizes = np.array([[one["width"], one["height"]] for one in kept], dtype=np.float64)
    scaled = np.ceil(sizes * (_LONG_SIDE / sizes.max(1, keepdims=True))).astype(np.int64)
    return [f"{one['image_id']}.jpg" for one in kept], scaled


def _note(path: PathLike, image: int, message: str, findings: Findings) -> None:
    if len(findings.problems) < 1000:
        findings.add(path, f"image {image}: {message}")
