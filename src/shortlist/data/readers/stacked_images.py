"""Small images stacked into a few large files."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from shortlist.data.dataset import Dataset
from shortlist.data.images import Images, Pixels, decode
from shortlist.data.readers._label_options import Coding, Given
from shortlist.data.readers._labels import labels_of
from shortlist.data.readers._targets import dataset_of
from shortlist.data.readers.arrays import get_array, open_arrays
from shortlist.data.readers.findings import Findings
from shortlist.files import PathLike


def read_stacked_images(
    path: PathLike,
    *,
    labels: PathLike,
    pattern: str = "*",
    height: int | None = None,
    labels_key: str = "y",
    vocabulary_key: str | None = None,
    groups_key: str | None = None,
    group_names_key: str | None = None,
    num_labels: int | None = None,
    coding: Coding = "label-matrix",
) -> Dataset:
    """Images of one size, stacked from top to bottom in files such as ``train_000.webp, train_001.webp, ...``.

    Args:
        path: the folder with the files.
        labels: an .npz with the labels in the order of the images. Images may end before the labels do.
        pattern: which files, such as ``"train_*.webp"``; they are taken in the order of their names,
            and of the numbers at the end of these.
        height: of one image, in pixels; images are square when not given.
        labels_key, vocabulary_key, groups_key, group_names_key: what the arrays are called: class indices (N,) or a
            label matrix (N, L), the labels' names (L,), the coarse group of each label (L,), the groups' names.
        num_labels: how many labels there are, where neither names nor a label matrix tell and not all occur.
        coding: what the numbers of a label matrix mean (see ``read_features``).

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (8, 24)).save(f"{folder}/000.png")
    ...     np.savez(f"{folder}/labels.npz", y=[0, 2, 1, 1])
    ...     read_stacked_images(folder, labels=f"{folder}/labels.npz", pattern="*.png", num_labels=3)
    Dataset('...': 3 examples, images of 3 x 8 x 8, one of 3 labels each)
    """
    findings = Findings()
    file = open_arrays(labels, findings)
    found, names, groups, group_names = (
        get_array(file, key, findings) for key in (labels_key, vocabulary_key, groups_key, group_names_key)
    )
    pixels = _read_stacks(Path(path), pattern, height, findings)
    if found is not None and pixels is not None and len(pixels) > found.shape[0]:
        findings.add(labels, f"{labels_key!r} has {found.shape[0]} labels, but there are {len(pixels)} images")
    answer = None
    if found is not None:
        vocabulary = None if names is None else tuple(map(str, names.tolist()))
        answer = labels_of(found, Given(vocabulary, num_labels, coding), labels, findings)
    findings.stop_if_any()
    if pixels is None or answer is None:
        raise AssertionError("images and labels that cannot be read are problems, and were raised")
    return dataset_of(
        labels,
        Images(pixels),
        answer.target[: len(pixels)],
        answer.vocabulary,
        groups=groups,
        group_names=group_names,
        ids=None,
        notes=answer.notes,
        name=re.sub(r"[^0-9A-Za-z]+$", "", pattern.partition("*")[0]) or Path(path).resolve().name,
    )


def _read_stacks(folder: Path, pattern: str, height: int | None, findings: Findings) -> Pixels | None:
    if not findings.folder(folder):
        return None
    files = sorted((file for file in folder.glob(pattern) if file.is_file()), key=_name_and_number)
    if not files:
        findings.add(folder, f"there are no files {pattern!r}")
    stacks: list[Pixels] = []
    for file in files:
        try:
            pixels = decode(file)
        except ValueError as error:
            findings.add(file, str(error))
            continue
        tall, wide = pixels.shape[0], pixels.shape[1]
        one = wide if height is None else height
        if tall % one or (stacks and stacks[0].shape[1:3] != (one, wide)):
            findings.add(file, f"{tall} x {wide} pixels are not a stack of images like the others, {one} x {wide} each")
            continue
        stacks.append(pixels.reshape(-1, one, wide, 3))
        for row, image in enumerate(stacks[-1]):
            findings.pixels(image, file, row)
    _check_numbers(files, findings)
    # labels go by position: only the last file may be shorter than the first
    for file, stack in zip(files[:-1], stacks, strict=False) if len(stacks) == len(files) else []:
        if len(stack) != len(stacks[0]):
            findings.add(file, f"holds {len(stack)} images, but {files[0].name} holds {len(stacks[0])}")
    return np.concatenate(stacks) if stacks else None


def _name_and_number(file: Path) -> tuple[str, int, str]:
    """What to sort by: 10 comes after 9."""
    number = re.search(r"\d+$", file.stem)
    return file.stem[: number.start()] if number else file.stem, int(number[0]) if number else -1, file.name


def _check_numbers(files: list[Path], findings: Findings) -> None:
    """Files that are numbered must be numbered without a gap, or the labels would be shifted."""
    names = [_name_and_number(file) for file in files]
    numbers = [number for _, number, _ in names]
    if not files or min(numbers) < 0 or len({name for name, _, _ in names}) > 1:
        return
    expected = numbers[0] if numbers[0] in (0, 1) else 0
    for file, number in zip(files, numbers, strict=True):
        if number != expected:
            findings.add(file, f"is number {number}, but the file number {expected} is missing before it")
        expected = number + 1
