"""Features that stay on disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.labels.label_set_inputs import as_positions


@dataclass(frozen=True, eq=False)
class MappedRows:
    """Some rows of a memory-mapped array (all of them at first), read from disk when asked for.

    >>> mapped = MappedRows(np.arange(6.0).reshape(3, 2)).subset([2, 0])
    >>> mapped.shape, mapped[1]
    ((2, 2), array([0., 1.]))
    """

    source: NDArray[Any]
    rows: NDArray[np.int64] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self), *self.source.shape[1:])

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.source.dtype

    def __len__(self) -> int:
        return len(self.source) if self.rows is None else len(self.rows)

    def __getitem__(self, index: Any) -> NDArray[Any]:
        return np.asarray(self.source[index if self.rows is None else self.rows[index]])

    def subset(self, index: Any) -> MappedRows:
        rows = as_positions(index, len(self), "example")
        return MappedRows(self.source, rows if self.rows is None else self.rows[rows])
