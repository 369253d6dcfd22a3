"""The average-K loss of a batch with both heads' gradients.

1. Rows of proposals: the sums that make them shares.
2. The M largest shares of the batch that are no observed label, M known on the device: four passes count the shares by
   8 bits of them, and settle 8 bits of the smallest that is chosen. Counts are whole numbers: their order of addition
   does not matter.
3. How many of each row are above that share, and how many are it: of those, the earlier ones are taken.
4. Rows of both heads: losses and gradients.
"""


import torch
import triton
import triton.language as tl
from torch import Tensor

from shortlist.kernels.triton.launch import Offer, WithGrad, launch, on_device, rows_of
from shortlist.kernels.triton.logistic import known_scores, log1p, logistic
from shortlist.kernels.triton.pairs import finite
from shortlist.kernels.triton.rows import NINF

_BLOCK, _TOTALS_BLOCK = 2048, 1024


@triton.jit
def _share(Z, cols, n, peak, log_sum):
    return (known_scores(Z, cols, cols < n) - peak) - log_sum


@triton.jit
def _key(share):
    """Whole numbers from 0 to 2^32 - 1 in the order of the shares."""
    bits = (share + 0.0).to(tl.int32, bitcast=True)
    bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    return bits.to(tl.int64) + 0x80000000


@triton.jit
def proposals_kernel(Z, INDEX, WEIGHT, ROWS, n, stride, BLOCK: tl.constexpr):
    """ROWS (rows, 4): the peak, the log of the sum above it, minus the own label's log share, and the others' share."""
    row = tl.program_id(0).to(tl.int64)
    Z += row * stride
    own = tl.load(INDEX + row)
    observed = tl.load(WEIGHT + row) > 0
    length = tl.where(observed, n, 0)
    peaks = tl.full((BLOCK,), NINF, tl.float32)
    totals = tl.zeros((BLOCK,), tl.float32)
    others = tl.zeros((BLOCK,), tl.float32)
    for begin in range(0, n, BLOCK):
        cols = begin + tl.arange(0, BLOCK)
        inside = cols < length
        x = known_scores(Z, cols, inside)
        rises = x > peaks
        e = tl.exp(-tl.abs(x - peaks))
        kept = tl.where(rises, e, 1.0)
        added = tl.where(rises, 1.0, e)
        totals = tl.where(inside, totals * kept + added, totals)
        others = tl.where(inside, others * kept + tl.where(cols == own, 0.0, added), others)
        peaks = tl.where(inside & rises, x, peaks)
    peak = finite(tl.max(peaks, 0))
    down = tl.exp(peaks - peak)
    total = tl.sum(totals * down, 0)
    rest = tl.sum(others * down, 0)
    score = known_scores(Z, own, observed & (own >= 0))
    lack = peak - score
    own_term = tl.exp(-lack)
    close = rest <= own_term
    ratio = rest / tl.where(close, own_term, 1.0)  # of the others to the own label
    surprise = tl.where(close, log1p(tl.where(close, ratio, 0.0)), lack + tl.log(tl.where(observed, total, 1.0)))
    at = ROWS + row * 4
    tl.store(at, peak)
    tl.store(at + 1, tl.log(tl.where(observed, total, 1.0)))
    tl.store(at + 2, tl.where(observed, surprise, 0.0))
    tl.store(at + 3, tl.where(observed, rest / (rest + own_term), 0.0))


@triton.jit
def _eligible(Z, ROWS, own, weight, row, cols, n):
    """Keys of a row's shares, and which may be chosen: a row with a NaN proposes nothing."""
    peak = tl.load(ROWS + row * 4)
    log_sum = tl.load(ROWS + row * 4 + 1)
    length = tl.where((weight > 0) & (log_sum == log_sum), n, 0)
    return _key(_share(Z, cols, length, peak, log_sum)), (cols < length) & (cols != own)


