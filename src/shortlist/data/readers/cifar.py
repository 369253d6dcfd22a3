"""CIFAR-10 and CIFAR-100 as they are distributed, in the python and in the binary layout."""

from __future__ import annotations

from dataclasses import dataclass
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
# the files by which the data is told, and how many labels it has
_LABELS_OF = {"data_batch_1": 10, "test_batch": 10, "train": 100, "test": 100}
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
    files = [(name, ending) for name in _LABELS_OF for ending in ("", ".bin")]
    first = next((file for file in files if (root / "".join(file)).is_file()), None)
    if first is None:
        if findings.folder(root):
            findings.add(root, f"none of the files of CIFAR is in this folder: {', '.join(map(''.join, files))}")
        findings.stop_if_any()
        raise AssertionError("a folder without CIFAR is a problem, and was raised")
    layout = _Layout(root, first[1], findings)
    return layout.cifar10(part) if _LABELS_OF[first[0]] == 10 else layout.cifar100(part)


@dataclass(frozen=True)
class _Layout:
    """The files of a folder, pickled or binary."""

    root: Path
    ending: str  # of binary files
    findings: Findings

    def rows(self, name: str, keys: tuple[str, ...], sizes: tuple[int, ...]) -> tuple[Rows, list[Labels]]:
        """Pixels, and each kind of labels, of which there are so many."""
        if self.ending:
            return _binary(self.root / f"{name}.bin", sizes, self.findings)
        return _pickled(self.root / name, keys, sizes, self.findings)

    def names(self, pickled: str, key: str, listed: str, count: int) -> tuple[str, ...]:
        if self.ending:
            file = self.root / listed
            return _checked_names(file, [name for _, name in text_lines(file, self.findings)], count, self.findings)
        content = _pickled_dict(self.root / pickled, (key,), self.findings)
        return () if content is None else _checked_names(self.root / pickled, content[key], count, self.findings)

    def cifar10(self, part: str) -> Dataset:
        names = self.names("batches.meta", "label_names", "batches.meta.txt", 10)
        pieces = [self.rows(name, ("labels",), (10,)) for name in _BATCHES[part]]
        self.findings.stop_if_any()
        pixels = np.concatenate([rows for rows, _ in pieces])
        labels = np.concatenate([labels[0] for _, labels in pieces])
        return Dataset(_images(pixels, 10), torch.from_numpy(labels), names, name=f"cifar10-{part}")

    def cifar100(self, part: str) -> Dataset:
        fine, coarse = (
            self.names("meta", key, f"{key}.txt", count)
            for key, count in (("fine_label_names", 100), ("coarse_label_names", 20))
        )
        piece = self.rows(part, ("coarse_labels", "fine_labels"), (20, 100))
        self.findings.stop_if_any()
        pixels, (coarse_labels, fine_labels) = piece
        groups = np.full(100, -1)
        groups[fine_labels] = coarse_labels
        for row in np.flatnonzero(groups[fine_labels] != coarse_labels).tolist():
            given = f"the fine label {fine_labels[row]} has the coarse label {coarse_labels[row]}"
            self.findings.add(self.root / f"{part}{self.ending}", f"{given}, and another elsewhere", row)
        self.findings.stop_if_any()
        whole = groups.min() >= 0  # an excerpt may lack some labels
        return Dataset(
            _images(pixels, 100),
            torch.from_numpy(fine_labels),
            fine,
            groups=torch.from_numpy(groups) if whole else None,
            group_names=coarse if whole else None,
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


def _checked_names(path: Path, names: Any, count: int, findings: Findings) -> tuple[str, ...]:
    if not isinstance(names, list) or len({str(name) for name in names}) != count or len(names) != count:
        if path.is_file():
            findings.add(path, f"must name {count} different labels, got {names!r}")
        return ()
    return tuple(str(name) for name in names)
