"""The frame that LML and the subset sums share, in PyTorch: a row split into its top k and the rest, and their balance.

    v_j = e^(high - s_j) <= 1 (top),   r_j = e^(s_j - low) <= 1 (rest),   gap = high - low,
    high = the k-th largest score, low = the next largest
    x = e^(delta - gap/2), w = e^(-delta - gap/2):   sum r x/(1 + r x) = sum v w/(1 + v w)

so many labels are expected to enter the top as to leave it. Every number is a ratio to the nearer pivot: offsets and
saturated rows cost no digits.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from shortlist import device_flags

_MINUS_INF = float("-inf")
# what is not observed counts this: no mean is divided by 0, and a scaled loss (2^16 and more) by nothing that overflows
BARELY = 2.0**-80


class Split(NamedTuple):
    """Rows split into top and rest; ``top`` and ``rest`` keep the graph of the scores, the pivots are constants."""

    top: Tensor  # (..., width) scores of the top labels; +inf in the places that a row with smaller k leaves empty
    rest: Tensor  # (..., n) scores, -inf for labels that are not in the rest
    high: Tensor  # (..., 1)
    low: Tensor  # (..., 1)
    spare: Tensor  # (..., 1) usable labels beyond k; below 0 the row's numbers are harmless and mean nothing


class _Clamped(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(scores: Tensor, low: float, high: float) -> Tensor:
        return scores.clamp(low, high)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, float, float], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[override]
        return upstream, None, None


def huge(scores: Tensor) -> float:
    """What an infinite score counts as: a quarter of the largest number, still one after a subtraction."""
    return torch.finfo(scores.dtype).max / 4


def softplus(x: Tensor, sign: int = 1, out: Tensor | None = None) -> Tensor:
    """``sign`` log(1 + e^(sign x)) to the last digit at any x: beyond 40, where PyTorch is told to stop, it is x."""
    found: Tensor = torch.ops.aten.softplus(x, sign, 40.0, **({} if out is None else {"out": out}))
    return found


def slope(times: Tensor, x: Tensor, sign: int = 1, out: Tensor | None = None) -> Tensor:
    """``times`` sigmoid(sign x), by one operation: the slope of a softplus."""
    return _slope(torch.ops.aten.softplus_backward, out, times.expand_as(x), x, sign, 40.0)  # a CPU is slow by a number


def where_above(x: Tensor, other: Tensor, bar: float, out: Tensor | None = None) -> Tensor:
    """x, or 0 where ``other`` is at most ``bar``, whatever x holds there: the slope of a threshold."""
    return _slope(torch.ops.aten.threshold_backward, out, x, other, bar)


def where_positive(times: Tensor, factor: float, x: Tensor, out: Tensor | None = None) -> Tensor:
    """``factor`` ``times`` where x is above 0 (or NaN), else 0: the slope of an ELU whose alpha is 0."""
    return _slope(torch.ops.aten.elu_backward, out, times, 0, factor, 1, False, x)


def signed(x: Tensor, target: Tensor, out: Tensor | None = None) -> Tensor:
    """x where a label is present, -x where it is absent, and 0 x where it is unknown: the slope of an ELU."""
    return _slope(torch.ops.aten.elu_backward, out, x, 1, 1, -1, True, target)


def turned(x: Tensor, target: Tensor, out: Tensor | None = None) -> Tensor:
    """-x where a label is present, x where it is absent or unknown: the same, with a bend so far off that 0 and -1 are
    one place. What is smaller than 1e-30 (in float32) keeps fewer digits."""
    far = 2.0**26 if x.dtype == torch.float32 else 2.0**55
    return _slope(torch.ops.aten.elu_backward, out, x, far, -1, -1 / far, True, target)


def selector(target: Tensor, scores: Tensor) -> Tensor:
    """The target in a type that gives way to that of the scores; MPS wants the same."""
    return target.to(scores.dtype) if target.is_floating_point() or scores.device.type == "mps" else target


def _slope(operation: Any, out: Tensor | None, *given: Any) -> Tensor:
    found: Tensor = operation(*given) if out is None else operation(*given, grad_input=out)
    return found


def logit_slope(times: Tensor, p: Tensor, out: Tensor) -> Tensor:
    """``times`` / (p (1 - p)), 0 where p is 0 or 1: the slope of a logit."""
    room = None if torch.compiler.is_compiling() else out  # which does not write there where sizes may change
    return _slope(torch.ops.aten.logit_backward, room, times, p, torch.finfo(p.dtype).tiny)


def observed(unseen: Tensor, out: Tensor) -> Tensor:
    """1, or `BARELY` where something is ``unseen``: by one operation where launches count, which a CPU is slow at."""
    if torch.compiler.is_compiling() or not device_flags.waits(unseen):
        return torch.logical_not(unseen, out=out).clamp_(min=BARELY)
    return torch.pow(BARELY, unseen, out=out)


def place(index: Tensor, scores: Tensor) -> Tensor:
    """(..., 1) class indices held within the labels, whatever an unknown row has."""
    return index.clamp(0, scores.shape[-1] - 1).unsqueeze(-1)


def finite(scores: Tensor) -> Tensor:
    """+inf counts as `huge`. Gradients pass unchanged."""
    return _Clamped.apply(scores, _MINUS_INF, huge(scores))


def bounded(scores: Tensor) -> Tensor:
    """The same on both sides, for losses in which a label at -inf is low and not out of its row."""
    return _Clamped.apply(scores, -huge(scores), huge(scores))


def split(scores: Tensor, k: int | Tensor) -> Split:
    """Split rows at their k-th largest score; k may be a tensor with one number per row."""
    n = scores.shape[-1]
    width = min(k, n) if isinstance(k, int) else n
    scores = finite(scores)
    if isinstance(k, int):
        wanted = torch.full_like(scores[..., :1], k, dtype=torch.int64)
    else:
        wanted = k.unsqueeze(-1)
    spare = n - (scores == _MINUS_INF).sum(-1, keepdim=True) - wanted
    scores = torch.where(spare < 0, 0.0, scores)
    index = scores.detach().topk(width, dim=-1).indices
    in_top = torch.arange(width, device=scores.device) < wanted
    top = torch.where(in_top, scores.gather(-1, index), torch.inf)
    is_top = torch.zeros_like(scores, dtype=torch.bool).scatter(-1, index, in_top.expand(index.shape))
    rest = scores.masked_fill(is_top, _MINUS_INF)
    high = top.detach().amin(-1, keepdim=True)
    low = rest.detach().amax(-1, keepdim=True)
    low = torch.where(low > _MINUS_INF, low, high)  # an empty rest: any pivot
    return Split(top, rest, high, low, spare)


def balance(r: Tensor, v: Tensor, gap: Tensor, steps: int) -> Tensor:
    """Solve for delta by Newton on log(sum rest) - log(sum top) inside its bracket; (..., 1), in the type of v."""
    half, tiny = gap / 2, torch.finfo(r.dtype).tiny
    low, high = -half - math.log(r.shape[-1]), half + math.log(v.shape[-1])

    def total(q: Tensor) -> Tensor:
        return q.sum(-1, keepdim=True).to(v.dtype).clamp(min=tiny)

    delta = start = torch.clamp(0.5 * (total(v) / total(r)).log(), low, high)
    for _ in range(steps):
        entering, leaving = r * (delta - half).exp().to(r.dtype), v * (-delta - half).exp()
        entering, leaving = entering / (1 + entering), leaving / (1 + leaving)
        into, out = total(entering), total(leaving)
        slope = 2 - total(entering * entering) / into - total(leaving * leaving) / out
        delta = torch.clamp(delta - (into / out).log() / slope, low, high)
    return torch.where(gap > 100, start, delta)  # so far apart that no denominator differs from 1


def wide(x: Tensor) -> Tensor:
    """In float64 where the device has it."""
    return x.float() if x.device.type == "mps" else x.double()
