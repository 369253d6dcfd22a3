"""Numbers as people write them in texts, $1,234.50 or 1.234,5 or (5): the same rules for files of text, for columns of
texts in parquet and JSON lines, and for frames."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.data.cells import (
    BLANK,
    CURRENCIES,
    DECIMAL_COMMA,
    NA_VALUES,
    NUMBER,
    ORDINAL,
    SPACED,
    SPACES,
    THOUSANDS,
    unit_of,
    without_unit,
)
from shortlist.data.column_use import listed
from shortlist.optional import require

PLAIN, WITH_COMMA, _SPACED = (f"^({pattern.pattern})$" for pattern in (NUMBER, DECIMAL_COMMA, SPACED))
_BRACKETS = rf"^\(\s?([{CURRENCIES}]?\s?[\d.,]*\d\s?[%{CURRENCIES}]?)\s?\)$"  # as accountants write -5: (5)
_NUMBERS = re.compile("|".join(one.pattern for one in (NUMBER, DECIMAL_COMMA, SPACED, *THOUSANDS.values())))
_LOOKED_AT = 1000  # cells
READ = "shortlist"  # in the ``attrs`` of a frame: what was found of numbers in its texts, which are read


class Facts(dict[str, Any]):
    """What is said of a frame in its ``attrs``, and never changed: pandas copies these with each column it gives."""

    def __deepcopy__(self, memo: Any) -> Facts:
        return self


class WrittenNumbers:
    """Makes numbers of columns of texts, which are pyarrow's, trimmed, and null where blank. ``decimal``: what stands
    before the digits of a fraction, where that is known.

    Of what was read: ``has_thousands``, whether some had commas there; ``units``, what stood beside the numbers of
    features and was left out; ``bare``, the numbers that it did not stand beside; ``in_brackets``, the columns with
    numbers such as (5)."""

    def __init__(self, decimal: str | None = None) -> None:
        self._decimal, self._is_sure = decimal or ".", decimal == "."
        self._given, self.has_thousands = decimal, False
        self.units, self.bare, self.in_brackets = dict[str, str](), dict[str, str](), list[str]()

    @property
    def decimal(self) -> str | None:
        """What is known of the mark before fractions, for other data."""
        return self._given or ("." if self.has_thousands else None)

    @property
    def has_points(self) -> bool:
        """Whether a point, not a comma, stands before fractions."""
        return self._decimal == "."

    def notes(self) -> list[str]:
        """What was decided of the cells that were read, to be told."""
        found = []
        units = [f"{name!r} ({unit})" for name, unit in self.units.items() if unit != ORDINAL]
        if units:
            found.append(f"numbers with a sign or unit, which is left out: {listed(units)}")
        ordinals = [repr(name) for name, unit in self.units.items() if unit == ORDINAL]
        if ordinals:
            found.append(f"ordinals are numbers, 2nd is 2: {listed(ordinals)}")
        if self.in_brackets:
            columns = listed([repr(name) for name in dict.fromkeys(self.in_brackets)])
            found.append(f"numbers in brackets, (5), are below zero, -5: {columns}")
        return found

    def facts(self) -> Facts:
        """What a frame of these columns says of them, in its ``attrs[READ]``."""
        return Facts(units=dict(self.units), bare=dict(self.bare), decimal=self.decimal)

    def numbers(self, name: str, cells: Any) -> NDArray[np.float64] | None:
        """NaN where blank; None where a cell is no number. These cells need not be trimmed."""
        found = as_numbers(cells) if self.has_points else None
        if found is not None:
            return found
        if _begin_with_names(cells):
            return None
        cells = trimmed(cells)
        signed = _with_signs(cells)
        found = as_numbers(self._plain(signed, self._is_sure))
        if found is not None and signed is not cells:
            self.in_brackets.append(name)
        return found

    def feature(self, name: str, cells: Any, found: NDArray[np.float64] | None) -> Any:
        """A column as a frame takes it: the numbers that were ``found``, unless they are codes, 01001; where some cells
        are none, numbers without their signs and units; texts of them, where the others are like ``NA``; else the cells
        as they are written, because a name is found again by that, as a pandas series."""
        if found is not None:
            return cells.to_pandas() if _are_codes(cells, found) else found
        bare, unit = _without_unit(_with_signs(cells, alone=True))
        is_money = re.search(f"[{CURRENCIES}]", unit) is not None  # which has no thousandths
        plain = trimmed(self._plain(bare, self._is_sure or is_money))  # ( 3 ) is "-3 " here
        found = as_numbers(plain)
        if not mostly(plain, PLAIN) or (found is None and as_numbers(_without_na(plain)) is None):
            return cells.to_pandas()
        self.units |= {name: unit} if unit else {}
        if unit and not is_money:  # an amount of money may lack its sign
            lacking = [cell for cell in cells.drop_null().to_pylist() if re.fullmatch(r"[+-]?[\d.,]*\d", cell)]
            self.bare |= {name: f"{len(lacking)} of {len(cells)}, as {lacking[0]!r}"} if lacking else {}
        self.in_brackets += [name] if has_any(cells, _BRACKETS) else []
        return plain.to_pandas() if found is None else found

    def _plain(self, cells: Any, is_sure: bool) -> Any:
        """Numbers as they are usually written, and other cells as they are."""
        compute = require("pyarrow.compute")
        cells = self._without_thousands(_without_spaces(cells), is_sure)
        if self.has_points:
            return cells
        commas = compute.match_substring_regex(cells, WITH_COMMA)
        return compute.if_else(commas, compute.replace_substring(cells, ",", "."), cells)

    def _without_thousands(self, cells: Any, is_sure: bool) -> Any:
        """Without the points or commas between thousands, where all cells that have some have them there. One comma,
        1,500, may stand before a fraction: unless one ``is_sure``, it needs another cell that tells."""
        compute, mark = require("pyarrow.compute"), "," if self.has_points else "."
        has = compute.match_substring(cells, mark)
        if not compute.any(has).as_py():
            return cells
        thousands = compute.match_substring_regex(cells, f"^({THOUSANDS[self._decimal].pattern})$")
        if not compute.all(compute.or_(compute.invert(has), thousands)).as_py():
            return cells
        if mark == "," and not is_sure and not has_any(cells, r",.*[,.]"):
            return cells
        self.has_thousands = self.has_thousands or mark == ","
        return compute.replace_substring(cells, mark, "")


def decimal_in(columns: Iterable[Iterable[Any]], known: str | None = None) -> str | None:
    """What stands before the digits of fractions in these columns of texts, of which the first cells are looked at: the
    comma, where some tell that and none tells the point; else what is ``known`` of other data, unless these tell
    otherwise. 1,500 and 1.500 tell nothing.

    >>> decimal_in([["1.234,5", "NA"], ["oak", "3,5"]]), decimal_in([["1,500"], ["7"]]), decimal_in([["3,5"], ["$1.5"]])
    (',', None, None)
    """
    said: set[str] = set()
    for column in columns:
        if "." in said:
            break  # it is no comma; nothing else needs to be looked at
        given = [cell for cell in column if isinstance(cell, str) and cell.strip() not in NA_VALUES][:_LOOKED_AT]
        bare = {cell: without_unit(_out_of_brackets(cell)) for cell in set(given)}
        cells = [bare[cell] for cell in given]
        numbers = [cell for cell in cells if _NUMBERS.fullmatch(cell)]
        if 10 * len(numbers) >= 9 * len(cells):  # a list of choices, 3,5, may look like a number
            said |= {mark for cell in numbers for mark in ",." if _tells(cell, mark)}
            is_money = any(re.search(f"[{CURRENCIES}]", cell) for cell in given)
            if is_money and any(map(str.isdecimal, cells)):  # €843 beside €4.843: no fractions there
                said |= {mark for mark in ",." if any(map(THOUSANDS[mark].fullmatch, cells))}
    if said == {","}:
        return ","
    return known if not said or known == "." else None


def _tells(cell: str, mark: str) -> bool:
    """Whether a number has a fraction behind this mark for certain, or the other mark for certain between thousands."""
    other = "." if mark == "," else ","
    if cell.count(other) > 1 or (other in cell and mark in cell):
        return cell.rfind(mark) > cell.rfind(other) or mark not in cell
    return mark in cell and other not in cell and cell.count(mark) == 1 and not THOUSANDS[other].fullmatch(cell)


def may_be_number(cell: str) -> bool:
    """Whether it is a number, however points and commas are meant, perhaps with a sign or unit."""
    plain = _NUMBERS.fullmatch(cell)  # most cells are, and units take long to look for
    return plain is not None or _NUMBERS.fullmatch(without_unit(_out_of_brackets(cell))) is not None


def _out_of_brackets(cell: str) -> str:
    return cell.strip().removeprefix("(").removesuffix(")")


def trimmed(cells: Any) -> Any:
    """Texts without blanks around them, null where nothing is left."""
    compute = require("pyarrow.compute")
    cells = compute.utf8_trim_whitespace(cells)
    for blank in BLANK:
        cells = compute.if_else(compute.equal(cells, blank), None, cells)
    return cells


def _without_na(cells: Any) -> Any:
    pyarrow, compute = require("pyarrow"), require("pyarrow.compute")
    return compute.if_else(compute.is_in(cells, pyarrow.array(NA_VALUES, cells.type)), None, cells)


def as_numbers(cells: Any) -> NDArray[np.float64] | None:
    pyarrow = require("pyarrow")
    try:
        return np.asarray(cells.cast(pyarrow.float64()).to_numpy())
    except pyarrow.ArrowInvalid:
        return None


def has_any(cells: Any, pattern: str) -> bool:
    compute = require("pyarrow.compute")
    return bool(compute.any(compute.match_substring_regex(cells, pattern)).as_py())


def mostly(cells: Any, pattern: str) -> bool:
    """Whether at least half of the cells that are not blank are like this, and any are."""
    compute = require("pyarrow.compute")
    found = compute.sum(compute.match_substring_regex(cells, pattern)).as_py() or 0
    return found > 0 and 2 * found >= len(cells) - cells.null_count


def _are_codes(cells: Any, found: NDArray[np.float64]) -> bool:
    """As `shortlist.data.cells.are_codes` says of the cells, whose numbers these are."""
    if bool((np.floor(found) < found).any()):  # found in no time
        return False
    return has_any(cells, r"^0\d") and not has_any(cells, r"\D")


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


def _without_unit(cells: Any) -> tuple[Any, str]:
    """The cells without what stands beside their numbers and the spaces between thousands, and what it was."""
    compute = require("pyarrow.compute")
    unit = unit_of(cells.slice(0, _LOOKED_AT).drop_null().to_pylist())
    if unit is None:
        return cells, ""
    before, behind = map(re.escape, unit)
    behind = "(?i:st|nd|rd|th)" if unit == ("", ORDINAL) else behind
    pattern = rf"^([+-]?)[{SPACES}]?{before}[{SPACES}]?([+-]?[\d.,{SPACES}]*\d)[{SPACES}]?{behind}$"
    bare = compute.replace_substring_regex(cells, pattern, r"\1\2")
    return _without_spaces(bare, is_sure=True), "".join(unit)


def _without_spaces(cells: Any, is_sure: bool = False) -> Any:
    """Without the spaces between thousands, 1 234,5 or 1'234.5. A plain one, 555 123, may stand between two numbers:
    unless one ``is_sure``, it needs another cell with a fraction behind."""
    compute = require("pyarrow.compute")
    spaced = compute.match_substring_regex(cells, _SPACED)
    if not compute.any(spaced).as_py():
        return cells
    if not is_sure and has_any(cells, r"\d \d") and not has_any(cells, r"^[+-]?\d{1,3}( \d{3})+[.,]\d+$"):
        return cells
    return compute.if_else(spaced, compute.replace_substring_regex(cells, f"[{SPACES}]", ""), cells)


def _begin_with_names(cells: Any) -> bool:
    """Whether one of the first cells is no number, however points and commas are meant: then the others, of which
    there may be millions, need not be looked at."""
    pyarrow, compute = require("pyarrow"), require("pyarrow.compute")
    first = _with_signs(trimmed(cells.slice(0, _LOOKED_AT)), alone=True)
    try:
        first.filter(compute.invert(compute.match_substring_regex(first, f"[.,]|{_SPACED}"))).cast(pyarrow.float64())
    except pyarrow.ArrowInvalid:
        return True
    return False
