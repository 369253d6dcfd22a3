"""TopK: exactly k labels for every row."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from shortlist.checks import whole
from shortlist.errors import ShortlistError
from shortlist.sets._blocks import Block
from shortlist.sets._one_row import Labels, best
from shortlist.sets._order import best_labels
from shortlist.sets._rule import SetRule


class TopK(SetRule):
    """The k labels with the highest scores. There is nothing to fit; ``fit`` only fixes the number of labels. It
    promises the size of sets, and nothing about how often they hold the right label.

    Any increasing link gives the same sets, so there is none to choose. Labels that tie for the last place are chosen
    by a hash of the row's content and the label.

    >>> import torch
    >>> TopK(2).predict(torch.tensor([[0.1, 3.0, 2.0], [5.0, -1.0, 0.0]])).to_lists()
    [[1, 2], [0, 2]]
    """

    block_size = 1 << 23  # nothing as large as the scores is made of them, and fewer calls are faster

    def __init__(self, k: int) -> None:
        self.k = whole(k, "k", 1)

    def learn(self, block: Block) -> None:
        self._check_k(block.scores.shape[1])

    def labels_of_row(self, scores: Tensor) -> Labels | None:
        return best(scores, self.k)

    def sets_of(self, block: Block) -> tuple[NDArray[Any], NDArray[Any]]:
        self._check_k(block.scores.shape[1])
        return np.full(len(block.scores), self.k), best_labels(block.scores, self.k, block.first_row).reshape(-1)

    def _check_k(self, num_labels: int) -> None:
        if self.k > num_labels:
            raise ShortlistError(f"k must be between 1 and {num_labels} (the number of labels), got {self.k}")
