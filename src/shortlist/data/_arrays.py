"""Arrays in files: .npy, .npz (dense, or a CSR matrix in pieces) and columns of a parquet table."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist._optional import require
from shortlist.data._problems import Findings

_PIECES = ("data", "indices", "indptr", "shape")


class ArrayFile:
    """One file that holds arrays. ``get`` finds an array by its name; a .npy holds one, which needs none.

    Nothing in a file is run: pickled objects are refused.
    """

    def __init__(self, path: str | os.PathLike[str], memory_map: bool = False) -> None:
        self.path = Path(path)
        kind = self.path.suffix.lower()
        if not self.path.is_file():
            raise ValueError("no such file")
        if kind not in (".npy", ".npz", ".parquet"):
            raise ValueError(f"the file must be .npy, .npz or .parquet, not {kind or 'without a suffix'!r}")
        if memory_map and kind != ".npy":
            raise ValueError(f"memory_map needs a .npy file of inputs, this is {kind}")
        try:
            if kind == ".parquet":
                self._table = require("pyarrow.parquet").read_table(self.path)
                self.keys = list(self._table.column_names)
            else:
                self._table = None
                self._loaded = np.load(self.path, mmap_mode="r" if memory_map else None, allow_pickle=False)
                self.keys = list(self._loaded.files) if kind == ".npz" else []
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"cannot be read: {error}") from error

    def get(self, key: str) -> Any:
        """A numpy array, or a scipy CSR matrix."""
        try:
            if self._table is not None:
                return self._column(key)
            if isinstance(self._loaded, np.ndarray):
                return self._loaded
            if key in self.keys:
                return self._loaded[key]
            if all(f"{key}_{piece}" in self.keys for piece in _PIECES):
                return self._csr(f"{key}_")
            if all(piece in self.keys for piece in _PIECES):  # what scipy.sparse.save_npz writes
                return self._csr("")
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
            raise ValueError(f"{key!r} cannot be read: {error}") from error
        raise ValueError(f"there is no {key!r}; the file has {', '.join(map(repr, self.keys))}")

    def columns(self, key: str) -> tuple[str, ...] | None:
        """The names after ``key_`` where the array was spread over several columns."""
        if self._table is None or key in self.keys:
            return None
        return tuple(name.removeprefix(f"{key}_") for name in self.keys if name.startswith(f"{key}_"))

    def _csr(self, prefix: str) -> Any:
        sparse = require("scipy.sparse")
        form = self._loaded["format"] if "format" in self.keys and not prefix else np.array(b"csr")
        if form.item() not in (b"csr", "csr"):
            raise ValueError(f"the sparse matrix must be stored as csr, not {form.item()!r}")
        data, indices, indptr, shape = (self._loaded[f"{prefix}{piece}"] for piece in _PIECES)
        matrix = sparse.csr_matrix((data, indices, indptr), shape=tuple(int(n) for n in shape))
        matrix.check_format()
        matrix.sum_duplicates()
        return matrix

    def _column(self, key: str) -> NDArray[Any]:
        if self._table is None:
            raise TypeError("only a table has columns")
        if key not in self.keys:
            names = [name for name in self.keys if name.startswith(f"{key}_")]
            if not names:
                raise KeyError(f"no column {key} and no columns {key}_*, only {', '.join(self.keys)}")
            return np.stack([_plain(self._table.column(name), name) for name in names], axis=1)
        return _plain(self._table.column(key), key)


def _plain(column: Any, name: str) -> NDArray[Any]:
    """A parquet column as an array: (N,), or (N, D) for lists of equal length. Blank numbers become NaN."""
    types = require("pyarrow.types")
    kind = column.type
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        lists = column.combine_chunks()
        if lists.null_count:
            raise ValueError(f"column {name!r} has a blank in row {int(np.argmax(lists.is_null().to_numpy(False)))}")
        lengths = require("pyarrow.compute").list_value_length(lists).to_numpy(False)
        if len(set(lengths.tolist())) > 1:
            row = int(np.argmax(lengths != lengths[0]))
            raise ValueError(f"column {name!r} has {lengths[row]} values in row {row} and {lengths[0]} in row 0")
        values = np.asarray(lists.flatten().to_numpy(False))
        return values.reshape(len(lists), -1)
    if types.is_string(kind) or types.is_large_string(kind):
        return np.asarray(column.to_pylist(), dtype=object)
    return np.asarray(column.to_numpy())


def open_arrays(path: str | os.PathLike[str], findings: Findings, memory_map: bool = False) -> ArrayFile | None:
    """The file, or None with the reason noted."""
    try:
        return ArrayFile(path, memory_map)
    except ValueError as error:
        findings.add(path, str(error))
        return None


def get_array(file: ArrayFile | None, key: str | None, findings: Findings) -> Any:
    """The array called ``key``, or None where there is no file or no key, or with the reason noted."""
    if file is None or key is None:
        return None
    try:
        return file.get(key)
    except ValueError as error:
        findings.add(file.path, str(error))
        return None
