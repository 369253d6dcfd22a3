"""Joint nonnegative pursuit: which few examples of a dictionary explain an example's labels and its features."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from shortlist.checks import check_not_negative, in_compute_type, whole
from shortlist.errors import ShortlistError
from shortlist.imcl.approximate import AtomIndex
from shortlist.imcl.nonnegative import fit

_BLOCK_ENTRIES = 1 << 17  # correlations looked at together, over the whole batch
_GATHERED = 1 << 22  # numbers of proposed rows gathered together


class PursuitResult(NamedTuple):
    """What was found for each of B rows: at most k dictionary rows, in the order they were picked."""

    indices: Tensor  # (B, k) int64, -1 where fewer are used
    label_coefficients: Tensor  # (B, k), not negative, 0 where the index is -1
    feature_coefficients: Tensor  # (B, k), likewise
    label_residual: Tensor  # (B, L): labels minus their combination of dictionary rows
    feature_residual: Tensor  # (B, D)


@dataclass(frozen=True)
class JointNonnegativePursuit:
    """Greedy search for the dictionary rows whose nonnegative combinations come nearest to labels and to features.

    Formula:
        gain of row i = label_weight max(0, <r_y, y_i>)^2 / ||y_i||^2 + feature_weight max(0, <r_f, f_i>)^2 / ||f_i||^2
        pick the row of largest gain, none twice; stop at k rows or when the largest gain is below the threshold
        after each pick: both coefficient vectors by nonnegative least squares, r_y and r_f = what is left over

    Of the picked rows both coefficient vectors are the exact minima, so that no residual ever grows. Of equal
    gains the lower row's counts (rounding may tell equal rows apart); a row without gain is never picked, whatever the
    threshold. The dictionary is passed over in blocks: the
    memory needed beyond it grows with batch times block, not with its size. Nothing here is differentiated.

    Args:
        k: rows picked at most.
        label_weight, feature_weight: how much labels and features count in the gain.
        threshold: the least gain worth a row.

    Reference:
        Huynh and Elhamifar, "Interactive Multi-Label CNN Learning with Partial Labels", CVPR 2020, supplement 4.1.

    >>> pursuit = JointNonnegativePursuit(k=2)
    >>> labels, features = torch.tensor([[1.0, 1.0, 0.0]]), torch.tensor([[2.0, 0.0]])
    >>> found = pursuit(labels, features, torch.eye(3), torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]))
    >>> found.indices, found.label_coefficients, found.feature_coefficients
    (tensor([[0, 1]]), tensor([[1., 1.]]), tensor([[2., 0.]]))
    """

    k: int = 3
    label_weight: float = 1.0
    feature_weight: float = 1.0
    threshold: float = 1e-6

    def __post_init__(self) -> None:
        whole(self.k, "k", 1)
        for name in ("label_weight", "feature_weight", "threshold"):
            check_not_negative(getattr(self, name), name)

    def __call__(
        self,
        labels: Tensor,
        features: Tensor,
        dictionary_labels: Tensor,
        dictionary_features: Tensor,
        exclude: Tensor | None = None,
        index: AtomIndex | None = None,
    ) -> PursuitResult:
        """Search for every row of a batch.

        Args:
            labels, features: (B, L) and (B, D), what is to be explained.
            dictionary_labels, dictionary_features: (N, L) and (N, D).
            exclude: (B,) the dictionary row that each one may not use (itself), -1 for none.
            index: of the dictionary: only the rows that it proposes are compared, exactly; None compares all of them.
        """
        _check_shapes(labels, features, dictionary_labels, dictionary_features, exclude)
        with torch.inference_mode():  # a tenth faster than no_grad, for so many small operations
            found = self._search(labels, features, dictionary_labels, dictionary_features, exclude, index)
        return PursuitResult(*(part.clone() for part in found))  # ordinary tensors again, for autograd to use

    def _search(
        self,
        labels: Tensor,
        features: Tensor,
        dictionary_y: Tensor,
        dictionary_f: Tensor,
        exclude: Tensor | None,
        index: AtomIndex | None,
    ) -> PursuitResult:
        sides = (
            _Side(labels, dictionary_y, self.label_weight, self.k, "labels"),
            _Side(features, dictionary_f, self.feature_weight, self.k, "features"),
        )
        taken = torch.full((len(labels), self.k + 1), -1, device=labels.device)  # itself, then the rows picked
        if exclude is not None:
            taken[:, 0] = exclude
        # gains relative to the longer of a row's two targets: no scale overflows, and only the threshold notices
        tiny = torch.finfo(torch.float64).tiny
        unit = torch.maximum(*(side.length for side in sides)).clamp(min=tiny)
        least = self.threshold / unit.square().clamp(min=tiny)
        searching = torch.ones(len(labels), dtype=torch.bool, device=labels.device)
        for picked in range(1, self.k + 1):
            gain, best = (
                _largest_gain(sides, unit, taken[:, :picked])
                if index is None
                else _largest_proposed(sides, unit, taken[:, :picked], index)
            )
            searching &= (gain >= least) & (gain > 0)
            if not bool(searching.any()):
                break
            taken[:, picked] = torch.where(searching, best, -1)
            for side in sides:
                side.fit(taken[:, 1 : picked + 1])
        of_labels, of_features = sides
        return PursuitResult(
            taken[:, 1:],
            of_labels.coefficients.to(labels.dtype),
            of_features.coefficients.to(features.dtype),
            of_labels.residual.to(labels.dtype),
            of_features.residual.to(features.dtype),
        )


class _Side:
    """Labels, or features: what is to be explained, the dictionary, and what is left over beside the rows picked."""

    def __init__(self, target: Tensor, dictionary: Tensor, weight: float, k: int, name: str) -> None:
        self.target = self.residual = in_compute_type(target)
        self.dictionary = dictionary
        self.coefficients = target.new_zeros((len(target), k), dtype=torch.float64)
        self.length = _norms(self.target.double(), name)
        norms = torch.cat([_norms(block, f"dictionary_{name}") for block in self.blocks()])
        # squared together with the correlation, so that large numbers are not squared alone
        self.scale = torch.where(norms > 0, math.sqrt(weight) / norms, 0.0).unsqueeze(1)

    def block(self, start: int, stop: int) -> Tensor:
        return self.dictionary[start:stop].to(self.residual.dtype)

    def blocks(self) -> Iterator[Tensor]:
        size = 1 << 16 if self.dictionary.dtype == self.residual.dtype else 4096  # where a block is a copy
        return (self.block(i, i + size) for i in range(0, max(1, len(self.dictionary)), size))

    def gain(self, relative: Tensor, start: int, stop: int) -> Tensor:
        """This side's part of the gain for these residuals, (rows of the block, B)."""
        correlation = self.block(start, stop) @ relative.T  # this way round is faster by half
        return correlation.clamp_(min=0).mul_(self.scale[start:stop]).square_()

    def gain_of(self, places: Tensor, relative: Tensor) -> Tensor:
        """The same for rows of the dictionary that are others for each residual: (B, places)."""
        atoms = self.dictionary[places].to(relative.dtype)
        correlation = (atoms @ relative.unsqueeze(2)).squeeze(2)
        return correlation.clamp_(min=0).mul_(self.scale.squeeze(1)[places]).square_()

    def fit(self, picked: Tensor) -> None:
        """Explain the target by these dictionary rows, as well as can be."""
        coefficients = self.coefficients[:, : picked.shape[1]]
        coefficients[:], self.residual = fit(self.target, self.dictionary, picked, coefficients)


