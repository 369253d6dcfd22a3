"""What is allowed in a table and will hardly do what is wanted: each with the option that mends it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shortlist.data.cells import DECIMAL_COMMA, NA_VALUES, NUMBER, THOUSANDS, is_number
from shortlist.data.column_use import (
    ALWAYS_BLANK,
    DECIMAL_COMMAS,
    LISTS,
    NO_NAME,
    NO_NUMBERS,
    UNEVEN_LISTS,
    as_option,
    listed,
)
from shortlist.data.dataset import Dataset
from shortlist.data.dates import DATE
from shortlist.data.frame_columns import read_column, with_numbers
from shortlist.data.label_concerns import label_concerns
from shortlist.data.leaks import leak_concerns
from shortlist.data.table_rows import TableRows
from shortlist.data.written_numbers import may_be_number

_ROWS = 20  # with fewer, whole numbers differ by chance
_OFTEN, _FAR = 3, 5  # rows of one number, and its distance from the others beside that between these
_WITH_THOUSANDS = "|".join(pattern.pattern for pattern in THOUSANDS.values())
_WITH_UNIT = "numbers with a sign or unit"
# what columns of names may look like -> how that is recognised, and what to do
_LOOKS = {
    "numbers with commas": (
        THOUSANDS["."],
        "give decimal=',' if 1,500 is one and a half, decimal='.' if it is fifteen hundred",
    ),
    "numbers with decimal commas, taken as names": (DECIMAL_COMMA, "give decimal=','"),
    _WITH_UNIT: (
        re.compile(
            rf"[+-]?[^\w\s+-]?\s?({NUMBER.pattern}|{DECIMAL_COMMA.pattern}|{_WITH_THOUSANDS})\s?([^\d\s.,]{{1,3}})?"
        ),
        "write the numbers alone, or name them in other_columns",
    ),
}


def table_concerns(
    dataset: Dataset, na_values: Sequence[str] = NA_VALUES, counts: Tensor | None = None
) -> list[str]:
    """What to look at again, where the data was read from a table; nothing of other data. ``na_values``: the cells that
    mean blank; ``counts``: the examples of each label, in all parts of the data.

    >>> from shortlist.data.column_use import ColumnUse
    >>> use = ColumnUse(("x",), ("mood",), ignored={"note": "it holds no numbers"})
    >>> data = Dataset(torch.rand(3, 1), torch.tensor([0, 1, 2]), ("joy", "joy|love", "love"), columns=use)
    >>> for concern in table_concerns(data):
    ...     print(concern)
    1 column is left out, because it holds no numbers: 'note': write it as numbers, or name it in other_columns
    1 of 3 labels holds '|': 'joy|love': give separator='|' if these are several labels in one cell
    """
    use = dataset.columns
    if use is None:
        return []
    found = []
    for why in dict.fromkeys(use.ignored.values()):
        names = [name for name, reason in use.ignored.items() if reason == why and name]
        if names and why in (NO_NUMBERS, DECIMAL_COMMAS, ALWAYS_BLANK, LISTS, UNEVEN_LISTS):
            one = len(names) == 1
            them, reason = (
                ("it", why) if one else ("them", why.replace("it holds", "they hold").replace("it is", "they are"))
            )
            remedies = {
                DECIMAL_COMMAS: "give decimal=',', or ",
                NO_NUMBERS: f"write {them} as numbers, or ",
                LISTS: f"give inputs_key={as_option(names[0])} if all features are in its lists, or ",
            }
            found.append(
                f"{len(names)} column{'' if one else 's'} {'is' if one else 'are'} left out, because {reason}: "
                f"{listed([repr(name) for name in names], 3)}: {remedies.get(why, '')}name {them} in other_columns"
            )
    for name in [name for name, why in use.ignored.items() if why == NO_NAME]:
        rows = "" if use.ids or name else f"give ids_key={as_option(name)} if it names the rows, or "
        shown = f" ({name!r})" if name else ""
        found.append(f"a column without a name{shown} is left out: {rows}give it one, if it tells something")
    ids = _ids(dataset, use.features, not use.ids, na_values)
    found += _names(dataset, use.features, na_values) + _codes_for_blank(dataset, use.features, na_values) + ids
    found += _blank_rows(dataset, use.features)
    found += leak_concerns(dataset, use.features) + _rows_of_one_example(dataset, use.features)
    return found + label_concerns(dataset, use.labels, counts)


def _names(dataset: Dataset, features: tuple[str, ...], na_values: Sequence[str]) -> list[str]:
    """Features that are taken as names, and look like numbers."""
    if not isinstance(dataset.inputs, TableRows):
        return []
    found, blanks = [], set()
    frame = with_numbers(dataset.inputs.frame, na_values=na_values)
    alike: dict[str, list[str]] = {kind: [] for kind in _LOOKS}
    counted: dict[str, dict[str, int]] = {}  # column -> cell -> how often
    for name in (one for one in features if one not in dataset.inputs.numbers):
        values = frame[name]
        if values.dtype.kind == "O":
            counts = Counter[str]()
            for cell, often in Counter(map(str, values.dropna().tolist())).items():
                counts[cell.strip()] += often
            blanks |= counts.keys() & set(na_values)
            counted[name] = {cell: often for cell, often in counts.most_common() if cell not in na_values}
    for name, cells in counted.items():
        total = sum(cells.values())
        others = [cell for cell in cells if not is_number(cell)]
        look = next((kind for kind, (pattern, _) in _LOOKS.items() if _mostly(cells, pattern)), None)
        if look == _WITH_UNIT and (strange := [cell for cell in others if not may_be_number(cell)]):
            look, others = None, strange  # $5 and $7 would be numbers, were it not for these
        if look is not None:
            alike[look].append(name)
        elif others and 2 * (wrong := sum(cells[cell] for cell in others)) < total:
            known = [*others, *sorted(blanks)]
            option = f"data.na_values={as_option(known)}" if len(known) <= 20 else "all of them in data.na_values"
            found.append(
                f"the column {name!r} is taken as names, because {wrong} of {total} cells are no numbers: "
                f"{listed([repr(cell) for cell in others], 3)}: mend them, or give {option} if they "
                f"mean blank"
            )
    return found + [f"{_columns(names)} {kind}: {_LOOKS[kind][1]}" for kind, names in alike.items() if names]


def _mostly(cells: Iterable[str], pattern: re.Pattern[str]) -> bool:
    found = [pattern.fullmatch(cell) is not None and not is_number(cell) for cell in cells]
    return 2 * sum(found) > len(found)


def _columns(names: Sequence[str]) -> str:
    """How a sentence on what they hold begins."""
    begin, verb = ("the column", "holds") if len(names) == 1 else (f"{len(names)} columns", "hold")
    return f"{begin} {listed([repr(name) for name in names], 3)} {verb}"


def _codes_for_blank(dataset: Dataset, features: tuple[str, ...], na_values: Sequence[str]) -> list[str]:
    """Features of which one number comes again and again, and is far from all others: -999 may stand for blank."""
    if not isinstance(dataset.inputs, TableRows):
        return []
    shown = []
    for name in features:
        numbers = dataset.inputs.column(name)
        if not isinstance(numbers, np.ndarray) or len(numbers) < _ROWS:
            continue
        numbers = numbers.astype(np.float64)
        numbers = numbers[np.isfinite(numbers)]
        for end in (numbers.min(), numbers.max()) if len(numbers) else ():
            is_end = numbers == end
            if (times := int(is_end.sum())) < max(_OFTEN, len(numbers) // 200):  # as nearly all columns
                continue
            others = numbers[~is_end]
            spread = np.ptp(others) if len(others) else 0.0
            far = spread > 0 and np.abs(others - end).min() > _FAR * spread
            if far and f"{end:g}" not in na_values:
                shown.append(f"{name!r} ({end:g} in {times} rows)")
    if not shown:
        return []
    said = f"one number comes again and again, far from all others: {listed(shown, 3)}"
    return [f"{said}: if it stands for blank, name it in data.na_values, as in '[NA, -999]'"]


def _ids(dataset: Dataset, features: tuple[str, ...], no_ids: bool, na_values: Sequence[str]) -> list[str]:
    """Features that are a different whole number in every row, or a larger number in every row than before."""
    inputs, total = dataset.inputs, len(dataset)
    if total < _ROWS or not isinstance(inputs, Tensor | TableRows):
        return []
    found = []
    for place, name in enumerate(features):
        column = inputs[:, place] if isinstance(inputs, Tensor) else inputs.column(name)
        days = None if isinstance(column, Tensor | np.ndarray) else _days(column, na_values)
        if isinstance(column, Tensor | np.ndarray):
            values = column if isinstance(column, Tensor) else torch.from_numpy(column.astype(np.float64))
        elif days is None:
            continue
        if days is None and bool((values % 1 == 0).all()) and len(torch.unique(values)) == total:
            other = f"other_columns={as_option([name])}"
            remedy = f"ids_key={as_option(name)} or {other}" if no_ids else other
            found.append(f"the feature {name!r} is another whole number in every row: if it is an id, give {remedy}")
        elif _rises(days) if days is not None else bool((values[1:] > values[:-1]).all()):
            time = f"data.time={as_option(name)} other_columns={as_option([name])}"
            found.append(
                f"the feature {name!r} rises from row to row: if it is a time, {time} judges on the latest rows"
            )
    return found


def _days(column: Any, na_values: Sequence[str]) -> NDArray[np.float64] | None:
    """The dates of a column as days; None where it holds something else."""
    if column.dtype.kind in "iufb":
        return None
    if column.dtype.kind != "M" and not DATE.fullmatch(str(next(iter(column.dropna()), "")).strip()):
        return None
    read = read_column(column, tuple(na_values))
    return read.values if read.dates and not read.why_not else None


def _rises(days: NDArray[np.float64]) -> bool:
    """Whether no date is before an earlier row's, and not all are one."""
    known = days[~np.isnan(days)]
    return len(known) > 1 and known[0] < known[-1] and bool((known[1:] >= known[:-1]).all())


