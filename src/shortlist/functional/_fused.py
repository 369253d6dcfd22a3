"""Row losses through native kernels that return the loss and its gradient together, or through their PyTorch twin.

Each loss registers a name with its operator and its twin, ``twin(scores, target, *args) -> (loss of each row or entry,
whether it was observed)``; a loss that couples the rows of a batch has ``twin(scores, target, weight, reduction, *args)
-> reduced loss``. Backward is one multiplication; the gradient of the gradient is the twin's.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from shortlist.checks import (
    check_label_matrix,
    check_mask,
    check_sample_weight,
    check_scores,
    in_compute_type,
    is_learned,
    raise_bad_index,
    raise_bad_label,
    transforms_active,
)
from shortlist.distributed import sum_over_processes
from shortlist.functional.reduction import reduce_over_processes, spread_nan
from shortlist.kernels import native_serves, ops

Twin = Callable[..., Any]


class _RowLoss(NamedTuple):
    kernel: ops.Kernel
    twin: Twin
    couples: bool
    linear: bool
    spreads_nan: bool


_REGISTRY: dict[str, _RowLoss] = {}


def register(
    name: str,
    kernel: ops.Kernel,
    twin: Twin,
    *,
    couples: bool = False,
    linear: bool = False,
    spreads_nan: bool = True,
) -> None:
    """``couples``: rows of a batch are coupled. ``linear``: piecewise, so that the gradient has no slope of its own.

    ``spreads_nan``: every score of a row counts, so that a NaN among them makes the row NaN; False where some are left
    out, and the twin sees to the others.
    """
    _REGISTRY[name] = _RowLoss(kernel, twin, couples, linear, spreads_nan)


def _reduced_twin(
    name: str,
    scores: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    args: tuple[Any, ...],
    world: int = 1,
) -> Tensor:
    if _REGISTRY[name].couples:
        reduced: Tensor = _REGISTRY[name].twin(scores, target, weight, reduction, *args, world=world)
        return reduced
    losses, observed = _REGISTRY[name].twin(scores, target, *args)
    if _REGISTRY[name].spreads_nan:
        losses = spread_nan(losses, scores, observed)
    counts = observed.to(losses.dtype)
    if weight is not None:
        counts = counts * (weight if weight.ndim == counts.ndim else weight.unsqueeze(-1))
    return reduce_over_processes(losses, counts, reduction, world)


def _is_differentiated(ctx: Any) -> bool:
    """Whether the gradient itself is being differentiated, and has a slope."""
    return torch.is_grad_enabled() and not _REGISTRY[ctx.name].linear and not torch.compiler.is_compiling()


def _differentiable(ctx: Any, upstream: Tensor, scores: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
    """The twin's gradient, as a formula of the scores."""

    def loss(s: Tensor) -> Tensor:
        return _reduced_twin(ctx.name, s, target, weight, ctx.reduction, ctx.args).reshape(upstream.shape)

    return torch.func.vjp(loss, scores)[1](upstream)[0]


def _scaled(grad: Tensor, scale: Tensor, upstream: Tensor, reduction: str) -> Tensor:
    return grad * (upstream.unsqueeze(-1) if reduction == "none" else upstream * scale)


class _Eager(torch.autograd.Function):
    """(scores, target, row weight) -> loss, the gradient computed in forward: the least overhead.

    The gradient is given away in backward, finished in place; who asks a second time has it computed again.
    """

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, target: Tensor, weight: Tensor | None, how: tuple[str, str, tuple[Any, ...]]
    ) -> Tensor:
        ctx.name, ctx.reduction, ctx.args = how
        run = _REGISTRY[ctx.name].kernel.run
        loss, *ctx.gradient = run(scores, target, weight, ctx.reduction, 0, True, *ctx.args)
        ctx.save_for_backward(scores, target, weight)
        return loss

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Any, ...]:  # type: ignore[override]
        if _is_differentiated(ctx):
            return _differentiable(ctx, upstream, *ctx.saved_tensors), None, None, None
        if ctx.gradient is None:
            run = _REGISTRY[ctx.name].kernel.run
            _, *ctx.gradient = run(*ctx.saved_tensors, ctx.reduction, 0, True, *ctx.args)
        (grad, scale), ctx.gradient = ctx.gradient, None
        if torch.is_grad_enabled():  # linear: the gradient's own gradient is that of the product
            grad = _scaled(grad, scale, upstream, ctx.reduction)
        elif ctx.reduction == "none":
            grad.mul_(upstream.unsqueeze(-1))
        elif (factor := upstream.item() * scale.item()) != 1:
            grad.mul_(factor)
        return grad, None, None, None


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
        scores, target, weight, grad, scale = ctx.saved_tensors
        if _is_differentiated(ctx):
            grad = _differentiable(ctx, upstream, scores, target, weight)
        else:
            grad = _scaled(grad, scale, upstream, ctx.reduction)
        return grad, *((None,) * (4 + len(ctx.args)))


