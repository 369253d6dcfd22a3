"""top-k: the rank alone."""

import numpy as np
from numpy.typing import NDArray

from shortlist.device_arrays import beside
from shortlist.sets.scores.base import RankScore


class TopKScore(RankScore):
    """rank of y - u, rank from 1; not randomised: rank - 1. Sets of (nearly) the same size for every row."""

    def of_ranks(self, p: NDArray[np.float64], u: NDArray[np.float64] | None) -> NDArray[np.float64]:
        rank = beside(np.arange(p.shape[1], dtype=np.float64), p)
        return np.broadcast_to(rank, p.shape) if u is None else rank + (1 - u)

    def steps(self, labels: int) -> NDArray[np.float64]:
        return np.arange(labels, dtype=np.float64)
