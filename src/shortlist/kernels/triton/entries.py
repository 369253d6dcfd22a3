"""Losses that are sums over entries: each is read once, and its slope written once (8 bytes per label in float32).

No entry needs to know of the others: a long row is cut into blocks, each the work of a program. What is left of a block
is the mean of its losses and how many entries it counted; blocks are then added up as rows are.
"""

from collections.abc import Sequence
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from shortlist.kernels.triton.codes import label_chances, label_codes, stored_of, weight_of
from shortlist.kernels.triton.launch import LossCall, Offer, WithGrad, launch, on_device, shape_of
from shortlist.kernels.triton.logistic import TINY, known_scores, logistic
from shortlist.kernels.triton.rows import class_index, row_share

PART = 2048  # labels of a row that are one program's work


@triton.jit
def binary_term(x, present):
    """Loss and slope of entries that are present or absent."""
    log, large, small = logistic(x)
    wrong = tl.where(present, -x, x)
    chance = tl.where(wrong >= 0, large, small)  # of being wrong
    return tl.where(wrong > 0, wrong, 0.0) + log, tl.where(present, -chance, chance)


@triton.jit
def store_entries(LOSS, WEIGHT, GRAD, cols, n, loss, slope, counts, weight, share):
    """The mean loss of a block, how much it counts, and the slopes."""
    count = tl.sum(counts.to(tl.float32), 0)
    total = tl.sum(tl.where(counts, loss * TINY, 0.0), 0)
    tl.store(LOSS, total / (tl.maximum(count, 1.0) * TINY))
    tl.store(WEIGHT, count * weight)
    if GRAD is not None:
        slope = tl.where(counts, slope * (weight * share), 0.0)
        tl.store(GRAD + cols, tl.where(weight > 0, slope, 0.0), mask=cols < n)


@triton.jit
def binary_kernel(
    S, T, OFFSETS, VALUES, W, SHARE, LOSS, WEIGHT, GRAD, FLAG, base, n, stride, tstride, size,
    stored, parts, POS, BLOCK: tl.constexpr,
):  # fmt: skip
    """Of every known entry; present ones weigh POS, one number per label. A target of floats holds the chance by which
    an entry is present: its loss is the expected one, of a chance of 1 or 0 to the last bit that of the label."""
    program = tl.program_id(0).to(tl.int64)
    row = program // parts
    cols = (program % parts).to(tl.int32) * BLOCK + tl.arange(0, BLOCK)
    if T.dtype.element_ty.is_floating():
        chance = label_chances(T, FLAG, base, n, tstride, row, cols, cols < n)
        known, some = chance >= 0, chance > 0
        x = known_scores(S + row * stride, cols, known)
        log, large, small = logistic(x)
        if POS is not None:
            up = tl.load(POS + cols, mask=some, other=1.0) * chance
        else:
            up = chance
        down = 1.0 - chance
        loss = up * (tl.where(x < 0, -x, 0.0) + log) + down * (tl.where(x > 0, x, 0.0) + log)
        slope = down * tl.where(x >= 0, large, small) - up * tl.where(x <= 0, large, small)
    else:
        code = label_codes(T, OFFSETS, VALUES, FLAG, base, n, tstride, stored, row, cols, cols < n)
        known, some = code >= 0, code > 0
        loss, slope = binary_term(known_scores(S + row * stride, cols, known), some)
        if POS is not None:
            of_present = tl.load(POS + cols, mask=some, other=1.0)
            loss = loss * of_present
            slope = slope * of_present
    if GRAD is not None:
        GRAD += row * n
    share = row_share(SHARE, row, size)
    store_entries(LOSS + program, WEIGHT + program, GRAD, cols, n, loss, slope, known, weight_of(W, row), share)


@triton.jit
def partial_binary_kernel(
    S, T, OFFSETS, VALUES, W, SHARE, LOSS, WEIGHT, GRAD, FLAG, base, n, stride, tstride, size,
    stored, boost, BLOCK: tl.constexpr,
):  # fmt: skip
    """A row's factor comes from how many of its labels are known: its target is read before its scores."""
    row = tl.program_id(0).to(tl.int64)
    S += row * stride
    labels = tl.zeros((BLOCK,), tl.float32)
    for begin in range(0, n, BLOCK):
        cols = begin + tl.arange(0, BLOCK)
        code = label_codes(T, OFFSETS, VALUES, FLAG, base, n, tstride, stored, row, cols, cols < n)
        labels += (code >= 0).to(tl.float32)
    known = tl.sum(labels, 0)
    factor = (boost + (1.0 - boost) * (known / n - 0.1) / 0.9) / n
    weight = tl.where(known > 0, weight_of(W, row), 0.0)
    each = weight * factor * row_share(SHARE, row, size)
    total = tl.zeros((BLOCK,), tl.float32)
    for begin in range(0, n, BLOCK):
        cols = begin + tl.arange(0, BLOCK)
        code = label_codes(T, OFFSETS, VALUES, None, base, n, tstride, stored, row, cols, cols < n)
        counts = tl.where(weight > 0, code, -1) >= 0
        loss, slope = binary_term(known_scores(S, cols, counts), code > 0)
        total += tl.where(counts, loss * TINY, 0.0)
        if GRAD is not None:
            tl.store(GRAD + row * n + cols, tl.where(counts, slope * each, 0.0), mask=cols < n)
    tl.store(LOSS + row, tl.sum(total, 0) * (factor / TINY))
    tl.store(WEIGHT + row, weight)


