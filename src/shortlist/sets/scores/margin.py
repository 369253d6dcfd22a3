"""margin: how far the best other label is ahead."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.device_arrays import beside
from shortlist.sets.scores.base import ValueScore
from shortlist.sets.scores.lac import at_least

_ROUNDING = 1e-12  # of differences in double, and far more than that


class Margin(ValueScore):
    """The largest p of another label, less p_y (Löfström et al. 2015): negative for the best label alone."""

    def of_labels(self, p: NDArray[Any]) -> NDArray[np.float64]:
        result = -p.astype(np.float64)
        if p.shape[1] > 1:
            row, label = np.arange(len(p)), p.argmax(-1)
            own = result[row, label]
            result -= own[:, None]  # the best, less the others
            result[row, label] = own + self._others(p, row, label)
        return result

    def of_one(self, p: NDArray[Any], row: NDArray[np.int64], label: NDArray[np.int64]) -> NDArray[np.float64]:
        own = p[row, label].astype(np.float64)
        return self._others(p, row, label) - own if p.shape[1] > 1 else -own

    def below(self, p: NDArray[Any], limit: NDArray[np.float64]) -> NDArray[np.bool_]:
        if p.shape[1] == 1 or limit.shape[1] > 1:
            return super().below(p, limit)
        row, label, limit = np.arange(len(p)), p.argmax(-1), beside(np.broadcast_to(limit[:, 0], len(p)), p)
        best = p[row, label].astype(np.float64)
        # only labels that are near the limit are looked at in double
        edge, slack = best - limit, _ROUNDING * (1 + abs(best))
        low, high = (at_least(edge + side * slack, p.dtype.type)[:, None] for side in (-1, 1))
        inside = p >= high
        at, other = np.nonzero((p >= low) ^ inside)
        inside[at, other] = best[at] - p[at, other] <= limit[at]
        inside[row, label] = self._others(p, row, label) - best <= limit
        return inside

    def _others(self, p: NDArray[Any], row: NDArray[np.int64], label: NDArray[np.int64]) -> NDArray[np.float64]:
        """The largest p of another label than this one of each row."""
        rest = p[row]
        rest[np.arange(len(row)), label] = -np.inf
        return rest.max(-1).astype(np.float64)
