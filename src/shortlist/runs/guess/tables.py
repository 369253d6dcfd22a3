"""What is guessed of a table: which columns are labels, ids, images, texts or features."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shortlist.data.column_use import as_option, listed
from shortlist.data.readers.findings import Findings
from shortlist.data.readers.tables import open_table
from shortlist.data.text_columns import tell_apart
from shortlist.errors import ShortlistError, nearest
from shortlist.files import PathLike
from shortlist.runs.guess.first_cells import FirstCells
from shortlist.runs.guess.guessed import PARTS, Guess
from shortlist.runs.guess.ids import find_ids
from shortlist.runs.guess.image_paths import find_images
from shortlist.runs.guess.labels import find_labels
from shortlist.runs.guess.texts import find_texts
from shortlist.runs.written import ENCODING, how_written, is_text_table


def guess_table(
    path: Path,
    images: PathLike | None,
    labels: Sequence[str],
    options: Sequence[str],
    reader: str | None,
    text: str | None,
    column_names: Sequence[str] | None,
    taken: Sequence[str],
    written: Mapping[str, Any] | None,
) -> Guess:
    """As `guess_source`, of a table."""
    notes: list[str] = []
    how = {**how_written(path, written), **(written or {})} if is_text_table(path) else {}
    if "encoding" in how:
        notes.append(f"text: it is not UTF-8, and read as {ENCODING} (another one: data.train.encoding=NAME)")
    findings = Findings()
    table = open_table(path, findings, column_names=column_names, **how)
    findings.stop_if_any()
    assert table is not None, "a table that cannot be read is a problem, and was raised"
    cells = FirstCells(path, table, [name for name in table.names if name and name not in taken])
    labels = _existing(cells, labels or [name for name in options if name in cells.names], text)
    may_show = images is not None or reader in (None, "image-table")
    pictures = find_images(cells, labels, images) if may_show else None
    texts = [] if pictures is not None else [text] if text is not None else find_texts(cells, labels, reader)
    rest = [name for name in cells.names if name not in (pictures, *texts)]
    parts = [] if labels else [name for name in rest if _names_parts(cells, name)]
    others = [name for name in rest if name not in parts]
    key, columns = find_labels(cells, others, labels, notes, pictures is not None, bool(texts))
    source: dict[str, Any] = {"path": str(path), **how, **columns}
    if pictures is not None:
        if key is not None:
            source["label_column"] = key
        source.pop("decimal", None)  # only paths and labels are read
        source |= {"path_column": pictures, **({} if images is None else {"root": os.fspath(images)})}
        notes.append(f"images: the column {pictures!r}; other columns than it and the labels are not used")
        return Guess({"reader": "image-table", **source}, True, notes=notes)
    if key is not None:
        source["labels_key"] = key
    if parts:
        source["other_columns"] = parts
        notes.append(
            f"left out: {listed(list(map(repr, parts)))}, which names parts of the data; rows of the test part are "
            f"trained on, too, unless they are in a table of their own: data.test=FILE"
        )
    of_labels = [name for name in rest if name.startswith(f"{key}_")] if key not in rest else []
    used = {key, *columns.get("label_columns", ()), *of_labels, *parts}
    ids = find_ids(cells, [name for name in rest if name not in used], notes)
    if ids is not None:
        source["ids_key"] = ids
        used.add(ids)
    others = [name for name in rest if name not in used]
    of_text = text is not None or reader == "text-table"
    if len(texts) == 1 and reader != "features" and (of_text or not others):
        source.pop("decimal", None)  # only texts and labels are read
        more = f"; not used: {listed([repr(name) for name in others])}" if others else ""
        numbers = " (all columns: data.train.reader=features)" if others else ""
        notes.append(f"texts: the column {texts[0]!r}{more}{numbers}")
        return Guess({"reader": "text-table", "text_column": texts[0], **source}, False, True, notes)
    texts = find_texts(cells, [name for name in used if name], "features")  # also those that looked like labels
    others = [name for name in others if name not in texts]
    counted = [name for name in texts if tell_apart(list(map(str, cells.written(name))))]  # no web addresses
    if counted:
        beside = ", beside the other columns" if others or len(counted) < len(texts) else ""
        notes.append(
            f"texts: {listed([repr(name) for name in counted])}, counted word by word{beside} (one text alone: "
            f"data.train.text_column={as_option(counted[0])}; without it: "
            f"data.train.other_columns={as_option(counted[:1])})"
        )
    return Guess({"reader": "features", **source, **_of_features(cells, others, texts, notes, how)}, notes=notes)


def _existing(cells: FirstCells, labels: Sequence[str], text: str | None) -> list[str]:
    """The columns of labels, each or several with commas between; all that are named must be there."""
    known = set(cells.names)
    columns = [part for name in labels for part in ([name] if name in known else name.split(","))]
    for name in [*columns, *([] if text is None else [text])]:
        if name not in known:
            there = listed([repr(column) for column in cells.names])
            raise ShortlistError(
                f"{cells.path}: there is no column {name!r}{nearest(name, cells.names)}; the columns are {there}"
            )
    return columns


def _names_parts(cells: FirstCells, name: str) -> bool:
    """Whether it says of each row of which part of the data it is: train, test."""
    kinds = {str(cell).strip().lower() for cell in cells.written(name)}
    return len(kinds) > 1 and kinds <= PARTS.keys()


def _of_features(
    cells: FirstCells, names: Sequence[str], texts: Sequence[str], notes: list[str], how: Mapping[str, Any]
) -> dict[str, Any]:
    """Options for the columns that are left to learn from, beside the ``texts``."""
    found: dict[str, Any] = {}
    if len(names) == 1 and not cells.table.is_flat(names[0]) and cells.table.array(names[0]).ndim == 2:
        found["inputs_key"] = names[0]
        notes.append(f"features: the numbers in the lists of {names[0]!r}")
    if "decimal" not in how and (decimal := _decimal(cells, names)) is not None:
        found["decimal"] = decimal  # for new files, in which 1,500 may stand alone
    left = {*names, *texts}
    every = [name for name in cells.names if name in left]
    some = [name for name in every if name.startswith("X_")]  # which else would be all features
    if some and len(some) < len(every):
        found["input_columns"] = [name for name in every if cells.table.is_flat(name)]
        notes.append("features: all columns (those called X_* alone: data.train.input_columns=null)")
    return found


def _decimal(cells: FirstCells, names: Sequence[str]) -> str | None:
    """What stands before fractions, where numbers that are written in texts tell it for certain."""
    for name in names:
        cells.table.values(name)
    written = getattr(cells.table, "written", None)
    return None if written is None else written.decimal
