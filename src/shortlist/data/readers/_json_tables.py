"""Tables in JSON: an object in each line, or a .json that holds rows in one of the ways that programs write them."""

from __future__ import annotations

import codecs
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shortlist.data.column_use import listed
from shortlist.data.readers._csv import content_of
from shortlist.errors import ShortlistError
from shortlist.optional import require

_KINDS = {bool: "yes or no", int: "numbers", float: "numbers", str: "texts", list: "lists", dict: "objects"}


def json_table(path: Path, of_lines: bool, notes: list[str]) -> Any:
    """Objects, one in each line, or as ``json_lines`` finds them, as pyarrow reads them; a key that one of them lacks
    is blank. ``notes``: what was decided is added to it."""
    pyarrow, reader = require("pyarrow"), require("pyarrow.json")
    with content_of(path) as content:
        if not bytes(content[: 1 << 20]).strip():
            raise ShortlistError("the file is empty")
        lines = bytes(content) if of_lines else json_lines(bytes(content), notes)
    if not lines:
        raise ShortlistError("no rows: its list of objects is empty")

    def read(text: bytes) -> Any:
        block = reader.ReadOptions(block_size=max(1 << 20, min(len(text), 1 << 30)))
        return reader.read_json(pyarrow.BufferReader(text), read_options=block)

    try:
        table = read(lines)
    except pyarrow.ArrowInvalid as error:
        mended = _of_one_kind(lines, notes) if "changed from" in str(error) else None
        if mended is None:
            raise ShortlistError(f"each line must be a JSON object: {error}") from error
        table = read(mended)
    try:
        table.validate(full=True)  # finds bytes that are no text
    except pyarrow.ArrowInvalid as error:
        raise ShortlistError(f"JSON lines must be text in UTF-8: {error}") from error
    return table


def json_lines(content: bytes, notes: list[str]) -> bytes:
    """The objects of a .json, one in each line: a list of them, alone or in an object (the longest one there); columns,
    as pandas' ``to_json`` writes them; rows with a key each; features of a map, as GeoJSON and Esri write them; or
    lines already.

    >>> notes = []
    >>> json_lines(b'[{"a": 1}, {"a": NaN}]', notes), json_lines(b'{"a": {"0": 1, "1": 2}}', notes)
    (b'{"a": 1}\\n{"a": null}', b'{"a": 1}\\n{"a": 2}')
    >>> json_lines(b'{"a": 1}', notes), notes
    (b'{"a": 1}', [])
    >>> print(json_lines(b'{"owl": {"legs": 2}, "cat": {"legs": 4, "fur": true}}', notes).decode(), *notes, sep="\\n")
    {"key": "owl", "legs": 2}
    {"key": "cat", "legs": 4, "fur": true}
    the file is one object: each of its 2 keys is a row, and in the column 'key'
    """
    start = content.removeprefix(codecs.BOM_UTF8).lstrip()
    try:
        found = json.loads(start, parse_constant=lambda name: None)
    except (ValueError, RecursionError) as error:
        if start[:1] == b"{":
            return start  # one in each line, which is read elsewhere
        raise ShortlistError(f"it is no JSON: {error}") from error
    if isinstance(found, dict):
        found = _rows_of(found, notes)
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ShortlistError('a .json must hold a list of objects, [{"length": 2, "label": "oak"}, ...]')
    return _written(found)


def _written(rows: Sequence[dict[str, Any]]) -> bytes:
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode()


def _rows_of(found: dict[str, Any], notes: list[str]) -> list[Any]:
    """The rows that an object holds; itself, where it is one."""
    columns, kinds = list(found.values()), set(map(type, found.values()))
    lists = {name: column for name, column in found.items() if _are_objects(column)}
    if kinds == {dict} and len(set(map(tuple, columns))) == 1 and not _are_rows(found):
        return [dict(zip(found, row, strict=True)) for row in zip(*(one.values() for one in columns), strict=True)]
    if kinds == {list} and len(columns) > len(lists) and len(columns) > 1 and len(set(map(len, columns))) == 1:
        return [dict(zip(found, row, strict=True)) for row in zip(*columns, strict=True)]
    if (features := _features(found)) is not None:
        return features
    if lists:
        return _longest(lists, notes)
    shared = Counter(name for column in columns for name in column).most_common(1) if kinds == {dict} else []
    if shared and 2 * shared[0][1] > len(columns) > 1:
        rows, taken = columns, {name for column in columns for name in column}
    elif kinds == {list} and len(columns) > 1 and not lists:
        rows, taken = [{"value": column} for column in columns], set()
    else:
        lists = _lists_inside(found)
        return _longest(lists, notes) if lists else [found]
    key = next(name for name in ("key", "(key)", "((key))") if name not in taken)
    notes.append(f"the file is one object: each of its {len(rows)} keys is a row, and in the column {key!r}")
    return [{key: name, **row} for name, row in zip(found, rows, strict=True)]


