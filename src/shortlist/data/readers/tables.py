"""Text files line by line and tables row by row, with what is wrong in them noted by file and line."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shortlist.data.limits import check_unpacked
from shortlist.data.readers.findings import Findings, PathLike, Unit
from shortlist.errors import ShortlistError
from shortlist.optional import require

TABLE_ENDINGS = (".csv", ".tsv", ".parquet")


@dataclass(frozen=True)
class Table:
    """Rows of cells as text ("" where blank), each with its place in the file."""

    path: Path
    columns: tuple[str, ...]
    rows: list[tuple[int, list[str]]]
    unit: Unit

    def column(self, name: str, findings: Findings) -> int | None:
        """The place of a column; None, and noted, if there is none of this name."""
        if name in self.columns:
            return self.columns.index(name)
        findings.add(self.path, f"there is no column {name!r}; the columns are {', '.join(map(repr, self.columns))}")
        return None


def text_lines(path: PathLike, findings: Findings) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers; nothing, and noted, if the file cannot be read."""
    if not findings.file(path):
        return
    try:
        with open(path, encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line.strip()
    except UnicodeDecodeError as error:
        findings.add(path, f"is not text in UTF-8: {error}")


def numbered_names(path: PathLike, findings: Findings) -> dict[int, tuple[int, str]]:
    """A file of lines ``number name``: the name of each number, with the line where it stands."""
    found: dict[int, tuple[int, str]] = {}
    for line, text in text_lines(path, findings):
        number, _, name = text.partition(" ")
        if not number.isdecimal() or not name.strip():
            findings.add(path, f"a line must be a number and a name, got {text!r}", line, "line")
        elif int(number) in found:
            findings.add(path, f"the number {number} is a duplicate of line {found[int(number)][0]}", line, "line")
        else:
            found[int(number)] = line, name.strip()
    return found


def read_table(path: PathLike, findings: Findings, columns: Sequence[str] | None = None) -> Table | None:
    """A .csv, .tsv or .parquet file; None, and noted, if it cannot be read or holds nothing.

    ``columns`` are the names that a .csv without a header line has.
    """
    if not findings.file(path):
        return None
    noted = len(findings.problems)
    if Path(path).suffix.lower() == ".parquet":
        table = _read_parquet(Path(path), findings)
    else:
        rows = csv_rows(path, findings, columns)
        _, header = next(rows, (0, []))
        if len(header) == 1 and (other := next((mark for mark in ";\t" if mark in header[0]), "")):
            findings.add(path, f"cells are separated by {other!r}; they must be by commas (.csv) or tabs (.tsv)")
            return None
        table = Table(Path(path), tuple(header), list(rows), "line") if any(header) else None
    if len(findings.problems) == noted and table is None:
        blank = "the first line must name the columns, and is blank"
        findings.add(path, blank if Path(path).read_bytes().strip() else "the file is empty")
    elif len(findings.problems) == noted and table is not None and not table.rows:
        findings.add(path, f"no rows: the file only names the columns {', '.join(map(repr, table.columns))}")
        return None
    return table


def csv_rows(
    path: PathLike, findings: Findings, columns: Sequence[str] | None = None
) -> Iterator[tuple[int, list[str]]]:
    """The column names (``columns``, for a file without a header line) and then the rows, with their lines."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            cells = csv.reader(file, delimiter="\t" if Path(path).suffix.lower() == ".tsv" else ",", strict=True)
            header = [name.strip() for name in next(cells, [])] if columns is None else list(columns)
            yield cells.line_num, header
            for row in cells:
                if len(row) == len(header):
                    yield cells.line_num, [cell.strip() for cell in row]
                elif row:
                    message = f"has {len(row)} cells, but there are {len(header)} columns"
                    findings.add(path, message, cells.line_num, "line")
    except (csv.Error, UnicodeDecodeError) as error:
        findings.add(path, f"is not a CSV file: {error}")


def parquet_table(path: Path) -> Any:
    """A pyarrow table; a ShortlistError where the file is damaged, or holds more than it may."""
    parquet = require("pyarrow.parquet")
    try:
        with parquet.ParquetFile(path) as file:
            groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
            values = sum(group.column(place).num_values for group in groups for place in range(group.num_columns))
            check_unpacked(path, 8 * values)
            table = file.read()
            table.validate(full=True)  # finds bytes that are no text
            twice = [name for name, count in Counter(table.column_names).items() if count > 1]
            if twice:
                raise ShortlistError(f"several columns are called {twice[0]!r}")
            return table
    except (OSError, UnicodeDecodeError, require("pyarrow").ArrowException) as error:
        raise ShortlistError(str(error)) from error


def _read_parquet(path: Path, findings: Findings) -> Table | None:
    try:
        table = parquet_table(path)
    except ShortlistError as error:
        findings.add(path, f"cannot be read: {error}")
        return None
    cells = [[_as_text(cell) for cell in column.to_pylist()] for column in table.columns]
    rows = [(row, list(found)) for row, found in enumerate(zip(*cells, strict=True))]
    return Table(path, tuple(table.column_names), rows, "row")


def _as_text(cell: Any) -> str:
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, bool):
        return str(int(cell))
    if isinstance(cell, list):
        return "|".join(map(_as_text, cell))
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
