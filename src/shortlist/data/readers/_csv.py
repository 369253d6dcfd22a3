"""Tables of text, read by pyarrow: every cell as it is written. What it does not tell is found out by Python's csv."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import mmap
import os
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from shortlist.data.cells import is_number
from shortlist.data.column_use import listed
from shortlist.data.limits import check_unpacked
from shortlist.data.readers._table_cache import cached
from shortlist.data.readers.findings import EMPTY, Findings
from shortlist.errors import ShortlistError
from shortlist.files import PathLike, reporter
from shortlist.optional import require

TEXT_ENDINGS = (".csv", ".tsv", ".tab")
_NO_HEADER = "is it missing? Then give column_names"
_LOOKED_AT, _NAMED = 1000, 100  # rows; those that tell whether rows have names
_SENTENCE = 4  # blanks
_SHOWN = 40  # letters of a cell
_BLOCK = 1 << 22  # bytes that are parsed at once: a row must fit in
_SHORT = 1 << 16  # bytes that are read at once
_PIECE = 1 << 20  # bytes that are looked at at once
_QUOTE, _LINE_ENDS = ord('"'), (ord("\n"), ord("\r"))
_NOTHING = ' \t\r\n,;|"'  # what a line without any cell may hold
_MARK_LINE = re.compile('"?sep=([ -~\t])"?', re.IGNORECASE)


def is_packed(path: PathLike) -> bool:
    return str(path).lower().endswith(".gz")


def delimiter_of(path: PathLike) -> str:
    """What stands between the cells of a file that is called so."""
    return "\t" if str(path).lower().removesuffix(".gz").endswith((".tsv", ".tab")) else ","


def encoding_of(path: PathLike, other: str | None) -> str:
    """UTF-16 by the mark at its beginning; else UTF-8, or ``other`` where that is given and the text is not UTF-8."""
    with _opened(path) as file:
        start = file.read(2)
        if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16"
        if other is None:
            return "utf-8-sig"
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            decoder.decode(start)
            while piece := file.read(_BLOCK):
                decoder.decode(piece)
            decoder.decode(b"", True)
        except UnicodeDecodeError:
            return other
    return "utf-8-sig"


def above_names(path: PathLike, encoding: str = "utf-8-sig", named: bool = True) -> tuple[int, str | None]:
    """How many lines stand above the names of the columns, or the first row, and are no part of the table; and what
    stands between cells, where one of these says so for Excel, ``sep=;``. The others are blank, or hold commas alone,
    which without names would be a row."""
    with io.TextIOWrapper(_opened(path), encoding=encoding, errors="replace", newline="") as file:
        return lines_above(file, named)


def lines_above(file: IO[str], named: bool) -> tuple[int, str | None]:
    """As `above_names`, of an open file."""
    count, said = 0, None
    while line := file.readline(_BLOCK):
        if said is None and (found := _MARK_LINE.fullmatch(line.rstrip("\r\n"))):
            said = found.group(1)
        elif line.strip(_NOTHING if named else None):
            break
        count += 1
    return count, said


def csv_table(
    path: Path,
    findings: Findings,
    delimiter: str | None = None,
    hint: str = "",
    encoding: str | None = None,
    columns: Sequence[str] | None = None,
) -> tuple[list[str], Any, int] | None:
    """The column names, a pyarrow table of texts (null where blank) whose columns are called "0", "1", ..., and how
    many blank lines above were skipped; None, and noted with the line, where there is something wrong. ``hint``: what
    else to say where cells are separated by semicolons. ``encoding``: of a text that is not UTF-8. ``columns``: their
    names, where the first line is a row."""
    try:
        encoding = encoding_of(path, encoding)
        (above, said), other = above_names(path, encoding, columns is None), _other_format(path)
    except (OSError, EOFError, zlib.error, ShortlistError) as error:
        findings.add(path, f"is not a CSV file: {error}")
        return None
    if other:
        findings.add(path, f"is not a CSV file but {other}")
        return None
    mark = delimiter or said or delimiter_of(path)
    noted = len(findings.problems)
    _, header = next(csv_rows(path, findings, columns, mark, encoding), (0, []))
    if len(findings.problems) > noted or (columns is None and not _is_header(path, header, mark, hint, findings)):
        return None

    def is_right() -> bool:  # otherwise wrong rows, which are skipped, would be missing without a word next time
        return len(findings.problems) == noted

    try:
        how = mark if encoding == "utf-8-sig" else f"{mark} {encoding}"
        how = how if columns is None else f"{how} without names"
        table = cached(path, how, lambda: _parsed(path, mark, encoding, header, columns, above, findings), is_right)
    except (require("pyarrow").ArrowException, OSError, EOFError, UnicodeError, zlib.error, ShortlistError) as error:
        _note_all(path, mark, encoding, columns, findings)
        if len(findings.problems) == noted:
            findings.add(path, f"is not a CSV file: {error}")
        return None
    if not table.num_rows and len(findings.problems) > noted:
        return None
    if not table.num_rows and not EMPTY.get():
        findings.add(path, f"no rows: the file only names the columns {', '.join(map(repr, header))}")
        return None
    if columns is None and _is_row(header, table):
        row = listed([repr(cell[:_SHOWN]) for cell in header], 4)
        findings.add(path, f"the first line must name the columns, and looks like a row: {row}: {_NO_HEADER}")
        return None
    rows = partial(csv_rows, path, Findings(), columns, mark, encoding)
    findings.number_lines(path, lambda: [line for line, _ in rows()][1:])
    again = _rows_of_names(header, table) if columns is None else []
    findings.rows(path, again, lambda row: "it names the columns again, as files that were joined do: delete it")
    return header, table, above - (said is not None)


def csv_rows(
    path: PathLike,
    findings: Findings,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8-sig",
) -> Iterator[tuple[int, list[str]]]:
    """The column names (``columns``, for a file without a header line) and then the rows, with their lines."""
    try:
        above, said = above_names(path, encoding, columns is None)
        mark = delimiter or said or delimiter_of(path)
        with io.TextIOWrapper(_opened(path), encoding=encoding, newline="") as file:
            for _ in range(above):
                file.readline()
            cells = csv.reader(file, delimiter=mark, strict=True)
            longer = ""
            header = [name.strip() for name in next(cells, [])] if columns is None else list(columns)
            if columns is None:
                header, longer = _of_rows(header, _first_rows(path, above, mark, encoding))
            yield above + cells.line_num, header
            for row in cells:
                if len(row) == len(header):
                    yield above + cells.line_num, [cell.strip() for cell in row]
                elif row:
                    message = f"has {len(row)} cells, but there are {len(header)} columns{longer}"
                    findings.add(path, message, above + cells.line_num, "line")
    except UnicodeDecodeError as error:
        other = "name its encoding, such as encoding=cp1252 or encoding=shift_jis"
        findings.add(path, f"is not a CSV file: it must be text in UTF-8 (in Excel: CSV UTF-8), or {other}: {error}")
    except (csv.Error, EOFError, gzip.BadGzipFile, zlib.error, ShortlistError) as error:
        findings.add(path, f"is not a CSV file: {error}")


def _first_rows(path: PathLike, above: int, mark: str, encoding: str) -> list[tuple[str, list[str]]]:
    """The first rows below the names, each with its first line, as far as they can be read."""
    lines: list[str] = []
    found: list[tuple[str, list[str]]] = []

    def kept(file: Iterable[str]) -> Iterator[str]:
        for line in file:
            lines.append(line)
            yield line

    with io.TextIOWrapper(_opened(path), encoding=encoding, errors="replace", newline="") as file, suppress(csv.Error):
        for _ in range(above):
            file.readline()
        cells, seen = csv.reader(kept(file), delimiter=mark), 0
        for row in islice(cells, _NAMED + 1):
            found.append((lines[seen], row))
            seen = len(lines)
    return [(line, row) for line, row in found[1:] if row]


def _of_rows(header: list[str], rows: Sequence[tuple[str, list[str]]]) -> tuple[list[str], str]:
    """The names of the columns, where most of the first rows have a cell more or less than names: R's write.table gives
    none to the names of its rows, which are in quotes or count the rows, and other programs end each row, or the line
    of names, with a mark. And what to say of such rows where it is neither."""
    ((size, times),) = Counter(len(row) for _, row in rows).most_common(1) or [(len(header), 0)]
    if abs(size - len(header)) != 1 or 2 * times <= len(rows) or sum(map(bool, header)) < 2:
        return header, ""
    rows = [(line, row) for line, row in rows if len(row) == size]
    if size < len(header):
        return (header if header[-1] else header[:-1]), ""
    if not any(row[-1].strip() for _, row in rows):
        return [*header, ""], ""
    first = [row[0].strip() for _, row in rows]
    numbers = [int(cell) for cell in first if cell.isdecimal()]
    count = len(numbers) == len(first) > 1 and set(np.diff(numbers).tolist()) == {1}
    if len(set(first)) == len(first) and (count or all(line.startswith('"') for line, _ in rows)):
        return ["", *header], ""
    return header, ", as have most of the first rows: if the first cell names the row, give its column a name, too"


def _other_format(path: Path) -> str:
    """What a file is, by its first bytes, that is no text, or no table; and what to do with it."""
    with _opened(path) as file:
        start = file.read(1 << 10)
    sheet = "an Excel workbook: open it in Excel or LibreOffice, and save the sheet as CSV UTF-8"
    if start.startswith(b"PK\3\4"):
        with suppress(zipfile.BadZipFile, OSError), zipfile.ZipFile(path) as archive:
            if any(name.startswith("xl/") for name in archive.namelist()):
                return sheet
        return "a zip archive: unpack it, and name the file in it"
    if start.startswith(b"\xd0\xcf\x11\xe0"):
        return sheet
    if start.startswith(b"PAR1"):
        return "parquet: rename it, so that its name ends in .parquet"
    if start.startswith(b"\x1f\x8b"):
        return "packed by gzip: rename it, so that its name ends in .gz"
    is_page = start.lstrip(codecs.BOM_UTF8 + b" \t\r\n").lower().startswith((b"<!doctype", b"<html", b"<?xml"))
    return "a web page (HTML or XML), as a link or a login may give: download the table itself" if is_page else ""


def _opened(path: PathLike) -> IO[bytes]:
    return io.BufferedReader(_Unpacked(path), _BLOCK) if is_packed(path) else open(path, "rb")


class _Unpacked(io.RawIOBase):
    """What is packed in a file, as long as it is not more than it may be: a line can have any length."""

    def __init__(self, path: PathLike) -> None:
        self._path, self._file, self._size = path, gzip.GzipFile(path, "rb"), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._file.read(len(buffer))
        self._size += len(piece)
        check_unpacked(self._path, self._size)
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._file.close()
        super().close()


def _is_header(path: Path, header: list[str], mark: str, hint: str, findings: Findings) -> bool:
    if not any(header):
        with _opened(path) as file:
            blank = not file.read(1 << 20).strip()
        findings.add(path, "the file is empty" if blank else "the first line must name the columns, and is blank")
        return False
    named = [name for name in header if name]
    if len(header) > 2 and len(named) == 1:
        findings.add(
            path,
            f"the first line must name the columns, and of {len(header)} names only {named[0]!r} is there: if it is a "
            f"title, delete all lines above the names",
        )
        return False
    if len(header) > 1 and all(map(is_number, header)):
        findings.add(path, f"the first line must name the columns, and holds only numbers: {_NO_HEADER}")
        return False
    other = next((other for other in ";\t,|" if other != mark and other in header[0]), "") if len(header) == 1 else ""
    if other:
        more = hint if other == ";" else ""
        findings.add(path, f"cells are separated by {other!r}, not by {mark!r}: give delimiter={other!r}{more}")
    if not other and len(header) == 1 and (many := _most_cells(path, mark)) > 1:
        findings.add(
            path,
            f"the first line must name the columns, and has one name, {header[0][:_SHOWN]!r}, where lines below have "
            f"{many} cells: if it is a title, delete all lines above the names; cells that hold {mark!r} need quotes",
        )
        return False
    return not other


def _most_cells(path: Path, mark: str) -> int:
    """How many cells there are at most in one of the lines after the first, of which a few are looked at."""
    with _opened(path) as file:
        lines = file.read(1 << 16).decode("utf-8", "ignore").splitlines()[1:10]
    return max(map(len, csv.reader(lines, delimiter=mark)), default=0)


def _is_row(header: Sequence[str], table: Any) -> bool:
    """Whether at least half of the names are numbers, and a name comes again in its column, or fractions are not in
    order, as those of wavelengths are; or names come again and again in their columns, beside others, and a further
    one is a number or a sentence, or these are at least three and half of all."""
    numbers = [float(name) for name in header if is_number(name)]
    names = [(place, name) for place, name in enumerate(header) if name and not is_number(name)]
    mostly_numbers = len(numbers) >= 2 and 2 * len(numbers) >= len(header)
    steps = np.diff(numbers)
    if mostly_numbers and any(number % 1 for number in numbers) and not ((steps > 0).all() or (steps < 0).all()):
        return True
    first = table.slice(0, _LOOKED_AT)
    if mostly_numbers:
        compute = require("pyarrow.compute")
        return any(compute.any(compute.equal(table.column(place), name)).as_py() for place, name in names)
    has_sentence = any(name.count(" ") >= _SENTENCE for _, name in names)
    needed = 1 if numbers or has_sentence else max(3, (len(header) + 1) // 2)
    for left, (place, name) in zip(range(len(names), 0, -1), names, strict=True):
        if not 0 < needed <= left:
            break  # the others would not tell otherwise
        needed -= _comes_again(name, first.column(place).to_pylist())
    return needed <= 0


def _comes_again(name: str, cells: Sequence[str | None]) -> bool:
    """Whether a cell of a hundred or more is called so, and others differ."""
    trimmed = [cell.strip() for cell in cells if cell is not None]
    times = trimmed.count(name)
    return times >= 2 and 100 * times >= len(trimmed) and times < sum(map(bool, trimmed))


def _rows_of_names(header: Sequence[str], table: Any) -> list[int]:
    """The rows that are the names of the columns, also behind the mark that begins a file of Excel's."""
    first = [f"{mark}{header[0]}" for mark in ("", "\ufeff")] + [f'\ufeff"{header[0]}"']
    values = require("pyarrow").array(first)
    is_name = require("pyarrow.compute").is_in(table.column(0), value_set=values)  # quickly found to be none
    rows = np.flatnonzero(is_name.to_numpy()).tolist() if header[0] and len(header) > 1 else []
    names = list(enumerate(header))[1:]
    return [row for row in rows if all(table.column(place)[row].as_py() == name for place, name in names)]


