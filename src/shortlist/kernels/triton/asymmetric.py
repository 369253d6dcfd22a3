"""The asymmetric loss, and the partial selective loss that is made of it.

Where entries are on their own, each is read once and written once (8 bytes per label in float32). The likeliest unknown
labels of a row are found in registers (one of more than 4,096 labels is several blocks there: `held`); a row of more
than 8,192 is read twice for them (12).
"""

from collections.abc import Sequence
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from shortlist.kernels.triton.codes import label_codes, stored_of, weight_of
from shortlist.kernels.triton.entries import launch_in_parts, store_entries
from shortlist.kernels.triton.held import AT_ONCE, PIECE, block_of, held_row
from shortlist.kernels.triton.launch import MOST_K, LossCall, Offer, WithGrad, shape_of
from shortlist.kernels.triton.logistic import TINY, known_scores, log1p, logistic
from shortlist.kernels.triton.rows import MOST, NINF, row_share

_IGNORE, _SELECTIVE = 0, 2  # of the operator's unknown_rule
LEAST = tl.constexpr(-0x7FFFFFFFFFFFFFFF)


@triton.jit
def _power(q, GAMMA: tl.constexpr):
    out = tl.full(q.shape, 1.0, tl.float32)
    for _ in tl.static_range(GAMMA):
        out = out * q
    return out


@triton.jit
def _term(
    x, present, assumed, gamma_pos, gamma_neg, gamma_unknown, clip,
    WHOLE: tl.constexpr, CLIPPED: tl.constexpr, DETACHED: tl.constexpr,
):  # fmt: skip
    """Loss and slope: q is how wrong an entry is, the loss q^gamma (-log(1 - q)). WHOLE: the three gammas where all
    are small whole numbers, or None."""
    wrong = tl.where(present, -x, x)
    right = wrong < 0
    log, large, small = logistic(x)
    sure = tl.where(right, large, small)  # 1 - q before the clip
    q = tl.where(right, small, large)
    cost = tl.where(right, 0.0, wrong) + log  # -log(1 - q)
    log_q = tl.where(right, wrong, 0.0) - log
    gamma = tl.where(present, gamma_pos, tl.where(assumed, gamma_unknown, gamma_neg))
    if CLIPPED:
        dead = (present == 0) & (q <= clip)
        moved = tl.where(dead, 0.0, q - clip)
        rest = tl.where(dead, 1.0, sure + clip)
        near_1 = moved > 0.5
        moved_cost = tl.where(near_1, -tl.log(rest), -log1p(tl.where(near_1, 0.0, -moved)))
        q = tl.where(present, q, moved)
        cost = tl.where(present, cost, moved_cost)
        log_q = tl.where(present, log_q, tl.log(tl.maximum(moved, 1.1754944e-38)))
    if WHOLE is None:
        focus = tl.exp(gamma * tl.where(log_q < -MOST, -MOST, log_q))
    else:
        focus = tl.where(
            present, _power(q, WHOLE[0]), tl.where(assumed, _power(q, WHOLE[2]), _power(q, WHOLE[1]))
        )
    slope = focus * q
    if not DETACHED:  # the focus has a slope, too
        slope += focus * gamma * (sure * cost)
    if CLIPPED:
        outer = 1.0 / rest
        if not DETACHED:
            outer += gamma * (cost / tl.where(q > 0, q, 1.0))
        slope = tl.where(present, slope, tl.where(dead, 0.0, focus * (large * small) * outer))
        cost = tl.where(dead, 0.0, cost)
    return focus * cost, tl.where(present, -slope, slope)


@triton.jit
def _likelihood(x, unknown):
    """In the order in which unknown labels are likely to be present: their scores; a NaN is the least likely, and known
    labels come after all."""
    return tl.where(unknown, tl.where(x != x, -3e38, x), NINF)


@triton.jit
def _likely(likelihood, cols, bar, at):
    """From the last of the likeliest on, which is label ``at``: ties go to the lower label."""
    return (likelihood > bar) | ((likelihood == bar) & (cols <= at))


