"""lac: 1 - p, the least ambiguous sets."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.sets.scores.base import ValueScore


class Lac(ValueScore):
    """1 - p_y, up to the constant: -p_y has its order without its rounding (Sadinle, Lei and Wasserman 2019)."""

    def of_labels(self, p: NDArray[Any]) -> NDArray[np.float64]:
        return -p.astype(np.float64)