def _note_all(path: Path, mark: str, encoding: str, columns: Sequence[str] | None, findings: Findings) -> None:
    for _ in csv_rows(path, findings, columns, mark, encoding):
        pass


def _parsed(
    path: Path,
    mark: str,
    encoding: str,
    header: Sequence[str],
    columns: Sequence[str] | None,
    above: int,
    findings: Findings,
) -> Any:
    """The cells as pyarrow finds them; where quotes are not as they should be, Python's stricter reader has a look."""
    pyarrow, reader = require("pyarrow"), require("pyarrow.csv")
    with content_of(path) as read:
        content = read if encoding == "utf-8-sig" else bytes(read).decode(encoding).encode()
        has_long_cells = _has_long_cells(content, mark)
        if has_long_cells is None:
            noted = len(findings.problems)
            _note_all(path, mark, encoding, columns, findings)
            if len(findings.problems) > noted:
                return pyarrow.table({})
        names = [str(place) for place in range(len(header))]
        skipped = {"skip_rows": above, "skip_rows_after_names": int(columns is None)}
        wrong = []

        def skip(row: Any) -> str:
            wrong.append(row)
            return "skip"

        table = reader.read_csv(
            _counted(content, str(path), 0.5 if is_packed(path) else 0.0),
            read_options=reader.ReadOptions(column_names=names, block_size=_BLOCK, **skipped),
            # a cell of several lines keeps two cores from sharing the work
            parse_options=reader.ParseOptions(
                delimiter=mark, newlines_in_values=has_long_cells is not False, invalid_row_handler=skip
            ),
            convert_options=reader.ConvertOptions(
                column_types=dict.fromkeys(names, pyarrow.string()), null_values=[""], strings_can_be_null=True
            ),
        )
    if wrong:
        _note_all(path, mark, encoding, columns, findings)  # with their lines
    return table


