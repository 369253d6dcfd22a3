"""Columns of a table as arrays: of pyarrow's tables, typed (parquet, JSON lines) or of text (.csv, .tsv)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shortlist.data.cells import CURRENCIES, DECIMAL_COMMA, NUMBER, SPACED, SPACES, THOUSANDS, unit_of
from shortlist.data.column_use import listed
from shortlist.data.readers.findings import Findings
from shortlist.errors import ShortlistError
from shortlist.optional import require

_NUMBER, _DECIMAL_COMMA, _SPACED = (f"^({pattern.pattern})$" for pattern in (NUMBER, DECIMAL_COMMA, SPACED))
_AS_IT_IS = "; data.preprocess=auto takes such columns as they are"
_LEADING_ZERO = r"^[+-]?0\d"
_BRACKETS = rf"^\(\s?([{CURRENCIES}]?\s?[\d.,]*\d\s?[%{CURRENCIES}]?)\s?\)$"  # as accountants write -5: (5)
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

    def is_blank(self, name: str) -> bool:
        """Whether no cell holds anything."""

    def has_decimal_commas(self, name: str) -> bool:
        """Whether it would hold numbers, were commas points."""


class TypedColumns:
    """The columns of a pyarrow table that knows what they hold."""

    def __init__(self, table: Any, label_names: Sequence[str] | None = None) -> None:
        self._table, self.label_names = table, label_names
        self.names: Sequence[str] = list(table.column_names)

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
        if self._is_text(name):
            cells = self._table.column(name).to_pylist()
            return np.array([None if cell is None else cell.strip() or None for cell in cells] + [None], "O")[:-1]
        return self.array(name)

    def _is_text(self, name: str) -> bool:
        types, kind = require("pyarrow.types"), self._table.column(name).type
        kind = kind.value_type if types.is_dictionary(kind) else kind
        return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_null(kind))

    def has_numbers(self, name: str) -> bool:
        types = require("pyarrow.types")
        kind = self._table.column(name).type
        return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))

    def values(self, name: str) -> Any:
        if not self._is_text(name):
            return self._table.column(name).to_pandas()  # of a dictionary: categories
        texts = self.texts(name)
        return as_categories(texts) if require("pyarrow.types").is_dictionary(self._table.column(name).type) else texts

    def is_flat(self, name: str) -> bool:
        return not require("pyarrow.types").is_nested(self._table.column(name).type)

    def is_blank(self, name: str) -> bool:
        return bool(self._table.column(name).null_count == len(self._table))

    def has_decimal_commas(self, name: str) -> bool:
        return self._is_text(name) and _mostly(self._table.column(name).cast("string"), _DECIMAL_COMMA)


def as_categories(values: Any) -> Any:
    """A column of pandas' categories, in the order in which they occur."""
    pandas = require("pandas")
    return pandas.Categorical.from_codes(*pandas.factorize(values))


def _is_large(column: Any) -> bool:
    ends = require("pyarrow.compute").min_max(column).as_py()
    return any(end is not None and abs(end) >= _EXACT for end in ends.values())