def row_loss(
    name: str,
    scores: Tensor,
    target: Tensor,
    args: tuple[Any, ...],
    *,
    weight: Tensor | None,
    reduction: str,
    world: int = 1,
    native: bool = True,
) -> Tensor:
    """The registered loss ``name`` of (..., L) scores: reduced, or one per row (or entry).

    ``weight``: one per row, or None. ``args``: numbers, None, and tensors whose leading dimensions are those of the
    rows. ``native=False`` asks for the twin, which also serves weights that are learned. ``world``: how many processes
    share the batch.
    """
    shape = scores.shape[:-1]
    is_index = target.ndim == scores.ndim - 1
    flat_args = tuple(a.reshape(-1, *a.shape[len(shape) :]) if isinstance(a, Tensor) else a for a in args)
    if scores.ndim != 2:
        scores = scores.reshape(-1, scores.shape[-1])
        target = target.reshape(-1) if is_index else target.reshape(scores.shape)
        weight = None if weight is None else weight.reshape(-1)
    target = target.long() if is_index else ops.in_kernel_type(target)
    if not native or not native_serves(scores) or is_learned(weight):
        loss = _reduced_twin(name, scores, target, weight, reduction, flat_args, world)
    elif torch.compiler.is_compiling() and not (scores.requires_grad and torch.is_grad_enabled()):
        loss, _, scale = _REGISTRY[name].kernel.op(scores, target, weight, reduction, 0, False, *flat_args)
        loss = _share(loss, scale, target, weight, reduction, world)
    elif torch.compiler.is_compiling():
        loss = _traced(name, scores, target, weight, reduction, flat_args, world)
    else:
        loss = _checked_kernel(name, scores, target, weight, reduction, flat_args, shape, world)
    return loss.reshape((*shape, *loss.shape[1:])) if reduction == "none" and len(shape) != 1 else loss


def _checked_kernel(
    name: str,
    scores: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    args: tuple[Any, ...],
    shape: torch.Size,
    world: int,
) -> Tensor:
    """A target value that the kernel found bad is an error in terms of the target's own ``shape``."""
    try:
        if transforms_active() or (world > 1 and scores.requires_grad and torch.is_grad_enabled()):
            return _traced(name, scores, target, weight, reduction, args, world)
        if scores.requires_grad and torch.is_grad_enabled():
            loss: Tensor = _Eager.apply(scores, target, weight, (name, reduction, args))
            return loss
        loss, _, scale = _REGISTRY[name].kernel.run(scores, target, weight, reduction, 0, False, *args)
        return _share(loss, scale, target, weight, reduction, world)
    except ops.BadTarget as bad:
        n = scores.shape[-1]
        if target.ndim < scores.ndim:
            raise_bad_index(target.reshape(shape), bad.position, n)
        raise_bad_label(target.reshape(*shape, n), bad.position)
        raise


def _traced(
    name: str,
    scores: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    args: tuple[Any, ...],
    world: int,
) -> Tensor:
    loss, _, scale = _Traced.apply(scores, target, weight, name, reduction, *args)
    return loss if reduction == "none" else _share(loss.squeeze(0), scale.squeeze(0), target, weight, reduction, world)


def _share(
    loss: Tensor, scale: Tensor, target: Tensor, weight: Tensor | None, reduction: str, world: int
) -> Tensor:
    """This process's share of the loss of the global batch, as in `reduce_over_processes`."""
    if world == 1 or reduction == "none":
        return loss
    if reduction == "sum":
        return world * loss
    if target.ndim == 1:  # class indices: their kernels have put the mean's divisor into the gradient already
        rows = (target >= 0).to(loss.dtype)
        observed = (rows if weight is None else rows * weight).sum()
    else:
        observed = torch.where(scale > 0, 1.0 / scale, 0.0)
    total = sum_over_processes(observed, world)
    return loss * (world * observed / torch.where(total > 0, total, 1.0))


def label_matrix_loss(
    name: str,
    scores: Tensor,
    target: Tensor,
    args: tuple[Any, ...],
    *,
    mask: Tensor | None,
    sample_weight: Tensor | None,
    reduction: str,
    world: int = 1,
    native: bool = True,
) -> Tensor:
    """Check the inputs of a loss of a label matrix, and compute it. Labels that the mask takes out become unknown.

    ``native``: whether the kernel has what is asked for; it checks the target's values itself.
    """
    check_scores(scores)
    x = in_compute_type(scores)
    native = native and native_serves(x) and not is_learned(sample_weight)
    check_label_matrix(scores, target, values=mask is not None or not native)
    if mask is not None:
        check_mask(scores, mask)
        target = torch.where(mask, target.to(torch.int8), -1)
    weight = check_sample_weight(x, sample_weight)
    loss = row_loss(name, x, target, args, weight=weight, reduction=reduction, world=world, native=native)
    return loss if loss.dtype == scores.dtype else loss.to(scores.dtype)
