"""Columns of a table as arrays: of pyarrow's tables, typed (parquet, JSON lines) or of text (.csv, .tsv)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shortlist.data.cells import NUMBER, is_number, written_list_of
from shortlist.data.readers.findings import Findings
from shortlist.data.unit_rows import LOOKED_AT, units_in
from shortlist.data.written_numbers import PLAIN, WITH_COMMA, WrittenNumbers, decimal_in, has_any, mostly, trimmed
from shortlist.errors import ShortlistError
from shortlist.optional import require

_AS_IT_IS = "; data.preprocess=auto takes such columns as they are"
_LEADING_ZERO = r"^\s*[+-]?0\d"
_EXACT = 2.0**53  # beyond it numbers that differ may be one float: they are names


class Columns(Protocol):
    """A table, column by column. Blank numbers are NaN, blank texts and lists None."""

    names: Sequence[str]
    label_names: Sequence[str] | None  # the columns that are labels, where the file says so

    def array(self, name: str) -> NDArray[Any]:
        """Numbers, texts or lists (N,), or a matrix (N, D) of lists of numbers that are of one length."""

    def numbers(self, name: str) -> NDArray[Any]:
        """A column that must hold numbers."""

    def texts(self, name: str) -> NDArray[Any]:
        """A column as it is written."""

    def has_numbers(self, name: str) -> bool: ...

    def values(self, name: str) -> Any:
        """A column as a frame takes it: numbers where all cells are, else names, with blanks."""

    def is_flat(self, name: str) -> bool:
        """Whether a cell is one value, not a list of them."""

    def is_feature(self, name: str) -> bool:
        """Whether a frame may have this column: a cell is one value, or a list of names."""

    def is_blank(self, name: str) -> bool:
        """Whether no cell holds anything."""

    def has_decimal_commas(self, name: str) -> bool:
        """Whether it would hold numbers, were commas points."""


class TypedColumns:
    """The columns of a pyarrow table that knows what they hold; numbers may be written in its texts, as in a .csv.
    ``notes``: what is to be told of how it was read."""

    def __init__(
        self,
        table: Any,
        label_names: Sequence[str] | None = None,
        decimal: str | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        self._table, self.label_names, self._notes = table, label_names, notes
        self.names: Sequence[str] = list(table.column_names)
        texts = {name: table.column(name).cast("string") for name in self.names if self._is_text(name, plain=True)}
        first = (column.slice(0, 1000).to_pylist() for column in texts.values())
        columns = require("pyarrow").table(texts)
        self._texts = TextColumns(Path(), list(texts), columns, Findings(), decimal or decimal_in(first))
        self.written = self._texts.written

    def notes(self) -> list[str]:
        """What was decided of the cells that were read, to be told."""
        return [*self._notes, *self.written.notes()]

    def units_in_first_row(self) -> str:
        """What the first row says of the columns, where it is no example, to be shown."""
        return self._texts.units_in_first_row()

    def array(self, name: str) -> NDArray[Any]:
        column = self._table.column(name)
        if not self.is_flat(name):
            return _lists(column.combine_chunks(), name)
        if self._is_text(name):
            return self.texts(name)
        types, kind = require("pyarrow.types"), column.type
        if types.is_integer(kind) and (column.null_count or types.is_uint64(kind)) and _is_large(column):
            return np.asarray(column.cast("string").to_numpy(), dtype=object)
        return np.asarray(column.to_numpy())

    def numbers(self, name: str) -> NDArray[Any]:
        return np.asarray(self._table.column(name).to_numpy()) if self.has_numbers(name) else self.array(name)

    def texts(self, name: str) -> NDArray[Any]:
        if self._is_text(name, plain=True):
            return self._texts.texts(name)
        if self._is_text(name):
            return np.asarray(trimmed(self._table.column(name).cast("string")).to_numpy(), dtype=object)
        return self.array(name)

    def _is_text(self, name: str, plain: bool = False) -> bool:
        """Whether it holds texts; ``plain``: and no dictionary of them, whose numbers are names."""
        types, kind = require("pyarrow.types"), self._table.column(name).type
        kind = kind.value_type if types.is_dictionary(kind) and not plain else kind
        return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_null(kind))

    def has_numbers(self, name: str) -> bool:
        types = require("pyarrow.types")
        kind = self._table.column(name).type
        return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))

    def values(self, name: str) -> Any:
        if self._is_text(name, plain=True):
            return self._texts.values(name)
        if self._is_text(name):
            return as_categories(self.texts(name))
        if not self.is_flat(name):
            cells = self._table.column(name).to_pylist()
            return np.array([written_list_of(cell) if cell else None for cell in cells], dtype=object)
        return self._table.column(name).to_pandas()  # of a dictionary: categories

    def is_flat(self, name: str) -> bool:
        return not require("pyarrow.types").is_nested(self._table.column(name).type)

    def is_feature(self, name: str) -> bool:
        types, kind = require("pyarrow.types"), self._table.column(name).type
        return self.is_flat(name) or (
            _is_list(kind) and bool(types.is_string(kind.value_type) or types.is_null(kind.value_type))
        )

    def has_vectors(self, name: str) -> bool:
        """Whether it holds lists of numbers, all of one length."""
        return _is_list(self._table.column(name).type) and self.array(name).ndim == 2

    def is_blank(self, name: str) -> bool:
        return bool(self._table.column(name).null_count == len(self._table))

    def has_decimal_commas(self, name: str) -> bool:
        return self._is_text(name, plain=True) and self._texts.has_decimal_commas(name)


def as_categories(values: Any) -> Any:
    """A column of pandas' categories, in the order in which they occur."""
    pandas = require("pandas")
    return pandas.Categorical.from_codes(*pandas.factorize(values))


