"""Similarities to some of the training rows as columns that a linear head is fitted to: a kernel method (Nyström's),
which tells apart what no linear model can."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from shortlist.models.similarities import Similarities

MOST_LANDMARKS = 500
_SMALLEST_AXIS = 1e-4  # beside the largest: what is along smaller ones is hardly ever worth its weight


@dataclass(frozen=True)
class SimilarityColumns:
    """``layer(inputs) @ turn - centre``: the similarities along axes on which products of rows are what the kernel
    says, with a mean of zero and, all together, the variance of as many standardised columns as there are inputs."""

    layer: Similarities
    columns: Tensor
    turn: Tensor
    centre: Tensor

    @classmethod
    def of(cls, inputs: Tensor, count: int, scale: Tensor, seed: int) -> SimilarityColumns | None:
        """Similarities to so many rows, whose columns are multiplied by ``scale``; None where most rows are equal."""
        layer = Similarities.to_some(inputs, count, scale, seed)
        if layer is None:
            return None
        values, axes = torch.linalg.eigh(torch.exp(-(torch.cdist(layer.landmarks, layer.landmarks).double() ** 2)))
        large = values > _SMALLEST_AXIS * values[-1]
        turn = (axes[:, large] / values[large].sqrt()).float()
        columns = layer(inputs) @ turn
        centre = columns.mean(0)
        spread = math.sqrt(inputs.shape[1] / float(((columns - centre) ** 2).sum(1).mean().clamp(min=1e-6)))
        return cls(layer, spread * (columns - centre), spread * turn, spread * centre)

    def head(self, weights: Tensor, biases: Tensor) -> tuple[Tensor, Tensor]:
        """Weights and biases of these columns as those of the similarities."""
        return self.turn @ weights, biases - self.centre @ weights


def landmarks_for(inputs: Any, num_labels: int) -> int:
    """How many rows to compare with: 500, or as many as there are rows or weights of a linear model; so that it takes
    about as long. 0 for sparse inputs, whose products are quick."""
    if not isinstance(inputs, Tensor):
        return 0
    return min(MOST_LANDMARKS, len(inputs), inputs.shape[1] * num_labels)
