"""Approximate search: for each example a few dictionary rows, among which nearly always is the row of largest gain."""

import math
from typing import Any

import torch
from torch import Tensor

from shortlist.checks import whole
from shortlist.errors import ShortlistError
from shortlist.optional import require

_DIMENSIONS = 512  # that rows are projected to: half along what they have most in common, half at random
_SAMPLE = 4096  # rows that say what that is
_ANGLES = 3  # labels alone, both alike, features alone: five find no more
_PER_CELL = 39  # rows per cell, at least, as faiss wants them


class AtomIndex:
    """An index of the rows of a dictionary, by faiss (the extra ``search``): which of them may have the largest gain.

    The gain of a row is a^2 + b^2, where a and b are the products of a row's labels and of its features (scaled to
    length 1 and by their weights) with what is left over, or 0 where these are negative. That is the largest value of
    (a cos t + b sin t)^2 over the angles t of a quarter circle, so that the best row is the nearest one, in the sense
    of inner products, for its own angle. The index asks for a few angles, in cells around centres (faiss's IVF), in a
    projection of labels and features together: along their principal directions, in which most of them are nearly the
    same (most labels are absent), and a random one of what is left. What it proposes is compared exactly.

    Args:
        labels, features: (N, L) and (N, D) of the dictionary.
        label_weight, feature_weight: of the pursuit.
        rows: how many rows to propose for each example, at most.
        probes: how many cells to look through for each angle; there are about as many cells as the root of N.
        seed: of the projection.

    >>> generator = torch.Generator().manual_seed(0)
    >>> labels, features = (torch.randn(500, size, generator=generator) for size in (20, 30))
    >>> index = AtomIndex(labels, features, rows=40)
    >>> proposed = index.candidates(labels[:3], features[:3])
    >>> proposed.shape, [row in proposed[row] for row in range(3)]
    (torch.Size([3, 39]), [True, True, True])
    """

    def __init__(
        self,
        labels: Tensor,
        features: Tensor,
        label_weight: float = 1.0,
        feature_weight: float = 1.0,
        *,
        rows: int = 80,
        probes: int = 16,
        seed: int = 0,
    ) -> None:
        whole(rows, "rows", _ANGLES)
        whole(probes, "probes", 1)
        if len(labels) != len(features):
            raise ShortlistError(f"labels are {len(labels)} rows and features {len(features)}: must be as many")
        faiss: Any = require("faiss", "search")
        self.rows, self.probes = rows, probes
        self._weights = math.sqrt(label_weight), math.sqrt(feature_weight)
        y, f = (
            weight * side.float().cpu() / side.float().cpu().norm(dim=1, keepdim=True).clamp(min=1e-30)
            for weight, side in zip(self._weights, (labels, features), strict=True)
        )
        self._projections = _projections(y, f, torch.Generator().manual_seed(seed))
        projected = y @ self._projections[0] + f @ self._projections[1]
        size = projected.shape[1]
        cells = max(1, min(round(math.sqrt(len(labels))), len(labels) // _PER_CELL))
        self._index = faiss.IndexFlatIP(size)
        if cells > 1:
            self._index = faiss.IndexIVFFlat(self._index, size, cells, faiss.METRIC_INNER_PRODUCT)
            self._index.train(projected.numpy())
        self._index.add(projected.numpy())

    def candidates(self, label_residual: Tensor, feature_residual: Tensor) -> Tensor:
        """Rows that may have the largest gain for these residuals (B, L) and (B, D): int64 (B, rows), ascending, with
        -1 where there are fewer."""
        residuals = label_residual.float().cpu(), feature_residual.float().cpu()
        y, f = (residual @ projection for residual, projection in zip(residuals, self._projections, strict=True))
        angles = torch.linspace(0, math.pi / 2, _ANGLES).view(-1, 1, 1)
        queries = (angles.cos() * y + angles.sin() * f).flatten(0, 1)
        if hasattr(self._index, "nprobe"):
            self._index.nprobe = self.probes
        found = torch.from_numpy(self._index.search(queries.numpy(), self.rows // _ANGLES)[1])
        proposed = found.unflatten(0, (_ANGLES, len(y))).transpose(0, 1).flatten(1).sort(dim=1).values
        twice = proposed[:, 1:] == proposed[:, :-1]
        proposed[:, 1:].masked_fill_(twice, -1)
        return proposed.to(label_residual.device)


def _projections(labels: Tensor, features: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """What takes labels and features to the same few dimensions, so that products stay nearly the same; where they have
    few to begin with, one behind the other."""
    width, own = labels.shape[1], labels.shape[1] + features.shape[1]
    if own <= _DIMENSIONS:
        return torch.eye(width, own), torch.eye(own)[width:]
    some = torch.randperm(len(labels), generator=generator)[:_SAMPLE]
    rows = torch.cat([labels[some], features[some]], 1)
    half = min(_DIMENSIONS // 2, len(rows))
    drawn = torch.randn(own, _DIMENSIONS - half, generator=generator) / math.sqrt(_DIMENSIONS - half)
    start = rows @ torch.randn(own, half, generator=generator)
    common = torch.linalg.qr(rows.T @ torch.linalg.qr(rows @ (rows.T @ start))[0])[0]  # two rounds of power iteration
    both = torch.cat([common, drawn - common @ (common.T @ drawn)], 1)
    return both[:width], both[width:]
