"""LabelSets in files: parquet (one list column) and JSON lines, written whole or not at all."""

import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

PathLike = str | os.PathLike[str]
_KEY = b"shortlist.LabelSets"  # where the parquet schema keeps num_labels and the vocabulary


def require(module: str) -> Any:
    """An optional dependency, or an error that says how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f"this needs {package}, which is not installed: pip install 'shortlist[train]'") from error


@contextmanager
def written_whole(path: PathLike) -> Iterator[IO[bytes]]:
    """A file to write to that takes its place at ``path`` at the end, or leaves no trace if anything fails."""
    target = Path(os.path.realpath(path))  # a link keeps pointing where it points
    draft = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(draft, "xb") as file:
            yield file
        os.replace(draft, target)
    except BaseException:
        with suppress(FileNotFoundError):
            draft.unlink()
        raise


@contextmanager
def errors_name(path: PathLike) -> Iterator[None]:
    try:
        yield
    except ValueError as error:  # pyarrow's ArrowInvalid and json's JSONDecodeError are ValueErrors too
        raise ValueError(f"{os.fspath(path)}: {error}") from error


# ---- parquet


def write_parquet(
    path: PathLike,
    offsets: NDArray[np.int64],
    indices: NDArray[Any],
    num_labels: int,
    vocabulary: Sequence[str] | None,
) -> None:
    pa, parquet = require("pyarrow"), require("pyarrow.parquet")
    header = json.dumps({"num_labels": num_labels, "vocabulary": vocabulary}, ensure_ascii=False).encode()
    labels = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(indices))
    table = pa.table({"labels": labels}).replace_schema_metadata({_KEY: header})
    with written_whole(path) as file:
        parquet.write_table(table, file)


def read_parquet(path: PathLike) -> tuple[Any, Any, int, Sequence[str] | None]:
    """Offsets, indices, num_labels and vocabulary."""
    pa, parquet = require("pyarrow"), require("pyarrow.parquet")
    with open(path, "rb") as file:
        table = parquet.read_table(file)
    header = json.loads((table.schema.metadata or {}).get(_KEY, b"null"))
    if header is None or table.column_names != ["labels"]:
        raise ValueError("not a file of LabelSets.to_parquet: it has no num_labels, or not the single column 'labels'")
    column = table["labels"].cast(pa.large_list(pa.int64() if header["num_labels"] > 2**31 else pa.int32()))
    if column.null_count:
        raise ValueError(f"row {column.is_null().index(True).as_py()} is null: an empty set is an empty list")
    labels = column.combine_chunks()
    if labels.flatten().null_count:
        raise ValueError("a set holds null: every label is a whole number")
    return _from_zero(labels.offsets), labels.flatten(), header["num_labels"], header["vocabulary"]


def _from_zero(offsets: Any) -> NDArray[np.int64]:
    starts = np.asarray(offsets)
    return starts - starts[0]


# ---- JSON lines


def write_jsonl(
    path: PathLike,
    offsets: NDArray[np.int64],
    indices: NDArray[Any],
    num_labels: int,
    vocabulary: Sequence[str] | None,
) -> None:
    header = {"num_sets": len(offsets) - 1, "num_labels": num_labels, "vocabulary": vocabulary}
    labels = indices.tolist()
    if vocabulary is None:
        written = list(map(str, labels))
    else:
        quoted = [json.dumps(name, ensure_ascii=False) for name in vocabulary]
        written = [quoted[label] for label in labels]
    ends = offsets.tolist()
    lines = ['{"labels": [' + ", ".join(written[a:b]) + "]}\n" for a, b in pairwise(ends)]
    with written_whole(path) as file:
        file.write(json.dumps(header, ensure_ascii=False).encode() + b"\n")
        file.write("".join(lines).encode())


def read_jsonl(path: PathLike) -> tuple[list[Any], int, Sequence[str] | None]:
    """Lists, num_labels and vocabulary."""
    with open(path, "rb") as file:
        header = _read_line(file.readline(), 1)
        if not isinstance(header, dict) or not {"num_sets", "num_labels", "vocabulary"} <= header.keys():
            raise ValueError("not a file of LabelSets.to_jsonl: the first line gives num_sets, num_labels, vocabulary")
        rows = [_read_line(line, number) for number, line in enumerate(file, start=2)]
    lists = []
    for number, row in enumerate(rows, start=2):
        if not isinstance(row, dict) or not isinstance(row.get("labels"), list):
            raise ValueError(f'line {number} must be {{"labels": [...]}}, got {json.dumps(row)}')
        lists.append(row["labels"])
    if len(lists) != header["num_sets"]:
        raise ValueError(f"the first line promises {header['num_sets']} sets, {len(lists)} follow: was it cut short?")
    return lists, header["num_labels"], header["vocabulary"]


def _read_line(line: bytes, number: int) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise ValueError(f"line {number} is not JSON ({error})") from error
