"""Image paths and labels from a table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from shortlist.data.dataset import Dataset, default_names
from shortlist.data.images import Images
from shortlist.data.readers.findings import Findings
from shortlist.data.readers.tables import Table, read_table
from shortlist.errors import ShortlistError

Form = Literal["index", "name", "list", "columns"]
_WRONG = 2  # marks, for a moment, a cell that is not in the coding


def read_image_table(
    path: str | os.PathLike[str],
    *,
    labels: Form,
    path_column: str = "path",
    label_column: str = "label",
    label_columns: Sequence[str] | None = None,
    rest: Literal["absent", "unknown"] = "absent",
    vocabulary: Sequence[str] | None = None,
    num_labels: int | None = None,
    root: str | os.PathLike[str] | None = None,
    size: int = 224,
    crop: bool = False,
) -> Dataset:
    """Images listed in a .csv, .tsv or .parquet file, with their labels.

    Args:
        path: the table. A .csv (commas) or .tsv (tabs) begins with a line of column names.
        labels: how labels are written: "index" (a column of class indices), "name" (a column of names), "list" (a
            column of any number of names, ``cat|dog``) or "columns" (one column per label: 1 present, 0 absent, blank
            unknown). A blank index or name, or the index -1, means unknown; a blank list means that no label is there.
        path_column: the column with the images' paths.
        label_column: the column with the labels, unless they are in columns of their own.
        label_columns: for "columns" the columns that are labels; all but ``path_column`` when not given.
        rest: for "list" what the labels not listed are: "absent" or "unknown".
        vocabulary: the labels' names in order. Without it they are, for "name" and "list", those that occur, sorted.
        num_labels: for "index", how many labels there are, where there is no vocabulary.
        root: the folder that paths start from; the table's own when not given.
        size, crop: how images are resized, as for ``read_image_folder``.

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (8, 8)).save(f"{folder}/a.png")
    ...     _ = Path(f"{folder}/all.csv").write_text("path,label\\na.png,cat|dog\\n")
    ...     data = read_image_table(f"{folder}/all.csv", labels="list")
    >>> data.vocabulary, data.target
    (('cat', 'dog'), tensor([[1, 1]], dtype=torch.int8))
    """
    if labels not in ("index", "name", "list", "columns"):
        raise ShortlistError(f"labels must be 'index', 'name', 'list' or 'columns', got {labels!r}")
    if rest not in ("absent", "unknown"):
        raise ShortlistError(f"rest must be 'absent' or 'unknown', got {rest!r}")
    findings = Findings()
    table = read_table(path, findings)
    if table is None:
        findings.stop_if_any()
        raise AssertionError("a table that cannot be read is a problem, and was raised")
    paths = _image_paths(table, path_column, Path(path).parent if root is None else Path(root), findings)
    if labels == "columns":
        names = [c for c in table.columns if c != path_column] if label_columns is None else list(label_columns)
        target = _from_columns(table, names, findings)
    else:
        place = table.column(label_column, findings)
        cells = [(row, "" if place is None else found[place]) for row, found in table.rows]
        if labels == "index":
            if vocabulary is None and num_labels is None:
                raise ShortlistError(
                    "class indices do not say how many labels there are: give vocabulary or num_labels"
                )
            names = list(vocabulary) if vocabulary is not None else list(default_names(num_labels or 0))
            target = _from_indices(table, cells, len(names), findings)
        else:
            target, names = _from_names(table, cells, labels == "list", vocabulary, rest, findings)
    findings.stop_if_any()
    return Dataset(
        Images.from_files(paths, size, crop),
        target,
        tuple(names),
        ids=tuple(found[table.columns.index(path_column)] for _, found in table.rows),
        name=Path(path).stem,
    )


def listed_images(
    path: str | os.PathLike[str], path_column: str = "path", root: str | os.PathLike[str] | None = None
) -> list[Path]:
    """The images that a table lists, whatever else is in it; arguments as in `read_image_table`."""
    findings = Findings()
    table = read_table(path, findings)
    start = Path(path).parent if root is None else Path(root)
    paths = [] if table is None else _image_paths(table, path_column, start, findings)
    findings.stop_if_any()
    return paths


def _image_paths(table: Table, path_column: str, root: Path, findings: Findings) -> list[Path]:
    place = table.column(path_column, findings)
    if place is None:
        return []
    paths = []
    for row, cells in table.rows:
        if cells[place]:
            paths.append(root / cells[place])
            findings.image(paths[-1], table.path, row, table.unit)
        else:
            findings.add(table.path, f"the column {path_column!r} is blank", row, table.unit)
    return paths


def _from_indices(table: Table, cells: list[tuple[int, str]], num_labels: int, findings: Findings) -> Tensor:
    target = np.full(len(cells), -1)
    for place, (row, cell) in enumerate(cells):
        if cell in ("", "-1"):
            continue
        if cell.isdecimal() and int(cell) < num_labels:
            target[place] = int(cell)
        else:
            allowed = f"0..{num_labels - 1}, -1 or blank"
            findings.add(
                table.path, f"label {cell!r} is outside the vocabulary: allowed are {allowed}", row, table.unit
            )
    return torch.from_numpy(target)


def _from_names(
    table: Table,
    cells: list[tuple[int, str]],
    several: bool,
    vocabulary: Sequence[str] | None,
    rest: str,
    findings: Findings,
) -> tuple[Tensor, list[str]]:
    written = [[name.strip() for name in cell.split("|")] if several else [cell] for _, cell in cells]
    written = [[] if names == [""] else names for names in written]
    known = sorted({name for names in written for name in names}) if vocabulary is None else list(vocabulary)
    number = {name: label for label, name in enumerate(known)}
    target = np.full((len(cells), len(known) if several else 1), 0 if rest == "absent" else -1, dtype=np.int8)
    single = np.full(len(cells), -1)
    outside: dict[str, list[int]] = {}
    for place, ((row, _), names) in enumerate(zip(cells, written, strict=True)):
        for name in names:
            if name not in number or not name:
                outside.setdefault(name, []).append(row)
            elif several and target[place, number[name]] == 1:
                findings.add(table.path, f"label {name!r} is a duplicate", row, table.unit)
            elif several:
                target[place, number[name]] = 1
            else:
                single[place] = number[name]
    findings.outside(table.path, outside, known, table.unit)
    return torch.from_numpy(target if several else single), known


def _from_columns(table: Table, names: list[str], findings: Findings) -> Tensor:
    places = [table.column(name, findings) for name in names]
    if None in places:
        return torch.empty(0)
    meaning = {"": -1, "0": 0, "1": 1, "0.0": 0, "1.0": 1}
    target = np.empty((len(table.rows), len(names)), dtype=np.int8)
    for place, (row, cells) in enumerate(table.rows):
        chosen = [cells[column] for column in places if column is not None]
        target[place] = [meaning.get(cell, _WRONG) for cell in chosen]
        for label in np.flatnonzero(target[place] == _WRONG).tolist():
            allowed = "1 (present), 0 (absent), blank (unknown)"
            message = f"column {names[label]!r} is {chosen[label]!r}: allowed are {allowed}"
            findings.add(table.path, message, row, table.unit)
    return torch.from_numpy(target)
