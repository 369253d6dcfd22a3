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
        self._check_beside(ids, beside)
        pa, parquet = require("pyarrow"), require("pyarrow.parquet")
        header = json.dumps({"num_labels": self.num_labels, "vocabulary": self.vocabulary}, ensure_ascii=False).encode()
        labels = pa.LargeListArray.from_arrays(pa.array(self.offsets), pa.array(self.indices))
        named = {} if ids is None else {"id": pa.array(list(ids), pa.large_string())}
        more = {}
        if beside is not None and self.vocabulary is not None:
            known = pa.array(list(self.vocabulary), pa.string())
            names = pa.DictionaryArray.from_arrays(pa.array(self.indices, pa.int32()), known)
            more["names"] = pa.LargeListArray.from_arrays(pa.array(self.offsets), names)
        if beside is not None:
            more[beside[0]] = pa.LargeListArray.from_arrays(pa.array(self.offsets), pa.array(beside[1], pa.float32()))
        table = pa.table({**named, "labels": labels, **more}).replace_schema_metadata({_KEY: header})
        with written_whole(path) as file:
            parquet.write_table(table, file, write_page_checksum=True)

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
        self._check_beside(ids, beside)
        labels, numbers = self._best_first(beside)
        header = {"num_sets": len(self.offsets) - 1, "num_labels": self.num_labels, "vocabulary": self.vocabulary}
        if self.vocabulary is None:
            written = list(map(str, labels))
        else:
            quoted = [json.dumps(name, ensure_ascii=False) for name in self.vocabulary]
            written = [quoted[label] for label in labels]
        ends = self.offsets.tolist()
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
        self._check_beside(ids, beside)
        names = list(map(str, range(self.num_labels))) if self.vocabulary is None else list(self.vocabulary)
        for name in names:
            if _SEPARATOR in name:
                raise ShortlistError(
                    f"the label {name!r} holds {_SEPARATOR!r}, which stands between labels in a .csv: "
                    f"write a .parquet or .jsonl file"
                )
        labels, numbers = self._best_first(beside)
        written = [names[label] for label in labels]
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(["id", "labels", *([] if beside is None else [beside[0]])])
        for row, (a, b) in enumerate(pairwise(self.offsets.tolist())):
            cells = [row if ids is None else ids[row], _SEPARATOR.join(written[a:b])]
            rows.writerow(cells if beside is None else [*cells, _SEPARATOR.join(numbers[a:b])])
        with written_whole(path) as file:
            file.write(text.getvalue().encode())

    def _check_beside(self, ids: Sequence[str] | None, beside: Beside | None) -> None:
        if self.values is not None or self.rest != 0:
            raise ShortlistError(
                "files hold sets, these LabelSets also say which labels are absent or unknown: write their .present"
            )
        if beside is not None and beside[1].shape != self.indices.shape:
            raise ShortlistError(
                f"there must be a number beside each of the {len(self.indices)} labels, got {beside[1].shape}"
            )
        if ids is not None and len(ids) != len(self.offsets) - 1:
            raise ShortlistError(f"there must be one id for each of the {len(self.offsets) - 1} sets, got {len(ids)}")

    def _best_first(self, beside: Beside | None) -> tuple[list[int], list[str]]:
        """The labels of each set in the order of the numbers beside them, and these as text."""
        if beside is None:
            return self.indices.tolist(), []
        rows = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        order = np.lexsort((-beside[1], rows))
        return self.indices[order].tolist(), [f"{number:.6g}" for number in beside[1][order].tolist()]


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
