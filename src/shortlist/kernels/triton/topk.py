"""The smooth top-k loss and its hinge limit: loss and gradient in one kernel.

A row of up to 8,192 labels is read once and written once (8 bytes per label in float32); a longer one is read twice and
written once (12), as cross-entropy is.
"""

from collections.abc import Sequence
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from shortlist.kernels.triton.launch import IN_REGISTERS, MOST_K, LossCall, Offer, WithGrad, shape_of
from shortlist.kernels.triton.polynomials import (
    at_scale,
    constant,
    leave_odds,
    merge,
    merge_top,
    product,
    rest_slopes,
    rest_weights,
    stream,
    stream_top,
    take_top,
    top_polynomials,
    top_slopes,
    weighed,
    with_top,
)
from shortlist.kernels.triton.rows import (
    MOST,
    NAN,
    NINF,
    class_index,
    holds_nan,
    log1p,
    row_share,
    row_weight,
    scores_at,
)


@triton.jit
def _solve(top, a, own, scale, tau, alpha, K: tl.constexpr):
    """From the largest k rivals and the lanes' polynomials of the rest: the loss, the slopes of the label itself, of
    the top, and what those of the rest are made of (their weights, R, and 1 / the tilt)."""
    v, sum_v = leave_odds(top, scale, K)
    c = tl.maximum(1.0, tl.sqrt(tl.sum(a[0], 0) / sum_v))
    e = product(at_scale(a, 1.0 / c, K), K)
    prefix = top_polynomials(v, c, K)
    nv, _, R, S0, S1 = weighed(prefix[K], e, K)
    linear = alpha + (top[K - 1] - own) / K + tau * tl.log(S0 / S1 * c)  # not z tau: a small tau would overflow
    z = linear / tau
    u = tl.exp(-tl.abs(z))
    loss = tl.maximum(linear, 0.0) + tau * log1p(u)
    step = tl.where(z >= 0, 1.0, u) / (1.0 + u) / K
    f0 = step / S0
    f1 = step / S1
    g_top = top_slopes(prefix, v, c, R, nv, f0, f1, 0.0, K)
    return loss, step, g_top, rest_weights(prefix[K], nv, f0, f1, K), R, 1.0 / c


@triton.jit
def smooth_topk_kernel(
    S, T, OFFSETS, VALUES, W, SHARE, LOSS, WEIGHT, GRAD, FLAG, base, n, stride, tstride, size, tau, alpha,
    K: tl.constexpr, BLOCK: tl.constexpr, STREAMED: tl.constexpr, HINGE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    S += row * stride
    y = class_index(T, row, n, FLAG, base)
    weight = tl.where(y >= 0, row_weight(W, row), 0.0)
    each = weight * row_share(SHARE, row, size)
    label = tl.maximum(y, 0)
    own = tl.minimum(tl.load(S + label).to(tl.float32), MOST)
    lanes = tl.arange(0, BLOCK)
    scale = 1.0 / (K * tau) if not HINGE else 1.0
    # ---- the largest k rivals, and the polynomial of the others
    if STREAMED:
        t = constant(NINF, K, BLOCK)
        a = constant(0.0, K, BLOCK)
        nans = tl.zeros((BLOCK,), tl.int32)
        for j in range(0, n, BLOCK):
            s = scores_at(S, j + lanes, n)
            nans |= (s != s).to(tl.int32)
            s = tl.where(j + lanes == label, NINF, tl.minimum(s, MOST))
            if HINGE:
                t, _ = stream_top(t, s, K)
            else:
                t, a = stream(t, a, s, scale, K)
        nan = tl.max(nans, 0) > 0
        if HINGE:
            top, _ = merge_top(t, K, BLOCK)
        else:
            top, a = merge(t, a, scale, K, BLOCK)
    else:
        s = scores_at(S, lanes, n)
        nan = holds_nan(s)
        s = tl.where(lanes == label, NINF, tl.minimum(s, MOST))
        top, rest = take_top(s, K, BLOCK)
        pivot = tl.where(top[K - 1] > NINF, top[K - 1], 0.0)
        r = tl.exp((rest - pivot) * scale)
        a = (r,) + constant(0.0, K - 1, BLOCK)
    enough = top[K - 1] > NINF  # else the label is always among the k
    # ---- the loss
    if HINGE:
        margin = alpha + (top[K - 1] - own) / K
        loss = tl.maximum(margin, 0.0)
        step = tl.where(margin > 0, 1.0 / K, 0.0)
    else:
        loss, step, g_top, w, R, inverse = _solve(top, a, own, scale, tau, alpha, K)
    loss = tl.where(nan, NAN, tl.where(enough, loss, 0.0))
    tl.store(LOSS + row, tl.where(weight > 0, loss, 0.0))
    tl.store(WEIGHT + row, weight)
    # ---- the gradient
    if GRAD is not None:
        GRAD += row * n
        found = 0  # of the hinge: whether the k-th rival was met
        for j in range(0, n if STREAMED else 1, BLOCK):
            cols = j + lanes
            if STREAMED:
                s = tl.where(cols == label, NINF, tl.minimum(scores_at(S, cols, n), MOST))
            if HINGE:
                first = tl.min(tl.where((s == top[K - 1]) & (found == 0), cols, 2147483647), 0)
                found = tl.maximum(found, (first < 2147483647).to(tl.int32))
                g = tl.where(cols == first, step, 0.0)
            else:
                if STREAMED:
                    x = tl.exp(tl.minimum(s - top[K - 1], 0.0) * scale)
                else:
                    x = r
                g = with_top(rest_slopes(x * inverse, w, R, K), s, top, g_top, K)
            g = tl.where(cols == label, -step, g) * each
            g = tl.where(nan, NAN, tl.where(enough, g, 0.0))
            tl.store(GRAD + cols, tl.where(weight > 0, g, 0.0), mask=cols < n)


def _smooth_topk(
    scores: Tensor, target: Sequence[Tensor], weight: Tensor | None, reduction: str, groups: int, with_grad: WithGrad,
    k: int, tau: float, alpha: float,
) -> Any:  # fmt: skip
    call = LossCall.of(scores, target, weight, reduction, groups, with_grad)
    hinge = tau == 0  # which has no polynomials: it takes few registers
    shape = shape_of(scores.shape[1], 16 if k < 6 or hinge else 8)
    registers = 255 if k == 8 and not hinge and shape.block == IN_REGISTERS else None  # left alone, sm_100 spills
    numbers = float(tau), float(alpha)
    return call.launched(
        smooth_topk_kernel, shape, *numbers, K=k, STREAMED=shape.streamed, HINGE=hinge, registers=registers
    )


OFFERS = {"smooth_topk": Offer(_smooth_topk, lambda labels, k, tau, alpha: k <= MOST_K)}
