"""Which columns of a table hold its labels, and how: those that the user or the file names, or what is guessed."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shortlist.data.column_use import listed
from shortlist.data.readers.tables import names_in_columns, names_in_xml
from shortlist.runs.guess.first_cells import FirstCells
from shortlist.runs.guess.label_signs import LABELS, has_spaces_between, is_answer, separator
from shortlist.runs.guess.one_label_column import one_column
from shortlist.runs.guess.several_label_columns import numbered_alike, of_marks, several_columns


def find_labels(
    cells: FirstCells,
    names: Sequence[str],
    named: Sequence[str],
    notes: list[str],
    images: bool,
    texts: bool,
) -> tuple[str | None, dict[str, Any]]:
    """The one column of labels, or none; and further options. Those that are ``named`` are it."""
    if len(named) > 1:
        if names_in_columns(cells.table, named) is not None:
            shown = listed([repr(name) for name in named])
            notes.append(f"labels: the names that a row has in any of the columns {shown}")
            return None, {"label_columns": named}
        return None, of_marks(cells, named, notes)
    if named:
        return named[0], _separated(cells, named[0], notes)
    said = getattr(cells.table, "label_names", None)
    beside = _mulan_names(cells.path)
    if beside is not None:
        differs = said is not None and set(said) != set(names_in_xml(beside))
        others = f"; the file's own -C says {listed(list(map(repr, said or ())))}" if differs else ""
        notes.append(f"labels: the columns that {beside} names{others} (others: --labels COLUMN)")
        return None, {"labels": str(beside)}
    if said:
        notes.append(f"labels: the columns that the file names, {listed(list(map(repr, said)))}")
        return None, {"label_columns": list(said)}
    for prefix in ("y", "label"):
        columns = [name for name in names if name.startswith(f"{prefix}_")]
        if len(columns) > 1 and prefix not in names and all(is_answer(cells, name) for name in columns):
            notes.append(f"labels: the columns {prefix}_* (others: --labels COLUMN)")
            return prefix, {}
    called = any(name.lower() in LABELS for name in names)
    several = None if called else several_columns(cells, names, notes, images, texts)
    if several is not None:
        return None, several
    key = one_column(cells, names, notes)
    alike = numbered_alike(names, key)
    if alike:
        shown = listed([repr(name) for name in alike if name != key])
        notes.append(f"features: {shown}; if they are labels, name all: --labels {shlex.quote(','.join(alike))}")
    return key, _separated(cells, key, notes)


def _mulan_names(path: Path) -> Path | None:
    """The .xml beside Mulan's .arff: scene.xml for scene.arff and for scene-train.arff."""
    if path.suffix.lower() != ".arff":
        return None
    whole = path.stem
    stems = [whole, *(whole[: mark.start()] for mark in reversed(list(re.finditer("[-_.]", whole))))]
    return next((file for stem in stems if (file := path.with_name(f"{stem}.xml")).is_file()), None)


def _separated(cells: FirstCells, key: str, notes: list[str]) -> dict[str, str]:
    """What stands between several labels in one cell, as an option."""
    found = cells.flat(key)
    mark = separator(found) or (" " if has_spaces_between(found) else None)
    if mark is None:
        return {}
    notes.append(f"several labels in a cell of {key!r}, with {mark!r} between (one label: data.train.separator=null)")
    all_cells = cells.table.array(key).tolist()
    blank = sum(cell is None or not str(cell).strip() for cell in all_cells)
    if blank:
        notes.append(
            f"{blank} of {len(all_cells)} cells of {key!r} are blank: examples without labels "
            f"""(unknown ones: data.train.unknown_names='[""]')"""
        )
    return {"separator": mark}
