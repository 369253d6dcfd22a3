"""Sums over k-subsets and the chance of each label to be in one, in one kernel."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from shortlist.kernels.triton.launch import MOST_K, Offer, WithGrad, launch, on_device, rows_of, shape_of
from shortlist.kernels.triton.polynomials import (
    at_scale,
    constant,
    leave_odds,
    merge,
    product,
    rest_slopes,
    rest_weights,
    stream,
    take_top,
    top_polynomials,
    top_slopes,
    weighed,
    with_top,
)
from shortlist.kernels.triton.rows import MOST, NAN, NINF, holds_nan, scores_at


@triton.jit
def subset_sums_kernel(
    S, SUM, P, FACTOR, n, stride, K: tl.constexpr, BLOCK: tl.constexpr, STREAMED: tl.constexpr
):  # fmt: skip
    """SUM: log sigma_k of the row. P: its marginals, times FACTOR[row] if there is one."""
    row = tl.program_id(0).to(tl.int64)
    S += row * stride
    lanes = tl.arange(0, BLOCK)
    if STREAMED:
        t = constant(NINF, K, BLOCK)
        a = constant(0.0, K, BLOCK)
        nans = tl.zeros((BLOCK,), tl.int32)
        for j in range(0, n, BLOCK):
            s = scores_at(S, j + lanes, n)
            nans |= (s != s).to(tl.int32)
            t, a = stream(t, a, tl.minimum(s, MOST), 1.0, K)
        nan = tl.max(nans, 0) > 0
        top, a = merge(t, a, 1.0, K, BLOCK)
    else:
        s = scores_at(S, lanes, n)
        nan = holds_nan(s)
        s = tl.minimum(s, MOST)
        top, rest = take_top(s, K, BLOCK)
        r = tl.exp(rest - tl.where(top[K - 1] > NINF, top[K - 1], 0.0))
        a = (r,) + constant(0.0, K - 1, BLOCK)
    enough = top[K - 1] > NINF
    v, sum_v = leave_odds(top, 1.0, K)
    c = tl.maximum(1.0, tl.sqrt(tl.sum(a[0], 0) / sum_v))
    e = product(at_scale(a, 1.0 / c, K), K)
    prefix = top_polynomials(v, c, K)
    nv, nr, R, S0, _ = weighed(prefix[K], e, K)
    total = (tl.log(S0) - tl.log(nv) - tl.log(nr)).to(tl.float64)
    for i in tl.static_range(K):
        total += top[i].to(tl.float64)
    tl.store(SUM + row, tl.where(nan, NAN, tl.where(enough, total, NINF)))
    if P is not None:
        P += row * n
        w = rest_weights(prefix[K], nv, 1.0 / S0, 0.0, K)
        g_top = top_slopes(prefix, v, c, R, nv, 1.0 / S0, 0.0, 1.0, K)
        for j in range(0, n if STREAMED else 1, BLOCK):
            cols = j + lanes
            if STREAMED:
                s = tl.minimum(scores_at(S, cols, n), MOST)
                x = tl.exp(tl.minimum(s - top[K - 1], 0.0))
            else:
                x = r
            p = with_top(rest_slopes(x * (1.0 / c), w, R, K), s, top, g_top, K)
            p = tl.where(enough, p, tl.where(s > NINF, 1.0, 0.0))  # no k-subset: every usable label is certainly in
            if FACTOR is not None:
                p *= tl.load(FACTOR + row)
            tl.store(P + cols, tl.where(nan, NAN, p), mask=cols < n)


def _subset_sums(scores: Tensor, k: int, with_marginals: WithGrad) -> Any:
    scores = rows_of(scores)
    rows, labels = scores.shape
    factor = with_marginals.contiguous() if isinstance(with_marginals, Tensor) else None
    wanted = factor is not None or with_marginals is True
    total = scores.new_empty(rows, dtype=torch.float64)
    marginals = scores.new_empty((rows, labels if wanted else 0))
    block, warps, streamed, _ = shape_of(labels, 16 if k < 6 else 8)
    with on_device(scores):
        launch(
            subset_sums_kernel, rows, scores, total, marginals if wanted else None, factor, labels, scores.stride(0),
            K=k, BLOCK=block, STREAMED=streamed, warps=warps,
        )  # fmt: skip
    return total, marginals


OFFERS = {"subset_sums": Offer(_subset_sums, lambda labels, k, with_marginals=True: k <= MOST_K)}
