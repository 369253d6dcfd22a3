"""What else a file says of its examples (side labels, all right labels), and the data set of all of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from shortlist.data.dataset import Dataset
from shortlist.data.readers._label_names import indices_of_names
from shortlist.data.readers.findings import DataError, Findings, Problem
from shortlist.files import PathLike
from shortlist.labels.label_sets import LabelSets
from shortlist.labels.sparse_labels import SparseLabels


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
    target: Tensor | SparseLabels,
    vocabulary: Sequence[str],
    *,
    groups: Any,
    group_names: Any,
    ids: Any,
    **more: Any,
) -> Dataset:
    """The data set of arrays from a file, which is named where they do not fit together; ``more`` as of `Dataset`."""
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
            **more,
        )
    except ValueError as error:
        raise DataError([Problem(str(file), None, str(error))]) from error
