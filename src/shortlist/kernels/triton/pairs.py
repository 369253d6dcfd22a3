"""Losses that set a row's present labels against its absent ones.

A row of up to 8,192 labels is read once and written once (8 bytes per label in float32); a longer one is read twice and
written once (12).
"""

from collections.abc import Sequence
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from shortlist.kernels.triton.codes import label_codes, stored_of, weight_of
from shortlist.kernels.triton.held import block_of
from shortlist.kernels.triton.launch import LossCall, Offer, WithGrad, shape_of
from shortlist.kernels.triton.logistic import known_scores, softplus_and_sigmoid
from shortlist.kernels.triton.rows import NAN, NINF, row_share


@triton.jit
def joined(v, peak, total, weight, scale):
    """A sum of weight e^(scale v), relative to its largest v, with one more term."""
    rises = v > peak
    e = tl.exp(-tl.abs(v - peak) * scale)
    return tl.where(rises, v, peak), tl.where(rises, total * e + weight, total + e * weight)


@triton.jit
def finite(peak):
    """An empty side has no terms: any peak will do."""
    return tl.where(peak > NINF, peak, 0.0)


@triton.jit
def folded(peak, total, scale, TILE: tl.constexpr = False):
    """The lanes' sums as one; of a tile, down each column."""
    top = finite(tl.max(peak, 0))
    return top, tl.sum(total * tl.exp((peak - (top[None, :] if TILE else top)) * scale), 0)


@triton.jit
def terms_of(x, code, absent_peak, present_peak, inv_p, inv_n):
    """The exponential of each entry, relative to its side's peak."""
    present = code > 0
    v = tl.where(present, -x - present_peak, x - absent_peak) * tl.where(present, inv_p, inv_n)
    return tl.where(code >= 0, tl.exp(v), 0.0)


@triton.jit
def pair(absent_peak, absent_sum, present_peak, present_sum, t_p, t_n, margin):
    """The loss, and the slopes by each side's terms; 0 where a side is empty, NaN where a sum is."""
    both = (absent_sum != 0) & (present_sum != 0)  # a NaN is not 0
    absent_sum = tl.where(both, absent_sum, 1.0)
    present_sum = tl.where(both, present_sum, 1.0)
    sums = t_n * tl.log(absent_sum) + t_p * tl.log(present_sum)
    gap = (absent_peak + present_peak) + (sums + margin)  # large peaks first: they may cancel
    loss, push = softplus_and_sigmoid(tl.where(both, gap, 0.0))
    return tl.where(both, loss, 0.0), tl.where(both, push / absent_sum, 0.0), tl.where(both, push / present_sum, 0.0)


@triton.jit
def sides_joined(x, code, weight, absent_peak, absent_sum, present_peak, present_sum, inv_p, inv_n):
    """One more entry in every lane: a single exponential, of its own side."""
    present = code > 0
    absent = code == 0
    peak, total = joined(
        tl.where(present, -x, x),
        tl.where(present, present_peak, absent_peak),
        tl.where(present, present_sum, absent_sum),
        weight,
        tl.where(present, inv_p, inv_n),
    )
    return (
        tl.where(absent, peak, absent_peak),
        tl.where(absent, total, absent_sum),
        tl.where(present, peak, present_peak),
        tl.where(present, total, present_sum),
    )


