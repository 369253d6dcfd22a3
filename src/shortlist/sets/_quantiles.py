"""Sorted calibration scores, with the weight of each: the limit that a new score must not pass, and p-values."""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shortlist.device_arrays import beside

_ROUNDING = 1e-12  # of sums of weights that are equal on paper


class SortedScores:
    """The nonconformity scores of n calibration rows; weights are None where every row counts the same."""

    def __init__(self, values: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> None:
        order = np.argsort(values, kind="stable")
        self.values = values[order]
        self.reached = None if weights is None else weights[order].cumsum()

    def limit(self, alpha: float) -> float:
        """The r-th smallest score, r = ceil((n + 1)(1 - alpha)); infinity (all labels) if r > n."""
        rank = math.ceil((len(self.values) + 1) * (1 - Fraction(repr(alpha))))  # exact: in floats, 10 * 0.3 is above 3
        return self.at_rank(rank)

    def at_rank(self, rank: int) -> float:
        """The rank-th smallest score (from 1): -infinity below 1, infinity beyond the last."""
        if rank < 1:
            return -math.inf
        return float(self.values[rank - 1]) if rank <= len(self.values) else math.inf

    def limits(self, alpha: float, new: NDArray[np.float64]) -> NDArray[np.float64]:
        """For each weight of a new row: the smallest score v where the scores up to v weigh (1 - alpha) (all + new);
        infinity where nothing weighs anything."""
        assert self.reached is not None
        total = self.reached[-1] if len(self.reached) else 0.0
        wanted = (1 - alpha) * (total + new)
        place = np.searchsorted(self.reached, wanted - _ROUNDING * (total + new))
        place = np.where(total + new > 0, place, len(self.values))
        return np.concatenate([self.values, [math.inf]])[place]

    def p_values(self, scores: NDArray[np.float64], new: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """The share of calibration rows, and of the new one, that score at least so much. ``new``: its weight."""
        below = np.searchsorted(self.values, scores)
        if self.reached is None or new is None:
            return (len(self.values) - below + 1) / (len(self.values) + 1)
        reached = beside(np.concatenate([[0.0], self.reached]), scores)
        total = float(reached[-1]) + new
        return np.where(total > 0, (reached[-1] - reached[below] + new) / np.where(total > 0, total, 1.0), 1.0)
