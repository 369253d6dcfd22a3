"""margin: how far the best other label is ahead."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.sets.scores.base import ValueScore


class Margin(ValueScore):
    """The largest p of another label, less p_y (Löfström et al. 2015): negative for the best label alone."""

    def of_labels(self, p: NDArray[Any]) -> NDArray[np.float64]:
        values = p.astype(np.float64)
        if values.shape[1] == 1:
            return -values
        second, best = np.partition(values, -2, axis=-1)[:, -2:].T
        others = np.where((values == best[:, None]), second[:, None], best[:, None])  # second == best where they tie
        result: NDArray[np.float64] = others - values
        return result
