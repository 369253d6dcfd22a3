"""The columns of a pandas frame: numbers with NaN for blanks, or names."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shortlist.data.cells import NA_VALUES, are_codes, are_vectors, is_number, written_list_of
from shortlist.data.column_use import listed
from shortlist.data.dates import YEAR_FIRST, are_dates, days_in, days_of
from shortlist.data.unit_rows import LOOKED_AT, TWO_ROWS, units_in
from shortlist.data.written_numbers import READ, WrittenNumbers, decimal_in, trimmed
from shortlist.errors import ShortlistError, ShortlistWarning
from shortlist.optional import require

MISSING = "(missing)"  # the category of a blank
_VECTORS = "lists of numbers: give a column for each number"
_DIGIT = re.compile(r"\d")


def frame_of(X: Any) -> Any:
    """``X`` as a pandas frame, where its columns have names: that of pandas itself, and tables of pyarrow, polars and
    others that hand over their columns as Arrow does, and lists of dicts; None for other things.

    >>> import pyarrow as pa
    >>> frame_of(pa.table({"age": [20, 30], "city": ["Oslo", None]})).columns.tolist(), frame_of(np.eye(2))
    (['age', 'city'], None)
    """
    if isinstance(X, list) and X and all(isinstance(row, dict) for row in X):
        return require("pandas").DataFrame(X)
    if not hasattr(X, "columns"):
        return None
    if hasattr(X, "iloc"):
        return X
    if not hasattr(X, "__arrow_c_stream__"):
        if hasattr(X, "collect"):
            raise ShortlistError(f"a {type(X).__name__} holds no rows yet: give what its collect() returns")
        return None
    # polars hands over views of texts, of which pyarrow makes no lists; its own to_arrow makes texts
    table = X.to_arrow() if hasattr(X, "to_arrow") else require("pyarrow").table(X)
    return table.to_pandas()


def warn_of_order(X: Any, other: Any, name: str, stacklevel: int = 3) -> None:
    """A warning where what belongs to the rows of a frame has its index in another order."""
    if not hasattr(X, "iloc") or not hasattr(other, "iloc") or X.index.equals(other.index):
        return
    if len(X) == len(other) and X.index.is_unique and X.index.sort_values().equals(other.index.sort_values()):
        said = f"{name} has the index of X in another order, and rows are matched by their place: if that is not meant,"
        warnings.warn(f"{said} give {name}.loc[X.index]", ShortlistWarning, stacklevel=stacklevel)


def column_names(frame: Any) -> tuple[str, ...]:
    names = tuple(map(str, frame.columns))
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        shown = listed([repr(name) for name in twice])
        raise ShortlistError(f"columns must have different names, there are several called {shown}")
    return names


def with_numbers(
    frame: Any,
    decimal: str | None = None,
    columns: Collection[str] | None = None,
    na_values: Sequence[str] = NA_VALUES,
) -> Any:
    """The frame with numbers in place of the texts in which they are written, $4,843 or 1.234,5, by the rules of a file
    of text; what was found is in its ``attrs``. A frame that was read from a table is as it is, unless other texts than
    its reader knew mean blank. ``decimal``: what stands before fractions where this frame does not tell; ``columns``:
    those that may hold numbers, otherwise all.

    >>> import pandas as pd
    >>> with_numbers(pd.DataFrame({"price": ["$4,843", "$12"], "share": ["31.6 %", "7 %"]})).to_numpy().tolist()
    [[4843.0, 31.6], [12.0, 7.0]]
    """
    read = frame.attrs.get(READ)
    unknown = set(na_values) - set(NA_VALUES)
    if read is not None and not unknown:
        return frame
    from pandas.api.types import is_string_dtype

    cells = {
        place: _cells(frame.iloc[:, place], unknown)
        for place, (name, kind) in enumerate(zip(frame.columns, frame.dtypes, strict=True))
        if is_string_dtype(kind) and (columns is None or str(name) in columns)
    }
    says = units_in({str(frame.columns[place]): column[:LOOKED_AT] for place, column in cells.items()})
    if says and read is None:
        raise ShortlistError(
            f"the first row of the frame is no example, but names the {says}: leave it out"
            + (", and the next one, X.iloc[2:] and y[2:]" if says.startswith(TWO_ROWS) else ", X.iloc[1:] and y[1:]")
        )
    cells = {place: column for place, column in cells.items() if _has_digits(column)}
    written = WrittenNumbers(decimal_in(cells.values(), decimal) if read is None else read.get("decimal"))
    written.units |= (read or {}).get("units", {})
    written.bare |= (read or {}).get("bare", {})
    found = frame.copy(deep=False)
    for place, column in cells.items():
        texts = _as_texts(column, written.has_points)
        if texts is not None:
            name = str(frame.columns[place])
            values = written.feature(name, texts, written.numbers(name, texts))
            found.isetitem(place, np.asarray(values))
    found.attrs = {**frame.attrs, READ: written.facts()}
    return found


def _cells(series: Any, unknown: Collection[str]) -> list[Any]:
    """What a column holds, None where blank or ``unknown``."""
    cells = [None if blank else cell for cell, blank in zip(series.tolist(), series.isna().tolist(), strict=True)]
    return [None if isinstance(c, str) and c.strip() in unknown else c for c in cells] if unknown else cells


def _has_digits(cells: list[Any]) -> bool:
    """Whether there are digits in any text, each looked at once, or things that are no text."""
    if set(map(type, cells)) - {str, type(None)}:
        return True
    return any(_DIGIT.search(cell) for cell in {*cells} - {None})


def _as_texts(cells: list[Any], has_points: bool) -> Any:
    """Cells as pyarrow's texts; None where one is neither a text nor a number."""
    kinds = set(map(type, cells)) - {type(None), str}
    if not all(issubclass(kind, int | float | np.number) and kind is not bool for kind in kinds):
        return None
    pyarrow = require("pyarrow")
    if kinds:  # numbers as this column would write them
        mark = "." if has_points else ","
        cells = [cell if cell is None or isinstance(cell, str) else str(cell).replace(".", mark) for cell in cells]
    return trimmed(pyarrow.chunked_array([pyarrow.array(cells, pyarrow.string())]))


