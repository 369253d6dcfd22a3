"""Arrays in files: .npy, .npz (dense, or a CSR matrix in pieces), columns of a table, and sparse ones in a text."""

from __future__ import annotations

import math
import os
import tokenize
import zipfile
import zlib
from collections.abc import Collection, Sequence
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import IO, Any

import numpy as np

from shortlist.data.column_use import (
    ALWAYS_BLANK,
    DECIMAL_COMMAS,
    LISTS,
    NO_NAME,
    NO_NUMBERS,
    UNEVEN_LISTS,
    is_nameless,
    listed,
)
from shortlist.data.limits import check_unpacked
from shortlist.data.readers._arff import SparseColumns
from shortlist.data.readers._columns import Columns, TextColumns, TypedColumns, as_categories
from shortlist.data.readers._sparse_text import read_sparse_text
from shortlist.data.readers.findings import Findings, missing
from shortlist.data.readers.tables import SPARSE_TEXT, TABLE_ENDINGS, names_table, open_table
from shortlist.data.table_rows import TableRows
from shortlist.data.written_numbers import READ
from shortlist.errors import ShortlistError, renamed
from shortlist.files import PathLike
from shortlist.optional import require

# what numpy, scipy and zipfile raise about files that are damaged
_DAMAGE = (OSError, ValueError, EOFError, KeyError, TypeError, OverflowError, NotImplementedError, RuntimeError,
           SyntaxError, zipfile.BadZipFile, zlib.error, tokenize.TokenError)  # fmt: skip
_NAME_BYTES = 100  # about what the name of a label takes, and a column that is nowhere present takes nothing else
_PIECES = ("data", "indices", "indptr", "shape")
_MANY, _CELLS = 200, 1 << 24  # columns are copied side by side, up to so many cells: pandas is slow if they lie apart
_NO_COLUMN = "at least one column must be named"
_KINDS = (".npy", ".npz", *TABLE_ENDINGS, *SPARSE_TEXT)
_INPUTS = "X"  # the key that stands for all other columns of numbers, where a table has none of this name


