"""Autograd for functions of rows that a kernel computes: one pair of functions, for losses and layers alike."""

from typing import Any, ClassVar

import torch
from torch import Tensor

from shortlist.checks import traced, transforms_active
from shortlist.kernels import native_serves


class Native:
    """A function of tensors of rows (some may be None), with its numbers: what makes it differentiable.

    A subclass says how to compute ``(out, *kept)``, the gradient by what was kept, and the gradient as a formula, which
    PyTorch can differentiate again. One with a kernel also has a ``twin``: calling it decides between the two.
    """

    saves_out: ClassVar[bool] = False  # backward asks for ``out``; then the caller may not change it in place
    gives_away: ClassVar[bool] = False  # backward finishes in place what was kept, and it is computed again if need be
    linear: bool = False  # piecewise: the gradient has no slope of its own

    def forward(self, *tensors: Any) -> tuple[Tensor, ...]:
        """``(out, *kept)``."""
        raise NotImplementedError

    def backward(self, upstream: Tensor, kept: tuple[Any, ...], in_place: bool, *tensors: Any) -> tuple[Tensor, ...]:
        """Gradients of the first tensor or two; ``kept`` begins with ``out`` where that is saved."""
        raise NotImplementedError

    def formula(self, upstream: Tensor, *tensors: Any) -> tuple[Tensor, ...]:
        """The same gradients, written in PyTorch."""
        raise NotImplementedError

    def twin(self, *tensors: Any) -> Tensor:
        """``out`` itself, written in PyTorch."""
        raise NotImplementedError

    def serves(self, scores: Tensor) -> bool:
        """Whether `forward` takes these scores; the twin serves the others."""
        return native_serves(scores)

    def __call__(self, scores: Tensor, *tensors: Tensor | None) -> Tensor:
        if not self.serves(scores):
            return self.twin(scores, *tensors)
        out: Tensor = Traced.apply(self, scores, *tensors)[0] if traced() else Eager.apply(self, scores, *tensors)
        return out


class Eager(torch.autograd.Function):
    """(call, *tensors) -> out with the least overhead: what the kernel kept may be finished in place and given away."""

    @staticmethod
    def forward(ctx: Any, call: Native, *tensors: Tensor | None) -> Tensor:
        out, *kept = call.forward(*tensors)
        ctx.call, ctx.kept = call, kept
        if call.saves_out:
            ctx.save_for_backward(*tensors, out)
        else:
            ctx.save_for_backward(*tensors)
        return out

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Any, ...]:  # type: ignore[override]
        call, saved = ctx.call, ctx.saved_tensors
        tensors, out = (saved[:-1], saved[-1:]) if call.saves_out else (saved, ())
        differentiated = torch.is_grad_enabled()
        if differentiated and not call.linear:
            gradients = call.formula(upstream, *tensors)
        else:
            kept = call.forward(*tensors)[1:] if ctx.kept is None else ctx.kept
            if call.gives_away:
                ctx.kept = None
            in_place = not (differentiated or transforms_active())
            gradients = call.backward(upstream, (*out, *kept), in_place, *tensors)
        return None, *gradients, *[None] * (len(tensors) - len(gradients))


class Traced(torch.autograd.Function):
    """(call, *tensors) -> (out, *kept), for ``torch.compile`` and ``torch.func``: they want all that is saved to be an
    output."""

    generate_vmap_rule = True

    @staticmethod
    def forward(call: Native, *tensors: Tensor | None) -> tuple[Tensor, ...]:
        return call.forward(*tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.call, *tensors = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)  # or backward would be handed matrices of zeros
        ctx.count = len(tensors)
        ctx.save_for_backward(*tensors, *(output if ctx.call.saves_out else output[1:]))

    @staticmethod
    def backward(ctx: Any, upstream: Tensor | None, *_: Any) -> tuple[Any, ...]:  # type: ignore[override]
        if upstream is None:
            return (None,) * (1 + ctx.count)
        tensors, kept = ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]
        if torch.is_grad_enabled() and not ctx.call.linear and not torch.compiler.is_compiling():
            gradients = ctx.call.formula(upstream, *tensors)
        else:
            gradients = ctx.call.backward(upstream, kept, False, *tensors)
        return None, *gradients, *[None] * (len(tensors) - len(gradients))
