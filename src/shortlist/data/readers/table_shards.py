"""Large tables cut into runs of rows, each of which is read by itself: where the rows of a file begin is found once.

Parquet, .csv, .tsv and lines of text (.txt), in one file or a folder of them, here or wherever fsspec finds them
(``s3://...``). What cannot be cut without doubt is not: text that is packed, in UTF-16, with quotes inside of
cells, or with lines above the names (blank ones, or Excel's ``sep=;``).
"""

from __future__ import annotations

import codecs
import fnmatch
import io
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shortlist.data.readers._csv import delimiter_of, lines_above
from shortlist.data.readers.findings import DataError, Problem
from shortlist.data.readers.tables import checked_parquet, table_given
from shortlist.errors import ShortlistError
from shortlist.files import PathLike
from shortlist.optional import require

_BLOCK = 1 << 24  # bytes that are looked at together
_START = 1 << 10  # bytes, in which a first line is blank, or ``sep=;``, or neither
_QUOTE, _END, _RETURN = ord('"'), ord("\n"), ord("\r")
Kind = Literal["parquet", "csv", "txt"]
_KINDS: dict[str, Kind] = {".parquet": "parquet", ".csv": "csv", ".tsv": "csv", ".tab": "csv", ".txt": "txt"}


@dataclass(frozen=True)
class CutFile:
    """One file. Of text: every so many rows, at which byte and in which line they begin, and where the last one ends.

    ``header`` is the first row, that names the columns.
    """

    path: str
    kind: Kind
    rows: int
    every: int = 1
    starts: NDArray[np.int64] | None = None
    lines: NDArray[np.int64] | None = None
    header: bytes = b""
    groups: tuple[int, ...] = ()  # of parquet: how many rows each group has, which are read together

    @contextmanager
    def rows_at(self, first: int, count: int) -> Iterator[Path]:
        """A file for our readers that holds these rows and no others. What they say of it they say of this one."""
        name = self.path.rstrip("/").rpartition("/")[2]
        with tempfile.TemporaryDirectory(prefix="shortlist-") as folder:
            file = Path(folder) / name
            try:
                if self.kind == "parquet":
                    file.touch()  # readers ask whether it is there
                    with table_given(file, self._table(first, count)):
                        yield file
                else:
                    file.write_bytes(self.header + self._text(first, count))
                    yield file
            except DataError as error:
                raise DataError([self._place(problem, str(file), first) for problem in error.problems]) from None
            except ShortlistError as error:
                raise ShortlistError(str(error).replace(str(file), self.path)) from None

    def _place(self, problem: Problem, file: str, first: int) -> Problem:
        """Where in the whole file that is."""
        message = problem.message.replace(file, self.path)
        if problem.file != file or problem.row is None:
            return replace(problem, file=problem.file.replace(file, self.path), message=message)
        before = first
        if problem.unit == "line" and self.lines is not None:
            before = int(self.lines[first // self.every]) - 1 - self.header.count(b"\n")
        return replace(problem, file=self.path, row=problem.row + before, message=message)

    def _text(self, first: int, count: int) -> bytes:
        assert self.starts is not None
        begin, end = self.starts[first // self.every], self.starts[-(-(first + count) // self.every)]
        with opened(self.path) as file:
            file.seek(int(begin))
            return bytes(file.read(int(end - begin)))

    def _table(self, first: int, count: int) -> Any:
        parts, before = [], 0
        with _parquet_errors(self.path):
            for group, rows in enumerate(self.groups):
                begin, end = max(first - before, 0), min(first + count - before, rows)
                if begin < end:
                    parts.append(_row_group(self.path, group).slice(begin, end - begin))
                before += rows
            if parts:
                return require("pyarrow").concat_tables(parts)
            with opened(self.path) as file, require("pyarrow.parquet").ParquetFile(file) as whole:
                return whole.schema_arrow.empty_table()


@lru_cache(maxsize=1)  # the next rows are of the same group, as a rule
def _row_group(path: str, group: int) -> Any:
    parquet = require("pyarrow.parquet")
    with opened(path) as file, parquet.ParquetFile(file) as whole:
        return checked_parquet(whole.read_row_group(group))


def cut_table(path: str, every: int, options: Mapping[str, Any], texts: bool = False) -> list[CutFile] | None:
    """The files of a table, cut so that any ``every`` rows can be read; None where it cannot be cut, and one process
    has to read all of it. ``options``: of the reader, ``texts``: whether a .txt holds a text in each line."""
    if options.get("labels") is not None or options.get("encoding") is not None:
        return None
    files = _files(path, [ending for ending in _KINDS if ending != ".txt" or texts])
    cut: list[CutFile] = []
    for file in files or ():
        kind = _KINDS[_ending(file)]
        mark = options.get("delimiter") or delimiter_of(file)
        if kind == "parquet":
            found: CutFile | None = _cut_parquet(file)
        elif kind == "txt":
            found = _cut_lines(file, every)
        else:
            found = _cut_csv(file, every, options.get("column_names") is None, ord(mark) if len(mark) == 1 else 0)
        if found is None:
            return None
        cut.append(found)
    return cut or None


def is_url(path: PathLike) -> bool:
    """Whether it is what fsspec calls a URL: ``s3://bucket/table.parquet``."""
    return "://" in os.fspath(path)


def filesystem(path: str) -> tuple[Any, str]:
    """Who reads and writes there, and what the path is called there."""
    fsspec = require("fsspec")
    try:
        return fsspec.core.url_to_fs(path)
    except (ValueError, ImportError, OSError) as error:
        raise ShortlistError(f"{path}: fsspec cannot open such a path: {error}") from None


def opened(path: str) -> Any:
    if not is_url(path):
        return open(path, "rb")
    whole = _sent_whole(path)
    files, inside = filesystem(path)
    return files.open(inside, "rb") if whole is None else io.BytesIO(whole)


@lru_cache(maxsize=1)
def _sent_whole(path: str) -> bytes | None:
    """The file, where it is behind a web server that only sends files whole (Python's own, say); else None."""
    if not path.startswith(("http://", "https://")):
        return None
    files, inside = filesystem(path)
    first = bytes(files.cat_file(inside, start=0, end=1))  # a byte, if it can be asked for
    return first if len(first) > 1 else None


def _ending(path: str) -> str:
    return os.path.splitext(path.lower())[1]


def _files(path: str, endings: Sequence[str]) -> list[str] | None:
    """The files of one kind that are meant; None where there are none."""
    if not is_url(path):
        if os.path.isfile(path):
            return [path] if _ending(path) in endings else None
        if not os.path.isdir(path):
            return None
        names = sorted(name for name in os.listdir(path) if not name.startswith((".", "_")))
        inside = [f"{path.rstrip('/')}/{name}" for name in names]
    else:
        files, there = filesystem(path)
        try:
            if files.isfile(there) or (_ending(there) in endings and not files.isdir(there)):
                if not files.exists(there):
                    raise ShortlistError(f"there is no file or folder {path}")
                return [path] if _ending(there) in endings else None
            inside = [files.unstrip_protocol(name) for name in sorted(files.ls(there, detail=False))]
        except (OSError, ValueError, RuntimeError) as error:
            if isinstance(error, ShortlistError):
                raise
            raise ShortlistError(f"{path}: cannot be opened: {error}") from None
        inside = [name for name in inside if not fnmatch.fnmatch(name.rpartition("/")[2], "[._]*")]
    kinds = {_ending(name) for name in inside}
    return inside if len(kinds) == 1 and kinds <= set(endings) else None


# ---- parquet


def _cut_parquet(path: str) -> CutFile:
    parquet = require("pyarrow.parquet")
    with _parquet_errors(path), opened(path) as file, parquet.ParquetFile(file) as whole:
        groups = tuple(whole.metadata.row_group(group).num_rows for group in range(whole.metadata.num_row_groups))
        return CutFile(path, "parquet", sum(groups), groups=groups)


@contextmanager
def _parquet_errors(path: str) -> Iterator[None]:
    try:
        yield
    except ShortlistError:
        raise
    except (OSError, UnicodeDecodeError, require("pyarrow").ArrowException) as error:
        raise DataError([Problem(path, None, f"cannot be read: {error}")]) from None


# ---- text


def _cut_lines(path: str, every: int) -> CutFile | None:
    """A .txt: every line that is not blank is a row."""
    starts, lines, rows, place = [], [], 0, 0
    number = 0
    with opened(path) as file:
        for number, line in enumerate(file, start=1):
            if number == 1 and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                return None
            if b"\r" in line[:-2]:
                return None  # which other programs take for the end of a line
            if line.strip():
                if rows % every == 0:
                    starts.append(place)
                    lines.append(number)
                rows += 1
            place += len(line)
    bounds = np.array([*starts, place], dtype=np.int64)
    return CutFile(path, "txt", rows, every, bounds, np.array([*lines, number + 1], dtype=np.int64))


def _cut_csv(path: str, every: int, named: bool, mark: int) -> CutFile | None:
    """Rows end at line ends outside of quotes; lines with nothing in them are none."""
    borders = np.array([_QUOTE, mark, _END, _RETURN])
    starts: list[int] = []
    lines: list[int] = []
    rows = place = quotes = line = row_line = 0
    row_begin, last, header_end = 0, _END, None if named else 0
    with opened(path) as file:
        block = file.read(_BLOCK)
        start = io.StringIO(block[:_START].decode("utf-8-sig", "ignore"), newline="")
        if block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or lines_above(start, named)[0]:
            return None
        while block:
            following = file.read(_BLOCK)
            if block[-1] == _RETURN and following[:1] == b"\n":  # a line end that the blocks would tear
                block, following = block[:-1], b"\r" + following
                if not block:
                    block, following = following, file.read(_BLOCK)
            codes = np.frombuffer(block, dtype=np.uint8)
            after_last = following[0] if following else _END
            all_ends = ends = np.flatnonzero(codes == _END)
            if b"\r" in block:
                returns = np.flatnonzero(codes == _RETURN)
                if not (_next(codes, returns, after_last) == _END).all():
                    return None  # which other programs take for the end of a line
            if quotes % 2 or b'"' in block:
                marks = np.flatnonzero(codes == _QUOTE)
                opening, closing = marks[quotes % 2 :: 2], marks[1 - quotes % 2 :: 2]
                starts_cell = np.isin(_previous(codes, opening, last), borders) | (place + opening == 3)  # after a BOM
                if not (starts_cell.all() and np.isin(_next(codes, closing, after_last), borders).all()):
                    return None
                ends = ends[(quotes + np.searchsorted(marks, ends)) % 2 == 0]
                quotes += len(marks)
            begins = np.concatenate([[row_begin], place + ends[:-1] + 1]) if len(ends) else np.empty(0, np.int64)
            lengths = place + ends - begins
            blank = (lengths == 0) | ((lengths == 1) & (_previous(codes, ends, last) == _RETURN))
            in_line = np.concatenate([[row_line], line + 1 + np.searchsorted(all_ends, ends)])
            full, numbers = begins[~blank], in_line[:-1][~blank]
            if header_end is None and len(full):
                header_end = int((place + ends[~blank])[0]) + 1
                full, numbers = full[1:], numbers[1:]
            for nth in range(-rows % every, len(full), every):
                starts.append(int(full[nth]))
                lines.append(int(numbers[nth]) + 1)
            rows += len(full)
            row_begin, row_line = (int(place + ends[-1] + 1) if len(ends) else row_begin), int(in_line[-1])
            place, last, line = place + len(codes), int(codes[-1]), line + len(all_ends)
            block = following
        if quotes % 2:
            return None
        if row_begin < place:  # the last line has no end
            if header_end is None:
                header_end = place
            else:
                if rows % every == 0:
                    starts.append(row_begin)
                    lines.append(row_line + 1)
                rows += 1
    bounds = np.array([*starts, place], dtype=np.int64)
    with opened(path) as file:
        header = file.read(header_end or 0)
    header = header if header.endswith(b"\n") or not header else header + b"\n"
    return CutFile(path, "csv", rows, every, bounds, np.array([*lines, line + 1], dtype=np.int64), header)


def _previous(codes: NDArray[np.uint8], at: NDArray[Any], before: int) -> NDArray[Any]:
    """The bytes before these places; ``before`` all of them there was this one."""
    return np.where(at > 0, codes[at - 1], before)


def _next(codes: NDArray[np.uint8], at: NDArray[Any], after: int) -> NDArray[Any]:
    return np.where(at < len(codes) - 1, codes[np.minimum(at + 1, len(codes) - 1)], after)
