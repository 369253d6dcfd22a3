"""The two-way loss: `pairs` along every row, and the same along every column, whose sums each row enters weighted.

1. Columns: tiles of some rows and labels, their sums per column; rows that have a present label are marked.
2. Columns again, few numbers: the tiles' sums become one, its loss, and what its gradient needs.
3. One program: what each way observed, and so what its terms weigh in the loss.
4. Rows: both gradients at once.

Every sum is taken in a fixed order.
"""

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from shortlist.kernels.triton.codes import label_codes, stored_of, weight_of
from shortlist.kernels.triton.held import AT_ONCE, PIECE, block_of, held_row
from shortlist.kernels.triton.launch import LossCall, Offer, WithGrad, launch, on_device, shape_of
from shortlist.kernels.triton.logistic import known_scores
from shortlist.kernels.triton.pairs import finite, folded, pair, side_sums, sides_joined, sides_of_short, terms_of
from shortlist.kernels.triton.rows import NAN, NINF

CHUNK = 128  # rows of which a column's sums are one program's work
TILE_ROWS, TILE_LABELS = 16, 64
COLUMNS_BLOCK, SHARES_BLOCK = 256, 1024


@triton.jit
def column_sums_kernel(
    S, T, OFFSETS, VALUES, W, SUMS, SEEN, FLAG, base, n, stride, tstride, size, stored, chunks, t_p, t_n,
    ROWS: tl.constexpr, LABELS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """SUMS (groups, chunks, 4, n): both sides' peaks and sums of some of a group's rows. SEEN: rows with a present
    label, written by whoever sees it."""
    blocks = (n + LABELS - 1) // LABELS
    program = tl.program_id(0).to(tl.int64)
    at = program // blocks  # of the group and its chunk
    group = at // chunks
    begin = (at % chunks) * CHUNK
    cols = (program % blocks).to(tl.int32) * LABELS + tl.arange(0, LABELS)
    inv_p = 1.0 / t_p
    inv_n = 1.0 / t_n
    absent_peak = tl.full((ROWS, LABELS), NINF, tl.float32)
    present_peak = tl.full((ROWS, LABELS), NINF, tl.float32)
    absent_sum = tl.zeros((ROWS, LABELS), tl.float32)
    present_sum = tl.zeros((ROWS, LABELS), tl.float32)
    for step in range(0, tl.minimum(size - begin, CHUNK), ROWS):
        local = begin + step + tl.arange(0, ROWS)
        row = group * size + tl.where(local < size, local, 0)
        weight = weight_of(W, row)[:, None]
        inside = (local < size)[:, None] & (cols < n)[None, :]
        code = label_codes(
            T, OFFSETS, VALUES, FLAG, base, n, tstride, stored, row[:, None], cols[None, :], inside, TILE=True
        )
        code = tl.where(weight > 0, code, -1)
        tl.store(SEEN + row, 1, mask=tl.max(code, 1) > 0)
        x = known_scores(S, row[:, None] * stride + cols[None, :], code >= 0)
        absent_peak, absent_sum, present_peak, present_sum = sides_joined(
            x, code, weight, absent_peak, absent_sum, present_peak, present_sum, inv_p, inv_n
        )
    absent_peak, absent_sum = folded(absent_peak, absent_sum, inv_n, TILE=True)
    present_peak, present_sum = folded(present_peak, present_sum, inv_p, TILE=True)
    SUMS += at * 4 * n + cols
    tl.store(SUMS, absent_peak, mask=cols < n)
    tl.store(SUMS + n, absent_sum, mask=cols < n)
    tl.store(SUMS + 2 * n, present_peak, mask=cols < n)
    tl.store(SUMS + 3 * n, present_sum, mask=cols < n)


@triton.jit
def _merged(peak, total, PEAK, TOTAL, inside, temperature):
    """Two sums as one."""
    other = tl.load(TOTAL, mask=inside, other=0.0)
    other_peak = tl.where(other != 0, tl.load(PEAK, mask=inside, other=0.0), NINF)
    top = tl.where(other_peak > peak, other_peak, peak)
    there = finite(top)
    scale = 1.0 / temperature
    return top, total * tl.exp((peak - there) * scale) + other * tl.exp((other_peak - there) * scale)


@triton.jit
def columns_kernel(SUMS, COLUMNS, LOSS, COUNT, n, chunks, t_p, t_n, margin, LABELS: tl.constexpr):
    """COLUMNS (groups, 4, n): both peaks, and the slope by each side's terms. LOSS and COUNT: of blocks of labels."""
    blocks = (n + LABELS - 1) // LABELS
    program = tl.program_id(0).to(tl.int64)
    group = program // blocks
    cols = (program % blocks).to(tl.int32) * LABELS + tl.arange(0, LABELS)
    inside = cols < n
    absent_peak = tl.full((LABELS,), NINF, tl.float32)
    present_peak = tl.full((LABELS,), NINF, tl.float32)
    absent_sum = tl.zeros((LABELS,), tl.float32)
    present_sum = tl.zeros((LABELS,), tl.float32)
    for part in range(chunks):
        at = SUMS + (group * chunks + part) * 4 * n + cols
        absent_peak, absent_sum = _merged(absent_peak, absent_sum, at, at + n, inside, t_n)
        present_peak, present_sum = _merged(present_peak, present_sum, at + 2 * n, at + 3 * n, inside, t_p)
    absent_peak = finite(absent_peak)
    present_peak = finite(present_peak)
    observed = present_sum != 0  # a NaN is not 0; no present label: not observed, whatever the absent scores are
    broken = observed & ((absent_sum + present_sum) != (absent_sum + present_sum))
    loss, down, up = pair(absent_peak, absent_sum, present_peak, present_sum, t_p, t_n, margin)
    at = COLUMNS + group * 4 * n + cols
    tl.store(at, absent_peak, mask=inside)
    tl.store(at + n, present_peak, mask=inside)
    tl.store(at + 2 * n, tl.where(broken, NAN, down), mask=inside)
    tl.store(at + 3 * n, tl.where(broken, NAN, -up), mask=inside)
    loss = tl.where(broken, NAN, tl.where(observed, loss, 0.0))
    tl.store(LOSS + program, tl.sum(loss.to(tl.float64), 0))
    tl.store(COUNT + program, tl.sum(observed.to(tl.float32), 0))


@triton.jit
def shares_kernel(
    W, SEEN, LOSS, COUNT, SHARES, size, blocks,
    MEAN: tl.constexpr, SAMPLE_WAY: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """SHARES (groups, 3): what a row's term weighs, what a column's does, and the loss of all columns."""
    group = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    of_rows = tl.zeros((BLOCK,), tl.float64)
    of_columns = tl.zeros((BLOCK,), tl.float64)
    losses = tl.zeros((BLOCK,), tl.float64)
    for begin in range(0, size, BLOCK):
        row = group * size + begin + lanes
        seen = tl.load(SEEN + row, mask=begin + lanes < size, other=0)
        of_rows += tl.where(seen > 0, weight_of(W, tl.where(seen > 0, row, 0)), 0.0)
    for begin in range(0, blocks, BLOCK):
        at = begin + lanes
        losses += tl.load(LOSS + group * blocks + at, mask=at < blocks, other=0.0)
        of_columns += tl.load(COUNT + group * blocks + at, mask=at < blocks, other=0.0)
    rows_observed = tl.sum(of_rows, 0)
    columns_observed = tl.sum(of_columns, 0)
    row_share = rows_observed * 0.0 + (1.0 if SAMPLE_WAY else 0.0)
    column_share = columns_observed * 0.0 + 1.0
    if MEAN:
        row_share = tl.where(rows_observed > 0, row_share / tl.where(rows_observed > 0, rows_observed, 1.0), 0.0)
        column_share = tl.where(columns_observed > 0, 1.0 / tl.maximum(columns_observed, 1.0), 0.0)
    tl.store(SHARES + 3 * group, row_share.to(tl.float32))
    tl.store(SHARES + 3 * group + 1, column_share.to(tl.float32))
    tl.store(SHARES + 3 * group + 2, (tl.sum(losses, 0) * column_share).to(tl.float32))


@triton.jit
def two_way_rows_kernel(
    S, T, OFFSETS, VALUES, W, LOSS, GRAD, COLUMNS, SHARES, base, n, stride, tstride, size, stored, t_p, t_n, margin,
    BLOCK: tl.constexpr, STREAMED: tl.constexpr, HELD: tl.constexpr, SAMPLE_WAY: tl.constexpr,
):  # fmt: skip
    """LOSS: what the row adds to the sample way. The target has been checked on the way through the columns."""
    row = tl.program_id(0).to(tl.int64)
    group = row // size
    S += row * stride
    COLUMNS += group * 4 * n
    weight = weight_of(W, row)
    of_columns = weight * tl.load(SHARES + 3 * group + 1)
    lanes = tl.arange(0, BLOCK)
    inv_p = 1.0 / t_p
    inv_n = 1.0 / t_n
    if STREAMED:
        held, bits = held_row(S, T, OFFSETS, VALUES, None, base, n, tstride, stored, row, "known", HELD, BLOCK)
    else:
        code = label_codes(T, OFFSETS, VALUES, None, base, n, tstride, stored, row, lanes, lanes < n)
        x = known_scores(S, lanes, code >= 0)
    if SAMPLE_WAY:
        if STREAMED:
            absent_peak, absent_sum, present_peak, present_sum = side_sums(
                S, T, OFFSETS, VALUES, None, base, n, tstride, stored, row, held, bits, inv_p, inv_n, HELD, BLOCK
            )
        else:
            absent_peak, absent_sum, present_peak, present_sum, terms = sides_of_short(x, code, inv_p, inv_n)
        counts = (present_sum != 0) & (weight > 0)
        broken = counts & ((absent_sum + present_sum) != (absent_sum + present_sum))
        loss, down, up = pair(absent_peak, absent_sum, present_peak, present_sum, t_p, t_n, margin)
        share = weight * tl.load(SHARES + 3 * group)
        tl.store(LOSS + row, tl.where(broken, NAN, tl.where(counts, loss * share, 0.0)))
        down = tl.where(counts, down * share, 0.0)
        up = tl.where(counts, -up * share, 0.0)
    if GRAD is not None:
        for begin in range(0, n if STREAMED else 1, BLOCK):
            cols = begin + lanes
            if STREAMED:
                code, x = block_of(
                    S, T, OFFSETS, VALUES, None, base, n, tstride, stored, row, begin, held, bits, "known", HELD, BLOCK
                )
            known = code >= 0
            present = code > 0
            side = tl.where(present, n, 0) + cols
            peak = tl.load(COLUMNS + side, mask=known, other=0.0)
            push = tl.load(COLUMNS + 2 * n + side, mask=known, other=0.0)
            v = (tl.where(present, -x, x) - peak) * tl.where(present, inv_p, inv_n)
            g = tl.where(push != 0, tl.exp(v) * (push * of_columns), 0.0)  # a NaN may be of a column not observed
            if SAMPLE_WAY:
                if STREAMED:
                    terms = terms_of(x, code, absent_peak, present_peak, inv_p, inv_n)
                g += tl.where(counts, terms * tl.where(present, up, down), 0.0)
            g = tl.where(known, g, 0.0)
            if SAMPLE_WAY:
                g = tl.where(broken, NAN, g)
            tl.store(GRAD + row * n + cols, tl.where(weight > 0, g, 0.0), mask=cols < n)


def _two_way(
    scores: Tensor, target: Sequence[Tensor], weight: Tensor | None, reduction: str, groups: int, with_grad: WithGrad,
    positive_temperature: float, negative_temperature: float, margin: float, sample_way: bool,
) -> Any:  # fmt: skip
    call = LossCall.of(scores, target, weight, reduction, groups, with_grad)
    rows, labels = scores.shape
    batches = max(1, groups)
    size = rows // batches
    temperatures = (float(positive_temperature), float(negative_temperature))
    chunks, blocks = max(1, triton.cdiv(size, CHUNK)), triton.cdiv(labels, COLUMNS_BLOCK)
    numbers = call.row_loss.new_empty
    sums, columns = numbers((batches, chunks, 4, labels)), numbers((batches, 4, labels))
    losses, counts = numbers((2, batches, blocks), dtype=torch.float64)
    shares = numbers((batches, 3))
    seen = torch.zeros(rows, dtype=torch.int8, device=scores.device)
    read = call.scores, call.target.labels, call.target.offsets, call.target.values, call.weight
    layout = labels, call.scores.stride(0), call.target.stride, size
    block, warps, streamed, held = shape_of(labels, streamed_block=1024, most_labels=AT_ONCE, piece=PIECE)
    with on_device(scores):
        launch(
            column_sums_kernel, batches * chunks * triton.cdiv(labels, TILE_LABELS),
            *read, sums, seen, call.flag, call.flag_base, *layout, stored_of(call), chunks, *temperatures,
            ROWS=TILE_ROWS, LABELS=TILE_LABELS, CHUNK=CHUNK, registers=168,
        )  # fmt: skip
        launch(
            columns_kernel, batches * blocks, sums, columns, losses, counts, labels, chunks, *temperatures,
            float(margin), LABELS=COLUMNS_BLOCK,
        )  # fmt: skip
        launch(
            shares_kernel, batches, call.weight, seen, losses, counts, shares, size, blocks,
            MEAN=reduction == "mean", SAMPLE_WAY=sample_way, BLOCK=SHARES_BLOCK,
        )  # fmt: skip
        if call.factor is not None:
            shares *= call.factor.unsqueeze(1)
        if sample_way or call.grad is not None:
            launch(
                two_way_rows_kernel, rows, *read, call.row_loss, call.grad, columns, shares, call.flag_base, *layout,
                stored_of(call), *temperatures, float(margin),
                BLOCK=block, STREAMED=streamed, HELD=held, SAMPLE_WAY=sample_way, warps=warps, registers=128,
            )  # fmt: skip
    loss = shares[:, 2]
    if sample_way:
        loss = loss + call.row_loss.view(batches, size).sum(1)
    scale = torch.ones_like(loss)
    return (loss, call.grad, scale) if groups else (loss[0], call.grad, scale[0])


OFFERS = {"two_way": Offer(_two_way)}
