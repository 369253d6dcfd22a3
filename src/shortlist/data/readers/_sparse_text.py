"""Sparse features with their labels in a text: svmlight, and the format of the extreme classification repository (XMC).

A line of either is ``3,17 0:0.5 42:1``: labels with commas between, then features by number. The first line of the
repository's files counts the examples, features and labels, and features are numbered from 0. svmlight counts nothing
and may end a line with a comment after #; what stands before the colon is the column, whether it counts from 0 or 1.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.data.limits import check_unpacked
from shortlist.errors import ShortlistError
from shortlist.files import PathLike
from shortlist.optional import require

_AT_ONCE = 1 << 24  # bytes
_NAME_BYTES = 100  # about what a column takes elsewhere, though nothing is in it


def read_sparse_text(path: PathLike) -> dict[str, Any]:
    """X, a CSR matrix of features; y, classes where every line has exactly one label and no line counts them, else a
    CSR matrix of labels.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(f"{folder}/bibtex.txt").write_text("2 4 3\\n0,2 1:0.5 3:1\\n 0:2\\n")
    ...     arrays = read_sparse_text(f"{folder}/bibtex.txt")
    >>> arrays["X"].toarray().tolist(), arrays["y"].toarray().tolist()
    ([[0.0, 0.5, 0.0, 1.0], [2.0, 0.0, 0.0, 0.0]], [[1, 0, 1], [0, 0, 0]])
    """
    labels, features, counts = _Entries("label"), _Entries("feature"), None
    with open(path, "rb") as file:
        first = file.readline()
        if len(first.split()) == 3 and all(word.isdigit() and len(word) < 20 for word in first.split()):
            counts = [int(word) for word in first.split()]
        else:
            file.seek(0)
        line, lines = 1 if counts is None else 2, file.readlines(_AT_ONCE)
        while lines:
            following = file.readlines(_AT_ONCE)
            if not following:
                promised = 0 if counts is None else counts[0] - features.rows
                while len(lines) > promised and lines and not lines[-1].strip():
                    lines.pop()  # an empty line at the end is no example, one between others is
            _read_lines(lines, line, labels, features)
            line += len(lines)
            lines = following
    if not features.rows:
        raise ShortlistError("it holds no example")
    if counts is not None and not all(counts[1:]):
        raise ShortlistError(f"the first line counts {counts[1]} features and {counts[2]} labels: none is too few")
    if counts is not None and counts[0] != features.rows:
        raise ShortlistError(f"the first line promises {counts[0]} examples, {features.rows} follow: was it cut short?")
    x = features.matrix(path, None if counts is None else counts[1])
    if counts is None and labels.one_each:
        return {"X": x, "y": labels.flat()}
    y = labels.matrix(path, None if counts is None else counts[2])
    y.data[:] = 1  # a label that is listed twice is present
    return {"X": x, "y": y.astype(np.int8)}


class _Entries:
    """What lines hold, gathered line after line."""

    def __init__(self, what: str) -> None:
        self.what, self.rows, self.one_each = what, 0, True
        self._sizes: list[NDArray[np.int64]] = []
        self._columns: list[NDArray[np.float64]] = []
        self._values: list[NDArray[np.float32]] = []

    def add(self, sizes: NDArray[np.int64], columns: NDArray[np.float64], values: NDArray[Any] | None) -> None:
        self.rows += len(sizes)
        self.one_each &= bool((sizes == 1).all())
        self._sizes.append(sizes)
        self._columns.append(columns)
        self._values.append(np.ones(len(columns), np.float32) if values is None else values.astype(np.float32))

    def flat(self) -> NDArray[np.float64]:
        return np.concatenate(self._columns) if self._columns else np.empty(0)

    def matrix(self, path: PathLike, width: int | None) -> Any:
        columns, sizes = self.flat(), np.concatenate(self._sizes) if self._sizes else np.empty(0, np.int64)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        bad = (columns % 1 != 0) | (columns < 0) | (columns >= (2**62 if width is None else width))
        if bad.any():
            at = int(np.argmax(bad))
            row = int(np.searchsorted(offsets, at, side="right")) - 1
            allowed = "whole numbers from 0 on" if width is None else f"0..{width - 1}, as the first line says"
            raise ShortlistError(f"example {row} has {self.what} {columns[at]:g}: allowed are {allowed}")
        width = int(columns.max(initial=0)) + 1 if width is None else width
        check_unpacked(path, _NAME_BYTES * width)
        values = np.concatenate(self._values) if self._values else np.empty(0, np.float32)
        parts = (values, columns.astype(np.int64), offsets)
        matrix = require("scipy.sparse").csr_matrix(parts, shape=(self.rows, width))
        matrix.sum_duplicates()
        return matrix


def _read_lines(lines: list[bytes], number: int, labels: _Entries, features: _Entries) -> None:
    """Take in these lines, of which the first has this number."""
    heads, tails = [], []
    for line in lines:
        words = line.split(b"#", 1)[0].replace(b"\t", b" ").rstrip()
        head, _, tail = words.partition(b" ")
        if b":" in head:
            head, tail = b"", words
        heads.append(head)
        tails.append(tail)
    sizes = np.array([head.count(b",") + 1 if head else 0 for head in heads], dtype=np.int64)
    found = _numbers(b",".join(head for head in heads if head), ",")
    pairs = np.array([tail.count(b":") for tail in tails], dtype=np.int64)
    flat = _numbers(b" ".join(tails).replace(b":", b" "), " ")
    if found is None or flat is None or len(found) != sizes.sum() or len(flat) != 2 * pairs.sum():
        _name_bad_line(lines, heads, tails, number)
    labels.add(sizes, found, None)
    features.add(pairs, flat[::2], flat[1::2])


def _numbers(text: bytes, separator: str) -> Any:
    """Numbers of a text; None where it holds something else."""
    if not text.strip():
        return np.empty(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numpy only warns of what it cannot read
        try:
            return np.fromstring(text.decode("ascii"), sep=separator)
        except (ValueError, DeprecationWarning):
            return None


def _name_bad_line(lines: list[bytes], heads: list[bytes], tails: list[bytes], number: int) -> None:
    for place, (head, tail) in enumerate(zip(heads, tails, strict=True)):
        found, pairs = _numbers(head, ","), tail.split()
        right = found is not None and len(found) == (head.count(b",") + 1 if head else 0)
        for pair in pairs:
            numbers = _numbers(pair.replace(b":", b" "), " ")
            right &= pair.count(b":") == 1 and numbers is not None and len(numbers) == 2
        if not right:
            shown = lines[place][:60].decode(errors="replace").strip()
            raise ShortlistError(
                f"line {number + place} is {shown!r}: a line holds labels with commas between, a space, then features "
                f"as number:value with spaces between"
            )
    raise ShortlistError("a line holds something that is no number")
