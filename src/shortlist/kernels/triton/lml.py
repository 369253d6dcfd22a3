"""The LML projection, its backward pass, and its loss with gradient, for k up to 8.

The frame is that of ``csrc/balance.h``: high = s_[k], low = s_[k+1], half = (high - low) / 2, and for the solution

    s + nu = (s - high) + half + delta  (s > low),   (s - low) - half + delta  (otherwise),   X = e^(delta - half)
    e^delta sum_rest r/(1 + r X) = e^-delta sum_top v/(1 + v W),   W = e^(-delta - half)

A row of up to 8,192 labels stays in registers (in the loss with several labels per row, one of more than 4,096 as
several blocks: `held`). Of a longer one, the first look keeps what the equation needs: each
lane's k + 1 largest, and the first power sums of all that fell out of them, by which sum r/(1 + r X) is a series. It is
exact to rounding where r X <= 1/16 of all of those; they are never that large unless many of the largest scores of a
row share a lane (are the same number apart). Where they do, the row is looked at once more for each step. So LML reads
a long row twice and writes it once (12 bytes per label).
"""

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from shortlist.kernels.triton.held import AT_ONCE, PIECE, chosen, codes_of, take_top_held, with_codes
from shortlist.kernels.triton.launch import (
    IN_REGISTERS,
    INDEX,
    MOST_K,
    LossCall,
    Offer,
    WithGrad,
    launch,
    on_device,
    rows_of,
    shape_of,
)
from shortlist.kernels.triton.polynomials import at_scale, constant, merge_top, stream_top
from shortlist.kernels.triton.rows import (
    MOST,
    NAN,
    NINF,
    row_share,
    row_weight,
    scores_at,
    sigmoid,
    softplus,
    target_at,
    target_begins,
)

_POWERS = tl.constexpr(6)
_STEPS = tl.constexpr(3)  # of Halley, from a good start: to rounding on every row tried


@triton.jit
def _raised(a, x):
    """x, x^2, ... added to power sums."""
    out = ()
    f = x
    for i in tl.static_range(_POWERS):
        out = out + (a[i] + f,)
        f = f * x
    return out


@triton.jit
def _look(S, s, n, K: tl.constexpr, BLOCK: tl.constexpr, HELD: tl.constexpr):
    """One look at a row, which is the HELD blocks ``s`` where it is in registers (0: it is streamed): whether it holds
    a NaN, its K + 1 largest scores, blocks with the others that are kept, and of those that are not the lanes' power
    sums, the score to which they are relative, and the largest."""
    if HELD == 0:
        lanes = tl.arange(0, BLOCK)
        t = constant(NINF, K + 1, BLOCK)
        powers = constant(0.0, _POWERS, BLOCK)
        most = tl.full((BLOCK,), NINF, tl.float32)
        nans = tl.zeros((BLOCK,), tl.int32)
        for j in range(0, n, BLOCK):
            x = scores_at(S, j + lanes, n)
            nans |= (x != x).to(tl.int32)
            before = t[K]
            t, x = stream_top(t, tl.minimum(x, MOST), K + 1)
            ref = tl.where(t[K] > NINF, t[K], 0.0)
            powers = _raised(at_scale(powers, tl.exp(before - ref), _POWERS), tl.exp(x - ref))
            most = tl.maximum(most, x)
        ref = t[K]
        top, t = merge_top(t, K + 1, BLOCK)
        return tl.max(nans, 0) > 0, top, t, powers, ref, tl.max(most, 0)
    else:
        nans = s[0] != s[0]
        rest = ()
        for i in tl.static_range(HELD):
            nans = nans | (s[i] != s[i])
            rest = rest + (tl.minimum(s[i], MOST),)
        top, rest = take_top_held(rest, K + 1, HELD, BLOCK)
        return tl.max(nans.to(tl.int32), 0) > 0, top, rest, (), rest[0], NINF


@triton.jit
def _series(q, X):
    """sum u, sum u (u X), sum u (u X)^2 for u = r/(1 + r X), from the power sums q of the r."""
    one = q[0]
    two = 0.0
    three = 0.0
    sign = -1.0
    x = X
    for m in tl.static_range(1, _POWERS):
        term = sign * x * q[m]
        one += term
        two -= m * term
        three += (m * (m - 1) * 0.5) * term
        sign = -sign
        x = x * X
    return one, two, three


