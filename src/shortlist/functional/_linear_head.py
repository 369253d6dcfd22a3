"""Linear scores by blocks: a head that is never applied to all at once, and gathers its gradients on the way."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from shortlist.checks import compute_type, in_compute_type
from shortlist.kernels.ops import gradient_memory

ALL = slice(None)


class Head:
    """``features @ weight.T + bias`` and the gradients of the three, a block of rows or labels at a time.

    Products are of the type that autocast asks for, where it is on, and summed in float32 or better. ``wanted`` says of
    features, weight and bias whether a gradient is; nothing else is ever kept of a block.
    """

    def __init__(self, features: Tensor, weight: Tensor, bias: Tensor | None, wanted: tuple[bool, bool, bool]) -> None:
        device = features.device.type
        kind = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else features.dtype
        self.features, self.weight = features.to(kind), weight.to(kind)
        self.bias = None if bias is None else bias.to(kind)
        self.kind, self.learns = kind, any(wanted)
        self._like = (features, weight, bias)
        self._blocks: list[Tensor | None] = [None, None]  # memory of a block of scores, and of its gradient
        self._sums = [
            in_compute_type(part.new_empty(0)).new_zeros(part.shape) if want and part is not None else None
            for part, want in zip(self._like, wanted, strict=True)
        ]

    def __len__(self) -> int:
        return len(self.features)

    @property
    def num_labels(self) -> int:
        return len(self.weight)

    @property
    def entry_bytes(self) -> int:
        return compute_type(self.kind).itemsize

    def scores(self, rows: slice = ALL, labels: slice = ALL) -> Tensor:
        """A block of scores, in the type that losses compute in; made in the memory of the block before."""
        features, weight = self.features[rows], self.weight[labels]
        shape = (len(features), len(weight))
        scores = self._memory(0, features, math.prod(shape)).view(shape)
        if self.bias is None:
            torch.mm(features, weight.T, out=scores)
        else:
            torch.addmm(self.bias[labels], features, weight.T, out=scores)
        return in_compute_type(scores).detach()

    def gradient_memory(self, scores: Tensor) -> Tensor:
        """For the gradient of a block of scores: that of the block before."""
        return self._memory(1, scores, scores.numel()).view(scores.shape)

    def _memory(self, which: int, like: Tensor, size: int) -> Tensor:
        """The memory of the block before, where it is large enough."""
        held = self._blocks[which]
        if held is None or held.numel() < size:
            self._blocks[which] = held = like.new_empty(size)
        return held[:size]

    def add(self, gradient: Tensor, rows: slice = ALL, labels: slice = ALL, factor: Tensor | float = 1.0) -> None:
        """Take in ``factor`` times the gradient of a block of scores."""
        of_features, of_weight, of_bias = self._sums
        if of_features is not None:
            of_features[rows] += self._product(gradient, self.weight[labels]) * factor
        if of_weight is not None:
            if of_weight.dtype == self.kind:
                of_weight[labels].addmm_(gradient.T, (self.features[rows] * factor).to(self.kind))
            else:
                of_weight[labels] += self._product(gradient.T, self.features[rows]) * factor
        if of_bias is not None:
            of_bias[labels] += gradient.sum(0, dtype=of_bias.dtype) * factor

    def _product(self, gradient: Tensor, other: Tensor) -> Tensor:
        """Of the type of products. float16 has little room: its gradient is first made as large as that allows, since
        a scaled loss (``torch.amp.GradScaler``) makes it so only afterwards."""
        if self.kind != torch.float16 or not gradient.numel() or not other.numel():
            return gradient.to(self.kind) @ other
        # no entry of the product or of the gradient is larger
        most = torch.linalg.vector_norm(gradient, 1, dim=1).max() * other.abs().max().clamp(min=1)
        scale = torch.where((most > 0) & most.isfinite(), 2.0**15 / most, 1.0).clamp(max=2.0**64)
        scaled = torch.mul(gradient, scale, out=torch.empty_like(gradient, dtype=self.kind))
        return (scaled @ other).to(gradient.dtype) / scale

    @contextmanager
    def graph(self, scores: Tensor) -> Iterator[None]:
        """Around a loss of a block of scores: differentiable where a gradient is wanted."""
        lent = self.gradient_memory(scores).flatten() if self.learns and scores.is_cpu else None
        with torch.set_grad_enabled(self.learns), gradient_memory(lent):
            scores.requires_grad_(self.learns)
            yield

    def add_of(
        self, loss: Tensor, scores: Tensor, rows: slice = ALL, labels: slice = ALL, factor: Tensor | float = 1.0
    ) -> None:
        """Take in ``factor`` times the gradient of a loss by its block of scores."""
        if self.learns:
            self.add(torch.autograd.grad(loss, scores)[0], rows, labels, factor)

    def rescale(self, factor: Tensor) -> None:
        """Multiply what was gathered so far."""
        for total in self._sums:
            if total is not None:
                total.mul_(factor)

    def forget_block(self) -> None:
        """Free the memory of the last block."""
        self._blocks = [None, None]

    def gradients(self, factor: Tensor) -> tuple[Tensor | None, ...]:
        """What was gathered, times ``factor``: given away."""
        sums, self._sums = self._sums, [None, None, None]
        return tuple(
            None if total is None else total.mul_(factor).to(part.dtype)  # type: ignore[union-attr]
            for total, part in zip(sums, self._like, strict=True)
        )


def unmade_scores(features: Tensor, num_labels: int) -> Tensor:
    """Stands for all scores where only their shape and type matter: takes no memory."""
    return in_compute_type(features.new_empty(())).expand(*features.shape[:-1], num_labels)


def blocks(count: int, bytes_each: int, memory: int, multiple: int = 1) -> Iterator[slice]:
    """Slices of 0..count, as many at once as fit the memory: a multiple, at least one. An empty one of nothing."""
    size = max(1, memory // max(1, bytes_each * multiple)) * multiple
    for start in range(0, max(count, 1), size):
        yield slice(start, min(start + size, count))
