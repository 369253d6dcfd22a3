"""CIFAR-10 and CIFAR-100 as they are distributed, in the python and in the binary layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from shortlist.checks import check_choice
from shortlist.data.dataset import Dataset
from shortlist.data.images import Images
from shortlist.data.readers._pickles import load_plain
from shortlist.data.readers.findings import Findings
from shortlist.data.readers.text_lines import text_lines
from shortlist.files import PathLike

_PIXELS = 3 * 32 * 32
# mean and standard deviation of each channel of the training images, the usual figures
_SCALES = {
    10: ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    100: ((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
}
_BATCHES = {"train": [f"data_batch_{number}" for number in range(1, 6)], "test": ["test_batch"]}
Rows = NDArray[np.uint8]
Labels = NDArray[np.int64]


def read_cifar(path: PathLike, *, part: Literal["train", "test"] = "train") -> Dataset:
    """CIFAR-10 or CIFAR-100, whichever of the four official folders ``path`` is.

    ``cifar-10-batches-py``, ``cifar-10-batches-bin``, ``cifar-100-python`` or ``cifar-100-binary``, told apart by the
    files in them. The pickles of the python layout are read without running anything in them. CIFAR-100 has its 100
    fine labels, with the 20 coarse ones as groups.

    Args:
        path: the folder.
        part: "train" or "test".

    Example:
        ```yaml
        data:
          train: {reader: cifar, path: cifar-100-python}
          test: {reader: cifar, path: cifar-100-python, part: test}
        backbone: {name: densenet, depth: 40, growth: 12}
        objective: {name: smooth-topk, k: 5}
        ```
    """
    check_choice(part, "part", ("train", "test"))
    findings, root = Findings(), Path(path)
    layouts = {"data_batch_1": _cifar10_python, "data_batch_1.bin": _cifar10_binary, "test_batch": _cifar10_python,
               "test_batch.bin": _cifar10_binary, "train": _cifar100_python, "train.bin": _cifar100_binary,
               "test": _cifar100_python, "test.bin": _cifar100_binary}  # fmt: skip
    layout = next((layouts[name] for name in layouts if (root / name).is_file()), None)
    if layout is None:
        if findings.folder(root):
            findings.add(root, f"none of the files of CIFAR is in this folder: {', '.join(layouts)}")
        findings.stop_if_any()
        raise AssertionError("a folder without CIFAR is a problem, and was raised")
    return layout(root, part, findings)


def _cifar10_python(root: Path, part: str, findings: Findings) -> Dataset:
    names = _pickled_names(root / "batches.meta", "label_names", 10, findings)
    pieces = [_pickled(root / name, ("labels",), (10,), findings) for name in _BATCHES[part]]
    return _cifar10(pieces, names, part, findings)


def _cifar10_binary(root: Path, part: str, findings: Findings) -> Dataset:
    names = _listed_names(root / "batches.meta.txt", 10, findings)
    pieces = [_binary(root / f"{name}.bin", (10,), findings) for name in _BATCHES[part]]
    return _cifar10(pieces, names, part, findings)


def _cifar10(pieces: list[tuple[Rows, list[Labels]]], names: tuple[str, ...], part: str, findings: Findings) -> Dataset:
    findings.stop_if_any()
    pixels = np.concatenate([rows for rows, _ in pieces])
    labels = np.concatenate([labels[0] for _, labels in pieces])
    return Dataset(_images(pixels, 10), torch.from_numpy(labels), names, name=f"cifar10-{part}")


def _cifar100_python(root: Path, part: str, findings: Findings) -> Dataset:
    fine = _pickled_names(root / "meta", "fine_label_names", 100, findings)
    coarse = _pickled_names(root / "meta", "coarse_label_names", 20, findings)
    piece = _pickled(root / part, ("coarse_labels", "fine_labels"), (20, 100), findings)
    return _cifar100(piece, root / part, fine, coarse, part, findings)


def _cifar100_binary(root: Path, part: str, findings: Findings) -> Dataset:
    fine = _listed_names(root / "fine_label_names.txt", 100, findings)
    coarse = _listed_names(root / "coarse_label_names.txt", 20, findings)
    piece = _binary(root / f"{part}.bin", (20, 100), findings)
    return _cifar100(piece, root / f"{part}.bin", fine, coarse, part, findings)


def _cifar100(
    piece: tuple[Rows, list[Labels]],
    path: Path,
    fine: tuple[str, ...],
    coarse: tuple[str, ...],
    part: str,
    findings: Findings,
) -> Dataset:
    findings.stop_if_any()
    pixels, (coarse_labels, fine_labels) = piece
    groups = np.full(100, -1)
    groups[fine_labels] = coarse_labels
    for row in np.flatnonzero(groups[fine_labels] != coarse_labels).tolist():
        message = f"the fine label {fine_labels[row]} has the coarse label {coarse_labels[row]}, and another elsewhere"
        findings.add(path, message, row)
    findings.stop_if_any()
    return Dataset(
        _images(pixels, 100),
        torch.from_numpy(fine_labels),
        fine,
        groups=torch.from_numpy(groups) if groups.min() >= 0 else None,  # an excerpt may lack some labels
        group_names=coarse if groups.min() >= 0 else None,
        name=f"cifar100-{part}",
    )


def _images(pixels: Rows, labels: int) -> Images:
    mean, std = _SCALES[labels]
    planes = pixels.reshape(-1, 3, 32, 32)
    return Images(np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), mean=mean, std=std)


_NOTHING: tuple[Rows, list[Labels]] = (np.empty((0, _PIXELS), dtype=np.uint8), [])


def _pickled(
    path: Path, keys: tuple[str, ...], sizes: tuple[int, ...], findings: Findings
) -> tuple[Rows, list[Labels]]:
    content = _pickled_dict(path, ("data", *keys), findings)
    if content is None:
        return _NOTHING
    pixels = content["data"]
    if not isinstance(pixels, np.ndarray) or pixels.ndim != 2 or pixels.shape[1] != _PIXELS:
        findings.add(path, f"'data' must be a uint8 array of shape (N, {_PIXELS})")
        return _NOTHING
    labels = []
    for key in keys:
        found = content[key]
        if not isinstance(found, list) or not all(isinstance(label, int) for label in found):
            findings.add(path, f"{key!r} must be a list of whole numbers")
            return _NOTHING
        if len(found) != len(pixels):
            findings.add(path, f"{key!r} has {len(found)} labels for {len(pixels)} images")
        labels.append(np.array(found, dtype=np.int64))
    _check_rows(path, pixels, labels, sizes, findings)
    return pixels, labels


def _binary(path: Path, sizes: tuple[int, ...], findings: Findings) -> tuple[Rows, list[Labels]]:
    if not findings.file(path):
        return _NOTHING
    content = np.fromfile(path, dtype=np.uint8)
    record = len(sizes) + _PIXELS
    if len(content) == 0 or len(content) % record:
        whole = len(content) // record
        findings.add(path, f"is truncated: {len(content)} bytes are not a whole number of {record}-byte records", whole)
    rows = content[: len(content) // record * record].reshape(-1, record)
    labels = [rows[:, column].astype(np.int64) for column in range(len(sizes))]
    pixels = rows[:, len(sizes) :]
    _check_rows(path, pixels, labels, sizes, findings)
    return pixels, labels


def _check_rows(path: Path, pixels: Rows, labels: list[Labels], sizes: tuple[int, ...], findings: Findings) -> None:
    for found, size in zip(labels, sizes, strict=True):
        for row in np.flatnonzero((found < 0) | (found >= size)).tolist():
            findings.add(path, f"label {found[row]} is outside the vocabulary: allowed are 0..{size - 1}", row)
    for row, image in enumerate(pixels):
        findings.pixels(image, path, row)


def _pickled_dict(path: Path, keys: tuple[str, ...], findings: Findings) -> dict[str, Any] | None:
    if not findings.file(path):
        return None
    try:
        content = load_plain(path)
    except ValueError as error:
        findings.add(path, str(error))
        return None
    missing = [key for key in keys if not isinstance(content, dict) or key not in content]
    if missing:
        findings.add(path, f"must hold a dictionary with {', '.join(map(repr, keys))}; there is no {missing[0]!r}")
        return None
    return dict(content)


def _pickled_names(path: Path, key: str, count: int, findings: Findings) -> tuple[str, ...]:
    content = _pickled_dict(path, (key,), findings)
    return () if content is None else _checked_names(path, content[key], count, findings)


def _listed_names(path: Path, count: int, findings: Findings) -> tuple[str, ...]:
    return _checked_names(path, [name for _, name in text_lines(path, findings)], count, findings)


def _checked_names(path: Path, names: Any, count: int, findings: Findings) -> tuple[str, ...]:
    if not isinstance(names, list) or len({str(name) for name in names}) != count or len(names) != count:
        if path.is_file():
            findings.add(path, f"must name {count} different labels, got {names!r}")
        return ()
    return tuple(str(name) for name in names)
