"""LabelSets in files: parquet, JSON lines and CSV, written whole or not at all.

The examples' names, and numbers beside the labels, where there are any, stand in the same file as the sets: two files
could be of two predictions.
"""

import csv
import io
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import ShortlistError
from shortlist.files import PathLike, parse_json, written_whole
from shortlist.optional import require

Beside = tuple[str, NDArray[Any]]  # what the numbers beside the labels are called, and the numbers, one per label

_decode = json.JSONDecoder().decode
_SEPARATOR = "|"  # between the labels in a cell of a .csv
_KEY = b"shortlist.LabelSets"  # where the parquet schema keeps num_labels and the vocabulary
_GROUP = 1 << 16  # rows of a parquet row group, at least


class WrittenSets:
    """What LabelSets write; they are read by the functions below."""

    offsets: NDArray[np.int64]
    indices: NDArray[np.int32] | NDArray[np.int64]
    num_labels: int
    vocabulary: tuple[str, ...] | None
    values: NDArray[np.int8] | None
    rest: int

    def to_parquet(self, path: PathLike, *, ids: Sequence[str] | None = None, beside: Beside | None = None) -> None:
        """Write a parquet file with a list column ``labels`` and, of the examples' names, a column ``id``; the file
        appears whole or not at all.

        ``beside``: a number for each label in the sets, one after the other as in ``indices``, and what they are
        called: a further list column, with the labels' ``names`` in one more.

        >>> import tempfile, pathlib; from shortlist import LabelSets
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "sets.parquet"
        >>> sets = LabelSets.from_lists([[0], []], vocabulary=["cat", "dog"])
        >>> sets.to_parquet(path)
        >>> LabelSets.from_parquet(path) == sets
        True
        """
        write_parquet(path, [(self, ids, beside)])

    def to_jsonl(self, path: PathLike, *, ids: Sequence[str] | None = None, beside: Beside | None = None) -> None:
        """Write a text file: a first line about the labels, then ``{"labels": [...]}`` for each example, by name where
        there is a vocabulary, and with its ``"id"`` where ``ids`` are given. The file appears whole or not at all.
        ``beside``: as for ``to_parquet``; the label with the largest number then comes first.

        >>> import tempfile, pathlib; from shortlist import LabelSets
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "sets.jsonl"
        >>> LabelSets.from_lists([[0], []], vocabulary=["cat", "dog"]).to_jsonl(path)
        >>> print(path.read_text())
        {"num_sets": 2, "num_labels": 2, "vocabulary": ["cat", "dog"]}
        {"labels": ["cat"]}
        {"labels": []}
        """
        write_jsonl(path, [(self, ids, beside)], len(self.offsets) - 1)

    def to_csv(self, path: PathLike, *, ids: Sequence[str] | None = None, beside: Beside | None = None) -> None:
        """Write a table to look at: a line for each example with its id (or number), the names of its labels with "|"
        between, and the numbers ``beside`` them, the largest first. The file appears whole or not at all.

        >>> import tempfile, pathlib; from shortlist import LabelSets
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "sets.csv"
        >>> sets = LabelSets.from_lists([[0, 1], []], vocabulary=["cat", "dog"])
        >>> sets.to_csv(path, ids=["a.jpg", "b.jpg"], beside=("probabilities", np.array([0.25, 0.75])))
        >>> print(path.read_text())
        id,labels,probabilities
        a.jpg,dog|cat,0.75|0.25
        b.jpg,,
        """
        write_csv(path, [(self, ids, beside)])


Part = tuple[WrittenSets, Sequence[str] | None, Beside | None]  # sets, ids, what is beside the labels


# ---- writing, part by part: no more than a part is held at a time


def write_parquet(path: PathLike, parts: Iterable[Part]) -> None:
    """``to_parquet`` of the examples of all parts, one after the other; there is at least one. Row groups have at least
    65,536 rows, but for the last."""
    pa, parquet = require("pyarrow"), require("pyarrow.parquet")
    tables = (_table(pa, *group) for group in _groups(parts))
    with written_whole(path) as file:
        first = next(tables)
        with parquet.ParquetWriter(file, first.schema, write_page_checksum=True) as writer:
            writer.write_table(first)
            for table in tables:
                writer.write_table(table)


def write_jsonl(path: PathLike, parts: Iterable[Part], count: int | None) -> None:
    """``to_jsonl`` of the examples of all parts; ``count``: how many, or None where that is known at the end."""
    lines = _lines(parts)
    sets, first = next(lines)
    with written_whole(path) as file:
        if count is not None:
            file.write(_header(sets, count) + first)
            for _, more in lines:
                file.write(more)
            return
        with tempfile.TemporaryFile(dir=Path(path).parent) as body:
            count = 0
            for part, text in chain([(sets, first)], lines):
                body.write(text)
                count += len(part.offsets) - 1
            file.write(_header(sets, count))
            body.seek(0)
            shutil.copyfileobj(body, file)