def _blank_rows(dataset: Dataset, features: tuple[str, ...]) -> list[str]:
    """Rows in which every feature is blank, where others are not."""
    if not isinstance(dataset.inputs, TableRows) or len(features) < 2:
        return []
    blank = dataset.inputs.frame[list(features)].isna().to_numpy().all(axis=1).nonzero()[0]
    if not len(blank) or len(blank) == len(dataset.inputs.frame):
        return []
    are, first, them = ("is", "", "it if it is") if len(blank) == 1 else ("are", "first ", "them if they are")
    rows = f"{len(blank)} of {len(dataset.inputs.frame)} rows {are} blank in every feature"
    return [f"{rows}, {first}row {blank[0]}: delete {them} no example"]


def _rows_of_one_example(dataset: Dataset, features: tuple[str, ...]) -> list[str]:
    """Rows that have the features of another one, and each time another label: a row for each label of an example."""
    if not dataset.is_single or not isinstance(dataset.inputs, TableRows) or not features:
        return []
    from pandas import Series

    marks = Series(dataset.inputs.marks())
    again = int(marks.duplicated().sum())
    copies = int((marks * 31 + dataset.target.numpy().astype("u8")).duplicated().sum())
    if len(marks) < _ROWS or 10 * again < len(marks) or 20 * copies > again:
        return []
    return [
        f"{again} of {len(marks)} rows have the features of an earlier row, and another label: if a row is one of "
        f"several labels of an example, write one row for each example, with all its labels in one cell (a|b)"
    ]