def _lists(lists: Any, name: str) -> NDArray[Any]:
    """Lists as they are; those of numbers, all of one length, as a matrix."""
    types, kind = require("pyarrow.types"), lists.type
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
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
    ``has_thousands``: whether some, of what was read, had commas there; ``units``: of features, what stood beside the
    numbers and was left out; ``bare``: and the numbers that it did not stand beside; ``blank_lines``: how many were
    skipped above the names."""

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
        self.names, self.has_thousands = names, False
        self.units, self.bare = dict[str, str](), dict[str, str]()
        self.blank_lines, self._in_brackets = blank_lines, list[str]()
        self._path, self._findings, self._decimal, self._is_sure = path, findings, decimal or ".", decimal == "."
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
        if self.units:
            units = listed([f"{name!r} ({unit})" for name, unit in self.units.items()])
            found.append(f"numbers with a sign or unit, which is left out: {units}")
        if self._in_brackets:
            columns = listed([repr(name) for name in dict.fromkeys(self._in_brackets)])
            found.append(f"numbers in brackets, (5), are below zero, -5: {columns}")
        return found

    def _cells(self, name: str) -> Any:
        return _trimmed(self._columns[name])

    def _numbers(self, name: str) -> NDArray[np.float64] | None:
        """NaN where blank; None where a cell is no number."""
        if name not in self._parsed:
            self._parsed[name] = self._parse(name)
        return self._parsed[name]

    def _parse(self, name: str) -> NDArray[np.float64] | None:
        cells = self._columns[name]
        found = _as_numbers(cells) if self._decimal == "." else None
        if found is not None:
            return found
        if _begin_with_names(cells):
            return None
        cells = self._cells(name)
        signed = _with_signs(cells)
        found = _as_numbers(self._plain(signed, self._is_sure))
        if found is not None and signed is not cells:
            self._in_brackets.append(name)
        return found

    def _plain(self, cells: Any, is_sure: bool) -> Any:
        """Numbers as they are usually written, and other cells as they are."""
        compute = require("pyarrow.compute")
        cells = self._without_thousands(_without_spaces(cells), is_sure)
        if self._decimal == ".":
            return cells
        commas = compute.match_substring_regex(cells, _DECIMAL_COMMA)
        return compute.if_else(commas, compute.replace_substring(cells, ",", "."), cells)

    def _without_thousands(self, cells: Any, is_sure: bool) -> Any:
        """Without the points or commas between thousands, where all cells that have some have them there. One comma,
        1,500, may stand before a fraction: unless one ``is_sure``, it needs another cell that tells."""
        compute, mark = require("pyarrow.compute"), "." if self._decimal == "," else ","
        has = compute.match_substring(cells, mark)
        if not compute.any(has).as_py():
            return cells
        thousands = compute.match_substring_regex(cells, f"^({THOUSANDS[self._decimal].pattern})$")
        if not compute.all(compute.or_(compute.invert(has), thousands)).as_py():
            return cells
        if mark == "," and not is_sure and not _any(cells, r",.*[,.]"):
            return cells
        self.has_thousands = self.has_thousands or mark == ","
        return compute.replace_substring(cells, mark, "")

    def _without_unit(self, cells: Any) -> tuple[Any, str]:
        """The cells without what stands beside their numbers and the spaces between thousands, and what it was."""
        compute = require("pyarrow.compute")
        unit = unit_of(cells.slice(0, 1000).drop_null().to_pylist())
        if unit is None:
            return cells, ""
        before, behind = map(re.escape, unit)
        pattern = rf"^([+-]?)[{SPACES}]?{before}[{SPACES}]?([+-]?[\d.,{SPACES}]*\d)[{SPACES}]?{behind}$"
        bare = compute.replace_substring_regex(cells, pattern, r"\1\2")
        return _without_spaces(bare, is_sure=True), "".join(unit)

    def array(self, name: str) -> NDArray[Any]:
        found = self._numbers(name)
        if found is None or _any(self._cells(name), _LEADING_ZERO):  # 007 is a name
            return self.texts(name)
        if bool((np.abs(found) >= _EXACT).any()) and _any(self._cells(name), r"^[+-]?\d{16}"):
            return self.texts(name)
        whole = bool((np.isfinite(found) & (found == np.round(found))).all())  # not where one is blank
        return found.astype(np.int64) if whole else found

    def numbers(self, name: str) -> NDArray[Any]:
        found = self._numbers(name)
        if found is not None:
            return found
        cells = self._cells(name)
        compute = require("pyarrow.compute")
        wrong = compute.invert(compute.match_substring_regex(cells, _NUMBER)).fill_null(False)
        bad = np.flatnonzero(wrong.to_numpy()).tolist()
        remedy = ": give decimal=','" if self._decimal == "." and self.has_decimal_commas(name) else _AS_IT_IS
        self._findings.rows(
            self._path, bad, lambda row: f"the column {name!r} is {cells[row].as_py()!r}, not a number{remedy}"
        )
        return np.full(len(cells), 0.0)

    def texts(self, name: str) -> NDArray[Any]:
        return np.asarray(self._cells(name).to_numpy(), dtype=object)

    def has_numbers(self, name: str) -> bool:
        found = self._numbers(name)
        return bool((~np.isnan(found)).any()) if found is not None else _any(self._cells(name), _NUMBER)

    def values(self, name: str) -> Any:
        found = self._numbers(name)
        if found is not None:
            return self._cells(name).to_pandas() if self._are_codes(name, found) else found
        cells, unit = self._without_unit(_with_signs(self._cells(name), alone=True))
        is_money = re.search(f"[{CURRENCIES}]", unit) is not None  # which has no thousandths
        plain = self._plain(cells, self._is_sure or is_money)
        if not _mostly(plain, _NUMBER):
            return self._cells(name).to_pandas()
        self.units |= {name: unit} if unit else {}
        if unit and not is_money:  # an amount of money may lack its sign
            bare = [cell for cell in self._cells(name).drop_null().to_pylist() if re.fullmatch(r"[+-]?[\d.,]*\d", cell)]
            self.bare |= {name: f"{len(bare)} of {len(cells)}, as {bare[0]!r}"} if bare else {}
        self._in_brackets += [name] if _any(self._cells(name), _BRACKETS) else []
        found = _as_numbers(plain)
        return plain.to_pandas() if found is None else found

    def _are_codes(self, name: str, found: NDArray[np.float64]) -> bool:
        """As `shortlist.data.cells.are_codes` says of the cells, whose numbers these are."""
        if bool((np.floor(found) < found).any()):  # found in no time
            return False
        cells = self._cells(name)
        return _any(cells, r"^0\d") and not _any(cells, r"\D")

    def is_flat(self, name: str) -> bool:
        return True

    def is_blank(self, name: str) -> bool:
        cells = self._cells(name)
        return bool(cells.null_count == len(cells))

    def has_decimal_commas(self, name: str) -> bool:
        return self._numbers(name) is None and _mostly(self._cells(name), _DECIMAL_COMMA)


def _as_numbers(cells: Any) -> NDArray[np.float64] | None:
    pyarrow = require("pyarrow")
    try:
        return np.asarray(cells.cast(pyarrow.float64()).to_numpy())
    except pyarrow.ArrowInvalid:
        return None


def _with_signs(cells: Any, alone: bool = False) -> Any:
    """(5) as -5; the cells as they are where none is like that or, unless they may stand ``alone``, all are: these may
    be names."""
    compute = require("pyarrow.compute")
    if not compute.any(compute.starts_with(cells, "(")).as_py():
        return cells
    there = compute.sum(compute.match_substring_regex(cells, _BRACKETS)).as_py() or 0
    if not there or (there == len(cells) - cells.null_count and not alone):
        return cells
    return compute.replace_substring_regex(cells, _BRACKETS, r"-\1")


def notes_of(table: Any) -> list[str]:
    """What is to be told of a table of text; nothing of other ones."""
    return table.notes() if isinstance(table, TextColumns) else []


def _trimmed(cells: Any) -> Any:
    """Texts without blanks around them, null where nothing is left."""
    compute = require("pyarrow.compute")
    cells = compute.utf8_trim_whitespace(cells)
    return compute.if_else(compute.equal(cells, ""), None, cells)


def _without_spaces(cells: Any, is_sure: bool = False) -> Any:
    """Without the spaces between thousands, 1 234,5 or 1'234.5. A plain one, 555 123, may stand between two numbers:
    unless one ``is_sure``, it needs another cell with a fraction behind."""
    compute = require("pyarrow.compute")
    spaced = compute.match_substring_regex(cells, _SPACED)
    if not compute.any(spaced).as_py():
        return cells
    if not is_sure and _any(cells, r"\d \d") and not _any(cells, r"^[+-]?\d{1,3}( \d{3})+[.,]\d+$"):
        return cells
    return compute.if_else(spaced, compute.replace_substring_regex(cells, f"[{SPACES}]", ""), cells)


def _begin_with_names(cells: Any) -> bool:
    """Whether one of the first cells is no number, however points and commas are meant: then the others, of which
    there may be millions, need not be looked at."""
    pyarrow, compute = require("pyarrow"), require("pyarrow.compute")
    first = _with_signs(_trimmed(cells.slice(0, 1000)), alone=True)
    try:
        first.filter(compute.invert(compute.match_substring_regex(first, f"[.,]|{_SPACED}"))).cast(pyarrow.float64())
    except pyarrow.ArrowInvalid:
        return True
    return False


def _rename(names: Sequence[str]) -> str:
    if all(NUMBER.fullmatch(name) for name in names if names.count(name) > 1):
        return "the first line must name the columns; is it missing, and this a row?"
    return "rename them in the first line of the file"


def _any(cells: Any, pattern: str) -> bool:
    compute = require("pyarrow.compute")
    return bool(compute.any(compute.match_substring_regex(cells, pattern)).as_py())


def _mostly(cells: Any, pattern: str) -> bool:
    """Whether at least half of the cells that are not blank are like this, and any are."""
    compute = require("pyarrow.compute")
    found = compute.sum(compute.match_substring_regex(cells, pattern)).as_py() or 0
    return found > 0 and 2 * found >= len(cells) - cells.null_count
