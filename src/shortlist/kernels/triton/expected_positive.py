"""The expected-positive loss: the batch's mean number of expected labels first, then its square has a known slope.

Scores are read twice and their gradient is written once (12 bytes per label in float32).
"""

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from shortlist.kernels.triton.codes import weight_of
from shortlist.kernels.triton.launch import LossCall, Offer, WithGrad, launch, on_device
from shortlist.kernels.triton.logistic import known_scores, logistic, softplus_and_sigmoid
from shortlist.kernels.triton.rows import class_index

_BLOCK, _TOTALS_BLOCK = 4096, 256


@triton.jit
def chances_kernel(S, T, W, CHANCES, FLAG, base, n, stride, parts, BLOCK: tl.constexpr):
    """CHANCES (rows, parts): the expected number of labels of blocks of observed rows."""
    program = tl.program_id(0).to(tl.int64)
    row = program // parts
    cols = (program % parts).to(tl.int32) * BLOCK + tl.arange(0, BLOCK)
    weight = tl.where(class_index(T, row, n, FLAG, base) >= 0, weight_of(W, row), 0.0)
    inside = cols < tl.where(weight > 0, n, 0)
    x = known_scores(S + row * stride, cols, inside)
    _, large, small = logistic(x)
    tl.store(CHANCES + program, tl.sum(tl.where(inside, tl.where(x >= 0, large, small), 0.0), 0))


@triton.jit
def batch_kernel(
    S, T, W, CHANCES, LOSS, SLOPES, n, stride, size, parts, k, beta, labels,
    MEAN: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """LOSS (groups), and SLOPES (groups, 2): by the observed label's own loss, and by a chance. ``labels``: what Cole's
    normalisation divides by, or 1."""
    group = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    totals = tl.zeros((BLOCK,), tl.float64)
    positives = tl.zeros((BLOCK,), tl.float64)
    chances = tl.zeros((BLOCK,), tl.float64)
    for begin in range(0, size, BLOCK):
        inside = begin + lanes < size
        row = group * size + tl.where(inside, begin + lanes, 0)
        index = tl.load(T + row)
        known = inside & (index >= 0) & (index < n)
        weight = tl.where(known, weight_of(W, row), 0.0)
        counts = weight > 0
        own, _ = softplus_and_sigmoid(-known_scores(S, row * stride + index, counts))
        expected = tl.zeros((BLOCK,), tl.float32)
        for part in range(parts):
            expected += tl.load(CHANCES + row * parts + part)
        totals += weight
        positives += tl.where(counts, own * weight, 0.0)
        chances += tl.where(counts, expected * weight, 0.0)
    total = tl.sum(totals, 0)
    each = tl.where(total > 0, 1.0 / tl.where(total > 0, total, 1.0), 0.0)
    excess = tl.where(total > 0, tl.sum(chances, 0) * each - k, 0.0) / labels
    loss = tl.sum(positives, 0) * each / labels + beta * excess * excess
    if not MEAN:  # the mean times the observed rows
        loss = loss * total
        each = tl.where(total > 0, 1.0 + 0.0 * total, 0.0)
    tl.store(LOSS + group, loss.to(tl.float32))
    tl.store(SLOPES + 2 * group, (each / labels).to(tl.float32))
    tl.store(SLOPES + 2 * group + 1, (2.0 * beta * excess * each / labels).to(tl.float32))


@triton.jit
def expected_positive_kernel(S, T, W, SLOPES, GRAD, n, stride, size, parts, BLOCK: tl.constexpr):
    program = tl.program_id(0).to(tl.int64)
    row = program // parts
    group = row // size
    cols = (program % parts).to(tl.int32) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(T + row)
    weight = tl.where((index >= 0) & (index < n), weight_of(W, row), 0.0)
    inside = cols < tl.where(weight > 0, n, 0)
    x = known_scores(S + row * stride, cols, inside)
    _, large, small = logistic(x)
    g = large * small * (tl.load(SLOPES + 2 * group + 1) * weight)
    wrong = tl.where(x >= 0, small, large)  # the chance of not being present
    g -= tl.where(cols == index, wrong * (tl.load(SLOPES + 2 * group) * weight), 0.0)
    tl.store(GRAD + row * n + cols, tl.where(inside, g, 0.0), mask=cols < n)


def _expected_positive(
    scores: Tensor, target: Sequence[Tensor], weight: Tensor | None, reduction: str, groups: int, with_grad: WithGrad,
    k: float, beta: float, normalize: bool,
) -> Any:  # fmt: skip
    call = LossCall.of(scores, target, weight, "sum", groups, with_grad)  # "sum": what the mean divides by is ours
    rows, labels = scores.shape
    batches = max(1, groups)
    block = min(_BLOCK, max(16, triton.next_power_of_2(labels)))
    warps = max(1, block // 256)
    parts = triton.cdiv(labels, block)
    numbers = call.row_loss.new_empty
    chances, loss, slopes = numbers((rows, parts)), numbers(batches), numbers((batches, 2))
    read = call.scores, call.target.labels, call.weight
    shape = labels, call.scores.stride(0), rows // batches, parts
    with on_device(scores):
        launch(
            chances_kernel, rows * parts, *read, chances, call.flag, call.flag_base, labels, call.scores.stride(0),
            parts, BLOCK=block, warps=warps,
        )  # fmt: skip
        launch(
            batch_kernel, batches, *read, chances, loss, slopes, *shape, float(k), float(beta),
            float(labels if normalize else 1), MEAN=reduction == "mean", BLOCK=_TOTALS_BLOCK,
        )  # fmt: skip
        if call.factor is not None:
            slopes *= call.factor.unsqueeze(1)
        if call.grad is not None:
            launch(
                expected_positive_kernel, rows * parts, *read, slopes, call.grad, *shape, BLOCK=block, warps=warps
            )
    scale = torch.ones_like(loss)
    return (loss, call.grad, scale) if groups else (loss[0], call.grad, scale[0])


OFFERS = {"expected_positive": Offer(_expected_positive)}
