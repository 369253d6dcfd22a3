"""How the subset marginals change when the scores move in a direction: their backward pass, for k up to 8.

The Jacobian of the marginals is symmetric (the covariance of the subset), so a derivative along what came from above is
what flows back. In the frame of `polynomials`, with the odds x of a label to be in, and S_m = sum_i V_(i+m) R_i:

    p = x S_1 - x^2 S_2 + x^3 S_3 - ...          over S_0: where x <= 1
    1 - p = y S_-1 - y^2 S_-2 + y^3 S_-3 - ...   over S_0, with y = 1/x: where x > 1

A label enters only by its own odds: equal scores have the same coefficients, whatever their directions, and the top's
labels need not be found again. A derivative of p moves x by x d, and the S_m as V and R move:

    dp = sum_m -(-x)^m (dS_m + m d S_m)          with S_m / S_0 for S_m,   likewise for 1 - p

R and dR are had from power sums of the rest, sum x^m (by Newton's identities) and sum d x^m, which blocks and lanes
add up. Directions count from that of the k-th score, and then from a mean near to where labels enter and leave: what
they have in common cancels in the result, and is taken off before anything is added up. They may be as large as 1e30.

A label of the rest always has the first series, though its chance may be near 1: where just one or two labels beside
the k count, and are as good, the terms of a large k cancel. With k = 8 the error there is some 1e-4 of the row's
largest slope where 9 labels are about equal (the worst found: 1.7e-4), and 2e-5 where 10 are; elsewhere below 1e-5.

A row of up to 8,192 labels is read once with its direction (12 bytes per label in float32, with the result), a
longer one twice (20).
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from shortlist.kernels.triton.launch import MOST_K, Offer, launch, on_device, rows_of, shape_of
from shortlist.kernels.triton.polynomials import at_scale, constant, leave_odds
from shortlist.kernels.triton.rows import MOST, NAN, NINF, holds_nan, scores_at


@triton.jit
def _moves_at(D, s, cols, n, EACH: tl.constexpr):
    """A block of directions; what is not usable does not move."""
    d = tl.load(D + cols * EACH, mask=cols < n, other=0.0).to(tl.float32)
    return tl.where(s > NINF, d, 0.0)


@triton.jit
def _both(a0, a1, b0, b1):
    return a0 + b0, a1 + b1


@triton.jit
def _taken(D, s, n, EACH: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr):
    """The K largest of a block (descending), their directions and places, and the block without them."""
    cols = tl.arange(0, BLOCK)
    top = ()
    u = ()
    places = ()
    for _ in tl.static_range(K):
        m, at = tl.max(s, 0, return_indices=True)
        s = tl.where(cols == at, NINF, s)
        at = tl.minimum(at, n - 1)  # of a NaN
        top = top + (m,)
        places = places + (at,)
        u = u + (tl.load(D + at * EACH).to(tl.float32),)
    return top, u, places, s


@triton.jit
def _streamed(t, u, q, p, s, d, K: tl.constexpr):
    """A block into each lane's K largest ``t`` with their directions ``u``, and what falls out of them into the lane's
    power sums, relative to its K-th: ``q`` of the odds, ``p`` of the odds times the directions."""
    before = t[K - 1]
    center = u[K - 1]
    scores = ()
    moves = ()
    for i in tl.static_range(K):
        higher = s > t[i]
        scores = scores + (tl.where(higher, s, t[i]),)
        moves = moves + (tl.where(higher, d, u[i]),)
        s = tl.where(higher, t[i], s)
        d = tl.where(higher, u[i], d)
    pivot = tl.where(scores[K - 1] > NINF, scores[K - 1], 0.0)
    q, p = _moved(q, p, tl.exp(before - pivot), moves[K - 1] - center, K)
    q, p = _raised(q, p, tl.exp(s - pivot), d - moves[K - 1], K)
    return scores, moves, q, p


@triton.jit
def _moved(q, p, f, center, K: tl.constexpr):
    """Power sums of f times the odds, whose directions count from another center."""
    centered = ()
    for i in tl.static_range(K):
        centered = centered + (p[i] - center * q[i],)
    return at_scale(q, f, K), at_scale(centered, f, K)


@triton.jit
def _raised(q, p, x, d, K: tl.constexpr):
    """x, x^2, ... added to the power sums, and d x, d x^2, ..."""
    odds = ()
    moves = ()
    f = x
    for i in tl.static_range(K):
        odds = odds + (q[i] + f,)
        moves = moves + (p[i] + d * f,)
        f = f * x
    return odds, moves


@triton.jit
def _merged(t, u, q, p, K: tl.constexpr, BLOCK: tl.constexpr):
    """The K largest of all lanes, their directions, and each lane's power sums relative to the last of them."""
    lanes = tl.arange(0, BLOCK)
    before = t[K - 1]
    center = u[K - 1]
    top = ()
    moves = ()
    for _ in tl.static_range(K):
        m, at = tl.max(t[0], 0, return_indices=True)
        here = lanes == at
        top = top + (m,)
        moves = moves + (tl.sum(tl.where(here, u[0], 0.0), 0),)
        scores = ()
        directions = ()
        for j in tl.static_range(K):
            scores = scores + (tl.where(here, t[j + 1] if j + 1 < K else NINF, t[j]),)
            directions = directions + (tl.where(here, u[j + 1] if j + 1 < K else 0.0, u[j]),)
        t = scores
        u = directions
    pivot = tl.where(top[K - 1] > NINF, top[K - 1], 0.0)
    q, p = _moved(q, p, tl.exp(before - pivot), moves[K - 1] - center, K)
    for i in tl.static_range(K):
        q, p = _raised(q, p, tl.exp(t[i] - pivot), u[i] - moves[K - 1], K)
    return top, moves, q, p


