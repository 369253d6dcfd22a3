"""A folder of images for each label."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

from shortlist.data.column_use import listed
from shortlist.data.dataset import Dataset
from shortlist.data.images import Images
from shortlist.data.label_concerns import taken_as_labels
from shortlist.data.readers.findings import Findings, is_thorough
from shortlist.errors import ShortlistWarning, nearest
from shortlist.files import PathLike

# of files that are images; those that cannot be decoded here (.heic) are told as that, and not left out unseen
IMAGE_ENDINGS = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm",
                 ".jp2", ".avif", ".heic", ".heif"}  # fmt: skip
_SYSTEM = {"thumbs.db", "desktop.ini"}  # what Windows leaves in folders


def read_image_folder(
    path: PathLike,
    *,
    vocabulary: Sequence[str] | None = None,
    size: int = 224,
    crop: bool = False,
) -> Dataset:
    """Images sorted into folders, ``path/LABEL/anything.jpg``; files that are not images by their name are left out,
    with a note.

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
    files = {name: files_under(folder) for name, folder in folders.items()}
    inside = {name: list(filter(names_image, found)) for name, found in files.items()}
    others = other_files(file for found in files.values() for file in found)
    empty = [name for name, found in inside.items() if not found]
    if empty and len(empty) == len(inside):
        findings.add(path, "there are no images in its folders")
    names = tuple(name for name in folders if inside[name]) if vocabulary is None else tuple(vocabulary)
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
            if is_thorough() or image.is_file():  # else it is a link to nothing, and left out like a broken image
                findings.image(image, image, None)
        images += found
        labels += [label] * len(found)
    findings.stop_if_any()
    taken, blank = taken_as_labels(names if vocabulary is None else ())
    if blank:
        said = f"{path}: {taken}: move {'its folder' if len(blank) == 1 else 'their folders'} elsewhere if that means"
        warnings.warn(f"{said} that nothing is known", ShortlistWarning, stacklevel=2)
    deeper = sorted({image.relative_to(path).parts[1] for image in images if image.parent.parent != Path(path)})
    return Dataset(
        Images.from_files(images, size, crop),
        torch.tensor(labels, dtype=torch.int64),
        names,
        ids=names_within(path, images),
        name=Path(path).resolve().name,
        notes=_notes(empty, deeper, others),
    )


def _notes(empty: Sequence[str], deeper: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """What to say of folders without images, of those within a label's folder, and of files that are no images."""
    notes = []
    if empty:
        notes.append(f"folders without images are left out: {listed(list(map(repr, empty)))}")
    if deeper:
        notes.append(f"images in further folders count for the label's: {listed(list(map(repr, deeper)), 5)}")
    return (*notes, *others)


def other_files(files: Iterable[Path]) -> list[str]:
    """What to say of those of these files that are no images by their names."""
    others = Counter(file.suffix for file in files if not names_image(file))
    kinds = listed([f"{count} {ending or 'without an ending'}" for ending, count in others.items()], 5)
    return [f"files that are no images by their names are left out: {kinds}"] if others else []


def label_folders(path: PathLike, findings: Findings) -> dict[str, Path]:
    """The folders in a folder, by name and sorted; hidden ones are left out."""
    if not os.path.isdir(path):
        return {}
    with os.scandir(path) as entries:
        names = sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
    if not names:
        findings.add(path, "there is no folder in this folder")
    return {name: Path(path) / name for name in names}


def images_under(path: PathLike, deep: bool = True) -> list[Path]:
    """The image files in a folder, sorted; with those in its own folders if ``deep``."""
    return list(filter(names_image, files_under(path, deep)))


def names_within(folder: PathLike, files: Sequence[Path]) -> tuple[str, ...]:
    """The names of files from a folder on; bytes that are not UTF-8 are written out."""
    return tuple(os.fsencode(file.relative_to(folder).as_posix()).decode(errors="backslashreplace") for file in files)


def names_image(file: Path) -> bool:
    return file.suffix.lower() in IMAGE_ENDINGS


def files_under(path: PathLike, deep: bool = True) -> list[Path]:
    """All files, sorted, also links to nothing, but what is hidden or of the system; links to folders are followed,
    each folder once."""
    found, seen = [], {str(folder) for folder in Path(path).resolve().parents}
    for folder, inner, names in os.walk(path, followlinks=True):
        here = os.path.realpath(folder)
        inner[:] = [name for name in inner if deep and here not in seen and not name.startswith(".")]
        files = [] if here in seen else [Path(folder, name) for name in names]
        seen.add(here)
        found += [file for file in files if not _is_hidden(file) and (file.is_file() or not file.exists())]
    return sorted(found)


def _is_hidden(file: Path) -> bool:
    return file.name.startswith(".") or file.name.lower() in _SYSTEM
