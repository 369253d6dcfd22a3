"""Features and labels from arrays in files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from shortlist.data._arrays import ArrayFile, get_array, open_arrays
from shortlist.data._problems import Findings, PathLike, is_thorough
from shortlist.data._targets import Coding, dataset_of, indices_of_names, target_of
from shortlist.data.dataset import Dataset, default_names
from shortlist.data.mapped_rows import MappedRows


def read_features(
    path: PathLike,
    *,
    labels: PathLike | None = None,
    inputs_key: str = "X",
    labels_key: str = "y",
    unknown_key: str | None = None,
    vocabulary_key: str | None = None,
    groups_key: str | None = None,
    group_names_key: str | None = None,
    ids_key: str | None = None,
    vocabulary: Sequence[str] | None = None,
    num_labels: int | None = None,
    coding: Coding = "label-matrix",
    memory_map: bool = False,
) -> Dataset:
    """Features with labels, from .npz, .npy or parquet files.

    Args:
        path: the file with the features: an array (N, D).
        labels: the file with the labels and everything else; the same file when not given.
        inputs_key, labels_key: what the arrays are called in an .npz. In it, a scipy CSR matrix is either four arrays
            ``KEY_data``, ``KEY_indices``, ``KEY_indptr`` and ``KEY_shape``, or the whole file, as written by
            ``scipy.sparse.save_npz``. In parquet the key is a column (of lists, for features or a label matrix) or
            stands for all columns ``KEY_*``; the labels are then called what follows ``KEY_``. A .npy needs no key.
            Labels are class indices (N,), -1 for unknown; names (N,); or a label matrix (N, L).
        unknown_key: an array (N, L), not 0 where the label matrix is unknown whatever it says.
        vocabulary_key, groups_key, group_names_key, ids_key: arrays with the labels' names (L,), the coarse group of
            each label (L,), the groups' names, and the examples' names (N,).
        vocabulary: the labels' names, instead of ``vocabulary_key``.
        num_labels: how many labels there are, where neither names nor a label matrix tell.
        coding: what the numbers of a label matrix mean: "label-matrix" (1 present, 0 absent, -1 unknown), "signed"
            (1 present, -1 absent, 0 unknown) or "nan" (1 present, 0 absent, NaN or blank unknown).
        memory_map: leave the features of a .npy on disk and read only the rows asked for.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/all.npz", X=np.eye(3, dtype="f4"), y=[[1, 0], [0, 1], [0, -1]], names=["cat", "dog"])
    ...     data = read_features(f"{folder}/all.npz", vocabulary_key="names")
    >>> data
    Dataset('all': 3 examples, 3 features, any of 2 labels)
    """
    findings = Findings()
    inputs_file = open_arrays(path, findings, memory_map)
    labels_file = inputs_file if labels is None else open_arrays(labels, findings)
    inputs = get_array(inputs_file, inputs_key, findings)
    found = get_array(labels_file, labels_key, findings)
    unknown, names, groups, group_names, ids = (
        get_array(labels_file, key, findings)
        for key in (unknown_key, vocabulary_key, groups_key, group_names_key, ids_key)
    )
    findings.stop_if_any()
    if inputs_file is None or labels_file is None:
        raise AssertionError("a file that cannot be opened is a problem, and was raised")

    inputs = _checked_inputs(inputs, inputs_file, findings)
    if vocabulary is None and names is not None:
        vocabulary = tuple(map(str, names.tolist()))
    if vocabulary is None and found.ndim == 2:
        vocabulary = labels_file.columns(labels_key)
    if found.ndim == 1 and found.dtype.kind in "OU":
        found, vocabulary = indices_of_names(found.tolist(), vocabulary, labels_file.path, findings)
    if vocabulary is None:
        vocabulary = default_names(_count_labels(found, num_labels, labels_file, labels_key))
    elif num_labels not in (None, len(vocabulary)):
        raise ValueError(f"num_labels={num_labels} was given, but there are {len(vocabulary)} names")
    target = target_of(found, len(vocabulary), coding, labels_file.path, findings)
    rows = inputs.shape[0]
    for what, array in ((labels_key, found), (unknown_key, unknown), (ids_key, ids)):
        if array is not None and array.shape[0] != rows:
            findings.add(
                labels_file.path, f"{what!r} has {array.shape[0]} rows, but {inputs_file.path} has {rows} inputs"
            )
    if unknown is not None and unknown.shape != found.shape:
        findings.add(labels_file.path, f"{unknown_key!r} has shape {unknown.shape}, the label matrix {found.shape}")
    _check_ids(ids, labels_file, findings)
    findings.stop_if_any()
    if target is None:
        raise AssertionError("labels that cannot be used are a problem, and were raised")
    if unknown is not None:
        mask = unknown.toarray() if hasattr(unknown, "toarray") else unknown
        target = target.masked_fill(torch.from_numpy(mask != 0), -1)
    return dataset_of(
        labels_file.path,
        inputs,
        target,
        vocabulary,
        groups=groups,
        group_names=group_names,
        ids=ids,
        name=Path(path).stem,
    )


def _checked_inputs(inputs: Any, file: ArrayFile, findings: Findings) -> Any:
    """A tensor, memory map or CSR matrix of finite numbers."""
    if inputs.ndim != 2 or inputs.dtype.kind not in "biuf":
        findings.add(file.path, f"features must be numbers (N, D), got shape {inputs.shape} of {inputs.dtype}")
        findings.stop_if_any()
    if hasattr(inputs, "tocsr"):
        bad = np.unique(np.searchsorted(inputs.indptr, np.flatnonzero(~np.isfinite(inputs.data)), side="right") - 1)
        inputs = inputs.astype(np.float32)
    elif isinstance(inputs, np.memmap):
        # reading all of it is what a memory map is there to avoid
        bad = _rows_not_finite(inputs) if is_thorough() else np.empty(0, dtype=np.int64)
        inputs = MappedRows(inputs)
    else:
        bad = _rows_not_finite(inputs)
        kept = inputs.dtype if inputs.dtype in (np.float16, np.float32) else np.float32
        inputs = torch.from_numpy(np.require(inputs, dtype=kept, requirements="W"))
    findings.rows(file.path, bad.tolist(), lambda _: "a feature is not a finite number")
    return inputs


def _rows_not_finite(inputs: Any) -> Any:
    step = 65536
    pieces = [np.isfinite(inputs[begin : begin + step]).all(1) for begin in range(0, len(inputs), step)]
    return np.flatnonzero(~np.concatenate(pieces)) if pieces else np.empty(0, dtype=np.int64)


def _count_labels(found: Any, num_labels: int | None, file: ArrayFile, labels_key: str) -> int:
    if found.ndim == 2:
        return int(found.shape[1])
    if num_labels is None:
        raise ValueError(
            f"{file.path}: {labels_key!r} holds class indices, which do not say how many labels there are: "
            f"give vocabulary, vocabulary_key or num_labels"
        )
    return num_labels


def _check_ids(ids: Any, file: ArrayFile, findings: Findings) -> None:
    first: dict[Any, int] = {}
    for row, name in enumerate([] if ids is None else ids.tolist()):
        if first.setdefault(name, row) != row:
            findings.add(file.path, f"the id {name!r} is a duplicate, seen before in row {first[name]}", row)