@triton.jit
def _into(r, q, X, N: tl.constexpr, STREAMED: tl.constexpr):
    """The same sums over the whole rest: N blocks r, the label at `low` itself, and the power sums."""
    block = r[0] * 0.0
    two = block
    three = block
    one = block
    for i in tl.static_range(N):
        u = r[i] / (1.0 + r[i] * X)
        share = u * X
        one += u
        two += u * share
        three += u * share * share
    u = 1.0 / (1.0 + X)
    share = u * X
    i1 = tl.sum(one, 0) + u
    i2 = tl.sum(two, 0) + u * share
    i3 = tl.sum(three, 0) + u * share * share
    if STREAMED:
        s1, s2, s3 = _series(q, X)
        i1 += s1
        i2 += s2
        i3 += s3
    return i1, i2, i3


@triton.jit
def _out(v, W, K: tl.constexpr):
    """The same sums over the top."""
    o1 = 0.0
    o2 = 0.0
    o3 = 0.0
    for i in tl.static_range(K):
        u = v[i] / (1.0 + v[i] * W)
        share = u * W
        o1 += u
        o2 += u * share
        o3 += u * share * share
    return o1, o2, o3


@triton.jit
def _halley(delta, lo, hi, i1, i2, i3, o1, o2, o3):
    """One step on f = log(sum rest) - log(sum top), inside its bracket."""
    rise = 1.0 - i2 / i1
    fall = 1.0 - o2 / o1
    bend = (1.0 - (3.0 * i2 - 2.0 * i3) / i1 - rise * rise) - (1.0 - (3.0 * o2 - 2.0 * o3) / o1 - fall * fall)
    newton = -(tl.log(i1 / o1) + 2.0 * delta) / (rise + fall)
    curved = 1.0 + newton * bend / (2.0 * (rise + fall))
    delta += tl.where(curved > 0.5, newton / tl.where(curved > 0.5, curved, 1.0), newton)
    return tl.minimum(tl.maximum(delta, lo), hi)


@triton.jit
def _start(first, second, v, half, lo, hi, K: tl.constexpr):
    """delta from the first two moments of the rest alone: its sum replaced by first/(1 + X second/first)."""
    sum_v, _, _ = _out(v, 0.0, K)
    spread = second / first
    delta = tl.minimum(tl.maximum(0.5 * tl.log(sum_v / first), lo), hi)
    for _ in tl.static_range(2):
        rise = 1.0 / (1.0 + tl.exp(delta - half) * spread)
        o1, o2, _ = _out(v, tl.exp(-delta - half), K)
        delta -= (tl.log(first * rise / o1) + 2.0 * delta) / (rise + 1.0 - o2 / o1)
        delta = tl.minimum(tl.maximum(delta, lo), hi)
    return delta


@triton.jit
def _looked_through(S, n, low, ties, X, BLOCK: tl.constexpr):
    """sum u, u (u X), u (u X)^2 and u / (1 + r X) over the rest, by another look at the whole row."""
    lanes = tl.arange(0, BLOCK)
    one = tl.zeros((BLOCK,), tl.float32)
    two = tl.zeros((BLOCK,), tl.float32)
    three = tl.zeros((BLOCK,), tl.float32)
    slope = tl.zeros((BLOCK,), tl.float32)
    equal = tl.zeros((BLOCK,), tl.float32)
    for j in range(0, n, BLOCK):
        s = tl.minimum(scores_at(S, j + lanes, n), MOST)
        equal += tl.where(s == low, 1.0, 0.0)
        r = tl.where(s < low, tl.exp(tl.minimum(s - low, 0.0)), 0.0)
        u = r / (1.0 + r * X)
        share = u * X
        one += u
        two += u * share
        three += u * share * share
        slope += u / (1.0 + r * X)
    u = 1.0 / (1.0 + X)
    share = u * X
    many = tl.sum(equal, 0) - ties
    return (
        tl.sum(one, 0) + many * u,
        tl.sum(two, 0) + many * u * share,
        tl.sum(three, 0) + many * u * share * share,
        tl.sum(slope, 0) + many * u * u,
    )


