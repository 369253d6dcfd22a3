"""Open Images: labels that people have verified."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import torch

from shortlist.data._problems import Findings
from shortlist.data._tables import Table, read_table
from shortlist.data.dataset import Dataset
from shortlist.data.images import Images


def read_open_images(
    path: str | os.PathLike[str],
    *,
    classes: str | os.PathLike[str],
    images: str | os.PathLike[str],
    vocabulary: Sequence[str] | None = None,
    size: int = 224,
    crop: bool = False,
) -> Dataset:
    """Image labels of Open Images: verified positives are present, verified negatives absent, all others unknown.

    Rows of source "machine" were not verified and are left out; a label that was verified both ways is unknown.

    Args:
        path: the labels, ``*-annotations-human-imagelabels.csv`` (ImageID, Source, LabelName, Confidence).
        classes: the labels' names, ``class-descriptions.csv`` (LabelName, DisplayName; with or without that header).
        images: the folder with ``IMAGE_ID.jpg``.
        vocabulary: the names of the labels to read; all of ``classes`` when not given.
        size: images are resized to this many pixels in both directions.
        crop: keep the proportions and the middle of each image instead of stretching it.

    >>> read_open_images("nowhere.csv", classes="classes.csv", images="train")
    Traceback (most recent call last):
    shortlist.data._problems.DataError: classes.csv: no such file (and 1 more problem: see ...)
    """
    findings = Findings()
    described = _class_names(classes, findings)
    names = tuple(dict.fromkeys(described.values())) if vocabulary is None else tuple(vocabulary)
    for name in sorted(set(names) - set(described.values())):
        findings.add(classes, f"there is no label {name!r}, which the vocabulary names")
    number = {name: label for label, name in enumerate(names)}
    table = read_table(path, findings)
    rows: dict[str, int] = {}
    entries = [] if table is None else _entries(table, described, number, Path(images), rows, findings)
    findings.stop_if_any()
    target = torch.full((len(rows), len(names)), -1, dtype=torch.int8)
    if entries:
        at_row, at_label, label = torch.tensor(entries).T
        target[at_row, at_label] = label.to(torch.int8)
        clashes = target[at_row, at_label] != label  # of two different verdicts one was overwritten
        target[at_row[clashes], at_label[clashes]] = -1
    return Dataset(
        Images(tuple(str(Path(images) / f"{name}.jpg") for name in rows), (size, size), crop),
        target,
        names,
        ids=tuple(rows),
        name=Path(path).stem,
    )


def _class_names(path: str | os.PathLike[str], findings: Findings) -> dict[str, str]:
    """Label ids (/m/0abc) to names; a name that several ids have is followed by the id."""
    table = read_table(path, findings, columns=("LabelName", "DisplayName"))
    if table is None:
        return {}
    found: dict[str, str] = {}
    for line, (identity, name) in table.rows:
        if (identity, name) == ("LabelName", "DisplayName"):
            continue
        if identity in found:
            findings.add(table.path, f"the label {identity} is a duplicate", line, "line")
        found[identity] = f"{name} ({identity})" if name in found.values() else name
    return found


def _entries(
    table: Table,
    described: dict[str, str],
    number: dict[str, int],
    images: Path,
    rows: dict[str, int],
    findings: Findings,
) -> list[tuple[int, int, int]]:
    """The verified (row, label, present) of the table; ``rows`` is filled with the images in the order they come."""
    places = [table.column(name, findings) for name in ("ImageID", "Source", "LabelName", "Confidence")]
    if None in places:
        return []
    entries = []
    seen: dict[tuple[str, str, str], int] = {}
    for line, cells in table.rows:
        image, source, identity, confidence = (cells[place] for place in places if place is not None)
        if image not in rows:
            rows[image] = len(rows)
            findings.image(images / f"{image}.jpg", table.path, line, table.unit)
        if identity not in described:
            findings.add(table.path, f"the label {identity!r} is outside the vocabulary", line, table.unit)
        elif source == "machine" or described[identity] not in number:
            continue
        elif confidence not in ("0", "1", "0.0", "1.0"):
            message = f"confidence {confidence!r}: verified labels have 1 (present) or 0 (absent)"
            findings.add(table.path, message, line, table.unit)
        elif seen.setdefault((image, source, identity), line) != line:
            first = seen[image, source, identity]
            findings.add(table.path, f"the label {identity} of {image} is a duplicate of line {first}", line, table.unit)
        else:
            entries.append((rows[image], number[described[identity]], int(float(confidence))))
    return entries
