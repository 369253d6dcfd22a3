"""Files of what a detector says of boxes: one row for each box of an image, in .h5, .npz or parquet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from shortlist.data.limits import check_unpacked
from shortlist.data.readers.arrays import get_array, open_arrays
from shortlist.data.readers.findings import DataError, Findings
from shortlist.files import PathLike
from shortlist.optional import require
from shortlist.scenes.stored_rows import StoredRows

_H5 = (".h5", ".hdf5")
_KEYS = ("image", "box", "features", "scores", "probabilities")
_LEAST = 1e-12  # a probability of 0, before its logarithm


@dataclass(frozen=True, eq=False)
class BoxTable:
    """Rows in the order of the file; ``features`` and ``class_scores`` are indexed by them."""

    path: str
    image: NDArray[Any]  # (R,) of text: what the image is called
    boxes: NDArray[np.float64]  # (R, 4): xmin, ymin, xmax, ymax in pixels
    features: Any = None  # (R, F)
    class_scores: Any = None  # (R, C) logits

    def rows_of_images(self) -> dict[str, NDArray[np.int64]]:
        """Which rows each image has, in the order of the file."""
        order = np.argsort(self.image, kind="stable")
        names, first = np.unique(self.image[order], return_index=True)
        return dict(zip(names.tolist(), np.split(order, first)[1:], strict=True))


def read_box_table(path: PathLike, findings: Findings) -> BoxTable:
    """The arrays (of parquet: columns) ``image`` (name or number) and ``box`` (xmin, ymin, xmax, ymax), a row for each
    box, and any of ``features``, ``scores`` (before the softmax) and ``probabilities`` of classes. An .h5 keeps its
    features on disk, where batches read them."""
    found = _of_h5(path, findings) if Path(path).suffix.lower() in _H5 else _of_arrays(path, findings)
    findings.stop_if_any()
    image, boxes = found.get("image"), found.get("box")
    if image is None or boxes is None:
        has = ", ".join(key for key, value in found.items() if value is not None)
        findings.add(path, f"it must have 'image' and 'box', one row for each box; it has {has or 'neither'}")
        findings.stop_if_any()
    image = np.asarray(image)
    if image.ndim != 1:
        findings.add(path, f"'image' must be the name or number of one image in each row, got {image.shape}")
        findings.stop_if_any()
    for key in ("box", "features", "scores", "probabilities"):
        if found.get(key) is not None and found[key].dtype.kind not in "iuf":
            findings.add(path, f"{key!r} must be numbers, got {found[key].dtype}")
    findings.stop_if_any()
    image = _names(path, image, findings)
    findings.stop_if_any()
    boxes = np.asarray(boxes, dtype=np.float64)
    if boxes.shape != (len(image), 4):
        findings.add(path, f"'box' must be (rows, 4) for the {len(image)} rows of 'image', got {boxes.shape}")
    for key in ("features", "scores", "probabilities"):
        value = found.get(key)
        if value is not None and (len(value.shape) != 2 or value.shape[0] != len(image) or not value.shape[1]):
            findings.add(path, f"{key!r} must be (rows, numbers) for {len(image)} rows, got {tuple(value.shape)}")
    if found.get("scores") is not None and found.get("probabilities") is not None:
        findings.add(path, "give 'scores' or 'probabilities', not both")
    findings.stop_if_any()
    bad = np.flatnonzero(~((boxes[:, 2:] > boxes[:, :2]).all(1) & _finite(boxes).all(1))).tolist()
    wanted = "xmin < xmax and ymin < ymax must hold, and all be finite numbers of 32 bits"
    findings.rows(path, bad, lambda row: f"the box {boxes[row].tolist()}: {wanted}")
    scores = found.get("scores")
    if scores is None and found.get("probabilities") is not None:
        lost = np.flatnonzero(~((found["probabilities"] >= 0) & (found["probabilities"] <= 1)).all(1)).tolist()
        findings.rows(path, lost, lambda row: "the probabilities of classes must be from 0 to 1")
        scores = np.log(np.clip(np.asarray(found["probabilities"], dtype=np.float64), _LEAST, None))
    if scores is not None:
        lost = np.flatnonzero(~_finite(scores).all(1)).tolist()
        findings.rows(path, lost, lambda row: "the scores of classes must be finite numbers of 32 bits")
    features = found.get("features")
    if isinstance(features, np.ndarray):  # those of an .h5 are looked at when they are read
        lost = np.flatnonzero(~_finite(features).all(1)).tolist()
        findings.rows(path, lost, lambda row: "the features must be finite numbers of 32 bits")
    findings.stop_if_any()
    return BoxTable(
        str(path), image, boxes,
        torch.from_numpy(np.asarray(features, dtype=np.float32)) if isinstance(features, np.ndarray) else features,
        None if scores is None else torch.from_numpy(np.asarray(scores, dtype=np.float32)),
    )  # fmt: skip


def _finite(numbers: NDArray[Any]) -> NDArray[np.bool_]:
    """Which are finite as float32, which they become."""
    return np.asarray(np.abs(numbers) <= np.finfo(np.float32).max)  # not where a number is NaN


def _names(path: PathLike, image: NDArray[Any], findings: Findings) -> NDArray[Any]:
    """What each row's image is called."""
    try:
        return np.array([_name(name) for name in image.tolist()], dtype=str)
    except UnicodeDecodeError as error:
        findings.add(path, f"'image' must be text in UTF-8, or numbers: {error}")
        return image


def _name(image: Any) -> str:
    """What an image is called: text, or a number, which some files write as 2343729.0."""
    if isinstance(image, bytes):
        return image.decode()
    return str(int(image)) if isinstance(image, float) and image.is_integer() else str(image)


def _of_arrays(path: PathLike, findings: Findings) -> dict[str, Any]:
    file = open_arrays(path, findings)
    findings.stop_if_any()
    assert file is not None
    there = [key for key in _KEYS if key in file.keys]
    return {key: get_array(file, key, findings, as_text=key == "image") for key in there}


def _of_h5(path: PathLike, findings: Findings) -> dict[str, Any]:
    if not findings.file(path):
        return {}
    try:
        h5py = require("h5py")
        with h5py.File(path) as file:
            found: dict[str, Any] = {}
            groups = [key for key in _KEYS if key in file and not isinstance(file[key], h5py.Dataset)]
            for key in groups:
                findings.add(path, f"{key!r} must be an array, got a group")
            if groups:
                return {}
            for key in ("image", "box", "scores", "probabilities"):
                if key in file:
                    check_unpacked(path, int(file[key].size) * max(1, file[key].dtype.itemsize))
                    found[key] = file[key][:]
            if "features" in file and file["features"].ndim == 2:
                kind, (rows, numbers) = file["features"].dtype, file["features"].shape
                found["features"] = StoredRows(str(path), "features", int(numbers), np.arange(rows), kind)
            elif "features" in file:
                findings.add(path, f"'features' must be (rows, numbers), got {file['features'].shape}")
            return found
    except (OSError, KeyError, RuntimeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        findings.add(path, f"cannot be read: {error}")
        return {}
