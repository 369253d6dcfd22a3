"""Columns whose cells hold several choices, ``Python;R;SQL``, as features: one for each choice."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.data.cells import MOST_NAMES, is_number
from shortlist.data.column_features import Categories
from shortlist.data.frame_columns import MISSING

_MARKS = ("|", ";", ",")
_LOOKED_AT = 10_000  # rows
_BETWEEN = re.compile("(?<=['\"]), (?=['\"])")  # names of a list, as Python writes it
_FEWEST = 4  # different cells that hold several choices: fewer may look like that by chance
_RECUR = 0.8  # of these cells: so many have no choice that is in no other cell


@dataclass(frozen=True)
class Choices(Categories):
    """One column of several choices in each cell, with a mark between: a 1 for each of them; rare and unseen ones share
    the last place, where there is one.

    >>> Choices(0, ("R", "SQL"), True, separator=";").transform(np.array(["SQL; R", "R", "Perl;R"], object)).tolist()
    [[1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 1.0]]
    """

    separator: str = ";"

    def unseen(self, values: NDArray[Any]) -> list[str]:
        parts = [part for cell in set(values.tolist()) for part in _parts(cell, self.separator)]
        return super().unseen(np.array(parts, dtype=object))

    def transform(self, values: NDArray[Any]) -> NDArray[np.float32]:
        place = {name: number for number, name in enumerate(self.names)}
        cells = {cell: number for number, cell in enumerate(dict.fromkeys(values.tolist()))}
        found = np.zeros((len(cells), len(place) + 1), dtype=np.float32)
        for cell, row in cells.items():
            found[row, [place.get(part, len(place)) for part in _parts(cell, self.separator)]] = 1
        return found[[cells[cell] for cell in values.tolist()], : self.width]


def fit_choices(values: NDArray[Any], column: int) -> Choices | None:
    """The choices of a column of names; None where its cells are one name each."""
    mark = mark_between(values)
    if mark is None:
        return None
    rows = [_parts(cell, mark) for cell in values.tolist()]
    counts = Counter(part for row in rows for part in set(row))
    rare_below = max(2, math.ceil(len(values) / 1000))
    common = [name for name, count in counts.most_common(MOST_NAMES) if count >= rare_below]
    if not common:
        return None
    known = set(common)
    share = sum(not known.intersection(row) for row in rows) / len(rows)
    return Choices(column, tuple(sorted(common)), len(known) < len(counts), share, mark)


def mark_between(values: NDArray[Any]) -> str | None:
    """What stands between several choices in one cell; None where cells are names, though some may hold a comma. Cells
    differ in how many choices they have, which are no numbers and are fewer than their mixtures, and nearly every
    mixture is of choices that are in other cells, too.

    >>> mark_between(np.array(["R", "R;SQL", "SQL;C", "C;R", "C;R;SQL"], object))
    ';'
    >>> mark_between(np.array(["['R']", "['R', 'SQL']", "['SQL', 'C']", "['C', 'R']", "['C', 'R', 'SQL']"], object))
    ','
    >>> mark_between(np.array(["Paris, France", "Lyon, France", "Rome, Italy", "Turin, Italy", "Oslo"], object))
    """
    cells = set(values[:_LOOKED_AT].tolist()) - {MISSING}
    if cells and all(cell[:1] + cell[-1:] == "[]" for cell in cells):  # lists, of however many
        times = Counter(part for cell in cells for part in set(_parts(cell, ",")))
        return "," if len(times) < times.total() and not any(map(is_number, times)) else None
    for mark in _MARKS:
        several = [parts for cell in cells if mark in cell and len(parts := _parts(cell, mark)) > 1]
        if len(several) < _FEWEST or 2 * len(several) < len(cells):
            continue
        times = Counter(part for cell in cells for part in set(_parts(cell, mark)))
        sizes = {len(_parts(cell, mark)) for cell in cells}
        again = sum(all(times[part] > 1 for part in parts) for parts in several)
        if (
            len(sizes) > 1
            and len(times) < len(cells)
            and again >= _RECUR * len(several)
            and not any(map(is_number, times))
        ):
            return mark
    return None


def _parts(cell: str, mark: str) -> list[str]:
    """The choices in a cell, which may be a list, ['R', 'SQL']; of a blank one, that it is blank."""
    inside = cell[1:-1] if cell[:1] + cell[-1:] in ("[]", "{}") else ""
    if inside and mark not in inside:  # a list, where the cells of training were texts
        pieces = [piece.strip("'\"") for piece in _BETWEEN.split(inside)]
    else:
        pieces = [piece.strip().strip("'\"") for piece in inside.split(mark)] if inside else cell.split(mark)
    return [part for piece in pieces if (part := piece.strip())] or [MISSING]