def _are_objects(cell: Any) -> bool:
    return isinstance(cell, list) and set(map(type, cell)) == {dict}


def _features(found: dict[str, Any]) -> list[Any] | None:
    """The rows of a map, as GeoJSON and Esri write them: what each has beside its place is in an object."""
    features = found["features"] if _are_objects(found.get("features")) else []
    for inside in ("properties", "attributes"):
        if features and all(isinstance(row.get(inside), dict) for row in features):
            return [
                {name: cell for name, cell in row.items() if name not in (inside, "type")} | row[inside]
                for row in features
            ]
    return None


def _lists_inside(found: dict[str, Any]) -> dict[str, list[Any]]:
    """The lists of objects in the objects of an object, such as ``response.docs``."""
    objects = {name: one for name, one in found.items() if isinstance(one, dict)}
    inside = {f"{name}.{key}": cell for name, one in objects.items() for key, cell in one.items()}
    lists = {name: cell for name, cell in inside.items() if _are_objects(cell)}
    return lists if lists or not inside else _lists_inside(inside)


def _longest(lists: dict[str, list[Any]], notes: list[str]) -> list[Any]:
    """The list of objects that are the rows: the longest of several."""
    if len(lists) == 1:
        return next(iter(lists.values()))
    shown = [f"{name!r} ({len(rows)})" for name, rows in lists.items()]
    first, second = sorted(lists, key=lambda name: -len(lists[name]))[:2]
    if len(lists[first]) == len(lists[second]):
        raise ShortlistError(f"which list holds the rows? Write it to a file of its own: {listed(shown)}")
    notes.append(f"rows: those of {first!r}, the longest list of objects of {listed(shown)}")
    return lists[first]


def _are_rows(found: dict[str, dict[str, Any]]) -> bool:
    """Whether objects that all have the same keys are rows, and not columns: keys that count tell, else what has cells
    of one kind is a column, or there are more rows than columns."""
    columns = list(found.values())
    for names, answer in ((list(columns[0]), False), (list(found), True)):
        if names == [str(place) for place in range(len(names))]:
            return answer
    across = sum(len(_kinds(column.values())) > 1 for column in columns)
    down = sum(len(_kinds(cells)) > 1 for cells in zip(*(column.values() for column in columns), strict=True))
    return across > down if across != down else len(columns) > len(columns[0])


def _kinds(cells: Any) -> set[str]:
    return {_KINDS[type(cell)] for cell in cells if cell is not None}


def _of_one_kind(lines: bytes, notes: list[str]) -> bytes | None:
    """The lines, with cells of one kind in each column: where some are texts, numbers are, too, as in a .csv; where
    some are lists, others are lists of one. None where a line is no object."""
    try:
        rows = [json.loads(line) for line in lines.splitlines() if line.strip()]
    except (ValueError, RecursionError):
        return None
    if not all(isinstance(row, dict) for row in rows):
        return None
    mixed: dict[str, str] = {}
    alike = _alike(rows, "", mixed)
    shown = listed([f"{name!r} ({kinds})" for name, kinds in mixed.items()])
    notes.append(f"columns of several kinds of cells, which are all taken as texts or lists: {shown}")
    return _written(alike)


def _alike(cells: list[Any], name: str, mixed: dict[str, str]) -> list[Any]:
    """The cells of a column, of one kind; those that were of several are noted in ``mixed``."""
    kinds = _kinds(cells)
    if len(kinds) > 1:
        mixed[name] = ", ".join(sorted(kinds))
        if "objects" in kinds:
            row, other = next((row, cell) for row, cell in enumerate(cells) if not isinstance(cell, dict | None))
            raise ShortlistError(
                f"row {row}: the column {name!r} holds {other!r}, and in other rows objects: write all in one way"
            )
        if "lists" not in kinds:
            return [cell if cell is None or isinstance(cell, str) else json.dumps(cell) for cell in cells]
        cells = [cell if cell is None or isinstance(cell, list) else [cell] for cell in cells]
    if kinds >= {"lists"}:
        inner = iter(_alike([one for cell in cells for one in cell or ()], name, mixed))
        return [cell if cell is None else [next(inner) for _ in cell] for cell in cells]
    if kinds == {"objects"}:
        names = dict.fromkeys(key for cell in cells if cell for key in cell)
        for key in names:
            having = [cell for cell in cells if cell and key in cell]
            whole = f"{name}.{key}" if name else key
            for cell, value in zip(having, _alike([cell[key] for cell in having], whole, mixed), strict=True):
                cell[key] = value
    return cells
