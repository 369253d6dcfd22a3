"""Rows of an array that stay in their file until a batch asks for them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shortlist.errors import ShortlistError
from shortlist.optional import require


@dataclass(frozen=True, eq=False)
class StoredRows:
    """Some rows of a data set of an HDF5 file. It is indexed as a tensor is, which reads nothing; ``float`` reads.

    Args:
        path: the file.
        key: the data set, (rows, numbers).
        numbers: of a row.
        rows: which rows, in which order.
        dtype: of the numbers in the file.
    """

    path: str
    key: str
    numbers: int
    rows: NDArray[np.int64]
    dtype: np.dtype[Any]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), self.numbers

    def __getitem__(self, index: Any) -> StoredRows:
        at = index.numpy() if isinstance(index, Tensor) else index
        return replace(self, rows=self.rows[at])

    def float(self) -> Tensor:
        """The rows, float32: every run of neighbours is read at once."""
        wanted, place = np.unique(self.rows, return_inverse=True)
        found = np.empty((len(wanted), self.numbers), dtype=np.float32)
        ends = np.flatnonzero(np.diff(wanted, append=-1) != 1) + 1
        with require("h5py").File(self.path) as file:
            begin = 0
            for end in ends.tolist():
                found[begin:end] = file[self.key][wanted[begin] : wanted[end - 1] + 1]
                begin = end
        if not np.isfinite(found).all():
            row = wanted[~np.isfinite(found).all(1)][0]
            raise ShortlistError(f"{self.path}, row {row}: the {self.key} must be finite numbers")
        return torch.from_numpy(found[place])
