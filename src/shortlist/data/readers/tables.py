"""Tables: .csv and .tsv (also packed, .gz), JSON, parquet, Arrow and ARFF, opened by the ending of the file's name."""

from __future__ import annotations

import codecs
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from shortlist.data.limits import check_unpacked
from shortlist.data.readers._arff import names_in_xml, read_arff
from shortlist.data.readers._columns import Columns, TextColumns, TypedColumns
from shortlist.data.readers._csv import TEXT_ENDINGS, above_names, csv_table, delimiter_of, encoding_of, is_packed
from shortlist.data.readers._json_tables import json_table
from shortlist.data.readers._label_lists import names_in_columns, written_list
from shortlist.data.readers.findings import EMPTY, Findings
from shortlist.data.unit_rows import TWO_ROWS
from shortlist.errors import ShortlistError
from shortlist.files import PathLike
from shortlist.optional import require

__all__ = [
    "SPARSE_TEXT", "TABLE_ENDINGS", "TEXT_ENDINGS", "above_names", "delimiter_of", "encoding_of", "is_packed",
    "name_of", "names_in_columns", "names_in_xml", "names_table", "open_table", "parquet_table", "written_list",
]  # fmt: skip

SPARSE_TEXT = (".svm", ".svmlight", ".libsvm", ".txt")  # what `_sparse_text` reads
# set by ``table_given``: tables that are in memory already, by the path under which readers ask for them
_GIVEN: ContextVar[Mapping[str, Any]] = ContextVar("given", default={})  # noqa: B039
_JSON = {".jsonl": True, ".ndjson": True, ".json": False, ".geojson": False}  # whether each line is a row
TABLE_ENDINGS = (
    *(ending + packed for packed in ("", ".gz") for ending in (*TEXT_ENDINGS, *_JSON)),
    ".parquet", ".feather", ".arrow", ".arff",
)  # fmt: skip


def names_table(path: PathLike) -> bool:
    """Whether a file is a table, by its name."""
    return os.fspath(path).lower().endswith(TABLE_ENDINGS)


def name_of(path: PathLike) -> str:
    """What the data of a file is called: the file's name without its ending.

    >>> name_of("data/leaves.csv.gz")
    'leaves'
    """
    name = Path(path).name
    return Path(name[:-3] if is_packed(name) else name).stem


def open_table(
    path: PathLike,
    findings: Findings,
    *,
    decimal: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    column_names: Sequence[str] | None = None,
) -> Columns | None:
    """The columns of a table; None, and noted, where it cannot be read or holds no rows. ``decimal`` is for readers of
    numbers, ``column_names`` for text whose first line does not name the columns."""
    file = Path(path)
    if decimal not in (None, ".", ","):
        raise ShortlistError(f"decimal must be '.' or ',', got {decimal!r}")
    delimiter = "\t" if delimiter == "\\t" else delimiter  # as it is written in a shell
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n' or not delimiter.isascii()):
        raise ShortlistError(f"delimiter must be one ASCII character, such as ',' or ';', got {delimiter!r}")
    if encoding is not None:
        try:
            codecs.lookup(encoding)
        except LookupError:
            raise ShortlistError(
                f"encoding must be one that Python knows, such as 'cp1252' or 'latin-1', got {encoding!r}"
            ) from None
    if not findings.file(file):
        return None
    if not names_table(file):
        findings.add(file, f"a table must be one of {', '.join(TABLE_ENDINGS)}, by its name")
    elif _kind(file) in TEXT_ENDINGS:
        hint = " (and decimal=',' if numbers are written 1,5)"
        found = csv_table(file, findings, delimiter, hint, encoding, column_names)
        if found is not None:
            names, cells, blank = found
            return _without_units(TextColumns(file, names, cells, findings, decimal, blank), file, findings)
    elif _kind(file) == ".arff":
        return read_arff(file, findings, decimal)
    else:
        try:
            table = _GIVEN.get().get(str(file))
            notes: list[str] = []
            if table is None and _kind(file) in _JSON:
                table = json_table(file, _JSON[_kind(file)], notes)
            elif table is None:
                table = parquet_table(file) if _kind(file) == ".parquet" else _arrow_table(file)
            if table.num_rows or EMPTY.get():
                return _without_units(TypedColumns(_flat(table), decimal=decimal, notes=notes), file, findings)
            findings.add(file, f"no rows: the file only names the columns {', '.join(map(repr, table.column_names))}")
        except ShortlistError as error:
            findings.add(file, f"cannot be read: {error}")
    return None