@triton.jit
def _solve(S, s, n, K: tl.constexpr, BLOCK: tl.constexpr, HELD: tl.constexpr):
    """The frame of a row: whether it holds a NaN, whether there is anything to choose, high, low, delta, and the sum of
    h = p (1 - p) over all labels, times e^half."""
    STREAMED: tl.constexpr = HELD == 0
    N: tl.constexpr = K + 1 if STREAMED else HELD
    nan, top, rest, powers, ref, most = _look(S, s, n, K, BLOCK, HELD)
    solved = (top[K] > NINF) & (nan == 0)
    low = tl.where(solved, top[K], 0.0)
    high = tl.where(solved, top[K - 1], 0.0)
    half = (high - low) * 0.5
    v = ()
    ties = 0.0
    for i in tl.static_range(K):
        v = v + (tl.where(solved, tl.exp(high - top[i]), 1.0),)
        ties += tl.where(top[i] == low, 1.0, 0.0)
    r = ()
    first = 1.0
    second = 1.0
    for i in tl.static_range(N):
        x = tl.exp(tl.minimum(rest[i] - low, 0.0))
        r = r + (x,)
        first += tl.sum(x, 0)
        second += tl.sum(x * x, 0)
    q = ()
    if STREAMED:
        scaled = at_scale(powers, tl.exp(tl.minimum(ref - low, 0.0)), _POWERS)
        for i in tl.static_range(_POWERS):
            q = q + (tl.sum(scaled[i], 0),)
        first += q[0]
        second += q[1]
    lo = -half - tl.log(n * 1.0)
    hi = half + tl.log(K * 1.0 + low * 0.0)
    start = _start(first, second, v, half, lo, hi, K)
    delta = start
    for _ in range(_STEPS):
        i1, i2, i3 = _into(r, q, tl.exp(delta - half), N, STREAMED)
        o1, o2, o3 = _out(v, tl.exp(-delta - half), K)
        delta = _halley(delta, lo, hi, i1, i2, i3, o1, o2, o3)
    # the sum of h: of the rest u/(1 + r X) = u - u (u X), times e^delta
    i1, i2, i3 = _into(r, q, tl.exp(delta - half), N, STREAMED)
    slope = i1 - i2
    if STREAMED:  # noqa: SIM102  (known when compiling, and not)
        if tl.exp(tl.minimum(most - low, 0.0)) * tl.exp(delta - half) > 0.0625:
            delta = start
            for _ in range(_STEPS):
                i1, i2, i3, slope = _looked_through(S, n, low, ties, tl.exp(delta - half), BLOCK)
                o1, o2, o3 = _out(v, tl.exp(-delta - half), K)
                delta = _halley(delta, lo, hi, i1, i2, i3, o1, o2, o3)
            i1, i2, i3, slope = _looked_through(S, n, low, ties, tl.exp(delta - half), BLOCK)
    o1, o2, o3 = _out(v, tl.exp(-delta - half), K)
    return nan, solved, high, low, half, delta, tl.exp(delta) * slope + tl.exp(-delta) * (o1 - o2)


@triton.jit
def _shifted(s, high, low, half, delta):
    """s + nu, from the nearer pivot."""
    return tl.where(s > low, (s - high) + (half + delta), (s - low) + (delta - half))


@triton.jit
def _slope(s, high, low, half, delta):
    """h = p (1 - p) times e^half: e^-(|t| - half) / (1 + e^-|t|)^2, with |t| - half formed from the nearer pivot."""
    above = s > low
    local = tl.where(above, s - high, s - low) + delta
    t = tl.where(above, local + half, local - half)
    positive = t >= 0
    distance = tl.where(positive, local, -local) - tl.where(positive == above, 0.0, 2.0 * half)
    q = 1.0 + tl.exp(-tl.abs(t))
    return tl.where(s > NINF, tl.exp(-distance) / (q * q), 0.0)