def numbers_in(frame: Any) -> dict[Any, NDArray[Any]]:
    """The columns of plain numbers, by name: of thousands, pandas takes long to give one at a time."""
    by_kind: dict[Any, list[int]] = {}
    for place, kind in enumerate(frame.dtypes):
        if isinstance(kind, np.dtype) and kind.kind in "iuf":
            by_kind.setdefault(kind, []).append(place)
    blocks = ((frame.columns[places], frame.iloc[:, places].to_numpy().T) for places in by_kind.values())
    return {name: column for names, columns in blocks for name, column in zip(names, columns, strict=True)}


class ReadColumn(NamedTuple):
    """Numbers with NaN for blanks, or names as objects; why they cannot be used, if so; and, of dates, which are days
    since 1970, in which order they were written."""

    values: NDArray[Any]
    why_not: str = ""
    dates: str = ""


def read_column(series: Any, na_values: tuple[str, ...], codes: bool = True, dates: str = "") -> ReadColumn:
    """The numbers or the names of a column: a pandas series, or an array of numbers alone. Categories are
    names also where they are numbers, and so are texts of digits such as 01001, unless ``codes`` is False. ``dates``:
    their order, where that is known."""
    import pandas as pd
    from pandas.api import types

    if isinstance(series, np.ndarray):
        return ReadColumn(_known(series.astype(np.float64), na_values))
    if types.is_timedelta64_dtype(series):
        return ReadColumn(np.empty(0), "durations: give them as numbers, in seconds or days")
    if types.is_datetime64_any_dtype(series):
        return ReadColumn(days_in(series), dates=dates or YEAR_FIRST)
    if types.is_complex_dtype(series):
        return ReadColumn(np.empty(0), "complex numbers")
    if types.is_numeric_dtype(series) or types.is_bool_dtype(series):
        values = series.astype("Float64") if types.is_extension_array_dtype(series) else series
        found = values.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        names = as_names(series, na_values)
        present = names != MISSING
        distinct = set(names[present].tolist())
        if distinct and (dates or are_dates(distinct)):
            days, dates, why_not = days_of(distinct, dates)
            each_row = [] if why_not else [days.get(name, np.nan) for name in names.tolist()]
            return ReadColumn(np.array(each_row), why_not, dates)
        if are_vectors(distinct):
            return ReadColumn(np.empty(0), _VECTORS)
        if codes and (isinstance(series.dtype, pd.CategoricalDtype) or are_codes(distinct)):
            return ReadColumn(names)
        each = [*distinct]
        parsed = pd.to_numeric(pd.Series(each, dtype=object), errors="coerce").to_numpy(dtype=np.float64)
        if not each or np.isnan(parsed).any():
            return ReadColumn(names)
        number_of = dict(zip(each, parsed.tolist(), strict=True)) | {MISSING: np.nan}
        found = np.array([number_of[name] for name in names.tolist()])
    found = _known(found, na_values)
    if np.isinf(found).any():
        row = series.index[np.isinf(found).argmax()]
        raise ShortlistError(f"the column {series.name!r} holds infinity, first in row {row}: leave such cells blank")
    return ReadColumn(found)


def _known(numbers: NDArray[Any], na_values: tuple[str, ...]) -> NDArray[Any]:
    """With NaN for numbers that mean blank."""
    blank = blank_numbers(na_values)
    return np.where(np.isin(numbers, blank), np.nan, numbers) if blank else numbers


@cache  # a table may have thousands of columns
def blank_numbers(na_values: tuple[str, ...]) -> list[float]:
    """The numbers that mean blank, such as -999; NaN does in any case."""
    return [float(text) for text in na_values if is_number(text) and not math.isnan(float(text))]


def _name(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():  # where a blank made floats of whole numbers, 1.0 is the name 1
        return str(int(value))
    if isinstance(value, list | tuple | np.ndarray):
        return written_list_of(value.tolist() if isinstance(value, np.ndarray) else value) if len(value) else MISSING
    return str(value).strip()


def as_names(series: Any, na_values: tuple[str, ...]) -> NDArray[Any]:
    blank, cells, unknown = series.isna().to_numpy(), series.tolist(), {*na_values, ""}  # as in a .csv
    name_of = {cell: _name(cell) for cell in {c for c in cells if type(c) is str}}  # of many rows they are few
    names = [name_of[cell] if type(cell) is str else _name(cell) for cell in cells]
    found = np.array([MISSING if name in unknown else name for name in names], dtype=object)
    found[blank] = MISSING
    return found
