"""Scores and labels of any other model, from .npy, .npz or parquet files."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shortlist.errors import ShortlistError, errors_name
from shortlist.files import PathLike
from shortlist.labels import LabelSets, check_label_matrix
from shortlist.labels.votes import check_votes
from shortlist.optional import require


def read_scores(path: PathLike) -> Tensor:
    """Raw scores (N, L): the array of a .npy, the only array of an .npz (or the one called scores), or a parquet table
    with one column of lists, or one column per label."""
    array = _read(path, "scores")
    if array.ndim != 2 or array.dtype.kind not in "fiu" or array.size == 0:
        raise ShortlistError(
            f"{os.fspath(path)}: scores are numbers (rows, labels), got {array.shape} of {array.dtype}"
        )
    return torch.from_numpy(np.array(array, dtype=array.dtype if array.dtype.kind == "f" else np.float32, order="C"))


def read_labels(path: PathLike, scores: Tensor) -> Tensor:
    """Class indices (N,), -1 for unknown, or a label matrix (N, L) of 1, 0 and -1, that fits the scores."""
    array = _read(path, "labels")
    rows, num_labels = scores.shape
    with errors_name(path):
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.shape not in ((rows,), (rows, num_labels)):
            raise ShortlistError(
                f"labels of shape {array.shape} do not fit scores of shape {(rows, num_labels)}: "
                f"allowed are class indices ({rows},) or a label matrix ({rows}, {num_labels})"
            )
        if array.dtype.kind not in "biuf":
            raise ShortlistError(
                f"labels are numbers: class indices or a label matrix of 1, 0 and -1; got {array.dtype}"
            )
        if array.ndim == 1:
            bad = np.flatnonzero(~((array >= -1) & (array < num_labels) & (array == np.floor(array))))
            if len(bad):
                row = bad[0]
                raise ShortlistError(
                    f"row {row} is {array[row]}: class indices are 0..{num_labels - 1}, or -1 for unknown"
                )
        else:
            check_label_matrix(torch.from_numpy(np.array(array)))
        return torch.from_numpy(array.astype(np.int64 if array.ndim == 1 else np.int8))


def read_truth(path: PathLike, scores: Tensor) -> LabelSets | NDArray[Any]:
    """All right labels of every row, a matrix of 0 and 1, as sets; or the votes for every label, other numbers that are
    not negative (counts or shares; a row of -1 has none)."""
    array = _read(path, "truth")
    with errors_name(path):
        if array.shape != tuple(scores.shape):
            raise ShortlistError(f"the truth has the shape of the scores, {tuple(scores.shape)}, got {array.shape}")
        if array.dtype.kind in "biuf" and np.isin(array, (0, -1)).all():
            raise ShortlistError("the truth has no right label and no vote in any row: there is nothing to judge by")
        if array.dtype.kind in "biuf" and np.isin(array, (0, 1)).all():
            return LabelSets.from_dense(array.astype(bool))
        if array.dtype.kind == "f":
            array = np.where((array == -1).all(-1, keepdims=True), 0.0, array)
        return check_votes(array)


def read_rows(groups: PathLike | None, weights: PathLike | None, rows: int) -> dict[str, NDArray[Any]]:
    """What rules may want to know of each row beside its scores: its group and its weight, from files of one column."""
    found = {}
    for name, path in (("groups", groups), ("weights", weights)):
        if path is not None:
            values = _read(path, name)
            found[name] = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
            if found[name].shape != (rows,):
                raise ShortlistError(
                    f"{os.fspath(path)}: {name} are one value for each of {rows} rows, got {values.shape}"
                )
    return found


def _read(path: PathLike, key: str) -> NDArray[Any]:
    file = Path(path)
    if not file.is_file():
        raise ShortlistError(f"there is no file {os.fspath(path)}")
    with errors_name(path):
        if file.suffix == ".npy":
            return np.load(file, allow_pickle=False)
        if file.suffix == ".npz":
            with np.load(file, allow_pickle=False) as arrays:
                names = list(arrays)
                if key not in names and len(names) != 1:
                    raise ShortlistError(f"which array? It has {', '.join(names)}: call the one wanted {key!r}")
                return arrays[key if key in names else names[0]]
        if file.suffix in (".parquet", ".pq"):
            return _from_table(require("pyarrow.parquet").read_table(file))
    raise ShortlistError(f"{os.fspath(path)}: known endings are .npy, .npz and .parquet")


def _from_table(table: Any) -> NDArray[Any]:
    columns = [column.to_numpy() for column in table.columns]
    if len(columns) == 1:
        only = columns[0]
        return np.stack(list(only)) if only.dtype == object else only
    return np.stack(columns, axis=1)
