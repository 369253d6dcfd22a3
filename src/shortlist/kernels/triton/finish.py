"""From rows to one loss, and from the kept gradient to the one that is handed on. Nothing waits for the device."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from shortlist.kernels.triton.launch import Offer, launch, on_device

_BLOCK = 1024


@triton.jit
def index_shares_kernel(Y, W, SHARE, size, n, BLOCK: tl.constexpr):
    """1 / what the rows of a group count, by their class indices; 0 where none does."""
    group = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float64)
    for j in range(0, size, BLOCK):
        at = j + lanes
        y = tl.load(Y + group * size + at, mask=at < size, other=-1)
        if W is None:
            w = tl.full((BLOCK,), 1.0, tl.float32)
        else:
            w = tl.load(W + group * size + at, mask=at < size, other=0.0)
        total += tl.where((y >= 0) & (y < n), w, 0.0)
    whole = tl.sum(total, 0)
    tl.store(SHARE + group, tl.where(whole > 0, 1.0 / tl.where(whole > 0, whole, 1.0), 0.0).to(tl.float32))


@triton.jit
def reduce_rows_kernel(LOSS, WEIGHT, OUT, SCALE, size, MEAN: tl.constexpr, COMPLETE: tl.constexpr, BLOCK: tl.constexpr):
    """The (mean) loss of a group of rows, and what their gradient has yet to be multiplied by."""
    group = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float64)
    counted = tl.zeros((BLOCK,), tl.float64)
    for j in range(0, size, BLOCK):
        at = j + lanes
        loss = tl.load(LOSS + group * size + at, mask=at < size, other=0.0).to(tl.float64)
        w = tl.load(WEIGHT + group * size + at, mask=at < size, other=0.0).to(tl.float64)
        total += tl.where(w > 0, loss * w, 0.0)
        counted += w
    whole = tl.sum(counted, 0)
    scale = whole * 0.0 + 1.0
    if MEAN:
        scale = tl.where(whole > 0, 1.0 / tl.where(whole > 0, whole, 1.0), 0.0)
    tl.store(OUT + group, tl.where(whole > 0, tl.sum(total, 0) * scale, 0.0).to(tl.float32))
    if COMPLETE:
        scale = whole * 0.0 + 1.0
    tl.store(SCALE + group, scale.to(tl.float32))


@triton.jit
def finish_gradient_kernel(GRAD, FACTOR, count, BLOCK: tl.constexpr):
    """The gradient times a number; where that is 1, as after ``loss.backward()``, nothing is read."""
    factor = tl.load(FACTOR).to(tl.float32)
    if factor != 1.0:
        at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        g = tl.load(GRAD + at, mask=at < count).to(tl.float32)
        tl.store(GRAD + at, g * factor, mask=at < count)


def index_shares(index: Tensor, weight: Tensor | None, groups: int, labels: int) -> Tensor:
    share = torch.empty(max(1, groups), dtype=torch.float32, device=index.device)
    with on_device(index):
        launch(
            index_shares_kernel, len(share), index, weight, share, len(index) // len(share), labels, BLOCK=_BLOCK
        )
    return share


def reduce_rows(
    row_loss: Tensor, row_weight: Tensor, reduction: str, groups: int, complete: bool
) -> tuple[Tensor, Tensor]:
    """(loss, scale) of rows with these losses and weights."""
    loss, scale = (row_loss.new_empty(groups or 1) for _ in range(2))  # an operator's results may not share memory
    size = len(row_loss) // (groups or 1)
    with on_device(row_loss):
        launch(
            reduce_rows_kernel, groups or 1, row_loss, row_weight, loss, scale, size,
            MEAN=str(reduction) == "mean", COMPLETE=complete, BLOCK=_BLOCK,
        )  # fmt: skip
    if not groups:
        loss, scale = loss[0], scale[0]
    return row_loss * row_weight if reduction == "none" else loss, scale


def _finish_gradient(grad: Tensor, factor: Tensor) -> None:
    count, block = grad.numel(), 4096
    with on_device(grad):
        launch(finish_gradient_kernel, triton.cdiv(count, block), grad, factor, count, warps=8, BLOCK=block)


OFFERS = {"finish_gradient": Offer(_finish_gradient)}
