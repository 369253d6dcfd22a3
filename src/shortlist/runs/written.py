"""How the text of a table is written: what stands between its cells and before the digits of fractions, and in which
encoding."""

import csv
import gzip
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any

from shortlist.data.readers.tables import TEXT_ENDINGS, above_names, delimiter_of, encoding_of, is_packed
from shortlist.data.written_numbers import decimal_in

ENCODING = "cp1252"  # what Excel writes as CSV in Western Europe, if not asked for UTF-8
DAMAGED = (ValueError, EOFError, zlib.error, zipfile.BadZipFile, gzip.BadGzipFile)  # which the reader then tells
OPTIONS = ("delimiter", "decimal", "encoding")
_SHOWN = 20  # lines


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
    rows: list[list[str]] = []
    with suppress(csv.Error):
        rows = [row for row in csv.reader((line for line in lines[1:] if line.strip()), delimiter=mark) if row]
    decimal = decimal_in(zip_longest(*rows), like.get("decimal") if mark == known else None)
    return found | ({"delimiter": mark} if mark != usual else {}) | ({"decimal": decimal} if decimal else {})


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
    return path.name.lower().removesuffix(".gz").endswith(TEXT_ENDINGS) and path.is_file()
