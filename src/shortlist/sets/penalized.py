"""Penalized: the set with the best balance of probability against size."""

from typing import Any

from numpy.typing import NDArray

from shortlist.links import AnyLink, link_rows, rule_link
from shortlist.sets._blocks import Block
from shortlist.sets._order import best_labels
from shortlist.sets._rule import SetRule, members, not_negative


class Penalized(SetRule):
    """The non-empty set S that maximises (sum of p over S) - cost * |S|: every label with p >= cost, else the best one.

    p is the linked score; a label at exactly the cost changes nothing and is included. Where no label is worth its
    cost the maximum over all sets is the empty one; a set rule is asked for an answer, so the best label is returned
    (ties by hash). ``Threshold(cost)`` is the same rule with empty sets. There is nothing to fit, and
    nothing is promised: the balance is as right as the probabilities are.

    >>> import numpy as np
    >>> p = np.array([[0.6, 0.3, 0.1], [0.4, 0.3, 0.3]])
    >>> Penalized(0.25).predict(np.log(p)).to_lists(), Penalized(0.5).predict(np.log(p)).to_lists()
    ([[0, 1], [0, 1, 2]], [[0], [0]])
    """

    def __init__(self, cost: float, link: AnyLink = "softmax") -> None:
        self.cost = not_negative(cost, "cost")
        self.link = rule_link(link)

    def sets_of(self, block: Block) -> tuple[NDArray[Any], NDArray[Any]]:
        linked = link_rows(block.scores, self.link, block.first_row)
        inside = linked >= linked.dtype.type(self.cost)
        empty = ~inside.any(-1)
        if empty.any():
            inside[empty, best_labels(block.scores[empty], 1, block.first_row)[:, 0]] = True
        return members(inside)
