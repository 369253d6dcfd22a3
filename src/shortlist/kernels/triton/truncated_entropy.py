"""The truncated top-k entropy: loss and gradient in one kernel, of class indices, label matrices and stored labels.

A row of up to 8,192 labels is read once and written once. A longer one is read twice; with a label matrix three times,
because the rivals' gradient needs the losses of all present labels.
"""

from collections.abc import Sequence
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from shortlist.kernels.triton.launch import MOST_K, LossCall, Offer, WithGrad, shape_of
from shortlist.kernels.triton.polynomials import constant, merge_top, stream_top
from shortlist.kernels.triton.rows import (
    MOST,
    NAN,
    NINF,
    holds_nan,
    row_share,
    row_weight,
    scores_at,
    sigmoid,
    softplus,
    target_at,
    target_begins,
)


@triton.jit
def _chosen(top, which, K: tl.constexpr):
    """top[which], for a number that is known only now."""
    out = top[0]
    for i in tl.static_range(K):
        out = tl.where(which == i, top[i], out)
    return out


@triton.jit
def truncated_entropy_kernel(
    S, T, OFFSETS, VALUES, W, SHARE, LOSS, WEIGHT, GRAD, FLAG, base, n, stride, tstride, size,
    K: tl.constexpr, KIND: tl.constexpr, BLOCK: tl.constexpr, STREAMED: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    S += row * stride
    lanes = tl.arange(0, BLOCK)
    begin = target_begins(T, OFFSETS, row, n, FLAG, base, KIND)
    # ---- the K largest rivals, and the sum of all others
    if STREAMED:
        t = constant(NINF, K, BLOCK)
        below = tl.zeros((BLOCK,), tl.float32)
        counts = tl.zeros((BLOCK,), tl.int32)
        nans = tl.zeros((BLOCK,), tl.int32)
        cursor = begin
        for j in range(0, n, BLOCK):
            s = scores_at(S, j + lanes, n)
            y, cursor = target_at(T, OFFSETS, VALUES, cursor, row, j, n, tstride, FLAG, base, KIND, BLOCK)
            nans |= (s != s).to(tl.int32)
            counts += (y == 1).to(tl.int32)
            before = t[K - 1]
            t, x = stream_top(t, tl.where(y == 1, NINF, tl.minimum(s, MOST)), K)
            ref = tl.where(t[K - 1] > NINF, t[K - 1], 0.0)
            below = below * tl.exp(before - ref) + tl.exp(x - ref)
        nan = tl.max(nans, 0) > 0
        count = tl.sum(counts, 0)
        before = t[K - 1]
        top, t = merge_top(t, K, BLOCK)
    else:
        s = scores_at(S, lanes, n)
        y, _ = target_at(T, OFFSETS, VALUES, begin, row, 0, n, tstride, FLAG, base, KIND, BLOCK)
        nan = holds_nan(s)
        s = tl.minimum(s, MOST)
        count = tl.sum((y == 1).to(tl.int32), 0)
        rest = tl.where(y == 1, NINF, s)
        rank = tl.full((BLOCK,), K, tl.int32)  # of the largest; K of all others
        top = ()
        for i in tl.static_range(K):
            m, at = tl.max(rest, 0, return_indices=True)
            at = tl.where(m > NINF, at, BLOCK)  # where nothing is left, nothing is chosen
            rank = tl.where(lanes == at, i, rank)
            rest = tl.where(lanes == at, NINF, rest)
            top = top + (m,)
    dropped = tl.maximum(K - count, 0)
    weight = tl.where(count > 0, row_weight(W, row), 0.0)
    each = weight * row_share(SHARE, row, size)
    largest = _chosen(top, tl.minimum(dropped, K - 1), K)
    some = (largest > NINF) & (dropped < K)  # else there is nothing left to compete
    largest = tl.where(some, largest, 0.0)
    if STREAMED:
        total = tl.sum(below * tl.exp(before - largest), 0)
        for i in tl.static_range(K):
            total += tl.sum(tl.exp(t[i] - largest), 0)
    else:
        total = tl.sum(tl.exp(rest - largest), 0)
    for i in tl.static_range(K):
        total += tl.where(dropped <= i, tl.exp(top[i] - largest), 0.0)
    ahead = tl.log(tl.where(some, total, 1.0))
    # ---- the losses of the present labels
    if KIND == "index":
        own = largest - tl.minimum(tl.load(S + tl.maximum(begin, 0)).to(tl.float32), MOST) + ahead
        loss = softplus(own)
        push = sigmoid(own)
    elif STREAMED:
        losses = tl.zeros((BLOCK,), tl.float32)
        pushes = tl.zeros((BLOCK,), tl.float32)
        cursor = begin
        for j in range(0, n, BLOCK):
            s = tl.minimum(scores_at(S, j + lanes, n), MOST)
            y, cursor = target_at(T, OFFSETS, VALUES, cursor, row, j, n, tstride, FLAG, base, KIND, BLOCK)
            z = largest - s + ahead
            losses += tl.where(y == 1, softplus(z), 0.0)
            pushes += tl.where(y == 1, sigmoid(z), 0.0)
        loss = tl.sum(losses, 0)
        push = tl.sum(pushes, 0)
    else:
        z = largest - s + ahead
        loss = tl.sum(tl.where(y == 1, softplus(z), 0.0), 0)
        push = tl.sum(tl.where(y == 1, sigmoid(z), 0.0), 0)
    loss = tl.where(nan, NAN, tl.where(some, loss, 0.0))
    tl.store(LOSS + row, tl.where(weight > 0, loss, 0.0))
    tl.store(WEIGHT + row, weight)
    # ---- the gradient
    if GRAD is not None:
        GRAD += row * n
        factor = push / tl.where(some, total, 1.0)
        if STREAMED:  # of the labels that equal the smallest dropped one, only so many are
            edge = _chosen(top, tl.maximum(dropped - 1, 0), K)
            ties = dropped
            for i in tl.static_range(K):
                ties -= ((top[i] > edge) & (dropped > i)).to(tl.int32)
            met = 0
            cursor = begin
            for j in range(0, n, BLOCK):
                cols = j + lanes
                s = tl.minimum(scores_at(S, cols, n), MOST)
                y, cursor = target_at(T, OFFSETS, VALUES, cursor, row, j, n, tstride, FLAG, base, KIND, BLOCK)
                equal = ((s == edge) & (y != 1)).to(tl.int32)
                order = met + tl.cumsum(equal, 0)
                met += tl.sum(equal, 0)
                out = (dropped > 0) & ((s > edge) | ((equal > 0) & (order <= ties)))
                g = tl.where(out, 0.0, factor * tl.exp(tl.minimum(s - largest, 0.0)))
                g = tl.where(y == 1, -sigmoid(largest - s + ahead), g) * each
                g = tl.where(nan, NAN, tl.where(some, g, 0.0))
                tl.store(GRAD + cols, tl.where(weight > 0, g, 0.0), mask=cols < n)
        else:
            g = tl.where(rank < dropped, 0.0, factor * tl.exp(tl.minimum(s - largest, 0.0)))
            g = tl.where(y == 1, -sigmoid(z if KIND != "index" else own), g) * each
            g = tl.where(nan, NAN, tl.where(some, g, 0.0))
            tl.store(GRAD + lanes, tl.where(weight > 0, g, 0.0), mask=lanes < n)


def _truncated_entropy(
    scores: Tensor, target: Sequence[Tensor], weight: Tensor | None, reduction: str, groups: int, with_grad: WithGrad,
    k: int,
) -> Any:  # fmt: skip
    call = LossCall.of(scores, target, weight, reduction, groups, with_grad)
    shape = shape_of(scores.shape[1])
    return call.launched(truncated_entropy_kernel, shape, K=k, KIND=call.target.kind, STREAMED=shape.streamed)


OFFERS = {"truncated_entropy": Offer(_truncated_entropy, lambda labels, k: k <= MOST_K)}
