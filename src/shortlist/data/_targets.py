"""From the labels that a file holds to a target, every wrong entry noted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from shortlist import labels
from shortlist.data._problems import DataError, Findings, PathLike, Problem
from shortlist.data.dataset import Dataset

Coding = Literal["label-matrix", "signed", "nan"]
_CODINGS: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    "label-matrix": (lambda x: x, "1 (present), 0 (absent), -1 (unknown)"),
    "signed": (labels.from_signed, "1 (present), -1 (absent), 0 (unknown)"),
    "nan": (labels.from_nan, "1 (present), 0 (absent), blank (unknown)"),
}


def target_of(
    found: Any, num_labels: int, coding: Coding, file: PathLike, findings: Findings
) -> Tensor | None:
    """Class indices (N,) or a label matrix (N, L) from what a file holds; None when something was noted."""
    if found.ndim == 2:
        return _matrix(found, num_labels, coding, file, findings)
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


def _matrix(
    found: Any, num_labels: int, coding: Coding, file: PathLike, findings: Findings
) -> Tensor | None:
    if coding not in _CODINGS:
        raise ValueError(f"coding must be one of {', '.join(map(repr, _CODINGS))}, got {coding!r}")
    if found.shape[1] != num_labels:
        findings.add(file, f"the label matrix has {found.shape[1]} columns for {num_labels} labels")
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
    findings.rows(file, bad, lambda row: f"label {first[row]} is {dense[row, first[row]]}: allowed are {allowed}")
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
    bad = np.flatnonzero(found == -2).tolist()
    findings.rows(file, bad, lambda row: f"label {names[row]!r} is outside the vocabulary")
    return found, known


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
            name=name,
        )
    except ValueError as error:
        raise DataError([Problem(str(file), None, str(error))]) from error