@triton.jit
def lml_kernel(S, P, FRAME, n, stride, K: tl.constexpr, BLOCK: tl.constexpr, STREAMED: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    S += row * stride
    P += row * n
    lanes = tl.arange(0, BLOCK)
    s = scores_at(S, lanes, 0 if STREAMED else n)
    nan, solved, high, low, half, delta, _ = _solve(S, (s,), n, K, BLOCK, 0 if STREAMED else 1)
    s = tl.minimum(s, MOST)
    FRAME += row * 3
    tl.store(FRAME, tl.where(nan, NAN, high).to(tl.float64))
    tl.store(FRAME + 1, low.to(tl.float64))
    tl.store(FRAME + 2, tl.where(solved, delta, NAN).to(tl.float64))  # NaN: nothing to differentiate
    for j in range(0, n if STREAMED else 1, BLOCK):
        cols = j + lanes
        if STREAMED:
            s = tl.minimum(scores_at(S, cols, n), MOST)
        p = tl.where(solved, sigmoid(_shifted(s, high, low, half, delta)), tl.where(s > NINF, 1.0, 0.0))
        tl.store(P + cols, tl.where(nan, NAN, p), mask=cols < n)


@triton.jit
def lml_backward_kernel(
    S, FRAME, G, OUT, n, stride, gstride, BLOCK: tl.constexpr, STREAMED: tl.constexpr
):  # fmt: skip
    """h (g - (h.g)/sum h), from the scores and the frame: p itself has lost the digits of h where it is near 1."""
    row = tl.program_id(0).to(tl.int64)
    S += row * stride
    G += row * gstride
    OUT += row * n
    high = tl.load(FRAME + row * 3).to(tl.float32)
    low = tl.load(FRAME + row * 3 + 1).to(tl.float32)
    delta = tl.load(FRAME + row * 3 + 2).to(tl.float32)
    nan = high != high
    idle = delta != delta
    high = tl.where(nan, 0.0, high)
    delta = tl.where(idle, 0.0, delta)
    half = (high - low) * 0.5
    small = tl.exp(-half)
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    dots = tl.zeros((BLOCK,), tl.float32)
    g = tl.zeros((BLOCK,), tl.float32)  # what the loop leaves has to be there before it
    h = tl.zeros((BLOCK,), tl.float32)
    for j in range(0, n if STREAMED else 1, BLOCK):
        cols = j + lanes
        s = tl.minimum(scores_at(S, cols, n), MOST)
        g = tl.load(G + cols, mask=cols < n, other=0.0).to(tl.float32)
        h = _slope(s, high, low, half, delta)
        total += h
        dots += h * g
    whole = tl.sum(total, 0)
    mean = tl.sum(dots, 0) / tl.where(whole > 0, whole, 1.0)
    for j in range(0, n if STREAMED else 1, BLOCK):
        cols = j + lanes
        if STREAMED:
            s = tl.minimum(scores_at(S, cols, n), MOST)
            g = tl.load(G + cols, mask=cols < n, other=0.0).to(tl.float32)
            h = _slope(s, high, low, half, delta)
        out = tl.where(idle, 0.0, h * small * (g - mean))
        tl.store(OUT + cols, tl.where(nan, NAN, out), mask=cols < n)


@triton.jit
def lml_loss_kernel(
    S, T, OFFSETS, VALUES, W, SHARE, LOSS, WEIGHT, GRAD, FLAG, base, n, stride, tstride, size,
    K: tl.constexpr, KIND: tl.constexpr, BLOCK: tl.constexpr, HELD: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    S += row * stride
    lanes = tl.arange(0, BLOCK)
    begin = target_begins(T, OFFSETS, row, n, FLAG, base, KIND)
    held = ()
    for i in tl.static_range(HELD):
        held = held + (scores_at(S, i * BLOCK + lanes, n),)
    nan, solved, high, low, half, delta, slopes = _solve(S, held, n, K, BLOCK, HELD)
    bits = tl.zeros((BLOCK,), tl.int32)
    cursor = begin
    if HELD == 1:
        s = tl.minimum(held[0], MOST)
        y, _ = target_at(T, OFFSETS, VALUES, begin, row, 0, n, tstride, FLAG, base, KIND, BLOCK)
    else:
        for i in tl.static_range(HELD):
            given, cursor = target_at(T, OFFSETS, VALUES, cursor, row, i * BLOCK, n, tstride, FLAG, base, KIND, BLOCK)
            bits = with_codes(bits, (given == 1).to(tl.int32), i)
    # ---- the losses of the present labels
    if KIND == "index":
        count = (begin >= 0).to(tl.int32)
        t = _shifted(tl.minimum(tl.load(S + tl.maximum(begin, 0)).to(tl.float32), MOST), high, low, half, delta)
        loss = softplus(-t)
        missing = sigmoid(-t)
    else:
        losses = tl.zeros((BLOCK,), tl.float32)
        misses = tl.zeros((BLOCK,), tl.float32)
        counts = tl.zeros((BLOCK,), tl.int32)
        cursor = begin
        for j in range(0, 1 if HELD == 1 else n, BLOCK):
            if HELD > 1:
                s = tl.minimum(chosen(held, j // BLOCK, HELD), MOST)
                y = codes_of(bits, j // BLOCK)
            elif HELD == 0:
                s = tl.minimum(scores_at(S, j + lanes, n), MOST)
                y, cursor = target_at(T, OFFSETS, VALUES, cursor, row, j, n, tstride, FLAG, base, KIND, BLOCK)
            t = _shifted(s, high, low, half, delta)
            counts += (y == 1).to(tl.int32)
            losses += tl.where(y == 1, softplus(-t), 0.0)
            misses += tl.where(y == 1, sigmoid(-t), 0.0)
        count = tl.sum(counts, 0)
        loss = tl.sum(losses, 0)
        missing = tl.sum(misses, 0)
    weight = tl.where(count > 0, row_weight(W, row), 0.0)
    each = weight * row_share(SHARE, row, size)
    loss = tl.where(nan, NAN, tl.where(solved, loss, 0.0))
    tl.store(LOSS + row, tl.where(weight > 0, loss, 0.0))
    tl.store(WEIGHT + row, weight)
    # ---- the gradient
    if GRAD is not None:
        GRAD += row * n
        factor = missing / slopes
        cursor = begin
        for j in range(0, 1 if HELD == 1 else n, BLOCK):
            cols = j + lanes
            if HELD > 1:
                s = tl.minimum(chosen(held, j // BLOCK, HELD), MOST)
                y = codes_of(bits, j // BLOCK)
            elif HELD == 0:
                s = tl.minimum(scores_at(S, cols, n), MOST)
                y, cursor = target_at(T, OFFSETS, VALUES, cursor, row, j, n, tstride, FLAG, base, KIND, BLOCK)
            g = factor * _slope(s, high, low, half, delta)
            g -= tl.where(y == 1, sigmoid(-_shifted(s, high, low, half, delta)), 0.0)
            g = tl.where(nan, NAN, tl.where(solved, g * each, 0.0))
            tl.store(GRAD + cols, tl.where(weight > 0, g, 0.0), mask=cols < n)


def _lml(scores: Tensor, k_rows: Tensor | None, k: int) -> Any:
    scores = rows_of(scores)
    rows, labels = scores.shape
    p = torch.empty(scores.shape, dtype=scores.dtype, device=scores.device)
    frame = scores.new_empty((rows, 3), dtype=torch.float64)
    block, warps, streamed, _ = shape_of(labels, streamed_warps=8)
    with on_device(scores):
        launch(
            lml_kernel, rows, scores, p, frame, labels, scores.stride(0),
            K=k, BLOCK=block, STREAMED=streamed, warps=warps,
        )  # fmt: skip
    return p, frame


def _lml_backward(scores: Tensor, p: Tensor, frame: Tensor, upstream: Tensor) -> Any:
    scores, upstream = rows_of(scores), rows_of(upstream)
    rows, labels = scores.shape
    out = torch.empty(p.shape, dtype=p.dtype, device=p.device)
    block, warps, streamed, _ = shape_of(labels, streamed_warps=8)
    with on_device(scores):
        launch(
            lml_backward_kernel, rows, scores, frame, upstream, out, labels, scores.stride(0), upstream.stride(0),
            BLOCK=block, STREAMED=streamed, warps=warps,
        )  # fmt: skip
    return out


def _lml_loss(
    scores: Tensor, target: Sequence[Tensor], weight: Tensor | None, k_rows: Tensor | None, reduction: str,
    groups: int, with_grad: WithGrad, k: int,
) -> Any:  # fmt: skip
    call = LossCall.of(scores, target, weight, reduction, groups, with_grad)
    most = IN_REGISTERS if call.target.kind == INDEX else AT_ONCE
    shape = shape_of(scores.shape[1], streamed_warps=8 if k > 5 else 4, most_labels=most, piece=PIECE)
    if shape.streamed:
        registers = 128 if shape.held else 255
    else:
        registers = 128 if call.grad is None else None  # alone, the loss spills on sm_80
    return call.launched(
        lml_loss_kernel, shape,
        K=k, KIND=call.target.kind, HELD=shape.held if shape.streamed else 1, registers=registers,
    )  # fmt: skip


def _serves(labels: int, k_rows: Tensor | None, k: int) -> bool:
    """One small k for all rows, and labels to choose from."""
    return k_rows is None and k <= MOST_K and k < labels


OFFERS = {
    "lml": Offer(_lml, _serves),
    "lml_backward": Offer(_lml_backward),
    "lml_loss": Offer(_lml_loss, _serves),
}
