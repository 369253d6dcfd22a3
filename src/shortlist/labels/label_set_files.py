"""LabelSets in files: parquet, JSON lines and CSV, written whole or not at all.

The examples' names, and numbers beside the labels, where there are any, stand in the same file as the sets: two files
could be of two predictions.
"""

import csv
import io
import json
from collections.abc import Sequence
from itertools import pairwise
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


# ---- parquet


def write_parquet(
    path: PathLike,
    offsets: NDArray[np.int64],
    indices: NDArray[Any],
    num_labels: int,
    vocabulary: Sequence[str] | None,
    ids: Sequence[str] | None = None,
    beside: Beside | None = None,
) -> None:
    """``beside``: what numbers stand beside the labels are called, and the numbers. With it there are also the labels'
    names, so that others can read the file as it is."""
    pa, parquet = require("pyarrow"), require("pyarrow.parquet")
    header = json.dumps({"num_labels": num_labels, "vocabulary": vocabulary}, ensure_ascii=False).encode()
    labels = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(indices))
    named = {} if ids is None else {"id": pa.array(list(ids), pa.large_string())}
    more = {}
    if beside is not None and vocabulary is not None:
        names = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), pa.array(list(vocabulary), pa.string()))
        more["names"] = pa.LargeListArray.from_arrays(pa.array(offsets), names)
    if beside is not None:
        more[beside[0]] = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(beside[1], pa.float32()))
    table = pa.table({**named, "labels": labels, **more}).replace_schema_metadata({_KEY: header})
    with written_whole(path) as file:
        parquet.write_table(table, file, write_page_checksum=True)


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


# ---- JSON lines


def write_jsonl(
    path: PathLike,
    offsets: NDArray[np.int64],
    indices: NDArray[Any],
    num_labels: int,
    vocabulary: Sequence[str] | None,
    ids: Sequence[str] | None = None,
    beside: Beside | None = None,
) -> None:
    """``beside``: as for parquet; the labels then stand in the order of their numbers, the largest first."""
    indices, numbers = _best_first(offsets, indices, beside)
    header = {"num_sets": len(offsets) - 1, "num_labels": num_labels, "vocabulary": vocabulary}
    labels = indices.tolist()
    if vocabulary is None:
        written = list(map(str, labels))
    else:
        quoted = [json.dumps(name, ensure_ascii=False) for name in vocabulary]
        written = [quoted[label] for label in labels]
    ends = offsets.tolist()
    if ids is None:
        starts = ["{"] * (len(ends) - 1)
    else:
        starts = [f'{{"id": {json.dumps(name, ensure_ascii=False)}, ' for name in ids]
    bounds = list(pairwise(ends))
    rests = ["}"] * len(bounds)
    if beside is not None:
        rests = [f", {json.dumps(beside[0])}: [{', '.join(numbers[a:b])}]}}" for a, b in bounds]
    lines = [
        f'{start}"labels": [{", ".join(written[a:b])}]{rest}\n'
        for start, (a, b), rest in zip(starts, bounds, rests, strict=True)
    ]
    with written_whole(path) as file:
        file.write(json.dumps(header, ensure_ascii=False).encode() + b"\n")
        file.write("".join(lines).encode())


def _best_first(
    offsets: NDArray[np.int64], indices: NDArray[Any], beside: Beside | None
) -> tuple[NDArray[Any], list[str]]:
    """The labels of each set in the order of the numbers beside them, and these as text."""
    if beside is None:
        return indices, []
    rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((-beside[1], rows))
    return indices[order], [f"{number:.6g}" for number in beside[1][order].tolist()]


# ---- CSV


def write_csv(
    path: PathLike,
    offsets: NDArray[np.int64],
    indices: NDArray[Any],
    num_labels: int,
    vocabulary: Sequence[str] | None,
    ids: Sequence[str] | None = None,
    beside: Beside | None = None,
) -> None:
    """One line per example: its id (its number, where there are none), the labels and the numbers beside them, the
    largest first, with "|" between."""
    names = list(map(str, range(num_labels))) if vocabulary is None else list(vocabulary)
    for name in names:
        if _SEPARATOR in name:
            raise ShortlistError(
                f"the label {name!r} holds {_SEPARATOR!r}, which stands between labels in a .csv: write a .parquet or "
                f".jsonl file"
            )
    indices, numbers = _best_first(offsets, indices, beside)
    written = [names[label] for label in indices.tolist()]
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["id", "labels", *([] if beside is None else [beside[0]])])
    for row, (a, b) in enumerate(pairwise(offsets.tolist())):
        cells = [row if ids is None else ids[row], _SEPARATOR.join(written[a:b])]
        rows.writerow(cells if beside is None else [*cells, _SEPARATOR.join(numbers[a:b])])
    with written_whole(path) as file:
        file.write(text.getvalue().encode())


# ---- JSON lines, read


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