class ArrayFile:
    """One file that holds arrays. ``get`` finds an array by its name; a .npy holds one, which needs none.

    Nothing in a file is run: pickled objects are refused.
    """

    def __init__(self, path: PathLike, memory_map: bool = False, table: Columns | None = None) -> None:
        self.path = Path(path)
        kind = self.path.suffix.lower()
        if not self.path.is_file():
            raise ShortlistError(missing(self.path, "file"))
        if table is None and kind not in _KINDS:
            raise ShortlistError(
                f"the file must be {', '.join(_KINDS[:-1])} or {_KINDS[-1]}, not {kind or 'without a suffix'!r}"
            )
        if memory_map and kind != ".npy":
            raise ShortlistError(f"memory_map needs a .npy file of inputs, this is {kind}")
        self.table = table
        self._arrays: dict[str, Any] = {}
        try:
            if kind in SPARSE_TEXT:
                self._arrays = read_sparse_text(self.path)
            elif table is None:
                if kind == ".npy":
                    with open(self.path, "rb") as file:
                        _check_size(file, self.path.stat().st_size)
                self._loaded = np.load(self.path, mmap_mode="r" if memory_map else None, allow_pickle=False)
        except _DAMAGE as error:
            raise ShortlistError(f"cannot be read: {error}") from error
        self.keys = list(self._arrays)
        if kind not in SPARSE_TEXT:
            self.keys = list(table.names if table is not None else self._loaded.files if kind == ".npz" else [])

    @property
    def is_table(self) -> bool:
        """Whether arrays are columns, in which blanks are possible."""
        return self.table is not None

    @property
    def is_sparse(self) -> bool:
        """Whether columns side by side are a sparse matrix."""
        return isinstance(self.table, SparseColumns)

    def get(self, key: str, named: Collection[str] = (), as_text: bool = False) -> Any:
        """A numpy array, or a scipy CSR matrix. In a table, the columns ``named`` have another use."""
        try:
            if self.table is not None:
                columns = self.spread(key, named)
                if columns:
                    return self.stack(columns)
                if columns is None:
                    return self.table.texts(key) if as_text else self.table.array(key)
            elif key in self._arrays:
                return self._arrays[key]
            elif not self._arrays and isinstance(self._loaded, np.ndarray):
                return self._loaded
            elif not self._arrays and key in self.keys:
                return self._member(key)
            elif all(f"{key}_{piece}" in self.keys for piece in _PIECES):
                return self._csr(f"{key}_")
            elif all(piece in self.keys for piece in _PIECES):  # what scipy.sparse.save_npz writes
                return self._csr("")
        except _DAMAGE as error:
            raise ShortlistError(f"{key!r} cannot be read: {error}") from error
        has = ", ".join(map(repr, self.keys))
        if self.table is not None and key == _INPUTS:
            unused = "no column is left to be a feature: all have another use or none"
            raise ShortlistError(f"{unused}; the columns are {has}")
        if self.table is not None:
            raise ShortlistError(f"there is no column {key!r} and no column {f'{key}_*'!r}; the columns are {has}")
        raise ShortlistError(f"there is no {key!r}; the file has {has}")

    def stack(self, columns: Sequence[str]) -> Any:
        """These columns of numbers side by side."""
        if self.table is None:
            raise ShortlistError(f"there is no column {columns[0]!r}: this is no table" if columns else _NO_COLUMN)
        self.check_columns(columns)
        if isinstance(self.table, SparseColumns):
            return self.table.matrix(columns)
        return np.stack([self.table.numbers(name) for name in columns], axis=1)

    def frame(self, columns: Sequence[str], names: Collection[str] = ()) -> TableRows:
        """These columns side by side, as they are written; those of ``names`` are categories in any case."""
        self.check_columns(columns)
        absent = [name for name in names if name not in columns]
        if absent:
            there = f"the features are {listed([repr(name) for name in columns])}"
            raise ShortlistError(
                f"name_columns: there is no feature {listed([repr(name) for name in absent])}: {there}"
            )
        assert self.table is not None
        pandas, table = require("pandas"), self.table

        def values_of(name: str) -> Any:
            if name not in names:
                return table.values(name)
            as_written = isinstance(table, TextColumns | TypedColumns) and table.is_flat(name)
            return as_categories(table.texts(name) if as_written else table.values(name))

        with ThreadPool(os.cpu_count()) as pool:  # pyarrow parses without the interpreter's lock
            values = dict(zip(columns, pool.map(values_of, columns), strict=True))  # many columns at a time
        together = len(columns) > _MANY and len(columns) * len(next(iter(values.values()))) < _CELLS
        frame = pandas.DataFrame(values, copy=together)
        frame.attrs[READ] = table.written.facts() if isinstance(table, TextColumns | TypedColumns) else {}
        return TableRows(frame)

    def check_columns(self, columns: Sequence[str]) -> None:
        """Raise a ShortlistError where there is none, or one that the table does not have."""
        there = set(self.keys)
        absent = [name for name in columns if name not in there]
        if absent:
            have = f"the columns are {listed([repr(name) for name in self.keys])}{renamed(absent, self.keys)}"
            raise ShortlistError(f"there is no column {listed([repr(name) for name in absent])}: {have}")
        if not columns:
            raise ShortlistError(_NO_COLUMN)

    def spread(self, key: str, named: Collection[str] = (), with_names: bool = False) -> list[str] | None:
        """The columns of a table that the key stands for; None where it is the name of one, or in other files.

        ``with_names``: features need not be numbers.
        """
        if self.table is None:
            return None
        found = [name for name in self.keys if name.startswith(f"{key}_")]
        if key in self.keys and (key != _INPUTS or not self.table.is_flat(key)):
            return None
        if key == _INPUTS and not found:
            fits = self.table.is_feature if with_names else self.table.has_numbers
            found = [name for name in self.keys if not is_nameless(name) and name not in named and fits(name)]
        return found

    def why_no_feature(self, name: str, key: str, chosen: bool) -> str:
        """Why a column that nothing else is made of is no feature; ``key`` stands for them, unless they were chosen."""
        if is_nameless(name):
            return NO_NAME if self._says_something(name) else f"{NO_NAME}, and is blank or counts the rows"
        if chosen:
            return "it is not among the features that were named"
        if self.table is not None and self.table.has_numbers(name):
            return f"the features are the columns {key}_*"
        if self.table is not None and not self.table.is_flat(name):
            has_vectors = isinstance(self.table, TypedColumns) and self.table.has_vectors(name)
            return LISTS if has_vectors else UNEVEN_LISTS
        if self.table is not None and self.table.is_blank(name):
            return ALWAYS_BLANK
        return DECIMAL_COMMAS if self.table is not None and self.table.has_decimal_commas(name) else NO_NUMBERS

    def _says_something(self, name: str) -> bool:
        """Whether a column is neither blank nor the numbers of the rows."""
        if self.table is None or self.table.is_blank(name):
            return False
        values = self.table.array(name) if self.table.is_flat(name) else np.empty(0, object)
        return values.dtype.kind not in "if" or bool((np.diff(values) != 1).any())

    def _member(self, key: str) -> Any:
        """An array of an .npz, once its size is known to be right."""
        names = self._loaded.zip.namelist()
        member = self._loaded.zip.getinfo(key if key in names else f"{key}.npy")
        check_unpacked(self.path, member.file_size)
        with self._loaded.zip.open(member) as file:
            _check_size(file, member.file_size)
        return self._loaded[key]

    def _csr(self, prefix: str) -> Any:
        sparse = require("scipy.sparse")
        form = self._member("format") if "format" in self.keys and not prefix else np.array(b"csr")
        if form.item() not in (b"csr", "csr"):
            raise ShortlistError(f"the sparse matrix must be stored as csr, not {form.item()!r}")
        data, indices, indptr, shape = (self._member(f"{prefix}{piece}") for piece in _PIECES)
        rows, columns = (int(size) for size in shape)
        check_unpacked(self.path, _NAME_BYTES * columns)
        matrix = sparse.csr_matrix((data, indices, indptr), shape=(rows, columns))
        matrix.check_format()
        matrix.sum_duplicates()
        return matrix


