"""LabelSets in files: parquet, JSON lines and CSV, written whole or not at all.

The examples' names, and numbers beside the labels, where there are any, stand in the same file as the sets: two files
could be of two predictions.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import ShortlistError
from shortlist.files import PathLike, parse_json, written_whole
from shortlist.optional import require

if TYPE_CHECKING:
    from shortlist.labels.label_sets import LabelSets

Beside = tuple[str, NDArray[Any]]  # what the numbers beside the labels are called, and the numbers, one per label

_decode = json.JSONDecoder().decode
_SEPARATOR = "|"  # between the labels in a cell of a .csv
_KEY = b"shortlist.LabelSets"  # where the parquet schema keeps num_labels and the vocabulary
_GROUP = 1 << 16  # rows of a parquet row group, at least

Part = tuple["LabelSets", Sequence[str | int] | None, Beside | None]  # sets, ids, what is beside the labels
Numbered = tuple["LabelSets", Sequence[str | int], Beside | None]


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
    """``to_jsonl`` of the examples of all parts; ``count``: how many, or None for lines of examples alone, as other
    programs read them."""
    lines = _lines(parts)
    sets, first = next(lines)
    with written_whole(path) as file:
        file.write(first if count is None else _header(sets, count) + first)
        for _, more in lines:
            file.write(more)


def write_csv(path: PathLike, parts: Iterable[Part]) -> None:
    """``to_csv`` of the examples of all parts, one after the other."""
    with written_whole(path) as file:
        names: Sequence[str] | None = None
        for sets, ids, beside in _numbered(parts):
            text = io.StringIO()
            rows = csv.writer(text, lineterminator="\n")
            if names is None:
                names = list(map(str, range(sets.num_labels))) if sets.vocabulary is None else sets.vocabulary
                as_lists = any(_SEPARATOR in name for name in names)
                rows.writerow(["id", "labels", *([] if beside is None else [beside[0]])])
            labels, numbers = _as_text(sets, beside)
            written = [names[label] for label in labels]
            for row, (a, b) in enumerate(pairwise(sets.offsets.tolist())):
                told = _SEPARATOR.join(written[a:b]), _SEPARATOR.join(numbers[a:b])
                if as_lists:
                    told = json.dumps(written[a:b], ensure_ascii=False), f"[{', '.join(numbers[a:b])}]"
                rows.writerow([ids[row], *told[: 1 if beside is None else 2]])
            file.write(text.getvalue().encode())


def _groups(parts: Iterable[Part]) -> Iterator[Numbered]:
    """The parts put together to groups of at least ``_GROUP`` rows, but for the last."""
    waiting: list[Numbered] = []
    rows = 0
    for part in _numbered(parts):
        waiting.append(part)
        rows += len(part[0])
        if rows >= _GROUP:
            yield _joined(waiting)
            waiting, rows = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(parts: list[Numbered]) -> Numbered:
    sets, ids, beside = parts[0]
    if len(parts) == 1:
        return parts[0]
    joined = sets.concatenate([part[0] for part in parts])
    ids = [name for part in parts for name in part[1]]
    if beside is not None:
        beside = (beside[0], np.concatenate([part[2][1] for part in parts if part[2] is not None]))
    return joined, ids, beside


def _table(pa: Any, sets: LabelSets, ids: Sequence[str | int], beside: Beside | None) -> Any:
    header = json.dumps({"num_labels": sets.num_labels, "vocabulary": sets.vocabulary}, ensure_ascii=False).encode()
    order = best_first(sets, beside)
    offsets, indices = pa.array(sets.offsets), sets.indices[order]
    labels = pa.LargeListArray.from_arrays(offsets, pa.array(indices))
    named = pa.array(ids, pa.int64() if isinstance(next(iter(ids), 0), int) else pa.large_string())
    more = {}
    if beside is not None and sets.vocabulary is not None:
        known = pa.array(list(sets.vocabulary), pa.string())
        names = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), known)
        more["names"] = pa.LargeListArray.from_arrays(offsets, names)
    if beside is not None:
        more[beside[0]] = pa.LargeListArray.from_arrays(offsets, pa.array(beside[1][order], pa.float32()))
    return pa.table({"id": named, "labels": labels, **more}).replace_schema_metadata({_KEY: header})


def _header(sets: LabelSets, count: int) -> bytes:
    header = {"num_sets": count, "num_labels": sets.num_labels, "vocabulary": sets.vocabulary}
    return json.dumps(header, ensure_ascii=False).encode() + b"\n"


def _lines(parts: Iterable[Part]) -> Iterator[tuple[LabelSets, bytes]]:
    """The parts, each with its lines of JSON."""
    quoted: list[str] | None = None
    for sets, ids, beside in _numbered(parts):
        labels, numbers = _as_text(sets, beside)
        if sets.vocabulary is None:
            written = list(map(str, labels))
        else:
            quoted = quoted or [json.dumps(name, ensure_ascii=False) for name in sets.vocabulary]
            written = [quoted[label] for label in labels]
        bounds = list(pairwise(sets.offsets.tolist()))
        starts = [f'{{"id": {json.dumps(name, ensure_ascii=False)}, ' for name in ids]
        rests = ["}"] * len(bounds)
        if beside is not None:
            rests = [f", {json.dumps(beside[0])}: [{', '.join(numbers[a:b])}]}}" for a, b in bounds]
        lines = [
            f'{start}"labels": [{", ".join(written[a:b])}]{rest}\n'
            for start, (a, b), rest in zip(starts, bounds, rests, strict=True)
        ]
        yield sets, "".join(lines).encode()


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
    if ids is not None and len(ids) != len(sets):
        raise ShortlistError(f"there must be one id for each of the {len(sets)} sets, got {len(ids)}")
    return part


def _numbered(parts: Iterable[Part]) -> Iterator[Numbered]:
    """The parts, checked; where examples have no names, with the numbers of their rows."""
    before = 0
    for part in parts:
        sets, ids, beside = _checked(part)
        count = len(sets)
        yield sets, range(before, before + count) if ids is None else ids, beside
        before += count


def best_first(sets: LabelSets, beside: Beside | None) -> Any:
    """Where the labels of each set are, in the order of the numbers beside them."""
    if beside is None:
        return slice(None)
    rows = np.repeat(np.arange(len(sets)), np.diff(sets.offsets))
    return np.lexsort((-beside[1], rows))


def _as_text(sets: LabelSets, beside: Beside | None) -> tuple[list[int], list[str]]:
    """The labels of each set, best first, and the numbers beside them as text."""
    order = best_first(sets, beside)
    numbers = [] if beside is None else [f"{number:.6g}" for number in beside[1][order].tolist()]
    return sets.indices[order].tolist(), numbers


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
    offsets, found = offsets - offsets[0], np.asarray(labels)
    if (found[1:] < found[:-1]).any():  # within a set the best label may come first
        found = found[np.lexsort((found, np.repeat(np.arange(len(column)), np.diff(offsets))))]
    return offsets, found, header["num_labels"], header["vocabulary"]


def _check_count(metadata: Any, max_labels: int) -> None:
    """A few bytes can stand for any number of equal labels: how many there are is asked before they are read."""
    groups = [metadata.row_group(place) for place in range(metadata.num_row_groups)]
    columns = range(groups[0].num_columns) if groups else range(0)
    count = max((sum(group.column(place).num_values for group in groups) for place in columns), default=0)
    if max(count, metadata.num_rows) > max_labels:
        raise ShortlistError(
            f"it states {count:,} labels in {metadata.num_rows:,} sets, max_labels={max_labels:,} are allowed"
        )


def read_jsonl(
    path: PathLike, num_labels: int | None, vocabulary: Sequence[str] | None
) -> tuple[list[Any], int | None, Sequence[str] | None]:
    """Lists, num_labels and vocabulary, which are given for files that begin with the first example."""
    # newline="\n": a name may hold other characters at which Python would end a line
    with open(path, encoding="utf-8", newline="\n") as file:
        first = file.readline()
        header = _read_line(first, 1) if first or (num_labels is None and vocabulary is None) else {}
        has_header = {"num_sets", "num_labels", "vocabulary"} <= header.keys()
        if not has_header and num_labels is None and vocabulary is None:
            raise ShortlistError(
                "not a file of LabelSets.to_jsonl: the first line gives num_sets, num_labels, vocabulary; of a file by "
                "shortlist predict give the vocabulary, which is the label_names of load_run(RUN)"
            )
        lists = []
        lines = file if has_header else chain([first] if first else [], file)
        for number, line in enumerate(lines, start=2 if has_header else 1):
            row = _read_line(line, number)
            if not isinstance(row.get("labels"), list):
                raise ShortlistError(f'line {number} must be {{"labels": [...]}}, got {line.strip()}')
            lists.append(row["labels"])
    if not has_header:
        return lists, num_labels, vocabulary
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