@triton.jit
def side_sums(
    S, T, OFFSETS, VALUES, FLAG, base, n, tstride, stored, row, held, bits, inv_p, inv_n,
    HELD: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Both sides' peaks and sums over a long row (S: its scores), in one read."""
    absent_peak = tl.full((BLOCK,), NINF, tl.float32)
    present_peak = tl.full((BLOCK,), NINF, tl.float32)
    absent_sum = tl.zeros((BLOCK,), tl.float32)
    present_sum = tl.zeros((BLOCK,), tl.float32)
    for begin in range(0, n, BLOCK):
        code, x = block_of(
            S, T, OFFSETS, VALUES, FLAG, base, n, tstride, stored, row, begin, held, bits, "known", HELD, BLOCK
        )
        absent_peak, absent_sum, present_peak, present_sum = sides_joined(
            x, code, 1.0, absent_peak, absent_sum, present_peak, present_sum, inv_p, inv_n
        )
    absent_peak, absent_sum = folded(absent_peak, absent_sum, inv_n)
    present_peak, present_sum = folded(present_peak, present_sum, inv_p)
    return absent_peak, absent_sum, present_peak, present_sum


@triton.jit
def sides_of_short(x, code, inv_p, inv_n):
    """The same of a row in registers, and its terms."""
    clean = x == x
    absent_peak = finite(tl.max(tl.where((code == 0) & clean, x, NINF), 0))
    present_peak = finite(tl.max(tl.where((code > 0) & clean, -x, NINF), 0))
    terms = terms_of(x, code, absent_peak, present_peak, inv_p, inv_n)
    absent_sum = tl.sum(tl.where(code == 0, terms, 0.0), 0)
    present_sum = tl.sum(tl.where(code > 0, terms, 0.0), 0)
    return absent_peak, absent_sum, present_peak, present_sum, terms


@triton.jit
def pair_rows_kernel(
    S, T, OFFSETS, VALUES, W, SHARE, LOSS, WEIGHT, GRAD, FLAG, base, n, stride, tstride, size,
    stored, t_p, t_n, margin, BLOCK: tl.constexpr, STREAMED: tl.constexpr,
):  # fmt: skip
    """softplus(T_N log sum_absent e^(s/T_N) + T_P log sum_present e^(-s/T_P) + margin) of a row."""
    row = tl.program_id(0).to(tl.int64)
    S += row * stride
    inv_p = 1.0 / t_p
    inv_n = 1.0 / t_n
    lanes = tl.arange(0, BLOCK)
    if STREAMED:
        absent_peak, absent_sum, present_peak, present_sum = side_sums(
            S, T, OFFSETS, VALUES, FLAG, base, n, tstride, stored, row, (), 0, inv_p, inv_n, 0, BLOCK
        )
    else:
        code = label_codes(T, OFFSETS, VALUES, FLAG, base, n, tstride, stored, row, lanes, lanes < n)
        absent_peak, absent_sum, present_peak, present_sum, terms = sides_of_short(
            known_scores(S, lanes, code >= 0), code, inv_p, inv_n
        )
    weight = weight_of(W, row)
    counts = (present_sum != 0) & (weight > 0)  # a NaN is not 0
    broken = counts & ((absent_sum + present_sum) != (absent_sum + present_sum))
    loss, down, up = pair(absent_peak, absent_sum, present_peak, present_sum, t_p, t_n, margin)
    tl.store(LOSS + row, tl.where(broken, NAN, tl.where(counts, loss, 0.0)))
    tl.store(WEIGHT + row, tl.where(counts, weight, 0.0))
    if GRAD is not None:
        weight = weight * row_share(SHARE, row, size)
        down = tl.where(broken, NAN, tl.where(counts, down * weight, 0.0))
        up = tl.where(broken, NAN, tl.where(counts, -up * weight, 0.0))
        for begin in range(0, n if STREAMED else 1, BLOCK):
            cols = begin + lanes
            if STREAMED:
                code = label_codes(T, OFFSETS, VALUES, None, base, n, tstride, stored, row, cols, cols < n)
                terms = terms_of(known_scores(S, cols, code >= 0), code, absent_peak, present_peak, inv_p, inv_n)
            g = tl.where(counts, terms * tl.where(code > 0, up, down), 0.0)
            tl.store(GRAD + row * n + cols, g, mask=cols < n)


@triton.jit
def multilabel_softmax_kernel(
    S, T, OFFSETS, VALUES, W, SHARE, LOSS, WEIGHT, GRAD, FLAG, base, n, stride, tstride, size,
    stored, part, BLOCK: tl.constexpr, STREAMED: tl.constexpr,
):  # fmt: skip
    """log sum_known e^s - mean_present s of a row. ``part``: a power of two of at most 1/n, by which what the present
    labels lack of the peak is multiplied before it is added up, so that it fits."""
    row = tl.program_id(0).to(tl.int64)
    S += row * stride
    lanes = tl.arange(0, BLOCK)
    if STREAMED:
        peaks = tl.full((BLOCK,), NINF, tl.float32)
        totals = tl.zeros((BLOCK,), tl.float32)
        lacks = tl.zeros((BLOCK,), tl.float32)
        found = tl.zeros((BLOCK,), tl.float32)
        for begin in range(0, n, BLOCK):
            cols = begin + lanes
            code = label_codes(T, OFFSETS, VALUES, FLAG, base, n, tstride, stored, row, cols, cols < n)
            known = code >= 0
            x = known_scores(S, cols, known)
            higher, total = joined(x, peaks, totals, 1.0, 1.0)
            lacks += tl.where(known & (found > 0), (higher - peaks) * part * found, 0.0)
            peaks = tl.where(known, higher, peaks)
            totals = tl.where(known, total, totals)
            lacks += tl.where(code > 0, (peaks - x) * part, 0.0)
            found += (code > 0).to(tl.float32)
        peak, total = folded(peaks, totals, 1.0)
        lack = tl.sum(tl.where(found > 0, lacks + (peak - peaks) * part * found, 0.0), 0)
        present = tl.sum(found, 0)
    else:
        code = label_codes(T, OFFSETS, VALUES, FLAG, base, n, tstride, stored, row, lanes, lanes < n)
        x = known_scores(S, lanes, code >= 0)
        peak = finite(tl.max(tl.where((code >= 0) & (x == x), x, NINF), 0))
        terms = tl.where(code >= 0, tl.exp(x - peak), 0.0)
        total = tl.sum(terms, 0)
        lack = tl.sum(tl.where(code > 0, (peak - x) * part, 0.0), 0)
        present = tl.sum((code > 0).to(tl.float32), 0)
    weight = weight_of(W, row)
    counts = (present > 0) & (weight > 0)
    broken = counts & (total != total)
    each = 1.0 / tl.maximum(present, 1.0)
    loss = lack * (each / part) + tl.log(tl.where(total > 0, total, 1.0))
    tl.store(LOSS + row, tl.where(broken, NAN, tl.where(counts, loss, 0.0)))
    tl.store(WEIGHT + row, tl.where(counts, weight, 0.0))
    if GRAD is not None:
        weight = weight * row_share(SHARE, row, size)
        down = tl.where(broken, NAN, tl.where(counts, weight / tl.where(total > 0, total, 1.0), 0.0))
        up = tl.where(counts, weight * each, 0.0)
        for begin in range(0, n if STREAMED else 1, BLOCK):
            cols = begin + lanes
            if STREAMED:
                code = label_codes(T, OFFSETS, VALUES, None, base, n, tstride, stored, row, cols, cols < n)
                terms = tl.where(code >= 0, tl.exp(known_scores(S, cols, code >= 0) - peak), 0.0)
            g = tl.where(counts, terms * down - tl.where(code > 0, up, 0.0), 0.0)
            tl.store(GRAD + row * n + cols, g, mask=cols < n)


def _pair_rows(
    scores: Tensor, target: Sequence[Tensor], weight: Tensor | None, reduction: str, groups: int, with_grad: WithGrad,
    positive_temperature: float, negative_temperature: float, margin: float,
) -> Any:  # fmt: skip
    call = LossCall.of(scores, target, weight, reduction, groups, with_grad)
    return _launch_rows(
        pair_rows_kernel, call, float(positive_temperature), float(negative_temperature), float(margin)
    )


def _multilabel_softmax(
    scores: Tensor, target: Sequence[Tensor], weight: Tensor | None, reduction: str, groups: int, with_grad: WithGrad
) -> Any:
    call = LossCall.of(scores, target, weight, reduction, groups, with_grad)
    return _launch_rows(multilabel_softmax_kernel, call, 1.0 / triton.next_power_of_2(max(1, scores.shape[1])))


def _launch_rows(kernel: Any, call: LossCall, *numbers: float) -> Any:
    shape = shape_of(call.scores.shape[1], streamed_block=1024)
    registers = 128 if shape.streamed else None
    return call.launched(kernel, shape, stored_of(call), *numbers, STREAMED=shape.streamed, registers=registers)


OFFERS = {
    "pair_rows": Offer(_pair_rows),
    "multilabel_softmax": Offer(_multilabel_softmax),
}
