"""LabelSets in files: parquet and JSON lines, written whole or not at all.

The examples' names, where there are any, stand in the same file as their sets: two files could be of two predictions.
"""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import ShortlistError
from shortlist.files import PathLike, parse_json, written_whole
from shortlist.optional import require

_decode = json.JSONDecoder().decode
_KEY = b"shortlist.LabelSets"  # where the parquet schema keeps num_labels and the vocabulary


# ---- parquet


def write_parquet(
    path: PathLike,
    offsets: NDArray[np.int64],
    indices: NDArray[Any],
    num_labels: int,
    vocabulary: Sequence[str] | None,
    ids: Sequence[str] | None = None,
) -> None:
    pa, parquet = require("pyarrow"), require("pyarrow.parquet")
    header = json.dumps({"num_labels": num_labels, "vocabulary": vocabulary}, ensure_ascii=False).encode()
    labels = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(indices))
    named = {} if ids is None else {"id": pa.array(list(ids), pa.large_string())}
    table = pa.table({**named, "labels": labels}).replace_schema_metadata({_KEY: header})
    with written_whole(path) as file:
        parquet.write_table(table, file, write_page_checksum=True)


def read_parquet(path: PathLike, max_labels: int) -> tuple[Any, Any, int, Sequence[str] | None]:
    """Offsets, indices, num_labels and vocabulary."""
    pa, parquet = require("pyarrow"), require("pyarrow.parquet")
    with open(path, "rb") as source:
        try:
            file = parquet.ParquetFile(source, page_checksum_verification=True)
            _check_count(file.metadata, max_labels)
            table = file.read()
        except (pa.ArrowException, OSError) as error:
            raise ShortlistError(f"not a parquet file, or damaged: {error}") from error
    header = parse_json((table.schema.metadata or {}).get(_KEY, b"{}"))
    stated = isinstance(header, dict) and {"num_labels", "vocabulary"} <= header.keys()
    if not stated or table.column_names not in (["labels"], ["id", "labels"]):
        raise ShortlistError(
            "not a file of LabelSets.to_parquet: it has no num_labels, or not the columns 'labels' and perhaps 'id'"
        )
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
    count = sum(group.column(place).num_values for group in groups for place in range(group.num_columns))
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
) -> None:
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
    lines = [
        start + '"labels": [' + ", ".join(written[a:b]) + "]}\n"
        for start, (a, b) in zip(starts, pairwise(ends), strict=True)
    ]
    with written_whole(path) as file:
        file.write(json.dumps(header, ensure_ascii=False).encode() + b"\n")
        file.write("".join(lines).encode())


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