def content_of(path: Path) -> Any:
    """All bytes of a file, unpacked; something to use in a ``with``."""
    if not is_packed(path) and not path.stat().st_size:
        return nullcontext(b"")  # which cannot be mapped
    if not is_packed(path):
        with open(path, "rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    size, unpacked, report = path.stat().st_size, bytearray(), reporter()
    with open(path, "rb") as file, gzip.open(file, "rb") as content:
        while piece := content.read(_BLOCK):
            unpacked += piece
            check_unpacked(path, len(unpacked))
            report(str(path), 0.5 * file.tell() / size)
    return nullcontext(unpacked)


def _has_long_cells(content: Any, mark: str) -> bool | None:
    """Whether a cell, in quotes, has several lines; None where a quote stands neither at an end of a cell nor beside
    another one."""
    if content.find(b'"') < 0:
        return False
    codes = np.frombuffer(content, dtype=np.uint8)
    is_border = np.zeros(256, dtype=bool)
    is_border[[_QUOTE, ord(mark), *_LINE_ENDS]] = True
    start = len(codecs.BOM_UTF8) if content[:3] == codecs.BOM_UTF8 else 0

    def looked_at(place: int) -> tuple[int, list[bool], list[bool]]:
        """How many quotes a piece has; whether they are in their places and line ends between them, if the first one
        opens a cell, and if it closes one."""
        piece = codes[place : place + _PIECE]
        quotes = np.flatnonzero(piece == _QUOTE)
        line_ends = np.flatnonzero((piece == _LINE_ENDS[0]) | (piece == _LINE_ENDS[1]))
        inside = np.searchsorted(quotes, line_ends) % 2 == 1
        quotes += place
        opens = is_border[codes[quotes - 1]] | (quotes == start)
        closes = is_border[codes[np.minimum(quotes + 1, len(codes) - 1)]]  # itself, at the end
        right = [bool(opens[first::2].all() and closes[1 - first :: 2].all()) for first in (0, 1)]
        return len(quotes), right, [bool(inside.any()), not inside.all()]

    count, has_any = 0, False
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # numpy looks without the interpreter's lock
        for quotes, right, has_some in pool.map(looked_at, range(0, len(codes), _PIECE)):
            if not right[count % 2]:
                return None
            has_any = has_any or has_some[count % 2]
            count += quotes
    return has_any if count % 2 == 0 else None


def _counted(content: Any, name: str, start: float) -> Any:
    """Bytes for pyarrow to read, which say how far they are read. Short ones are in memory of its own: what is Python's
    one of its threads may still give back when a short program has ended, which aborts it."""
    file = _Counted(content, name, start)
    if len(content) >= _SHORT:
        return file
    pyarrow = require("pyarrow")
    stream = pyarrow.BufferOutputStream()
    stream.write(file.read())
    return pyarrow.BufferReader(stream.getvalue())


class _Counted(io.RawIOBase):
    """Bytes as a file that says how far it is read."""

    def __init__(self, content: Any, name: str, start: float) -> None:
        self._content, self._name, self._start, self._place = content, name, start, 0
        self._report = reporter()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        end = len(self._content) if size < 0 else self._place + size
        piece = bytes(self._content[self._place : end])
        self._place += len(piece)
        self._report(self._name, self._start + (1 - self._start) * self._place / max(1, len(self._content)))
        return piece
