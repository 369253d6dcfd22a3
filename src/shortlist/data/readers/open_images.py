"""Open Images: labels that people have verified."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from shortlist.data.dataset import Dataset
from shortlist.data.images import Images
from shortlist.data.readers._csv import csv_rows
from shortlist.data.readers.findings import Findings
from shortlist.files import PathLike

Entries = NDArray[Any]
_COLUMNS = ("ImageID", "Source", "LabelName", "Confidence")
_PRESENT = {"1": 1, "1.0": 1, "0": 0, "0.0": 0}


def read_open_images(
    path: PathLike,
    *,
    classes: PathLike,
    images: PathLike,
    vocabulary: Sequence[str] | None = None,
    size: int = 224,
    crop: bool = False,
) -> Dataset:
    """Image labels of Open Images: verified positives are present, verified negatives absent, all others unknown.

    Rows of source "machine" were not verified and are left out, and so are images without any verified label of the
    vocabulary; a label that was verified both ways is unknown.

    Args:
        path: the labels, ``*-annotations-human-imagelabels.csv`` (ImageID, Source, LabelName, Confidence).
        classes: the labels' names, ``class-descriptions.csv`` (LabelName, DisplayName; with or without that header).
        images: the folder with ``IMAGE_ID.jpg``.
        vocabulary: the names of the labels to read; all of ``classes`` when not given.
        size, crop: how images are resized, as for ``read_image_folder``.

    Example:
        ```yaml
        data:
          train:
            reader: open-images
            path: train-annotations-human-imagelabels.csv
            classes: class-descriptions.csv
            images: train
            vocabulary: [Tree, Person, Car]
        backbone: efficientnet-lite0
        objective: binary
        ```
    """
    findings = Findings()
    described = _class_names(classes, findings)
    names = tuple(described.values()) if vocabulary is None else tuple(vocabulary)
    for name in sorted(set(names) - set(described.values())):
        findings.add(classes, f"there is no label {name!r}, which the vocabulary names")
    number = {name: label for label, name in enumerate(names)}
    # -1 marks labels that are not asked for
    rows, entries = _verified(path, {key: number.get(name, -1) for key, name in described.items()}, findings)
    for name, line in zip(rows, _first_lines(entries), strict=True):
        findings.image(Path(images) / f"{name}.jpg", path, line, "line")
    findings.stop_if_any()
    target = np.full((len(rows), len(names)), -1, dtype=np.int8)
    row, label, present, _ = entries
    target[row, label] = present
    clashes = target[row, label] != present  # of two different verdicts one was overwritten
    target[row[clashes], label[clashes]] = -1
    return Dataset(
        Images.from_files((Path(images) / f"{name}.jpg" for name in rows), size, crop),
        torch.from_numpy(target),
        names,
        ids=tuple(rows),
        name=Path(path).stem,
    )


def _class_names(path: PathLike, findings: Findings) -> dict[str, str]:
    """Label ids (/m/0abc) to names; a name that several ids have is followed by the id."""
    found: dict[str, str] = {}
    names: set[str] = set()
    if findings.file(path):
        for line, (identity, name) in csv_rows(path, findings, columns=("LabelName", "DisplayName")):
            if identity == "LabelName":
                continue
            if identity in found:
                findings.add(path, f"the label {identity} is a duplicate", line, "line")
            found[identity] = f"{name} ({identity})" if name in names else name
            names.add(name)
    return found


def _verified(path: PathLike, number: dict[str, int], findings: Findings) -> tuple[dict[str, int], Entries]:
    """Images in the order they come, and the verified labels: row, label, present and line of each.

    Read as a stream into flat arrays: the training file has tens of millions of lines.
    """
    rows: dict[str, int] = {}
    entries = array("i")
    sources: dict[str, int] = {}
    source_of = array("i")
    stream = csv_rows(path, findings) if findings.file(path) else iter(())
    _, header = next(stream, (0, list(_COLUMNS)))
    if missing := [name for name in _COLUMNS if name not in header]:
        findings.add(path, f"there is no column {missing[0]!r}; the columns are {', '.join(map(repr, header))}")
        return rows, np.empty((4, 0), dtype=np.int32)
    places = [header.index(name) for name in _COLUMNS]
    for line, cells in stream:
        image, source, identity, confidence = (cells[place] for place in places)
        label = number.get(identity)
        if label is None:
            findings.add(path, f"the label {identity!r} is outside the vocabulary", line, "line")
        elif confidence not in _PRESENT and source != "machine":
            message = f"confidence {confidence!r}: verified labels have 1 (present) or 0 (absent)"
            findings.add(path, message, line, "line")
        elif label >= 0 and source != "machine":
            entries.extend((rows.setdefault(image, len(rows)), label, _PRESENT[confidence], line))
            source_of.append(sources.setdefault(source, len(sources)))
    found = np.array(entries, dtype=np.int32).reshape(-1, 4).T
    _note_duplicates(path, found, np.array(source_of, dtype=np.int64), len(number), findings)
    return rows, found


def _note_duplicates(path: PathLike, found: Entries, source: Entries, num_labels: int, findings: Findings) -> None:
    """A label of an image may come from several sources, but only once from each."""
    key = (source * (num_labels + 1) + found[1]) * (found.shape[1] + 1) + found[0]
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    for place in np.flatnonzero(first[which] != np.arange(len(key))).tolist():
        line = int(found[3, first[which[place]]])
        findings.add(path, f"the image and label are a duplicate of line {line}", int(found[3, place]), "line")


def _first_lines(entries: Entries) -> list[int]:
    _, first = np.unique(entries[0], return_index=True)
    return entries[3, first].tolist()