def _largest_gain(sides: tuple[_Side, _Side], unit: Tensor, taken: Tensor) -> tuple[Tensor, Tensor]:
    """The largest gain of each target over the dictionary rows not taken, and which row that is; in squared units."""
    labels, features = sides
    relative_y, relative_f = ((side.residual / unit.unsqueeze(1)).to(side.residual.dtype) for side in sides)
    size, rows = len(labels.dictionary), len(taken)
    gain = labels.residual.new_full((rows,), -math.inf)
    best = taken.new_full((rows,), -1)
    block = max(64, _BLOCK_ENTRIES // max(1, rows))
    for start in range(0, size if rows else 0, block):
        stop = min(start + block, size)
        here = labels.gain(relative_y, start, stop).add_(features.gain(relative_f, start, stop))
        place = (taken - start).T
        outside = (place < 0) | (place >= stop - start)
        least = here.new_full(place.shape, -math.inf).masked_fill_(outside, math.inf)
        here.scatter_reduce_(0, place.clamp_(0, stop - start - 1), least, "amin")
        top, row = here.max(0)
        if start == 0:
            gain, best = top, row
        else:
            better = top > gain
            gain, best = torch.where(better, top, gain), torch.where(better, row + start, best)
    return gain, best


def _largest_proposed(
    sides: tuple[_Side, _Side], unit: Tensor, taken: Tensor, index: AtomIndex
) -> tuple[Tensor, Tensor]:
    """The same over the rows that an index proposes for each target."""
    relative = [(side.residual / unit.unsqueeze(1)).to(side.residual.dtype) for side in sides]
    proposed = index.candidates(*relative)
    possible = (proposed >= 0) & ~(proposed.unsqueeze(2) == taken.unsqueeze(1)).any(2)
    width = sum(side.dictionary.shape[1] for side in sides)
    at_once = max(1, _GATHERED // max(1, proposed.shape[1] * width))
    gains = []
    for rows in torch.arange(len(taken), device=taken.device).split(at_once):
        places = proposed[rows].clamp(min=0)
        parts = [side.gain_of(places, residual[rows]) for side, residual in zip(sides, relative, strict=True)]
        gains.append(torch.stack(parts).sum(0))
    gain, best = torch.cat(gains).masked_fill(~possible, -math.inf).max(1)
    return gain, proposed.gather(1, best.unsqueeze(1)).squeeze(1)


def _norms(rows: Tensor, name: str) -> Tensor:
    norms = torch.linalg.vector_norm(rows, dim=1)
    if not bool(norms.isfinite().all()):
        row = int((~norms.isfinite()).nonzero()[0])
        raise ShortlistError(f"{name} must be finite numbers, and not too large to be squared; row {row} is not")
    return norms


def _check_shapes(y: Tensor, f: Tensor, dictionary_y: Tensor, dictionary_f: Tensor, exclude: Tensor | None) -> None:
    given = {"labels": y, "features": f, "dictionary_labels": dictionary_y, "dictionary_features": dictionary_f}
    for name, tensor in given.items():
        if tensor.ndim != 2 or not tensor.is_floating_point():
            raise ShortlistError(
                f"{name} must be floating point of shape (rows, columns), got {tuple(tensor.shape)} {tensor.dtype}"
            )
    for a, b, dim in (
        ("labels", "features", 0),
        ("dictionary_labels", "dictionary_features", 0),
        ("labels", "dictionary_labels", 1),
        ("features", "dictionary_features", 1),
    ):
        if given[a].shape[dim] != given[b].shape[dim]:
            what = "rows" if dim == 0 else "columns"
            raise ShortlistError(
                f"{a} and {b} must have as many {what}, got shapes {tuple(given[a].shape)} and {tuple(given[b].shape)}"
            )
    if exclude is not None:
        if exclude.shape != y.shape[:1] or exclude.is_floating_point() or exclude.dtype == torch.bool:
            raise ShortlistError(
                f"exclude must hold one dictionary row (or -1) per example, got {tuple(exclude.shape)} {exclude.dtype}"
            )
        size = len(dictionary_y)
        if exclude.numel() and not -1 <= int(exclude.min()) <= int(exclude.max()) < size:
            bad = int(exclude[(exclude < -1) | (exclude >= size)][0])
            raise ShortlistError(
                f"exclude holds {bad}: allowed are the dictionary's rows 0..{size - 1}, and -1 for none"
            )