@triton.jit
def _number(likelihood, cols):
    """Likelihood and label as one whole number, in the same order."""
    bits = (likelihood + 0.0).to(tl.int32, bitcast=True)
    bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    return (bits.to(tl.int64) << 32) + (0x7FFFFFFF - cols)


@triton.jit
def asymmetric_kernel(
    S, T, OFFSETS, VALUES, W, SHARE, LOSS, WEIGHT, GRAD, FLAG, base, n, stride, tstride, size,
    stored, parts, FREQUENT, gamma_pos, gamma_neg, gamma_unknown, clip,
    BLOCK: tl.constexpr, WHOLE: tl.constexpr, CLIPPED: tl.constexpr, DETACHED: tl.constexpr,
    ASSUMES: tl.constexpr, LIKELY: tl.constexpr,
):  # fmt: skip
    """Unknown labels are left out; with ASSUMES they count as absent, but for the LIKELY likeliest of the row (which is
    then a single block) and those that are frequent."""
    program = tl.program_id(0).to(tl.int64)
    row = program // parts
    cols = (program % parts).to(tl.int32) * BLOCK + tl.arange(0, BLOCK)
    code = label_codes(T, OFFSETS, VALUES, FLAG, base, n, tstride, stored, row, cols, cols < n)
    counts = code >= 0
    assumed = counts & (cols < 0)
    if ASSUMES:
        assumed = (code < 0) & (cols < n)
    x = known_scores(S + row * stride, cols, counts | assumed)
    if LIKELY > 0:
        likelihood = _likelihood(x, assumed)
        left = likelihood
        bar, at = tl.max(left, 0, return_indices=True)
        for _ in range(LIKELY - 1):
            left = tl.where(cols == at, NINF, left)
            bar, at = tl.max(left, 0, return_indices=True)
        assumed = assumed & (_likely(likelihood, cols, bar, at) == 0)
    if FREQUENT is not None:
        assumed = assumed & (tl.load(FREQUENT + cols, mask=assumed, other=0) == 0)
    counts = counts | assumed
    loss, slope = _term(
        tl.where(counts, x, 0.0), code > 0, assumed, gamma_pos, gamma_neg, gamma_unknown, clip, WHOLE, CLIPPED, DETACHED
    )
    if GRAD is not None:
        GRAD += row * n
    share = row_share(SHARE, row, size)
    store_entries(LOSS + program, WEIGHT + program, GRAD, cols, n, loss, slope, counts, weight_of(W, row), share)


