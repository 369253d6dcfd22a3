"""aps: the mass of the labels ranked before y."""

import numpy as np
from numpy.typing import NDArray

from shortlist.sets.scores.base import RankScore


class Aps(RankScore):
    """(mass up to and with y) - u p_y (Romano, Sesia and Candès 2020); not randomised: the mass before y."""

    uses_masses = True
    before = "m"

    def of_ranks(self, p: NDArray[np.float64], u: NDArray[np.float64] | None) -> NDArray[np.float64]:
        mass = p.cumsum(-1)
        if u is not None:
            mass -= u * p
            return mass
        mass[:, 1:] = mass[:, :-1].copy()
        mass[:, :1] = 0
        return mass
