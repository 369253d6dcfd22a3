"""PASCAL VOC, the classification task."""

from __future__ import annotations

from pathlib import Path

import torch

from shortlist.data.dataset import Dataset
from shortlist.data.images import Images
from shortlist.data.readers.findings import Findings
from shortlist.data.readers.text_lines import text_lines
from shortlist.files import PathLike

_MEANING = {"1": 1, "-1": 0, "0": -1}


def read_voc(path: PathLike, *, part: str = "train", size: int = 224, crop: bool = False) -> Dataset:
    """PASCAL VOC as it is distributed: ``ImageSets/Main/CLASS_PART.txt`` and ``JPEGImages``.

    In the label files 1 is present, -1 absent, and 0 means that only difficult objects of the class are there: unknown.

    Args:
        path: the folder of one year, such as ``VOCdevkit/VOC2012``.
        part: "train", "val", "trainval" or "test".
        size, crop: how images are resized, as for ``read_image_folder``.

    Example:
        ```yaml
        data:
          train: {reader: voc, path: VOCdevkit/VOC2012}
          test: {reader: voc, path: VOCdevkit/VOC2012, part: val}
        backbone: efficientnet-lite0
        objective: two-way
        ```
    """
    findings = Findings()
    root = Path(path)
    lists = root / "ImageSets" / "Main"
    rows: dict[str, int] = {}
    for line, name in text_lines(lists / f"{part}.txt", findings):
        if name in rows:
            findings.add(lists / f"{part}.txt", f"the image {name} is a duplicate", line, "line")
            continue
        rows[name] = len(rows)
        findings.image(root / "JPEGImages" / f"{name}.jpg", lists / f"{part}.txt", line, "line")
    files = {file.stem.removesuffix(f"_{part}"): file for file in sorted(lists.glob(f"?*_{part}.txt"))}
    if not files:
        findings.add(lists, f"there are no label files, CLASS_{part}.txt")
    target = torch.full((len(rows), len(files)), -1, dtype=torch.int8)
    for label, file in enumerate(files.values()):
        _read_labels(file, rows, target[:, label], findings)
    findings.stop_if_any()
    return Dataset(
        Images.from_files((root / "JPEGImages" / f"{name}.jpg" for name in rows), size, crop),
        target,
        tuple(files),
        ids=tuple(rows),
        name=f"{root.resolve().name.lower()}-{part}",
    )


def _read_labels(file: Path, rows: dict[str, int], column: torch.Tensor, findings: Findings) -> None:
    """Fill one label's column of the label matrix from its file of lines ``IMAGE 1|0|-1``."""
    missing = set(rows)
    for line, text in text_lines(file, findings):
        name, _, label = text.partition(" ")
        if label.strip() not in _MEANING:
            findings.add(file, f"a line must be an image and 1, -1 or 0 (difficult), got {text!r}", line, "line")
        elif name not in rows:
            findings.add(file, f"the image {name} is not in the list of images", line, "line")
        elif name not in missing:
            findings.add(file, f"the image {name} is a duplicate", line, "line")
        else:
            column[rows[name]] = _MEANING[label.strip()]
        missing.discard(name)
    if missing:
        findings.add(file, f"{len(missing)} images have no label here, the first is {min(missing)}")