@triton.jit
def selective_long_kernel(
    S, T, OFFSETS, VALUES, W, SHARE, LOSS, WEIGHT, GRAD, FLAG, base, n, stride, tstride, size,
    stored, FREQUENT, gamma_pos, gamma_neg, gamma_unknown, clip,
    BLOCK: tl.constexpr, HELD: tl.constexpr, WHOLE: tl.constexpr, CLIPPED: tl.constexpr, DETACHED: tl.constexpr,
    LIKELY: tl.constexpr,
):  # fmt: skip
    """The same of a long row: each lane keeps the likeliest that it has seen."""
    row = tl.program_id(0).to(tl.int64)
    S += row * stride
    held, bits = held_row(S, T, OFFSETS, VALUES, FLAG, base, n, tstride, stored, row, "all", HELD, BLOCK)
    lanes = ()
    for _ in tl.static_range(LIKELY):
        lanes = lanes + (tl.full((BLOCK,), LEAST, tl.int64),)
    for begin in range(0, n, BLOCK):
        cols = begin + tl.arange(0, BLOCK)
        code, x = block_of(
            S, T, OFFSETS, VALUES, FLAG, base, n, tstride, stored, row, begin, held, bits, "unknown", HELD, BLOCK
        )
        unknown = (code < 0) & (cols < n)
        number = _number(_likelihood(x, unknown), cols)
        kept = ()
        for j in tl.static_range(LIKELY):
            kept = kept + (tl.maximum(lanes[j], number),)
            number = tl.minimum(lanes[j], number)
        lanes = kept
    bar = tl.max(lanes[0], 0)
    for _ in tl.static_range(LIKELY - 1):
        here = lanes[0] == bar
        popped = ()
        for j in tl.static_range(LIKELY):
            popped = popped + (tl.where(here, lanes[j + 1] if j + 1 < LIKELY else LEAST, lanes[j]),)
        lanes = popped
        bar = tl.max(lanes[0], 0)
    weight = weight_of(W, row)
    total = tl.zeros((BLOCK,), tl.float32)
    count = tl.zeros((BLOCK,), tl.float32)
    for begin in range(0, n, BLOCK):
        cols = begin + tl.arange(0, BLOCK)
        code, x = block_of(
            S, T, OFFSETS, VALUES, None, base, n, tstride, stored, row, begin, held, bits, "all", HELD, BLOCK
        )
        unknown = (code < 0) & (cols < n)
        assumed = unknown & (_number(_likelihood(x, unknown), cols) < bar)
        if FREQUENT is not None:
            assumed = assumed & (tl.load(FREQUENT + cols, mask=assumed, other=0) == 0)
        counts = (code >= 0) | assumed
        loss, slope = _term(
            tl.where(counts, x, 0.0), code > 0, assumed, gamma_pos, gamma_neg, gamma_unknown, clip,
            WHOLE, CLIPPED, DETACHED,
        )  # fmt: skip
        total += tl.where(counts, loss * TINY, 0.0)
        count += counts.to(tl.float32)
        if GRAD is not None:
            slope = tl.where(counts, slope * (weight * row_share(SHARE, row, size)), 0.0)
            tl.store(GRAD + row * n + cols, tl.where(weight > 0, slope, 0.0), mask=cols < n)
    counted = tl.sum(count, 0)
    tl.store(LOSS + row, tl.sum(total, 0) / (tl.maximum(counted, 1.0) * TINY))
    tl.store(WEIGHT + row, counted * weight)


def _asymmetric(
    scores: Tensor, target: Sequence[Tensor], weight: Tensor | None, frequent: Tensor | None, reduction: str,
    groups: int, with_grad: WithGrad, gamma_pos: float, gamma_neg: float, gamma_unknown: float, clip: float,
    detach_focus: bool, unknown_rule: int, likelihood_topk: int,
) -> Any:  # fmt: skip
    call = LossCall.of(scores, target, weight, reduction, groups, with_grad)
    selective = unknown_rule == _SELECTIVE
    likely = likelihood_topk if selective else 0
    gammas = (float(gamma_pos), float(gamma_neg), float(gamma_unknown))
    numbers = (frequent.contiguous() if selective and frequent is not None else None, *gammas, float(clip))
    constants = {
        "WHOLE": tuple(int(g) for g in gammas) if all(g <= 4 and g == int(g) for g in gammas) else None,
        "CLIPPED": clip > 0,
        "DETACHED": bool(detach_focus),
        "LIKELY": likely,
    }
    shape = shape_of(scores.shape[1], most_labels=AT_ONCE, piece=PIECE)
    if not (shape.streamed and likely):
        registers = None if call.factor is None or likely else 255  # else a gradient alone spills on sm_100
        constants |= {"ASSUMES": unknown_rule != _IGNORE, "registers": registers}
        return launch_in_parts(asymmetric_kernel, call, *numbers, whole=likely > 0, **constants)
    registers = 128 if shape.held else 255
    return call.launched(
        selective_long_kernel, shape, stored_of(call), *numbers, HELD=shape.held, **constants, registers=registers
    )


def _serves(labels: int, *args: Any) -> bool:
    unknown_rule, likelihood_topk = args[-2:]
    return unknown_rule != _SELECTIVE or likelihood_topk <= MOST_K


OFFERS = {"asymmetric": Offer(_asymmetric, _serves)}
