"""Threshold: every label whose linked score reaches a given value."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from shortlist.errors import ShortlistError
from shortlist.links import AnyLink, link_rows, rule_link
from shortlist.sets._blocks import Block
from shortlist.sets._one_row import Labels, reaching
from shortlist.sets._rule import SetRule, members, number


class Threshold(SetRule):
    """The labels with linked score >= value, compared in the scores' type. There is nothing to fit, and
    nothing is promised: `RiskControl` chooses a threshold that keeps a promise.

    ``link``: "softmax" (single-label models), "sigmoid" (multi-label) or "none" (the scores are compared as they are).
    With softmax or sigmoid, ``value`` is a probability.

    >>> import torch
    >>> Threshold(0.5, link="sigmoid").predict(torch.tensor([[2.0, -2.0, 0.0], [-1.0, -1.0, -1.0]])).to_lists()
    [[0, 2], []]
    """

    def __init__(self, value: float, link: AnyLink = "softmax") -> None:
        self.value = number(value, "value")
        self.link = rule_link(link)
        if link != "none" and not 0 <= self.value <= 1:
            raise ShortlistError(
                f"value must be between 0 and 1 with link={link!r} (it is a probability), got {value!r}"
            )
        if abs(self.value) == float("inf"):
            raise ShortlistError(f"value must be finite, got {value!r}")

    def labels_of_row(self, scores: Tensor) -> Labels | None:
        return reaching(scores, self.link, float(np.float32(self.value)))

    def sets_of(self, block: Block) -> tuple[NDArray[Any], NDArray[Any]]:
        linked = link_rows(block.scores, self.link, block.first_row)
        return members(linked >= linked.dtype.type(self.value))
