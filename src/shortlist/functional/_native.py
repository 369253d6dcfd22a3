"""Autograd for functions of rows that a kernel computes: one pair of functions, for losses and layers alike."""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor

from shortlist.checks import in_compute_type, is_learned, is_wrapped, traced, transforms_active
from shortlist.kernels import native_serves, triton_serves


class Native:
    """A function of tensors of rows (some may be None), with its numbers: what makes it differentiable.

    A subclass says how to compute ``(out, *kept)``, the gradient by what was kept, and the gradient as a formula, which
    PyTorch can differentiate again. One with a kernel also has a ``twin``: a call decides between the two.
    """

    operator: ClassVar[str] = ""  # the name of its kernel
    saves_out: ClassVar[bool] = False  # backward asks for ``out``, the first that it is handed as kept
    gives_away: ClassVar[bool] = False  # backward asks for nothing but what was kept, finished in place and given away
    has_twin: ClassVar[bool] = True  # `forward` is a kernel; False: it is PyTorch itself, and serves all
    lean: ClassVar[bool] = False  # `forward` knows what to do without a kernel, where nothing is transformed
    linear: bool = False  # piecewise: the gradient has no slope of its own

    def forward(self, *tensors: Any) -> tuple[Tensor, ...]:
        """``(out, *kept)``."""
        raise NotImplementedError

    def backward(self, upstream: Tensor, kept: tuple[Any, ...], in_place: bool, *tensors: Any) -> tuple[Tensor, ...]:
        """Gradients of the first tensor or two; without the tensors where what was kept is given away."""
        raise NotImplementedError

    def formula(self, upstream: Tensor, *tensors: Any) -> tuple[Tensor, ...]:
        """The same gradients, written in PyTorch."""
        raise NotImplementedError

    def twin(self, *tensors: Any) -> Tensor:
        """``out`` itself, written in PyTorch."""
        raise NotImplementedError

    def options(self) -> tuple[Any, ...]:
        """What the kernel is given after its tensors."""
        return ()

    def __call__(self, scores: Tensor, *tensors: Tensor | None) -> Tensor:
        by_triton = self.has_twin and triton_serves(self.operator, scores, *tensors, *self.options())
        if not by_triton:
            scores = in_compute_type(scores)
            if self.has_twin and not native_serves(scores) and not (self.lean and can_be_lean(scores, True)):
                return self.twin(scores, *tensors)
        if not traced():
            return eager(self, scores, *tensors)
        if transforms_active() or (torch.is_grad_enabled() and any(map(is_learned, (scores, *tensors)))):
            found: tuple[Tensor, ...] = Traced.apply(self, scores, *tensors)
            return found[0]
        return self.forward(scores, *tensors)[0]  # where nothing learns, torch.compile does not follow `Traced`


def is_plain(scores: Tensor) -> bool:
    """Whether native kernels take these scores as they are, all that would be checked asked at once: a matrix on a CPU
    in eager mode. A small batch would spend more time on its checks than in its kernel."""
    return (
        not torch.compiler.is_compiling()
        and type(scores) is Tensor
        and scores.ndim == 2
        and native_serves(scores)
        and scores.layout == torch.strided
        and not scores.is_nested
        and not transforms_active()
        and not is_wrapped(scores)
    )


def can_be_lean(scores: Tensor, in_double: bool) -> bool:
    """Whether losses may be computed with their gradient in PyTorch, which only the twin has derivatives of: not under
    ``torch.func``, and not on a device without float64 where that is asked for."""
    return not transforms_active() and not (in_double and scores.device.type == "mps")


class Eager(torch.autograd.Function):
    """(call, *tensors) -> out with the least overhead: what the kernel kept may be finished in place and given away."""

    @staticmethod
    def forward(ctx: Any, call: Native, *tensors: Tensor | None) -> Tensor:
        output = call.forward(*tensors)
        ctx.call = call
        if call.gives_away:
            ctx.kept = output[1:]
            ctx.save_for_backward(*tensors)
        else:
            ctx.save_for_backward(*tensors, *(output if call.saves_out else output[1:]))
        return output[0]

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Any, ...]:  # type: ignore[override]
        call, count, differentiated = ctx.call, len(ctx.needs_input_grad) - 1, torch.is_grad_enabled()
        if differentiated and not call.linear:
            gradients = call.formula(upstream, *ctx.saved_tensors[:count])
        elif call.gives_away:  # who asks a second time has it computed again
            kept = call.forward(*ctx.saved_tensors)[1:] if ctx.kept is None else ctx.kept
            ctx.kept = None
            gradients = call.backward(upstream, kept, not (differentiated or transforms_active()))
        else:
            saved = ctx.saved_tensors
            gradients = call.backward(upstream, saved[count:], False, *saved[:count])
        return None, *gradients, *[None] * (count - len(gradients))


# ``Eager.apply`` without its part in Python, a tenth of a small call: it asks whether a transform is active, and
# unwraps tensors that one has left behind. For calls in which neither is so.
apply_eager: Callable[..., Tensor] = super(torch.autograd.Function, Eager).apply


def eager(call: Native, scores: Tensor, *tensors: Tensor | None) -> Tensor:
    """The same for scores that a transform may have left behind."""
    return (Eager.apply if is_wrapped(scores) else apply_eager)(call, scores, *tensors)


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
            gradients = ctx.call.backward(upstream, kept, False, *(() if ctx.call.gives_away else tensors))
        return None, *gradients, *[None] * (len(tensors) - len(gradients))
