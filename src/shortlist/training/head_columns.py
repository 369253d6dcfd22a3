"""What a linear head is fitted to: columns on a scale, or, in their place, similarities to some of the training rows (a
kernel method, Nyström's, which tells apart what no linear model can)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from shortlist.models.similarities import MOST_LANDMARKS, Similarities
from shortlist.training.full_batch import Turned

_SMALLEST_AXIS = 1e-4  # beside the largest: what is along smaller ones is hardly ever worth its weight
_ALIKE = 1.4  # times as wide a column may spread as another one for all scales to be nearly the same
_ONE_KIND = 100  # times as wide a column may spread as another one of the same unit
_BATCH = 1024
OWN_SCALE, ONE_SCALE, BETWEEN = "each column's own", "one for all columns", "between the two"


@dataclass(frozen=True)
class Scales:
    """What is subtracted from columns, and what they are then multiplied by: for each to have a scale of its own, or
    for all to have one. None: nothing, or, of ``one``, that it is not worth a try."""

    centre: Tensor | None = None
    own: Tensor | None = None
    one: Tensor | None = None

    @classmethod
    def standard(cls, inputs: Tensor) -> Scales:
        """Of columns as they come: standardised, or only centred.

        >>> Scales.standard(torch.tensor([[0.0, 0.0], [2.0, 4.0]])).own
        tensor([1.0000, 0.5000])
        """
        mean, spread = inputs.mean(0), inputs.std(0, correction=0)
        spread = torch.where(spread > 0, spread, 1.0)
        return cls(mean, 1 / spread, torch.full_like(spread, float(1 / spread.square().mean().sqrt())))

    def tried(self, inputs: Any) -> dict[str, Tensor | None]:
        """What to multiply columns by, the form that is searched first before the others.

        Columns of one kind, such as a network's features or principal components, say by their spread how much they
        matter: what is between that and scales of their own is seldom far off, and where there are more of them than
        rows, so that most are noise, their spread is the best first guess. Of columns in different units spreads say
        little, but those of two values (0 and 1) are of one kind, and on scales of their own the rarest would
        count most: between the two, they are from 0 to 1, as the categories of a table are.

        >>> table = torch.tensor([[0.0, 1.0], [0.0, 3.0], [1.0, 5.0], [0.0, 7.0]])
        >>> list(Scales.standard(table).tried(table))
        ['between the two', 'one for all columns', "each column's own"]
        >>> list(Scales.standard(table.T).tried(table.T))  # more columns than rows
        ['one for all columns', 'between the two', "each column's own"]
        >>> table[:, 1] *= 1e6  # another unit
        >>> Scales.standard(table).tried(table)["between the two"]
        tensor([1.0000e+00, 4.4721e-07])
        """
        if self.one is None:
            return {OWN_SCALE: self.own}
        own = torch.ones_like(self.one) if self.own is None else self.own
        ratios = self.one / own
        small, large = np.quantile(ratios.numpy(), [0.01, 0.99], method="nearest")
        if large <= _ALIKE * small:
            return {OWN_SCALE: self.own}
        if large <= _ONE_KIND * small:
            between = own * (ratios / ratios.mean()).sqrt()  # all together they vary as much as on their own scales
            forms = {BETWEEN: between, ONE_SCALE: self.one, OWN_SCALE: self.own}
            first = ONE_SCALE if inputs.shape[1] > inputs.shape[0] else BETWEEN
            return {first: forms.pop(first), **forms}
        low, high = inputs.aminmax(dim=0)
        of_two = ((inputs == low) | (inputs == high)).all(0) & (low < high)
        if not of_two.any():
            return {OWN_SCALE: self.own, ONE_SCALE: self.one}
        return {BETWEEN: torch.where(of_two, 1 / (high - low), own), OWN_SCALE: self.own, ONE_SCALE: self.one}


@dataclass(frozen=True)
class HeadColumns:
    """What a head is fitted to, ``(inputs - centre) * scale``, or, where there is a ``layer`` of similarities,
    ``layer.to_landmarks(inputs) @ scale``; then turned to the principal axes, where that pays."""

    columns: Any
    turned: Turned | None
    centre: Tensor | None
    scale: Tensor | None
    layer: Similarities | None

    @classmethod
    def scaled(cls, inputs: Any, centre: Tensor | None, scale: Tensor | None) -> HeadColumns:
        columns = inputs if centre is None else inputs - centre
        columns = columns if scale is None else columns * scale
        turned = Turned.of(columns)
        return cls(columns if turned is None else turned.columns, turned, centre, scale, None)

    @classmethod
    def similar(cls, inputs: Tensor, layer: Similarities) -> HeadColumns:
        """The similarities along axes on which products of rows are what the kernel says, with, all together, the
        variance of as many standardised columns as there are inputs."""
        values, axes = torch.linalg.eigh(torch.exp(-(torch.cdist(layer.landmarks, layer.landmarks).double() ** 2)))
        large = values > _SMALLEST_AXIS * values[-1]
        scale = (axes[:, large] / values[large].sqrt()).float()
        columns = torch.cat([layer.to_landmarks(some) @ scale for some in inputs.split(_BATCH)])
        spread = math.sqrt(inputs.shape[1] / float(columns.var(0, correction=0).sum().clamp(min=1e-6)))
        turned = Turned.of(spread * columns)
        assert turned is not None  # there are few landmarks
        return cls(turned.columns, turned, None, spread * scale, layer)

    @property
    def variances(self) -> Tensor | None:
        return None if self.turned is None else self.turned.variances

    def head(self, weights: Tensor, biases: Tensor) -> tuple[Tensor, Tensor]:
        """Weights and biases of these columns as those of the inputs, or of the similarities."""
        if self.turned is not None:
            weights, biases = self.turned.head(weights, biases)
        if self.scale is not None:
            weights = self.scale @ weights if self.scale.ndim == 2 else weights * self.scale[:, None]
        return weights, biases if self.centre is None else biases - self.centre @ weights


    def of_head(self, weights: Tensor, biases: Tensor) -> Tensor:
        """The other way: weights (biases in the last row) that give the rows these were made of the same scores."""
        if self.centre is not None:
            biases = biases + self.centre @ weights
        if self.scale is not None:
            weights = weights / self.scale[:, None]
        if self.turned is not None:
            biases, weights = biases + self.turned.centre @ weights, self.turned.axes.T @ weights
        return torch.cat([weights, biases[None]])


def landmarks_for(rows: int, columns: int, num_labels: int, single: bool) -> int:
    """How many rows to compare with: 500, or as many as there are rows, or fewer, so that it takes about as long as a
    linear model. Of single labels that is soon fitted, but where rows are few most of the time goes elsewhere."""
    few_rows = 25_000 * min(num_labels, 4) // rows
    return min(MOST_LANDMARKS, rows, 4 * columns + few_rows if single else columns * num_labels)