@triton.jit
def digits_kernel(Z, INDEX, WEIGHT, ROWS, STATE, COUNTS, size, n, stride, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    """COUNTS (groups, 256): shares whose higher bits are settled (STATE), by their next 8 bits."""
    row = tl.program_id(0).to(tl.int64)
    group = row // size
    Z += row * stride
    own = tl.load(INDEX + row)
    weight = tl.load(WEIGHT + row)
    settled = tl.load(STATE + group * 2)
    counts = tl.zeros((256,), tl.int32)
    for begin in range(0, n, BLOCK):
        cols = begin + tl.arange(0, BLOCK)
        key, fits = _eligible(Z, ROWS, own, weight, row, cols, n)
        fits = fits & ((key >> (SHIFT + 8)) == settled)
        counts += tl.histogram(((key >> SHIFT) & 255).to(tl.int32), 256, mask=fits)
    tl.atomic_add(COUNTS + group * 256 + tl.arange(0, 256), counts.to(tl.int64), mask=counts > 0)


@triton.jit
def settle_kernel(STATE, COUNTS, FIRST: tl.constexpr):
    """STATE (groups, 2): the higher bits of the smallest share chosen, and how many of those that have them are."""
    group = tl.program_id(0).to(tl.int64)
    digits = tl.arange(0, 256)
    counts = tl.load(COUNTS + group * 256 + digits)
    below = tl.cumsum(counts, 0)
    all_of_them = tl.sum(counts, 0)
    missing = tl.load(STATE + group * 2 + 1)
    if FIRST:
        missing = tl.minimum(missing, all_of_them)
    at_least = all_of_them - below + counts  # with this digit or a larger one
    cut = tl.sum((at_least >= missing).to(tl.int32), 0) - 1
    above = tl.sum(tl.where(digits > cut, counts, 0), 0)
    tl.store(STATE + group * 2, tl.load(STATE + group * 2) * 256 + cut)
    tl.store(STATE + group * 2 + 1, missing - above)
    tl.store(COUNTS + group * 256 + digits, tl.zeros((256,), tl.int64))


@triton.jit
def tied_kernel(Z, INDEX, WEIGHT, ROWS, STATE, TIED, size, n, stride, BLOCK: tl.constexpr):
    """TIED (rows, 2): how many shares are above the smallest that is chosen, and how many are it."""
    row = tl.program_id(0).to(tl.int64)
    Z += row * stride
    own = tl.load(INDEX + row)
    weight = tl.load(WEIGHT + row)
    cut = tl.load(STATE + (row // size) * 2)
    above = tl.zeros((BLOCK,), tl.int32)
    tied = tl.zeros((BLOCK,), tl.int32)
    for begin in range(0, n, BLOCK):
        key, fits = _eligible(Z, ROWS, own, weight, row, begin + tl.arange(0, BLOCK), n)
        above += (fits & (key > cut)).to(tl.int32)
        tied += (fits & (key == cut)).to(tl.int32)
    tl.store(TIED + row * 2, tl.sum(above, 0))
    tl.store(TIED + row * 2 + 1, tl.sum(tied, 0))


@triton.jit
def _divided(scale, total):
    return tl.where(total > 0, scale / tl.where(total > 0, total, 1.0), 0.0).to(tl.float32)


@triton.jit
def totals_kernel(WEIGHT, STATE, TIED, TAKEN, SHARES, size, n, alpha, MEAN: tl.constexpr, BLOCK: tl.constexpr):
    """TAKEN (rows): how many of a row's ties are chosen. SHARES (groups, 3): what an observed label, a candidate and a
    negative weigh in the loss."""
    group = tl.program_id(0).to(tl.int64)
    missing = tl.load(STATE + group * 2 + 1)
    total = tl.zeros((BLOCK,), tl.float64)
    candidates = tl.zeros((BLOCK,), tl.float64)
    negatives = tl.zeros((BLOCK,), tl.float64)
    before = missing * 0
    for begin in range(0, size, BLOCK):
        local = begin + tl.arange(0, BLOCK)
        row = group * size + local
        inside = local < size
        weight = tl.load(WEIGHT + row, mask=inside, other=0.0).to(tl.float64)
        weight = tl.where(weight > 0, weight, 0.0)
        above = tl.load(TIED + row * 2, mask=inside, other=0).to(tl.int64)
        tied = tl.load(TIED + row * 2 + 1, mask=inside, other=0).to(tl.int64)
        left = missing - before - (tl.cumsum(tied, 0) - tied)
        taken = tl.minimum(tl.maximum(left, 0), tied)
        before += tl.sum(tied, 0)
        tl.store(TAKEN + row, taken.to(tl.int32), mask=inside)
        chosen = (above + taken).to(tl.float64)
        total += weight
        candidates += weight * chosen
        negatives += weight * ((n - 1) - chosen)
    all_rows = tl.sum(total, 0)
    all_candidates = tl.sum(candidates, 0)
    all_negatives = tl.sum(negatives, 0)
    scale = all_rows * 0.0 + 1.0
    if not MEAN:  # the mean times the observed rows
        scale = tl.where(all_rows > 0, all_rows, 1.0)
    SHARES += group * 3
    tl.store(SHARES, _divided(scale, all_rows))
    tl.store(SHARES + 1, _divided(scale * alpha, all_candidates))
    tl.store(SHARES + 2, _divided(scale * alpha, all_negatives))


@triton.jit
def average_k_kernel(
    S, Z, INDEX, WEIGHT, ROWS, STATE, TIED, TAKEN, SHARES, LOSS, SET_GRAD, PROPOSAL_GRAD,
    size, n, set_stride, proposal_stride, BLOCK: tl.constexpr,
):  # fmt: skip
    """LOSS: what each row adds to it."""
    row = tl.program_id(0).to(tl.int64)
    group = row // size
    S += row * set_stride
    Z += row * proposal_stride
    own = tl.load(INDEX + row)
    weight = tl.load(WEIGHT + row)
    weight = tl.where(weight > 0, weight, 0.0)
    of_own = tl.load(SHARES + group * 3) * weight
    of_candidates = tl.load(SHARES + group * 3 + 1) * weight
    of_negatives = tl.load(SHARES + group * 3 + 2) * weight
    cut = tl.load(STATE + group * 2)
    tied = tl.load(TIED + row * 2 + 1)
    taken = tl.load(TAKEN + row)
    peak = tl.load(ROWS + row * 4)
    log_sum = tl.load(ROWS + row * 4 + 1)
    others = tl.load(ROWS + row * 4 + 3)
    observed = tl.where(weight > 0, n, 0)  # labels that count
    proposing = tl.where(log_sum == log_sum, observed, 0)
    losses = tl.zeros((BLOCK,), tl.float32)
    before = tied * 0
    for begin in range(0, n, BLOCK):
        cols = begin + tl.arange(0, BLOCK)
        inside = cols < observed
        mine = cols == own
        share = _share(Z, cols, observed, peak, log_sum)
        key = _key(share)
        fits = (cols < proposing) & (mine == 0)
        at_cut = (fits & (key == cut)).to(tl.int32)
        place = at_cut * 0 + 1
        if (taken > 0) & (taken < tied):  # the earlier of them
            place = before + tl.cumsum(at_cut, 0)
            before += tl.sum(at_cut, 0)
        up = (fits & (key > cut)) | ((at_cut > 0) & (place <= taken)) | mine
        x = known_scores(S, cols, inside)
        log, large, small = logistic(x)
        wrong = tl.where(up, -x, x)
        each = tl.where(mine, of_own, tl.where(up, of_candidates, of_negatives))
        losses += tl.where(inside, (tl.where(wrong > 0, wrong, 0.0) + log) * each, 0.0)
        if SET_GRAD is not None:
            slope = tl.where(wrong >= 0, large, small) * tl.where(up, -each, each)
            tl.store(SET_GRAD + row * n + cols, tl.where(inside, slope, 0.0), mask=cols < n)
            push = tl.where(mine, -others, tl.exp(share)) * of_own
            tl.store(PROPOSAL_GRAD + row * n + cols, tl.where(inside, push, 0.0), mask=cols < n)
    total = tl.sum(losses, 0) + of_own * tl.load(ROWS + row * 4 + 2)
    tl.store(LOSS + row, tl.where(weight > 0, total, 0.0))


def _average_k(
    sets: Tensor, proposals: Tensor, index: Tensor, weight: Tensor, k: float, alpha: float, mean: bool, groups: int,
    with_grad: WithGrad = True,
) -> tuple[Tensor, Tensor | None, Tensor | None]:  # fmt: skip
    sets, proposals, index, weight = rows_of(sets), rows_of(proposals), index.contiguous(), weight.contiguous()
    rows, labels = sets.shape
    size, device = rows // max(1, groups), sets.device
    gradients: tuple[Tensor | None, Tensor | None] = (None, None)
    if with_grad is not False:
        gradients = torch.empty(sets.shape, dtype=sets.dtype, device=device), torch.empty_like(proposals)
    of_rows, row_loss = (torch.empty(shape, dtype=torch.float32, device=device) for shape in ((rows, 4), rows))
    tied, taken = (torch.empty(shape, dtype=torch.int32, device=device) for shape in ((rows, 2), rows))
    shares = torch.empty((groups, 3), dtype=torch.float32, device=device)
    counts = torch.zeros((groups, 256), dtype=torch.int64, device=device)
    observed = (weight > 0).view(groups, size).sum(1)
    wanted = (observed.double() * (k - 1.0) + 0.5).floor().long()
    state = torch.stack([torch.zeros_like(wanted), wanted], 1)  # bits that are settled, and how many are missing
    block = min(_BLOCK, max(16, triton.next_power_of_2(labels)))
    warps = max(1, block // 256)
    proposed = proposals, index, weight, of_rows
    shape = size, labels, proposals.stride(0)
    with on_device(sets):
        launch(proposals_kernel, rows, *proposed, labels, proposals.stride(0), BLOCK=block, warps=warps)
        for shift in (24, 16, 8, 0):
            launch(digits_kernel, rows, *proposed, state, counts, *shape, SHIFT=shift, BLOCK=block, warps=warps)
            launch(settle_kernel, groups, state, counts, FIRST=shift == 24)
        launch(tied_kernel, rows, *proposed, state, tied, *shape, BLOCK=block, warps=warps)
        launch(
            totals_kernel, groups, weight, state, tied, taken, shares, size, labels, float(alpha),
            MEAN=bool(mean), BLOCK=_TOTALS_BLOCK,
        )  # fmt: skip
        registers = None
        if isinstance(with_grad, Tensor):
            shares *= with_grad.unsqueeze(1)
            registers = 255  # left alone, float16 spills on sm_90
        launch(
            average_k_kernel, rows, sets, *proposed, state, tied, taken, shares, row_loss, *gradients,
            size, labels, sets.stride(0), proposals.stride(0), BLOCK=block, warps=warps, registers=registers,
        )  # fmt: skip
    return row_loss.view(groups, size).sum(1), *gradients


OFFERS = {"average_k": Offer(_average_k)}