@triton.jit
def assume_negative_kernel(
    S, T, OFFSETS, VALUES, W, SHARE, LOSS, WEIGHT, GRAD, FLAG, base, n, stride, tstride, size,
    absent_weight, smoothing, BLOCK: tl.constexpr, SMOOTHED: tl.constexpr,
):  # fmt: skip
    """One present label per row, every other one absent; ``smoothing`` is half of what targets are moved by."""
    row = tl.program_id(0).to(tl.int64)
    index = class_index(T, row, n, FLAG, base)
    weight = tl.where(index >= 0, weight_of(W, row), 0.0)
    each = weight * row_share(SHARE, row, size)
    total = tl.zeros((BLOCK,), tl.float32)
    for begin in range(0, n, BLOCK):
        cols = begin + tl.arange(0, BLOCK)
        counts = cols < tl.where(weight > 0, n, 0)
        present = cols == index
        x = known_scores(S + row * stride, cols, counts)
        loss, slope = binary_term(x, present)
        if SMOOTHED:
            loss = loss - tl.where(present, -x, x) * smoothing
            slope += tl.where(present, smoothing, -smoothing)
        of_entry = tl.where(present, 1.0, absent_weight)
        total += tl.where(counts, loss * (of_entry * TINY), 0.0)
        if GRAD is not None:
            tl.store(GRAD + row * n + cols, tl.where(counts, slope * of_entry * each, 0.0), mask=cols < n)
    tl.store(LOSS + row, tl.sum(total, 0) * (1.0 / TINY))
    tl.store(WEIGHT + row, weight)


def launch_in_parts(kernel: Any, call: LossCall, *more: Any, whole: bool = False, **constants: Any) -> Any:
    """Launch a kernel of entries, one program for each block of a row (``whole``: for each row); the results."""
    rows, labels = call.scores.shape
    block, warps, *_ = shape_of(labels)
    if not whole:
        block, warps = min(block, PART), min(warps, PART // 256)
    parts = triton.cdiv(labels, block)
    if parts != 1:
        call.row_loss, call.row_weight = (call.row_loss.new_empty(rows * parts) for _ in range(2))
    with on_device(call.scores):
        launch(
            kernel, rows * parts, *call.arguments, stored_of(call), parts, *more,
            BLOCK=block, warps=warps, **constants,
        )  # fmt: skip
    return call.results()


def _binary(
    scores: Tensor, target: Sequence[Tensor], weight: Tensor | None, pos_weight: Tensor | None, reduction: str,
    groups: int, with_grad: WithGrad,
) -> Any:  # fmt: skip
    call = LossCall.of(scores, target, weight, reduction, groups, with_grad)
    return launch_in_parts(binary_kernel, call, None if pos_weight is None else pos_weight.contiguous(), registers=128)


def _partial_binary(
    scores: Tensor, target: Sequence[Tensor], weight: Tensor | None, reduction: str, groups: int, with_grad: WithGrad,
    boost: float,
) -> Any:  # fmt: skip
    call = LossCall.of(scores, target, weight, reduction, groups, with_grad)
    shape = shape_of(scores.shape[1], streamed_block=2048, most_labels=2048)  # scores are read once in any case
    return call.launched(partial_binary_kernel, shape, stored_of(call), float(boost), registers=128)


def _assume_negative(
    scores: Tensor, target: Sequence[Tensor], weight: Tensor | None, reduction: str, groups: int, with_grad: WithGrad,
    weighted: bool, label_smoothing: float,
) -> Any:  # fmt: skip
    call = LossCall.of(scores, target, weight, reduction, groups, with_grad)
    labels = scores.shape[1]
    shape = shape_of(labels, streamed_block=2048, most_labels=2048)  # read once in any case
    numbers = 1.0 / max(1, labels - 1) if weighted else 1.0, label_smoothing / 2
    return call.launched(assume_negative_kernel, shape, *numbers, SMOOTHED=label_smoothing > 0)


OFFERS = {
    "binary": Offer(_binary),
    "partial_binary": Offer(_partial_binary),
    "assume_negative": Offer(_assume_negative),
}
