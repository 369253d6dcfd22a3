"""PointwiseError: for every row, the smallest set that the model gives a probability of at least 1 - eps."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.links import AnyLink, link_rows, rule_link
from shortlist.sets._blocks import Block
from shortlist.sets._nonconformity import FIRST, check_masses, first_labels, first_ranks
from shortlist.sets._rule import SetRule, members, number


class PointwiseError(SetRule):
    """The most probable labels until their share of the row's mass reaches 1 - eps; at least one label.

    The promise is only as good as the model's probabilities; ``Conformal`` needs no such trust. With link "none" the
    scores themselves are the masses and must not be negative. There is nothing to fit.

    >>> import numpy as np
    >>> p = np.array([[0.7, 0.2, 0.1], [0.4, 0.35, 0.25]])
    >>> PointwiseError(0.2).predict(np.log(p)).to_lists()
    [[0, 1], [0, 1, 2]]
    """

    def __init__(self, eps: float, link: AnyLink = "softmax") -> None:
        self.eps = number(eps, "eps", "at least 0 and below 1", lambda x: 0 <= x < 1)
        self.link = rule_link(link)

    def sets_of(self, block: Block) -> tuple[NDArray[Any], NDArray[Any]]:
        mass = link_rows(block.scores, self.link, block.first_row)
        check_masses(mass, block.first_row)
        if self.eps == 0 or mass.shape[1] <= FIRST:
            return members(self._first(mass, block.scores, None, mass.shape[1])[0])
        # the mass of a row needs no order: most rows need a few ranks alone
        wanted = (1 - self.eps) * mass.astype(np.float64).sum(-1, keepdims=True)
        inside, going_on = self._first(mass, block.scores, wanted, FIRST)
        if len(going_on):
            rest = self._first(mass[going_on], block.scores[going_on], wanted[going_on], mass.shape[1])
            inside[going_on] = rest[0]
        return members(inside)

    def _first(
        self, mass: NDArray[Any], scores: NDArray[Any], wanted: NDArray[np.float64] | None, ranks: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Membership as far as the first ranks tell it, and the rows whose sets may go on beyond them."""
        ranked = first_ranks(mass, ranks)
        reached = ranked.cumsum(-1, dtype=np.float64)
        if wanted is None:
            wanted = (1 - self.eps) * reached[:, -1:]
        # a label is needed while the labels before it have not reached the wanted mass
        needed = 1 + (reached[:, :-1] < wanted).sum(-1)
        going_on = np.flatnonzero(needed == ranks) if ranks < mass.shape[1] else np.zeros(0, np.int64)
        return first_labels(mass, ranked, needed, scores), going_on
