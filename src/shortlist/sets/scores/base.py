"""What a nonconformity score is: a pure function of the linked row, in double. Larger: the label suits the row less."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Score:
    """Of a label in its row. ``uses_masses``: linked scores are added up, and must not be negative."""

    uses_masses = False


class ValueScore(Score):
    """A score that is known without ranking the labels."""

    def of_labels(self, p: NDArray[Any]) -> NDArray[np.float64]:
        """The score of every label of linked rows ``p`` (rows, labels)."""
        raise NotImplementedError

    def of_one(self, p: NDArray[Any], row: NDArray[np.int64], label: NDArray[np.int64]) -> NDArray[np.float64]:
        """The score of one label of each of these rows, to the last bit as ``of_labels`` gives it."""
        return self.of_labels(p[row])[np.arange(len(row)), label]

    def below(self, p: NDArray[Any], limit: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether each score is at most its ``limit`` (rows or 1, labels or 1)."""
        return self.of_labels(p) <= limit


class RankScore(Score):
    """A score that depends on the label's place in its row, and never falls from a better place to a worse one.

    ``before``: what a score that is not randomised takes from the ranks before its own: "m", their mass; "f", the
    probability of the first rank; "n", nothing. ``steps`` is what it adds.
    """

    before = "n"

    def steps(self, labels: int) -> NDArray[np.float64] | None:
        """What is added on rank 1, 2, ...; None: nothing."""
        return None

    def of_ranks(self, p: NDArray[np.float64], u: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """The score of the labels on rank 1, 2, ... of rows ``p`` (rows, labels), each sorted from best to worst.

        ``u``: (rows, 1), the random number in [0, 1) of each row; None: not randomised, which is u = 1.
        """
        raise NotImplementedError
