"""lac: 1 - p, the least ambiguous sets."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.sets.scores.base import ValueScore


class Lac(ValueScore):
    """1 - p_y, up to the constant: -p_y has its order without its rounding (Sadinle, Lei and Wasserman 2019)."""

    def of_labels(self, p: NDArray[Any]) -> NDArray[np.float64]:
        return -p.astype(np.float64)

    def of_one(self, p: NDArray[Any], row: NDArray[np.int64], label: NDArray[np.int64]) -> NDArray[np.float64]:
        return -p[row, label].astype(np.float64)

    def below(self, p: NDArray[Any], limit: NDArray[np.float64]) -> NDArray[np.bool_]:
        return p >= at_least(-limit, p.dtype.type)


def at_least(value: NDArray[np.float64], kind: Any) -> NDArray[Any]:
    """The smallest number of this type that is not below the value: what reaches one reaches the other."""
    with np.errstate(over="ignore"):
        near = value.astype(kind)
    return np.where(near < value, np.nextafter(near, kind(np.inf)), near)