def _without_units(table: TextColumns | TypedColumns, file: Path, findings: Findings) -> Columns:
    """The table; noted, where its first row holds the units of the columns, or their kinds."""
    if says := table.units_in_first_row():
        it = "it and the next line" if says.startswith(TWO_ROWS) else "it"
        findings.add(file, f"this is no example, but names the {says}: delete {it}", 0)
    return table


def _kind(path: Path) -> str:
    name = path.name.lower()
    return Path(name.removesuffix(".gz")).suffix


def _arrow_table(path: Path) -> Any:
    """A table that Arrow wrote (feather), as a file or a stream."""
    pyarrow, ipc = require("pyarrow"), require("pyarrow.ipc")
    try:
        with pyarrow.OSFile(os.fspath(path)) as file:
            try:
                batches: Any = ipc.open_file(file)
                batches = map(batches.get_batch, range(batches.num_record_batches)), batches.schema
            except pyarrow.ArrowInvalid:
                file.seek(0)
                batches = ipc.open_stream(file)
                batches = batches, batches.schema
            found, size = [], 0
            for batch in batches[0]:
                found.append(batch)
                size += batch.nbytes
                check_unpacked(path, size)
            return checked_parquet(pyarrow.Table.from_batches(found, batches[1]))
    except (OSError, pyarrow.ArrowException) as error:
        raise ShortlistError(f"it is no file of Arrow's (feather, version 2): {error}") from error


def parquet_table(path: Path) -> Any:
    """A pyarrow table; a ShortlistError where the file is damaged, or holds more than it may."""
    parquet = require("pyarrow.parquet")
    try:
        with parquet.ParquetFile(path) as file:
            groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
            values = sum(group.column(place).num_values for group in groups for place in range(group.num_columns))
            check_unpacked(path, 8 * values)
            return checked_parquet(file.read())
    except (OSError, UnicodeDecodeError, require("pyarrow").ArrowException) as error:
        raise ShortlistError(str(error)) from error


def checked_parquet(table: Any) -> Any:
    """A table that parquet held, once its texts are texts and its columns have names of their own."""
    table.validate(full=True)  # finds bytes that are no text
    _check_names(table)
    pyarrow = require("pyarrow")
    view, plain = pyarrow.string_view(), pyarrow.string()  # polars writes views
    schema = [field.with_type(plain) if field.type == view else field for field in table.schema]
    return table.cast(pyarrow.schema(schema)) if view in table.schema.types else table


def _check_names(table: Any) -> None:
    twice = [name for name, count in Counter(table.column_names).items() if count > 1]
    if twice:
        raise ShortlistError(f"several columns are called {twice[0]!r}")


def _flat(table: Any) -> Any:
    """A table in which the fields of an object, ``{"size": {"width": 2}}``, are columns of their own: size.width."""
    is_object = require("pyarrow.types").is_struct
    while any(map(is_object, table.schema.types)):
        table = table.flatten()
    _check_names(table)
    return table


@contextmanager
def table_given(path: PathLike, table: Any) -> Iterator[None]:
    """Within this block, readers of the parquet file at ``path`` are given this pyarrow table."""
    token = _GIVEN.set({**_GIVEN.get(), str(path): table})
    try:
        yield
    finally:
        _GIVEN.reset(token)
