"""What is allowed in a table and will hardly do what is wanted: each with the option that mends it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
    slips: dict[str, tuple[int, int, list[str]]] = {}  # column -> cells that are no numbers, all cells, which they are
    frame = with_numbers(dataset.inputs.frame, na_values=na_values)
    alike: dict[str, list[str]] = {kind: [] for kind in _LOOKS}
    counted: dict[str, dict[str, int]] = {}  # column -> cell -> how often
    for name in (one for one in features if one not in dataset.inputs.numbers):
        values = frame[name]
        if values.dtype.kind == "O":
            counts = Counter[str]()
            for cell, often in Counter(map(str, values.dropna().tolist())).items():
                counts[cell.strip()] += often
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
            slips[name] = wrong, total, others
    found = _slips(slips, _blanks(dataset.inputs.frame, features, na_values)) if slips else []
    return found + [f"{_columns(names)} {kind}: {_LOOKS[kind][1]}" for kind, names in alike.items() if names]


def _slips(columns: Mapping[str, tuple[int, int, list[str]]], blanks: Sequence[str]) -> list[str]:
    """One warning for all these columns, with one option: na_values that is given again is another list."""
    known = [*dict.fromkeys(cell for _, _, cells in columns.values() for cell in cells), *blanks]
    option = f"data.na_values={as_option(known)}" if len(known) <= 20 else "all of them in data.na_values"
    remedy = f"mend them, or give {option} if they mean blank"
    each = [(name, f"{some} of {of}", listed(list(map(repr, cells)), 3)) for name, (some, of, cells) in columns.items()]
    if len(each) == 1:
        ((name, some, shown),) = each
        return [f"the column {name!r} is taken as names, because {some} cells are no numbers: {shown}: {remedy}"]
    shown = listed([f"{name!r} ({some}: {cells})" for name, some, cells in each], 3)
    return [f"{len(each)} columns are taken as names, because some of their cells are no numbers: {shown}: {remedy}"]


def _blanks(frame: Any, features: Sequence[str], na_values: Sequence[str]) -> list[str]:
    """What is to stay blank where further cells are named: what was given, or those of the usual cells that occur."""
    if tuple(na_values) != NA_VALUES:
        return list(na_values)
    texts = (frame[name].dropna() for name in features if frame[name].dtype.kind == "O")
    return sorted({str(cell).strip() for values in texts for cell in values} & set(NA_VALUES))


def _mostly(cells: Iterable[str], pattern: re.Pattern[str]) -> bool:
    found = [pattern.fullmatch(cell) is not None and not is_number(cell) for cell in cells]
    return 2 * sum(found) > len(found)


def _columns(names: Sequence[str]) -> str:
    """How a sentence on what they hold begins."""
    begin, verb = ("the column", "holds") if len(names) == 1 else (f"{len(names)} columns", "hold")
    return f"{begin} {listed([repr(name) for name in names], 3)} {verb}"


def _codes_for_blank(dataset: Dataset, features: tuple[str, ...], na_values: Sequence[str]) -> list[str]:
    """Features of which one number comes again and again, and is far from all others: -999 may stand for blank; so may
    one below 0 among whole numbers that are not, be it nearer."""
    if not isinstance(dataset.inputs, TableRows):
        return []
    shown, codes, known = [], [], [float(cell) for cell in na_values if is_number(cell)]
    for name in features:
        numbers = dataset.inputs.column(name)
        if not isinstance(numbers, np.ndarray) or len(numbers) < _ROWS:
            continue
        numbers = numbers.astype(np.float64)
        numbers = numbers[np.isfinite(numbers) & ~np.isin(numbers, known)]
        for furthest in (np.max, np.min, np.max) if len(numbers) else ():  # 99 may be found when -999 is gone
            end = float(furthest(numbers))
            is_end = numbers == end
            if (times := int(is_end.sum())) < max(_OFTEN, len(numbers) // 200):  # as nearly all columns
                continue
            others = numbers[~is_end]
            spread = np.ptp(others) if len(others) else 0.0
            negative = end < 0 and len(others) > 0 and others.min() >= 0 and bool((others % 1 == 0).all())
            if spread > 0 and np.abs(others - end).min() > (1 if negative else _FAR) * spread:
                numbers = others
                shown.append(f"{name!r} ({end:g} in {times} rows)")
                codes.append(f"{end:g}")
    if not shown:
        return []
    said = f"one number comes again and again, far from all others: {listed(shown, 3)}"
    option = as_option([*dict.fromkeys(codes), *_blanks(dataset.inputs.frame, features, na_values)])
    stand = "it stands" if len(shown) == 1 else "they stand"
    return [f"{said}: give data.na_values={option} if {stand} for blank"]


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
