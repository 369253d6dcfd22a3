"""Row losses through native kernels that return the loss and its gradient together, or through their PyTorch twin.

Each row loss registers a name with its operator and its twin, ``twin(scores, target, *args) -> (loss of each row,
whether the row was observed)``. Backward is one multiplication; the gradient of the gradient is the twin's.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from shortlist.functional._inputs import raise_bad_index, raise_bad_label, transforms_active
from shortlist.functional._reduction import reduce_loss
from shortlist.kernels import native_serves, ops

Twin = Callable[..., tuple[Tensor, Tensor]]


class _RowLoss(NamedTuple):
    kernel: ops.Kernel
    twin: Twin


_REGISTRY: dict[str, _RowLoss] = {}


def register(name: str, kernel: ops.Kernel, twin: Twin) -> None:
    _REGISTRY[name] = _RowLoss(kernel, twin)


def _reduced_twin(
    name: str, scores: Tensor, target: Tensor, weight: Tensor | None, reduction: str, args: tuple[Any, ...]
) -> Tensor:
    rows, observed = _REGISTRY[name].twin(scores, target, *args)
    counts = observed.to(rows.dtype)
    return reduce_loss(rows, counts if weight is None else counts * weight, reduction)


def _backward(ctx: Any, upstream: Tensor) -> Tensor:
    scores, target, weight, grad, scale = ctx.saved_tensors
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():  # the gradient will be differentiated

        def loss(s: Tensor) -> Tensor:
            reduced = _reduced_twin(ctx.name, s, target, weight, ctx.reduction, ctx.args)
            return reduced if ctx.reduction == "none" else reduced.unsqueeze(0)

        return torch.func.vjp(loss, scores)[1](upstream)[0]
    return grad * (upstream.unsqueeze(-1) if ctx.reduction == "none" else upstream * scale)


class _Eager(torch.autograd.Function):
    """(scores, target, row weight) -> loss, with the gradient computed in forward: the least overhead."""

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        target: Tensor,
        weight: Tensor | None,
        name: str,
        reduction: str,
        args: tuple[Any, ...],
    ) -> Tensor:
        loss, grad, scale = _REGISTRY[name].kernel.run(scores, target, weight, reduction, 1, True, *args)
        ctx.save_for_backward(scores, target, weight, grad, scale)
        ctx.name, ctx.reduction, ctx.args = name, reduction, args
        return loss

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Any, ...]:  # type: ignore[override]
        return _backward(ctx, upstream), None, None, None, None, None


class _Traced(torch.autograd.Function):
    """The same for ``torch.compile`` and ``torch.func``, which want every saved tensor to be an output."""

    generate_vmap_rule = True

    @staticmethod
    def forward(scores: Tensor, target: Tensor, weight: Tensor | None, name: str, reduction: str, *args: Any) -> Any:
        return _REGISTRY[name].kernel.op(scores, target, weight, reduction, 1, True, *args)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
        scores, target, weight, ctx.name, ctx.reduction, *args = inputs
        ctx.args = tuple(args)
        _, grad, scale = output
        ctx.mark_non_differentiable(grad, scale)
        ctx.save_for_backward(scores, target, weight, grad, scale)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, *_: Any) -> tuple[Any, ...]:  # type: ignore[override]
        return _backward(ctx, upstream), *((None,) * (4 + len(ctx.args)))


def row_loss(
    name: str, scores: Tensor, target: Tensor, args: tuple[Any, ...], *, weight: Tensor | None, reduction: str
) -> Tensor:
    """The registered loss ``name`` of (..., L) scores: reduced, or one per row. ``weight``: one per row, or None."""
    shape = scores.shape[:-1]
    is_index = target.ndim == scores.ndim - 1
    flat_args = tuple(a.reshape(-1) if isinstance(a, Tensor) else a for a in args)
    if scores.ndim != 2:
        scores = scores.reshape(-1, scores.shape[-1])
        target = target.reshape(-1) if is_index else target.reshape(scores.shape)
        weight = None if weight is None else weight.reshape(-1)
    if not native_serves(scores):
        loss = _reduced_twin(name, scores, target, weight, reduction, flat_args)
    else:
        target = _in_kernel_type(target, is_index)
        try:
            if torch.compiler.is_compiling() or transforms_active():
                loss, _, _ = _Traced.apply(scores, target, weight, name, reduction, *flat_args)
            elif scores.requires_grad and torch.is_grad_enabled():
                loss = _Eager.apply(scores, target, weight, name, reduction, flat_args)
            else:
                loss, _, _ = _REGISTRY[name].kernel.run(scores, target, weight, reduction, 1, False, *flat_args)
        except ops.BadTarget as bad:
            n = scores.shape[-1]
            if is_index:
                raise_bad_index(target.reshape(shape), bad.position, n)
            raise_bad_label(target.reshape(*shape, n), bad.position)
        if reduction != "none":
            return loss.squeeze(0)
    return loss.reshape(shape) if reduction == "none" and len(shape) != 1 else loss


def _in_kernel_type(target: Tensor, is_index: bool) -> Tensor:
    if is_index:
        return target if target.dtype == torch.int64 else target.long()
    if target.dtype in ops.LABEL_TYPES:
        return target
    return target.float() if target.is_floating_point() else target.to(torch.int32)
