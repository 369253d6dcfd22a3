"""Columns of a table as arrays: of parquet, and of text with commas or tabs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shortlist.data.cells import DECIMAL_COMMA, have_decimal_commas, is_number
from shortlist.data.readers.findings import Findings
from shortlist.data.readers.tables import Table, parquet_table
from shortlist.errors import ShortlistError
from shortlist.optional import require


class Columns(Protocol):
    """A table, column by column. Blank numbers are NaN, blank texts None."""

    names: Sequence[str]

    def array(self, name: str) -> NDArray[Any]:
        """Numbers or texts (N,), or a matrix (N, D) of lists."""

    def numbers(self, name: str) -> NDArray[Any]:
        """A column that must hold numbers."""

    def texts(self, name: str) -> NDArray[Any]:
        """A column as it is written."""

    def has_numbers(self, name: str) -> bool: ...

    def values(self, name: str) -> Any:
        """A column as a frame takes it: numbers where all cells are, else names, with blanks."""

    def is_flat(self, name: str) -> bool:
        """Whether a cell is one value, not a list of them."""

    def has_decimal_commas(self, name: str) -> bool:
        """Whether it would hold numbers, were commas points."""


class ParquetColumns:
    def __init__(self, path: Path) -> None:
        self._table = parquet_table(path)
        self.names: Sequence[str] = list(self._table.column_names)

    def array(self, name: str) -> NDArray[Any]:
        types = require("pyarrow.types")
        column = self._table.column(name)
        kind = column.type
        if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
            return _matrix(column.combine_chunks(), name)
        if types.is_string(kind) or types.is_large_string(kind):
            return np.asarray(column.to_pylist(), dtype=object)
        return np.asarray(column.to_numpy())

    numbers = texts = array

    def has_numbers(self, name: str) -> bool:
        types = require("pyarrow.types")
        kind = self._table.column(name).type
        return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))

    def values(self, name: str) -> Any:
        return self._table.column(name).to_pandas()

    def is_flat(self, name: str) -> bool:
        return not require("pyarrow.types").is_nested(self._table.column(name).type)

    def has_decimal_commas(self, name: str) -> bool:
        return have_decimal_commas(cell for cell in self.texts(name).tolist() if isinstance(cell, str))


def _matrix(lists: Any, name: str) -> NDArray[Any]:
    if lists.null_count:
        raise ShortlistError(f"column {name!r} has a blank in row {int(np.argmax(lists.is_null().to_numpy(False)))}")
    lengths = require("pyarrow.compute").list_value_length(lists).to_numpy(False)
    if len(set(lengths.tolist())) > 1:
        row = int(np.argmax(lengths != lengths[0]))
        raise ShortlistError(f"column {name!r} has {lengths[row]} values in row {row} and {lengths[0]} in row 0")
    return np.asarray(lists.flatten().to_numpy(False)).reshape(len(lists), -1)


class TextColumns:
    """The columns of a .csv or .tsv file; a cell that should be a number and is none is noted with its line."""

    def __init__(self, table: Table, findings: Findings, decimal: str = ".") -> None:
        self.names: Sequence[str] = table.columns
        self._path, self._findings = table.path, findings
        self._cells = {name: [cells[place] for _, cells in table.rows] for place, name in enumerate(self.names)}
        if decimal == ",":
            for name, cells in self._cells.items():
                self._cells[name] = [
                    cell.replace(",", ".") if DECIMAL_COMMA.fullmatch(cell) else cell for cell in cells
                ]
        findings.number_lines(table.path, [line for line, _ in table.rows])
        for name in self._cells:
            if name and self.names.count(name) > 1:
                findings.add(table.path, f"{self.names.count(name)} columns are called {name!r}")

    def array(self, name: str) -> NDArray[Any]:
        found = _parsed(self._cells[name])
        if found is None:
            return self.texts(name)
        whole = bool((found % 1 == 0).all())  # not where one is blank
        return found.astype(np.int64) if whole else found

    def numbers(self, name: str) -> NDArray[Any]:
        found = _parsed(self._cells[name])
        if found is not None:
            return found
        cells = self._cells[name]
        bad = [row for row, cell in enumerate(cells) if cell and not is_number(cell)]
        self._findings.rows(self._path, bad, lambda row: f"the column {name!r} is {cells[row]!r}, not a number")
        return np.full(len(cells), 0.0)

    def texts(self, name: str) -> NDArray[Any]:
        return np.array([cell or None for cell in self._cells[name]], dtype=object)

    def has_numbers(self, name: str) -> bool:
        return any(map(is_number, self._cells[name]))

    def values(self, name: str) -> Any:
        found = _parsed(self._cells[name])
        return self.texts(name) if found is None else found

    def is_flat(self, name: str) -> bool:
        return True

    def has_decimal_commas(self, name: str) -> bool:
        return have_decimal_commas(filter(None, self._cells[name]))


def _parsed(cells: list[str]) -> NDArray[np.float64] | None:
    try:
        return np.array([float(cell or math.nan) for cell in cells])
    except ValueError:
        return None
