"""saps: the best label's probability, and a step for every rank after it; other probabilities do not matter."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shortlist.sets.scores.base import RankScore


@dataclass(frozen=True)
class Saps(RankScore):
    """(1 - u) p_max for the best label, p_max + (rank of y - 1 - u) * penalty for the others (Huang et al. 2024, whose
    random number is 1 - u). Not randomised: 0 for the best label."""

    penalty: float = 0.2
    uses_masses = True
    before = "f"

    def of_ranks(self, p: NDArray[np.float64], u: NDArray[np.float64] | None) -> NDArray[np.float64]:
        share = 1.0 if u is None else u
        rank = np.arange(1, p.shape[1] + 1)
        scores: NDArray[np.float64] = p[:, :1] + (rank - 1 - share) * self.penalty
        scores[:, :1] = (1 - share) * p[:, :1]
        return scores

    def steps(self, labels: int) -> NDArray[np.float64]:
        steps: NDArray[np.float64] = (np.arange(labels, dtype=np.float64) - 1) * self.penalty
        steps[:1] = 0
        return steps
