"""raps: aps, and a penalty for every rank beyond the first few."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shortlist.sets.scores.aps import Aps


@dataclass(frozen=True)
class Raps(Aps):
    """aps + penalty * max(0, rank of y - free_rank), rank from 1 (Angelopoulos et al. 2021)."""

    penalty: float = 0.01
    free_rank: int = 5

    def of_ranks(self, p: NDArray[np.float64], u: NDArray[np.float64] | None) -> NDArray[np.float64]:
        mass = super().of_ranks(p, u)
        mass += self.steps(p.shape[1])
        return mass

    def steps(self, labels: int) -> NDArray[np.float64]:
        beyond = np.arange(1, labels + 1) - min(self.free_rank, labels)
        return self.penalty * np.maximum(beyond, 0)