def _check_size(file: IO[bytes], size: int) -> None:
    """Raise a ShortlistError where a .npy of ``size`` bytes promises more numbers than can be in it."""
    version = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, kind = read_header(file)
    promised, there = math.prod(shape) * kind.itemsize, size - file.tell()
    if min(shape, default=0) < 0 or promised > there:
        raise ShortlistError(
            f"it says that it holds {shape} of {kind}, {promised} bytes, but has {there}: is it cut off?"
        )


def open_arrays(
    path: PathLike,
    findings: Findings,
    memory_map: bool = False,
    decimal: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    column_names: Sequence[str] | None = None,
) -> ArrayFile | None:
    """The file, or None with the reason noted."""
    table = None
    if names_table(path):
        how = {"decimal": decimal, "delimiter": delimiter, "encoding": encoding}
        table = open_table(path, findings, column_names=column_names, **how)
        if table is None:
            return None
    try:
        return ArrayFile(path, memory_map, table)
    except ValueError as error:
        findings.add(path, str(error))
        return None


def get_array(
    file: ArrayFile | None,
    key: str | None,
    findings: Findings,
    *,
    columns: Sequence[str] | None = None,
    named: Collection[str] = (),
    as_text: bool = False,
    as_table: bool = False,
    names: Collection[str] = (),
) -> Any:
    """The array called ``key``, or these columns; None where there is no file or no key, or with the reason noted."""
    if file is None or (key is None and columns is None):
        return None
    try:
        if as_table and file.is_table and not file.is_sparse:
            wanted = columns if columns is not None else file.spread(key or "", named, with_names=True)
            if wanted:
                return file.frame(wanted, names)
        return file.get(key or "", named, as_text) if columns is None else file.stack(columns)
    except ValueError as error:
        findings.add(file.path, str(error))
        return None


def widened(matrix: Any, file: ArrayFile | None, columns: int | None, findings: Findings) -> Any:
    """A matrix of a text that does not say how many columns it has, with so many; others as they are."""
    if columns is None or file is None or file.path.suffix.lower() not in SPARSE_TEXT or not hasattr(matrix, "resize"):
        return matrix
    if matrix.ndim == 2 and columns < matrix.shape[1]:
        findings.add(file.path, f"there are {columns} columns according to num_features or num_labels, it has more")
    elif matrix.ndim == 2:
        matrix.resize((matrix.shape[0], columns))
    return matrix