def write_csv(path: PathLike, parts: Iterable[Part]) -> None:
    """``to_csv`` of the examples of all parts, one after the other."""
    with written_whole(path) as file:
        names: Sequence[str] | None = None
        before = 0
        for part in parts:
            sets, ids, beside = _checked(part)
            text = io.StringIO()
            rows = csv.writer(text, lineterminator="\n")
            if names is None:
                names = list(map(str, range(sets.num_labels))) if sets.vocabulary is None else sets.vocabulary
                _check_separator(names)
                rows.writerow(["id", "labels", *([] if beside is None else [beside[0]])])
            labels, numbers = _best_first(sets, beside)
            written = [names[label] for label in labels]
            for row, (a, b) in enumerate(pairwise(sets.offsets.tolist())):
                cells = [before + row if ids is None else ids[row], _SEPARATOR.join(written[a:b])]
                rows.writerow(cells if beside is None else [*cells, _SEPARATOR.join(numbers[a:b])])
            before += len(sets.offsets) - 1
            file.write(text.getvalue().encode())


def _groups(parts: Iterable[Part]) -> Iterator[Part]:
    """The parts put together to groups of at least ``_GROUP`` rows, but for the last."""
    waiting: list[Part] = []
    rows = 0
    for part in parts:
        waiting.append(_checked(part))
        rows += len(part[0].offsets) - 1
        if rows >= _GROUP:
            yield _joined(waiting)
            waiting, rows = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(parts: list[Part]) -> Part:
    sets, ids, beside = parts[0]
    if len(parts) == 1:
        return parts[0]
    joined = WrittenSets()
    joined.num_labels, joined.vocabulary = sets.num_labels, sets.vocabulary
    joined.values, joined.rest = None, 0
    joined.indices = np.concatenate([part[0].indices for part in parts])
    sizes = np.concatenate([np.diff(part[0].offsets) for part in parts])
    joined.offsets = np.concatenate([[0], np.cumsum(sizes)])
    if ids is not None:
        ids = [name for part in parts for name in part[1] or ()]
    if beside is not None:
        beside = (beside[0], np.concatenate([part[2][1] for part in parts if part[2] is not None]))
    return joined, ids, beside


def _table(pa: Any, sets: WrittenSets, ids: Sequence[str] | None, beside: Beside | None) -> Any:
    header = json.dumps({"num_labels": sets.num_labels, "vocabulary": sets.vocabulary}, ensure_ascii=False).encode()
    labels = pa.LargeListArray.from_arrays(pa.array(sets.offsets), pa.array(sets.indices))
    named = {} if ids is None else {"id": pa.array(list(ids), pa.large_string())}
    more = {}
    if beside is not None and sets.vocabulary is not None:
        known = pa.array(list(sets.vocabulary), pa.string())
        names = pa.DictionaryArray.from_arrays(pa.array(sets.indices, pa.int32()), known)
        more["names"] = pa.LargeListArray.from_arrays(pa.array(sets.offsets), names)
    if beside is not None:
        more[beside[0]] = pa.LargeListArray.from_arrays(pa.array(sets.offsets), pa.array(beside[1], pa.float32()))
    return pa.table({**named, "labels": labels, **more}).replace_schema_metadata({_KEY: header})


def _header(sets: WrittenSets, count: int) -> bytes:
    header = {"num_sets": count, "num_labels": sets.num_labels, "vocabulary": sets.vocabulary}
    return json.dumps(header, ensure_ascii=False).encode() + b"\n"


def _lines(parts: Iterable[Part]) -> Iterator[tuple[WrittenSets, bytes]]:
    """The parts, each with its lines of JSON."""
    quoted: list[str] | None = None
    for part in parts:
        sets, ids, beside = _checked(part)
        labels, numbers = _best_first(sets, beside)
        if sets.vocabulary is None:
            written = list(map(str, labels))
        else:
            quoted = quoted or [json.dumps(name, ensure_ascii=False) for name in sets.vocabulary]
            written = [quoted[label] for label in labels]
        bounds = list(pairwise(sets.offsets.tolist()))
        if ids is None:
            starts = ["{"] * len(bounds)
        else:
            starts = [f'{{"id": {json.dumps(name, ensure_ascii=False)}, ' for name in ids]
        rests = ["}"] * len(bounds)
        if beside is not None:
            rests = [f", {json.dumps(beside[0])}: [{', '.join(numbers[a:b])}]}}" for a, b in bounds]
        lines = [
            f'{start}"labels": [{", ".join(written[a:b])}]{rest}\n'
            for start, (a, b), rest in zip(starts, bounds, rests, strict=True)
        ]
        yield sets, "".join(lines).encode()


def _check_separator(names: Sequence[str]) -> None:
    for name in names:
        if _SEPARATOR in name:
            raise ShortlistError(
                f"the label {name!r} holds {_SEPARATOR!r}, which stands between labels in a .csv: "
                f"write a .parquet or .jsonl file"
            )


