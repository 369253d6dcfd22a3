"""From the labels that a file holds to a target, every wrong entry noted."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from shortlist import labels
from shortlist.data.column_use import ColumnUse
from shortlist.data.dataset import Dataset
from shortlist.data.encoder import Encoder
from shortlist.data.limits import check_unpacked
from shortlist.data.readers.findings import DataError, Findings, PathLike, Problem
from shortlist.errors import ShortlistError
from shortlist.labels.label_sets import LabelSets

Coding = Literal["label-matrix", "signed", "nan"]
_CODINGS: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    "label-matrix": (lambda x: x, "1 (present), 0 (absent), -1 (unknown)"),
    "signed": (labels.from_signed, "1 (present), -1 (absent), 0 (unknown)"),
    "nan": (labels.from_nan, "1 (present), 0 (absent), blank (unknown)"),
}


def blanks_are_unknown(found: Any, coding: Coding) -> tuple[Any, Coding]:
    """Labels of a table, where blanks are NaN, such that these are unknown in the coding that is returned."""
    if found.dtype.kind != "f":
        return found, coding
    if found.ndim == 1:
        return found, "nan"
    unknown = {"label-matrix": -1.0, "signed": 0.0}.get(coding, np.nan)
    return np.where(np.isnan(found), unknown, found), coding


def target_of(
    found: Any, vocabulary: Sequence[str], coding: Coding, file: PathLike, findings: Findings
) -> Tensor | None:
    """Class indices (N,) or a label matrix (N, L) from what a file holds; None when something was noted."""
    if found.ndim == 2:
        return _matrix(found, vocabulary, coding, file, findings)
    num_labels = len(vocabulary)
    if coding == "nan" and found.ndim == 1 and found.dtype.kind == "f" and not (found % 1 > 0).any():
        found = np.where(np.isnan(found), -1, found).astype(np.int64)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        findings.add(
            file,
            f"labels must be class indices (N,) of an integer type or a label matrix (N, L), got shape {found.shape} "
            f"of {found.dtype}; coding='nan' takes blanks as unknown",
        )
        return None
    found = found.astype(np.int64)
    bad = np.flatnonzero((found < -1) | (found >= num_labels)).tolist()
    allowed = f"allowed are 0..{num_labels - 1}, -1"
    findings.rows(file, bad, lambda row: f"label {found[row]} is outside the vocabulary: {allowed}")
    return None if bad else torch.from_numpy(found)


def _matrix(found: Any, vocabulary: Sequence[str], coding: Coding, file: PathLike, findings: Findings) -> Tensor | None:
    if coding not in _CODINGS:
        raise ShortlistError(f"coding must be one of {', '.join(map(repr, _CODINGS))}, got {coding!r}")
    if found.shape[1] != len(vocabulary):
        findings.add(file, f"the label matrix has {found.shape[1]} columns for {len(vocabulary)} labels")
        return None
    if hasattr(found, "toarray"):
        try:
            check_unpacked(file, math.prod(found.shape) * found.dtype.itemsize)
        except ShortlistError as error:
            findings.add(file, f"the sparse label matrix: {error}")
            return None
    dense = found.toarray() if hasattr(found, "toarray") else np.asarray(found)
    if dense.dtype.kind not in "biuf":
        findings.add(file, f"the label matrix must hold numbers, got {dense.dtype}")
        return None
    convert, allowed = _CODINGS[coding]
    right = np.isin(dense, (0, 1) if dense.dtype.kind in "bu" else (-1, 0, 1))
    if coding == "nan":
        right = np.isnan(dense) | np.isin(dense, (0, 1)) if dense.dtype.kind == "f" else np.isin(dense, (0, 1))
    bad = np.flatnonzero(~right.all(1)).tolist()
    first = (~right).argmax(1)  # of each row, the first label that is wrong
    findings.rows(
        file,
        bad,
        lambda row: f"label {vocabulary[first[row]]} is {dense[row, first[row]]}: allowed are {allowed}",
    )
    return None if bad else torch.from_numpy(np.ascontiguousarray(convert(dense)).astype(np.int8))


def indices_of_names(
    names: Sequence[Any],
    vocabulary: Sequence[str] | None,
    file: PathLike,
    findings: Findings,
) -> tuple[np.ndarray[Any, np.dtype[np.int64]], tuple[str, ...]]:
    """Class indices of labels written as names; without a vocabulary it is the names that occur, sorted."""
    known = tuple(sorted({name for name in names if name is not None})) if vocabulary is None else tuple(vocabulary)
    number = {name: label for label, name in enumerate(known)}
    found = np.array([-1 if name is None else number.get(name, -2) for name in names], dtype=np.int64)
    outside: dict[str, list[int]] = {}
    for row in np.flatnonzero(found == -2).tolist():
        outside.setdefault(names[row], []).append(row)
    findings.outside(file, outside, known, "row")
    return np.maximum(found, -1), known


def matrix_of_names(
    cells: Any, separator: str, vocabulary: Sequence[str] | None, file: PathLike, findings: Findings
) -> tuple[np.ndarray[Any, np.dtype[np.int8]], tuple[str, ...]]:
    """A label matrix of cells with any number of names; without a vocabulary it is the names that occur, sorted."""
    if not separator or cells.ndim != 1 or cells.dtype.kind not in "OU":
        findings.add(file, f"separator={separator!r} must be a text that stands between names in one column of labels")
        findings.stop_if_any()
    names = [[name.strip() for name in (cell or "").split(separator) if name.strip()] for cell in cells.tolist()]
    known = tuple(sorted({name for row in names for name in row})) if vocabulary is None else tuple(vocabulary)
    number = {name: label for label, name in enumerate(known)}
    matrix = np.zeros((len(names), len(known)), dtype=np.int8)
    outside: dict[str, list[int]] = {}
    for row, written in enumerate(names):
        for name in written:
            if name in number:
                matrix[row, number[name]] = 1
            else:
                outside.setdefault(name, []).append(row)
    findings.outside(file, outside, known, "row")
    return matrix, known


def side_of(found: Any, file: PathLike, findings: Findings) -> Tensor | None:
    """One class per example, -1 for unknown, from numbers or names; None when something was noted."""
    if found.ndim == 1 and found.dtype.kind in "OU":
        return torch.from_numpy(indices_of_names(found.tolist(), None, file, findings)[0])
    if found.ndim == 1 and found.dtype.kind == "f":
        found = np.where(np.isnan(found), -1, found)
    if found.ndim != 1 or found.dtype.kind not in "iuf" or bool((found % 1 != 0).any()):
        findings.add(file, f"side labels must be classes (N,), got shape {found.shape} of {found.dtype}")
        return None
    bad = np.flatnonzero(found < -1).tolist()
    findings.rows(file, bad, lambda row: f"the side label is {found[row]}: allowed are 0 and more, -1 (unknown)")
    return torch.from_numpy(found.astype(np.int64))


def truth_of(found: Any, vocabulary: Sequence[str], file: PathLike, findings: Findings) -> LabelSets | None:
    """The right labels of each example from a matrix, or from names with | between; None when something was noted."""
    try:
        if hasattr(found, "tocsr"):
            return LabelSets.from_sparse(found, vocabulary)
        if found.ndim == 1 and found.dtype.kind in "OU":
            return LabelSets.from_lists([cell.split("|") if cell else [] for cell in found.tolist()], None, vocabulary)
        return LabelSets.from_dense(found, vocabulary)
    except ValueError as error:
        findings.add(file, f"truth: {error}")
        return None


def dataset_of(
    file: PathLike,
    inputs: Any,
    target: Tensor,
    vocabulary: Sequence[str],
    *,
    groups: Any,
    group_names: Any,
    ids: Any,
    name: str,
    side: Tensor | None = None,
    truth: LabelSets | None = None,
    columns: ColumnUse | None = None,
    encoder: Encoder | None = None,
) -> Dataset:
    """The data set of arrays from a file, which is named where they do not fit together."""
    if groups is not None and groups.dtype.kind not in "iu":
        raise DataError([Problem(str(file), None, f"groups must be whole numbers, got {groups.dtype}")])
    try:
        return Dataset(
            inputs,
            target,
            tuple(vocabulary),
            groups=None if groups is None else torch.from_numpy(groups.astype(np.int64)),
            group_names=None if group_names is None else tuple(map(str, group_names.tolist())),
            ids=None if ids is None else tuple(map(str, ids.tolist())),
            side=side,
            truth=truth,
            name=name,
            columns=columns,
            encoder=encoder,
        )
    except ValueError as error:
        raise DataError([Problem(str(file), None, str(error))]) from error