@triton.jit
def _look(S, D, n, EACH: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr):
    """One look at a row that is streamed: whether it holds a NaN, its K largest scores, their directions, and the power
    sums of the others, relative to the K-th."""
    lanes = tl.arange(0, BLOCK)
    t = constant(NINF, K, BLOCK)
    u = constant(0.0, K, BLOCK)
    q = constant(0.0, K, BLOCK)
    p = constant(0.0, K, BLOCK)
    nans = tl.zeros((BLOCK,), tl.int32)
    for j in range(0, n, BLOCK):
        s = scores_at(S, j + lanes, n)
        nans |= (s != s).to(tl.int32)
        d = _moves_at(D, s, j + lanes, n, EACH)
        t, u, q, p = _streamed(t, u, q, p, tl.minimum(s, MOST), d, K)
    top, u, q, p = _merged(t, u, q, p, K, BLOCK)
    odds = ()
    moves = ()
    for i in tl.static_range(K):
        one, two = tl.reduce((q[i], p[i]), 0, _both)
        odds = odds + (one,)
        moves = moves + (two,)
    return tl.max(nans, 0) > 0, top, u, odds, moves


@triton.jit
def _power_sums(x, d, K: tl.constexpr):
    """Of a block: the sums of x, x^2, ... and of d x, d x^2, ..."""
    odds = ()
    moves = ()
    f = x
    for _ in tl.static_range(K):
        one, two = tl.reduce((f, f * d), 0, _both)
        odds = odds + (one,)
        moves = moves + (two,)
        f = f * x
    return odds, moves


@triton.jit
def _middle(y, u, q, p, K: tl.constexpr):
    """A mean of the directions, from that of the K-th: each counts as its label's part in the changes, nearly."""
    total = q[0]
    moved = p[0]
    for i in tl.static_range(K):
        h = y[i] / ((1.0 + y[i]) * (1.0 + y[i]))
        total += h
        moved += h * (u[i] - u[K - 1])
    return moved / total


@triton.jit
def _top(y, u, center, K: tl.constexpr):
    """V, the product of (1 + y t) / (1 + y) over the top, and how it moves."""
    V = (1.0,)
    dV = (0.0,)
    for i in tl.static_range(K):
        stay = 1.0 / (1.0 + y[i])
        leave = y[i] * stay
        d = (u[i] - u[K - 1]) - center
        c = (stay * V[0],)
        dc = (stay * dV[0],)
        for j in tl.static_range(i):
            c = c + (stay * V[j + 1] + leave * V[j],)
            dc = dc + (stay * dV[j + 1] + leave * (dV[j] - d * V[j]),)
        V, dV = c + (leave * V[i],), dc + (leave * (dV[i] - d * V[i]),)
    return V, dV


@triton.jit
def _rest(q, p, K: tl.constexpr):
    """R, by Newton's identities from the power sums of the rest, over the sum of its coefficients; and how it moves."""
    e = (1.0,)
    total = 1.0
    for m in tl.static_range(1, K + 1):
        c = q[0] * e[m - 1]
        for i in tl.static_range(1, m):
            term = q[i] * e[m - 1 - i]
            c = (c - term) if i % 2 == 1 else (c + term)
        c = c * (1.0 / m)
        e = e + (c,)
        total += c
    R = ()
    dR = (0.0,)
    for m in tl.static_range(K + 1):
        R = R + (e[m] / total,)
    for m in tl.static_range(1, K + 1):
        c = p[0] * R[m - 1]
        for i in tl.static_range(1, m):
            term = p[i] * R[m - 1 - i]
            c = (c - term) if i % 2 == 1 else (c + term)
        dR = dR + (c,)
    return R, dR


@triton.jit
def _shifted(a, b, M: tl.constexpr, K: tl.constexpr):
    """sum_i a_(i+M) b_i."""
    total = a[M] * b[0]
    for i in tl.static_range(1, K + 1 - M):
        total += a[i + M] * b[i]
    return total


@triton.jit
def _coefficients(a, da, b, db, inverse, grows, sign, K: tl.constexpr):
    """Of sum_m -(-x)^m (fixed_m + own_m d), the change of a chance of which x are the odds."""
    fixed = ()
    own = ()
    for m in tl.static_range(1, K + 1):
        share = _shifted(a, b, m, K) * inverse
        change = (_shifted(da, b, m, K) + _shifted(a, db, m, K)) * inverse
        fixed = fixed + (sign * (change - share * grows),)
        own = own + (share * m,)
    return fixed, own


