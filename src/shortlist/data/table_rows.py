"""Rows of a table as they are written: numbers, names and blanks."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.data.frame_columns import numbers_in


class TableRows:
    """The feature columns of a table in a pandas frame: inputs that a `Preprocessor` has yet to make numbers of."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.frame.shape
        return int(rows), int(columns)

    @cached_property
    def numbers(self) -> dict[Any, NDArray[Any]]:
        """The columns of plain numbers, by name."""
        return numbers_in(self.frame)

    def column(self, name: str) -> Any:
        """An array of numbers; a pandas series of anything else."""
        return self.numbers[name] if name in self.numbers else self.frame[name]

    def marks(self) -> NDArray[Any]:
        """A mark of each row: equal marks, equal rows."""
        from pandas.util import hash_array, hash_pandas_object

        others = [name for name in self.frame if name not in self.numbers]
        marks = hash_pandas_object(self.frame[others], index=False).to_numpy()
        if self.numbers:
            bits = [one.astype(f"{one.dtype.kind}8", copy=False).view(np.uint64) for one in self.numbers.values()]
            odd = np.random.default_rng(0).integers(1 << 63, size=len(bits), dtype=np.uint64) * 2 + 1
            marks = marks * odd.sum() + hash_array(np.stack(bits, axis=1).ravel()).reshape(len(marks), -1) @ odd
        return marks

    def subset(self, rows: Any) -> TableRows:
        return TableRows(self.frame.iloc[rows])
