"""How the text of a table is written: what stands between its cells and before the digits of fractions, and in which
encoding."""

import csv
import gzip
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any

from shortlist.data.cells import CURRENCIES, DECIMAL_COMMA, NUMBER, SPACED, THOUSANDS, without_unit
from shortlist.data.readers.tables import above_names, delimiter_of, encoding_of, is_packed
from shortlist.data.written_numbers import decimal_in

ENCODING = "cp1252"  # what Excel writes as CSV in Western Europe, if not asked for UTF-8
DAMAGED = (ValueError, EOFError, zlib.error, zipfile.BadZipFile, gzip.BadGzipFile)  # which the reader then tells
OPTIONS = ("delimiter", "decimal", "encoding")
_SHOWN = 20  # lines
# money in whole numbers, and with one comma that may stand between thousands
_WHOLE, _THOUSANDS = (
    re.compile(rf"[+-]?\s?[{CURRENCIES}]\s?{digits}|[+-]?{digits}\s?[{CURRENCIES}]")
    for digits in (r"\d+", r"\d+,\d{3}")
)


def how_written(path: Path, trained: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Options for a .csv that is not UTF-8, that has semicolons, tabs or bars between its cells, or commas in its
    numbers. What its first lines do not tell is as in a file that was read with the options ``trained``."""
    like = trained or {}
    usual, known = delimiter_of(path), like.get("delimiter")
    known = "\t" if known == "\\t" else known or usual
    encoding = like.get("encoding") or ENCODING
    found = {} if like.get("encoding") is None else {"encoding": encoding}
    lines, said = [""], None
    with suppress(OSError, *DAMAGED):
        written = encoding_of(path, encoding)
        found |= {"encoding": encoding} if written == encoding else {}
        above, said = above_names(path, written)
        with (gzip.open if is_packed(path) else open)(path, "rt", encoding=written) as file:
            lines = [file.readline(1 << 16) for _ in range(_SHOWN + above)][above:]
    others = [";", "\t", "|", *([] if usual in lines[0] else [","])]
    mark = said or max([known, usual, *others], key=lines[0].count)  # the first of equals
    cells = [cell.strip().removeprefix("(").removesuffix(")") for line in lines[1:] for cell in line.split(mark)]
    whole = any(_WHOLE.fullmatch(cell) for cell in cells)  # $843 beside $4,843: no fractions there
    cells = [without_unit(cell) for cell in cells if not (whole and _THOUSANDS.fullmatch(cell))]
    decimal = like.get("decimal") if mark == known else None
    between = any(cell.count(",") > 1 and THOUSANDS["."].fullmatch(cell) for cell in cells)  # thousands, for certain
    if any(map(_has_comma, cells)) and not between if mark != "," else _in_quotes(lines[1:]) == ",":
        decimal = ","
    elif any("." in cell and NUMBER.fullmatch(cell) and not THOUSANDS[","].fullmatch(cell) for cell in cells):
        decimal = "." if decimal == "." else None
    return found | ({"delimiter": mark} if mark != usual else {}) | ({"decimal": decimal} if decimal else {})


def _in_quotes(lines: Sequence[str]) -> str | None:
    """What stands before fractions where commas stand between cells, too: numbers with commas are then in quotes."""
    rows = [row for row in csv.reader(line for line in lines if line.strip()) if row]
    return decimal_in(zip_longest(*rows))


def _has_comma(cell: str) -> bool:
    """Whether it is a number with a comma before its fraction, or points between thousands."""
    return any(pattern.fullmatch(cell) for pattern in (DECIMAL_COMMA, THOUSANDS[","])) or (
        "," in cell and SPACED.fullmatch(cell) is not None
    )


def as_written(path: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a reader, for another file than the one that they are of, which may be written in another way.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(f"{folder}/new.csv").write_text("length;species\\n1,5;oak\\n")
    ...     as_written(Path(f"{folder}/new.csv"), {"labels_key": "species"})
    {'labels_key': 'species', 'delimiter': ';', 'decimal': ','}
    """
    reader = options.get("reader", "features")
    if not is_text_table(path) or reader not in ("features", "text-table", "image-table"):
        return dict(options)
    found = like(options, how_written(path, options))
    return found if reader == "features" else {key: value for key, value in found.items() if key != "decimal"}


def like(options: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """These options, for text that is written as the other ones say."""
    kept = {key: value for key, value in options.items() if key not in OPTIONS}
    return kept | {key: other[key] for key in OPTIONS if key in other}


def is_text_table(path: Path) -> bool:
    return path.name.lower().removesuffix(".gz").endswith((".csv", ".tsv")) and path.is_file()
