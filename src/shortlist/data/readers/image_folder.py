"""A folder of images for each label."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import torch

from shortlist.data.column_use import listed
from shortlist.data.dataset import Dataset
from shortlist.data.images import Images
from shortlist.data.readers.findings import Findings
from shortlist.errors import nearest

IMAGE_ENDINGS = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"}


def read_image_folder(
    path: str | os.PathLike[str],
    *,
    vocabulary: Sequence[str] | None = None,
    size: int = 224,
    crop: bool = False,
) -> Dataset:
    """Images sorted into folders, ``path/LABEL/anything.jpg``; files that are not images by their name are left out.

    Args:
        path: the folder of folders.
        vocabulary: the labels in order; the folders' names, sorted, when not given.
        size: images are resized to this many pixels in both directions.
        crop: keep the proportions and the middle of each image instead of stretching it.

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("cat", "dog"):
    ...         Path(f"{folder}/{name}").mkdir()
    ...         Image.new("RGB", (8, 8)).save(f"{folder}/{name}/1.png")
    ...     data = read_image_folder(folder)
    >>> data.vocabulary, data.target, data.ids
    (('cat', 'dog'), tensor([0, 1]), ('cat/1.png', 'dog/1.png'))
    """
    findings = Findings()
    folders = label_folders(path, findings)
    inside = {name: images_under(folder) for name, folder in folders.items()}
    empty = [name for name, found in inside.items() if not found]
    if empty and len(empty) == len(inside):
        findings.add(path, "there are no images in its folders")
    names = tuple(name for name in folders if inside[name]) if vocabulary is None else tuple(vocabulary)
    left_out = f"folders without images are left out: {listed(list(map(repr, empty)))}"
    for name in folders:
        if name not in names and inside[name]:
            findings.add(folders[name], f"label {name!r} is outside the vocabulary{nearest(name, names)}")
    if findings.folder(path):
        for stray in images_under(path, deep=False):
            findings.add(stray, "the image is in no label's folder")
    images, labels = [], []
    for label, name in enumerate(names):
        found = inside.get(name, [])
        for image in found:
            findings.image(image, image, None)
        images += found
        labels += [label] * len(found)
    findings.stop_if_any()
    return Dataset(
        Images.from_files(images, size, crop),
        torch.tensor(labels, dtype=torch.int64),
        names,
        ids=tuple(image.relative_to(path).as_posix() for image in images),
        name=Path(path).resolve().name,
        notes=(left_out,) if empty else (),
    )


def label_folders(path: str | os.PathLike[str], findings: Findings) -> dict[str, Path]:
    """The folders in a folder, by name and sorted; hidden ones are left out."""
    if not os.path.isdir(path):
        return {}
    with os.scandir(path) as entries:
        names = sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
    if not names:
        findings.add(path, "there is no folder in this folder")
    return {name: Path(path) / name for name in names}


def images_under(path: str | os.PathLike[str], deep: bool = True) -> list[Path]:
    """The image files in a folder, sorted; with those in its own folders if ``deep``."""
    found = Path(path).rglob("*") if deep else Path(path).glob("*")
    return sorted(
        file
        for file in found
        if file.suffix.lower() in IMAGE_ENDINGS and not file.name.startswith(".") and file.is_file()
    )