def _checked(part: Part) -> Part:
    sets, ids, beside = part
    if sets.values is not None or sets.rest != 0:
        raise ShortlistError(
            "files hold sets, these LabelSets also say which labels are absent or unknown: write their .present"
        )
    if beside is not None and beside[1].shape != sets.indices.shape:
        raise ShortlistError(
            f"there must be a number beside each of the {len(sets.indices)} labels, got {beside[1].shape}"
        )
    if ids is not None and len(ids) != len(sets.offsets) - 1:
        raise ShortlistError(f"there must be one id for each of the {len(sets.offsets) - 1} sets, got {len(ids)}")
    return part


def _best_first(sets: WrittenSets, beside: Beside | None) -> tuple[list[int], list[str]]:
    """The labels of each set in the order of the numbers beside them, and these as text."""
    if beside is None:
        return sets.indices.tolist(), []
    rows = np.repeat(np.arange(len(sets.offsets) - 1), np.diff(sets.offsets))
    order = np.lexsort((-beside[1], rows))
    return sets.indices[order].tolist(), [f"{number:.6g}" for number in beside[1][order].tolist()]


# ---- reading


def read_parquet(path: PathLike, max_labels: int) -> tuple[Any, Any, int, Sequence[str] | None]:
    """Offsets, indices, num_labels and vocabulary."""
    pa, parquet = require("pyarrow"), require("pyarrow.parquet")
    with open(path, "rb") as source:
        try:
            file = parquet.ParquetFile(source, page_checksum_verification=True)
            _check_count(file.metadata, max_labels)
            table = file.read(columns=["labels"])
        except (pa.ArrowException, OSError) as error:
            raise ShortlistError(f"not a parquet file, or damaged: {error}") from error
    header = parse_json((table.schema.metadata or {}).get(_KEY, b"{}"))
    stated = isinstance(header, dict) and {"num_labels", "vocabulary"} <= header.keys()
    if not stated or table.column_names != ["labels"]:
        raise ShortlistError("not a file of LabelSets.to_parquet: it has no num_labels, or not the column 'labels'")
    kind = table["labels"].type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not pa.types.is_integer(kind.value_type):
        raise ShortlistError(f"the column 'labels' must hold lists of whole numbers, it holds {kind}")
    column = table["labels"].cast(pa.large_list(kind.value_type)).combine_chunks()
    labels = column.flatten()
    if column.null_count:
        raise ShortlistError(f"row {column.is_null().index(True).as_py()} is null: an empty set is an empty list")
    if labels.null_count:
        raise ShortlistError("a set holds a null: every label is a whole number")
    offsets = np.asarray(column.offsets)
    return offsets - offsets[0], labels, header["num_labels"], header["vocabulary"]


def _check_count(metadata: Any, max_labels: int) -> None:
    """A few bytes can stand for any number of equal labels: how many there are is asked before they are read."""
    groups = [metadata.row_group(place) for place in range(metadata.num_row_groups)]
    columns = range(groups[0].num_columns) if groups else range(0)
    count = max((sum(group.column(place).num_values for group in groups) for place in columns), default=0)
    if max(count, metadata.num_rows) > max_labels:
        raise ShortlistError(
            f"it states {count:,} labels in {metadata.num_rows:,} sets, max_labels={max_labels:,} are allowed"
        )


def read_jsonl(path: PathLike) -> tuple[list[Any], int, Sequence[str] | None]:
    """Lists, num_labels and vocabulary."""
    # newline="\n": a name may hold other characters at which Python would end a line
    with open(path, encoding="utf-8", newline="\n") as file:
        header = _read_line(file.readline(), 1)
        if not {"num_sets", "num_labels", "vocabulary"} <= header.keys():
            raise ShortlistError(
                "not a file of LabelSets.to_jsonl: the first line gives num_sets, num_labels, vocabulary"
            )
        lists = []
        for number, line in enumerate(file, start=2):
            row = _read_line(line, number)
            if not isinstance(row.get("labels"), list):
                raise ShortlistError(f'line {number} must be {{"labels": [...]}}, got {line.strip()}')
            lists.append(row["labels"])
    if len(lists) != header["num_sets"]:
        raise ShortlistError(
            f"the first line promises {header['num_sets']} sets, {len(lists)} follow: was it cut short?"
        )
    return lists, header["num_labels"], header["vocabulary"]


def _read_line(line: str, number: int) -> dict[str, Any]:
    try:
        found = _decode(line)
    except ValueError as error:
        raise ShortlistError(f"line {number} is not JSON ({error})") from error
    except RecursionError:
        raise ShortlistError(f"line {number} is nested too deeply to be read") from None
    if not isinstance(found, dict):
        raise ShortlistError(f"line {number} must be a JSON object, got {line.strip()}")
    return found