def _is_large(column: Any) -> bool:
    ends = require("pyarrow.compute").min_max(column).as_py()
    return any(end is not None and abs(end) >= _EXACT for end in ends.values())


def _is_list(kind: Any) -> bool:
    types = require("pyarrow.types")
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _lists(lists: Any, name: str) -> NDArray[Any]:
    """Lists as they are; those of numbers, all of one length, as a matrix."""
    types, kind = require("pyarrow.types"), lists.type
    if not _is_list(kind):
        raise ShortlistError(f"column {name!r} holds {kind}: a cell must be a value or a list of values")
    inner = kind.value_type
    if types.is_integer(inner) or types.is_floating(inner) or types.is_boolean(inner):
        lengths = require("pyarrow.compute").list_value_length(lists).to_numpy(False)
        if not lists.null_count and len(set(lengths.tolist())) == 1:
            return np.asarray(lists.flatten().to_numpy(False)).reshape(len(lists), -1)
    found = np.empty(len(lists), dtype=object)
    found[:] = lists.to_pylist()
    return found


class TextColumns:
    """The columns of a .csv or .tsv file; a cell that should be a number and is none is noted with its line.
    ``written``: what was found of its numbers; ``blank_lines``: how many were skipped above the names."""

    label_names: Sequence[str] | None = None

    def __init__(
        self,
        path: Path,
        names: Sequence[str],
        table: Any,
        findings: Findings,
        decimal: str | None = None,
        blank_lines: int = 0,
    ) -> None:
        self.names, self.written, self.blank_lines = names, WrittenNumbers(decimal), blank_lines
        self._path, self._findings = path, findings
        self._columns = {name: table.column(place) for place, name in reversed(list(enumerate(names)))}
        self._parsed: dict[str, NDArray[np.float64] | None] = {}
        for name, times in Counter(names).items() if len(self._columns) < len(names) else ():
            if name and times > 1:
                findings.add(path, f"{times} columns are called {name!r}: {_rename(names)}")

    def notes(self) -> list[str]:
        """What was decided of the cells that were read, to be told."""
        found = []
        if self.blank_lines:
            number = "a blank line" if self.blank_lines == 1 else f"{self.blank_lines} blank lines"
            found.append(f"{number} above the names of the columns, skipped")
        return found + self.written.notes()

    def _cells(self, name: str) -> Any:
        return trimmed(self._columns[name])

    def _numbers(self, name: str) -> NDArray[np.float64] | None:
        """NaN where blank; None where a cell is no number."""
        if name not in self._parsed:
            self._parsed[name] = self.written.numbers(name, self._columns[name])
        return self._parsed[name]

    def array(self, name: str) -> NDArray[Any]:
        found = self._numbers(name)
        if found is None or has_any(self._columns[name], _LEADING_ZERO):  # 007 is a name
            return self.texts(name)
        if bool((np.abs(found) >= _EXACT).any()) and has_any(self._cells(name), r"^[+-]?\d{16}"):
            return self.texts(name)
        whole = bool((np.isfinite(found) & (found == np.round(found))).all())  # not where one is blank
        return found.astype(np.int64) if whole else found

    def numbers(self, name: str) -> NDArray[Any]:
        found = self._numbers(name)
        if found is not None:
            return found
        cells = self._cells(name)
        compute = require("pyarrow.compute")
        wrong = compute.invert(compute.match_substring_regex(cells, PLAIN)).fill_null(False)
        bad = np.flatnonzero(wrong.to_numpy()).tolist()
        remedy = ": give decimal=','" if self.written.has_points and self.has_decimal_commas(name) else _AS_IT_IS
        self._findings.rows(
            self._path, bad, lambda row: f"the column {name!r} is {cells[row].as_py()!r}, not a number{remedy}"
        )
        return np.full(len(cells), 0.0)

    def texts(self, name: str) -> NDArray[Any]:
        return np.asarray(self._cells(name).to_numpy(), dtype=object)

    def has_numbers(self, name: str) -> bool:
        found = self._numbers(name)
        return bool((~np.isnan(found)).any()) if found is not None else has_any(self._cells(name), PLAIN)

    def values(self, name: str) -> Any:
        return self.written.feature(name, self._cells(name), self._numbers(name))

    def is_flat(self, name: str) -> bool:
        return True

    is_feature = is_flat

    def is_blank(self, name: str) -> bool:
        cells = self._cells(name)
        return bool(cells.null_count == len(cells))

    def units_in_first_row(self) -> str:
        """What the first row says of the columns, where it is no example, to be shown."""
        first = {name: column.slice(0, 1).to_pylist() for name, column in self._columns.items()}
        if not any(cell and not is_number(cell) for cells in first.values() for cell in cells):
            return ""  # found soon
        return units_in({name: self._columns[name].slice(0, LOOKED_AT).to_pylist() for name in self.names})

    def has_decimal_commas(self, name: str) -> bool:
        return self._numbers(name) is None and mostly(self._cells(name), WITH_COMMA)


def notes_of(table: Any) -> list[str]:
    """What is to be told of a table of text; nothing of other ones."""
    return table.notes() if isinstance(table, TextColumns | TypedColumns) else []


def _rename(names: Sequence[str]) -> str:
    if all(NUMBER.fullmatch(name) for name in names if names.count(name) > 1):
        return "the first line must name the columns; is it missing, and this a row?"
    return "rename them in the first line of the file"
