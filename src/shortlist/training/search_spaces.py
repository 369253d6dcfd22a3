"""Where the full-batch solver looks for weights: among all of them, or among sums of the rows it learns from.

A place there is an array of (sides, rows, labels). The first side says where it is, the last what its inner products
are taken with, and both are added and multiplied alike; the last row are the biases. So the solver asks for scores and
gradients, and does not ask which space it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class AllWeights:
    """Weights (D, L) and biases as they are: one side."""

    def __init__(self, inputs: Any, start: Array) -> None:
        self.inputs, self.turned = inputs, _transposed(inputs)
        self.start = start[None].copy()

    def scores(self, place: Array) -> Array:
        head = place[0]
        # dense ones column by column, in which softmax takes half the time
        found = (head[:-1].T @ self.turned).T if isinstance(self.inputs, np.ndarray) else self.inputs @ head[:-1]
        return np.add(found, head[-1], out=found)

    def gradient(self, by_scores: Array) -> Array:
        found = np.empty((1, self.inputs.shape[1] + 1, by_scores.shape[1]), by_scores.dtype)
        found[0, :-1] = self.turned @ by_scores
        found[0, -1] = by_scores.sum(0)
        return found

    def head(self, place: Array) -> Array:
        """Weights and biases, (D + 1, L)."""
        return place[0]

    def of(self, labels: Array) -> AllWeights:
        """The same for some of the labels."""
        return self


class SumsOfRows:
    """Weights as sums of rows, so many times each, and of the weights to start from.

    A gradient is such a sum, and so is decay: the solver never leaves them, and takes the same steps as among all
    weights. Where columns are many more than rows, as words of long texts are, its arrays are that much shorter. The
    other side of a place are the products with every row, its scores.
    """

    def __init__(self, inputs: Any, start: Array) -> None:
        self.inputs, self.turned, self.origin = inputs, _transposed(inputs), start[:-1]
        self.of_origin = np.asarray(inputs @ self.origin)
        self.start = np.zeros((2, inputs.shape[0] + 2, start.shape[1]), start.dtype)
        self.start[0, -2] = 1
        self.start[1, :-2], self.start[1, -2] = self.of_origin, np.einsum("dl,dl->l", self.origin, self.origin)
        self.start[:, -1] = start[-1]

    def scores(self, place: Array) -> Array:
        return np.asarray(place[1, :-2] + place[1, -1])

    def gradient(self, by_scores: Array) -> Array:
        found = np.zeros((2, len(by_scores) + 2, by_scores.shape[1]), by_scores.dtype)
        found[0, :-2], found[1, :-2] = by_scores, self.inputs @ (self.turned @ by_scores)
        found[1, -2] = np.einsum("nl,nl->l", self.of_origin, by_scores)
        found[:, -1] = by_scores.sum(0)
        return found

    def head(self, place: Array) -> Array:
        """Weights and biases, (D + 1, L)."""
        times = place[0]
        return np.concatenate([self.turned @ times[:-2] + self.origin * times[-2], times[-1:]])

    def of(self, labels: Array) -> SumsOfRows:
        """The same for some of the labels."""
        found = object.__new__(SumsOfRows)
        found.inputs, found.turned = self.inputs, self.turned
        found.origin, found.of_origin = self.origin.compress(labels, 1), self.of_origin.compress(labels, 1)
        return found


def space_of(inputs: Any, start: Array) -> AllWeights | SumsOfRows:
    """Sums of rows where that is shorter: for sparse matrices with more than two columns for every row."""
    wide = not isinstance(inputs, np.ndarray) and inputs.shape[1] > 2 * inputs.shape[0]
    return (SumsOfRows if wide else AllWeights)(inputs, start)


def _transposed(inputs: Any) -> Any:
    """A CSR matrix anew by its columns: multiplied by in half the time, and it is many times."""
    return inputs.T if isinstance(inputs, np.ndarray) else inputs.T.tocsr()
