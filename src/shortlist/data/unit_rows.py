"""A row of units below the names of the columns: kg, cm, years; or the two of Orange: kinds of columns, and uses;
or the two of Qualtrics: questions, and ids."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from shortlist.data.cells import NA_VALUES, UNKNOWN
from shortlist.data.column_use import listed
from shortlist.data.written_numbers import may_be_number

LOOKED_AT = 50  # rows
_FEWEST = 3  # numbers of a column
_WORD = re.compile(r"[^\W\d_]|[%\u2030\u00b0]")
KINDS = "kinds of the columns, as Orange does"
QUESTIONS = "questions of the columns, as Qualtrics does"
TWO_ROWS = (KINDS, QUESTIONS)
_ORANGE = {"c", "d", "s", "t", "continuous", "discrete", "string", "time"}
_USES = re.compile(r"class|meta|ignore|[\w-]+=\S+|[im]")  # in the next row
_IN_BRACKETS = re.compile(r"\(.*\)|\[.*\]|<.*>")


def units_in(columns: Mapping[str, Sequence[Any]]) -> str:
    """The units in the first of these rows, or the ``KINDS``, to be shown; nothing where it is a row like the others.
    Of each column the first cells are given.

    >>> units_in({"weight": ["kg", "3.5", "4", "5"], "height": ["cm", "30", None, "31", "29"], "kind": [None, *"aba"]})
    "units of the columns: 'weight' (kg), 'height' (cm)"
    >>> units_in({"sex": ["d", None, "male"], "survived": ["d", "class", "no"]})
    "kinds of the columns, as Orange does: 'sex' (d), 'survived' (d)"
    >>> units_in({"weight": ["3o", "3.5", "4", "5"], "height": ["28", "30", "31", "29"], "kind": list("aaba")})
    ''
    """
    kinds = {name: cells[0] for name, cells in columns.items() if len(cells) and isinstance(cells[0], str)}
    uses = [word for cells in columns.values() for cell in cells[1:2] if isinstance(cell, str) for word in cell.split()]
    are_uses = any(len(word) > 1 for word in uses) and all(map(_USES.fullmatch, uses))
    if are_uses and _ORANGE & set(kinds.values()):
        return f"{KINDS}: {_shown(kinds)}"
    if any(str(cell).startswith('{"ImportId"') for cells in columns.values() for cell in cells[1:2]):
        return QUESTIONS
    first = {name: _known(cells[0]) for name, cells in columns.items() if len(cells)}
    units = {
        name: cell
        for name, cell in first.items()
        if cell is not None and _WORD.search(cell) and not may_be_number(cell) and _of_numbers(columns[name][1:])
    }
    numbers = others = 0
    for name, cell in first.items():
        if numbers >= len(units):
            return ""  # a row like the others; nothing else needs to be looked at
        if cell is not None and name not in units:
            of_numbers = _of_numbers(columns[name][1:])
            numbers += of_numbers and may_be_number(cell)
            others += not of_numbers
    is_slip = len(units) == 1 and others > 0 and not any(map(_IN_BRACKETS.fullmatch, units.values()))
    if numbers >= len(units) or is_slip:
        return ""
    return f"units of the columns: {_shown(units)}"


def _of_numbers(cells: Sequence[Any]) -> bool:
    """Whether these are numbers, and enough of them."""
    known = [cell for cell in map(_known, cells) if cell is not None]
    return len(known) >= _FEWEST and all(map(may_be_number, known))


def _shown(first: Mapping[str, Any]) -> str:
    return listed([f"{name!r} ({cell})" for name, cell in first.items()], 3)


def _known(cell: Any) -> str | None:
    text = "" if cell is None else str(cell).strip()
    return None if text in NA_VALUES or text.casefold() in UNKNOWN else text
