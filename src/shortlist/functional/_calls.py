"""Calls of a loss's kernel: what makes them differentiable, and their share in the loss of several processes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from shortlist.checks import in_compute_type
from shortlist.distributed import sum_over_processes
from shortlist.functional._frame import BARELY
from shortlist.functional._native import Native
from shortlist.functional.reduction import NotedMean
from shortlist.kernels import ops
from shortlist.labels.sparse_labels import SparseLabels

if TYPE_CHECKING:
    from shortlist.functional._row_loss import RowLoss


@dataclass(eq=False, slots=True)
class Call(Native):
    """One call of a loss's kernel, a function of (scores, weight, the loss's own tensors, those of the target)."""

    loss: "RowLoss"
    kernel: Callable[..., Any]
    reduction: str
    own: int  # how many tensors of its own the loss has
    numbers: tuple[Any, ...]
    dtype: torch.dtype  # of the scores
    divides: bool = False  # the gradient is divided by what was kept beside it (None: by nothing), not multiplied
    groups: int = 0

    gives_away: ClassVar[bool] = True

    @property
    def linear(self) -> bool:  # type: ignore[override]
        return self.loss.linear

    def forward(self, scores: Tensor, weight: Tensor | None, *rest: Any) -> tuple[Tensor, ...]:
        own, target = rest[: self.own], rest[self.own :]
        call = (self.reduction, self.groups, True, *self.numbers)
        results: tuple[Tensor, ...] = self.kernel(scores, target, weight, *own, *call)
        if isinstance(self.reduction, NotedMean):
            self.reduction.observed = observed_by(results[0], results[2], target, weight, self.divides)
        return results

    def backward(self, upstream: Tensor, kept: tuple[Any, ...], in_place: bool, *tensors: Any) -> tuple[Tensor, ...]:
        grad, scale = kept
        if callable(grad):
            if in_place:
                return (grad(upstream if scale is None else upstream / scale).to(self.dtype),)
            grad = grad(torch.ones_like(upstream))
        if self.reduction == "none":
            upstream = upstream.unsqueeze(-1)
            return ((grad.mul_(upstream) if in_place else grad * upstream).to(self.dtype),)
        if in_place and isinstance(scale, float):
            if (factor := upstream.item() * scale) != 1:
                grad.mul_(factor)
            return (grad,)
        if scale is not None:
            upstream = upstream / scale if self.divides else upstream * scale
        return (ops.finish_gradient(grad, upstream) if in_place else (grad * upstream).to(self.dtype),)

    def formula(self, upstream: Tensor, scores: Tensor, weight: Tensor | None, *rest: Any) -> tuple[Tensor, ...]:
        own, labels = rest[: self.own], rest[self.own :]
        target = labels[0]
        if len(labels) > 1:
            offsets, indices, values = labels
            target = SparseLabels.made(offsets, indices, values, scores.shape[-1]).to_dense()

        def loss(s: Tensor) -> Tensor:
            s = in_compute_type(s)
            reduced = self.loss.reduced_twin(s, target, weight, self.reduction, (*own, *self.numbers))
            return reduced.reshape(upstream.shape)

        return torch.func.vjp(loss, scores)[1](upstream)


class Drawn(Call):
    """The same where random numbers were drawn: the gradient is kept for who asks a second time."""

    __slots__ = ()
    gives_away: ClassVar[bool] = False


class Again(Call):
    """The same of float16 scores: no gradient is kept, since a float16 has no room for one that is yet to be
    multiplied. Backward computes it again, times all there is to multiply by, and rounds it once."""

    __slots__ = ()
    gives_away: ClassVar[bool] = False
    linear: ClassVar[bool] = False  # type: ignore[misc]  # the operator has no derivative: the formula has

    def forward(self, scores: Tensor, weight: Tensor | None, *rest: Any) -> tuple[Tensor, ...]:
        own, target = rest[: self.own], rest[self.own :]
        call = (self.reduction, self.groups, False, *self.numbers)
        loss, _, scale = self.kernel(scores, target, weight, *own, *call)
        if isinstance(self.reduction, NotedMean):
            self.reduction.observed = observed_by(loss, scale, target, weight, False)
        return loss, scale

    def backward(self, upstream: Tensor, kept: tuple[Any, ...], in_place: bool, *tensors: Any) -> tuple[Tensor, ...]:
        scores, weight, *rest = tensors
        own, target = rest[: self.own], rest[self.own :]
        factor = upstream if self.reduction == "none" else (upstream * kept[0]).reshape(-1)
        assert self.loss.kernel is not None
        assert self.loss.kernel.gradient is not None
        return (
            self.loss.kernel.gradient(scores, target, weight, *own, self.reduction, self.groups, factor, *self.numbers),
        )


def share_of(
    loss: Tensor,
    scale: Tensor,
    target: tuple[Tensor, ...],
    weight: Tensor | None,
    reduction: str,
    world: int,
    divides: bool,
) -> Tensor:
    """This process's share of the loss of the global batch, as in `reduce_over_processes`."""
    if reduction == "none":
        return loss
    if reduction == "sum":
        return world * loss
    observed = observed_by(loss, scale, target, weight, divides)
    total = sum_over_processes(observed, world)
    return loss * (world * observed / torch.where(total > 0, total, 1.0))


def observed_by(
    loss: Tensor, scale: Tensor | float | None, target: tuple[Tensor, ...], weight: Tensor | None, divides: bool
) -> Tensor:
    """What a kernel's mean was divided by."""
    if len(target) == 1 and target[0].ndim == 1:  # class indices: their kernels put it into the gradient already
        rows = (target[0] >= 0).to(loss.dtype)
        return (rows if weight is None else rows * weight).sum()
    if isinstance(scale, Tensor):
        return torch.where(
            scale > (BARELY if divides else torch.finfo(loss.dtype).tiny), scale if divides else 1.0 / scale, 0.0
        )
    return loss.new_tensor(1.0 if scale is None else 1 / scale if scale > 0 else 0.0)