@triton.jit
def _changed(x, d, fixed, own, K: tl.constexpr):
    """sum_m -(-x)^m (fixed_m + own_m d)."""
    total = fixed[K - 1] + own[K - 1] * d
    for m in tl.static_range(K - 2, -1, -1):
        total = (fixed[m] + own[m] * d) - x * total
    return x * total


@triton.jit
def _of_top(y, d, enter, enter_own, leave, leave_own, K: tl.constexpr):
    """The slopes of labels of the top, y their odds to leave: by the chance to leave where it is the smaller one."""
    into = _changed(1.0 / tl.maximum(y, 1.0), d, enter, enter_own, K)
    return tl.where(y > 1.0, into, _changed(y, d, leave, leave_own, K))


@triton.jit
def subset_slopes_kernel(
    S, D, OUT, n, stride, dstride, EACH: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr, STREAMED: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    S += row * stride
    D += row * dstride
    OUT += row * n
    lanes = tl.arange(0, BLOCK)
    if STREAMED:
        nan, top, u, q, p = _look(S, D, n, EACH, K, BLOCK)
    else:
        s = scores_at(S, lanes, n)
        d = _moves_at(D, s, lanes, n, EACH)
        nan = holds_nan(s)
        s = tl.minimum(s, MOST)
        top, u, places, rest = _taken(D, s, n, EACH, K, BLOCK)
        is_rest = rest == s
        d -= u[K - 1]
        r = tl.exp(rest - tl.where(top[K - 1] > NINF, top[K - 1], 0.0))
        q, p = _power_sums(r, d, K)
    chosen = (top[K - 1] > NINF) & (q[0] > 0)  # else every usable label is certainly in
    v, sum_v = leave_odds(top, 1.0, K)
    c = tl.maximum(1.0, tl.sqrt(q[0] / sum_v))
    y = ()
    for i in tl.static_range(K):
        y = y + (v[i] * c,)
    q = at_scale(q, 1.0 / c, K)
    p = at_scale(p, 1.0 / c, K)
    center = _middle(y, u, q, p, K)
    q, p = _moved(q, p, 1.0, center, K)
    V, dV = _top(y, u, center, K)
    R, dR = _rest(q, p, K)
    inverse = 1.0 / _shifted(V, R, 0, K)
    grows = (_shifted(dV, R, 0, K) + _shifted(V, dR, 0, K)) * inverse
    enter, enter_own = _coefficients(V, dV, R, dR, inverse, grows, 1.0, K)
    leave, leave_own = _coefficients(R, dR, V, dV, inverse, grows, -1.0, K)
    if STREAMED:
        for j in range(0, n, BLOCK):
            s = tl.minimum(scores_at(S, j + lanes, n), MOST)
            d = _moves_at(D, s, j + lanes, n, EACH) - u[K - 1] - center
            far = tl.exp(-tl.abs(s - top[K - 1]))
            out = tl.where(
                s >= top[K - 1],
                _of_top(far * c, d, enter, enter_own, leave, leave_own, K),
                _changed(far / c, d, enter, enter_own, K),
            )
            out = tl.where(nan, NAN, tl.where(chosen, out, 0.0))
            tl.store(OUT + j + lanes, out, mask=j + lanes < n)
    else:
        for i in tl.static_range(K):
            out = _of_top(y[i], u[i] - u[K - 1] - center, enter, enter_own, leave, leave_own, K)
            out = tl.where(nan, NAN, tl.where(chosen, out, 0.0))
            tl.store(OUT + places[i], out, mask=top[i] > NINF)
        out = _changed(r / c, d - center, enter, enter_own, K)
        out = tl.where(nan, NAN, tl.where(chosen, out, 0.0))
        tl.store(OUT + lanes, out, mask=(lanes < n) & (is_rest | nan))


def _subset_slopes(scores: Tensor, direction: Tensor, k: int) -> Any:
    scores = rows_of(scores)
    each = 0 if direction.stride(-1) == 0 else 1  # upstream of a sum is one number: it is not copied to every label
    direction = direction if each == 0 else rows_of(direction)
    rows, labels = scores.shape
    out = torch.empty(scores.shape, dtype=scores.dtype, device=scores.device)
    # with k = 4 and 16 warps, float16 spills on sm_100
    block, warps, streamed, _ = shape_of(labels, 16 if k < 4 else 8, streamed_warps=4 if k < 4 else 8)
    with on_device(scores):
        launch(
            subset_slopes_kernel, rows, scores, direction, out, labels, scores.stride(0), direction.stride(0),
            EACH=each, K=k, BLOCK=block, STREAMED=streamed, warps=warps,
        )  # fmt: skip
    return out


OFFERS = {"subset_slopes": Offer(_subset_slopes, lambda labels, k: k <= MOST_K)}
