"""What a family of kernels offers, and how a kernel is launched: for real, interpreted, or only recorded.

A loss kernel has one program per row and is given a `LossCall`: where it reads and writes. It writes the row's loss,
how much the row counts (0: not observed) and, times that, the gradient. `LossCall.results` adds the rows up.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from shortlist import device_flags

IN_REGISTERS = 8192  # labels of a row that is held in registers; a longer one is streamed
MOST_K = 8
WithGrad = bool | Tensor  # whether a gradient is written; a tensor: nothing but it, times these numbers


class Offer(NamedTuple):
    """A kernel: ``run`` takes what the operator of ``kernels/ops.py`` takes, ``serves(labels, *args)`` says whether it
    takes these own tensors (True: there is one, or None) and numbers of the loss."""

    run: Callable[..., Any]
    serves: Callable[..., bool] = lambda *_: True


@dataclass
class Launch:
    """One launch as it was asked for: what `python -m docs.tools.gpu_kernels` compiles."""

    kernel: Any
    arguments: tuple[Any, ...]
    warps: int
    registers: int | None = None
    constants: dict[str, Any] = field(default_factory=dict)


_recorded: list[Launch] | None = None


@contextmanager
def recording() -> Iterator[list[Launch]]:
    """Nothing is launched inside: the list gets what would have been."""
    global _recorded
    before, _recorded = _recorded, []
    try:
        yield _recorded
    finally:
        _recorded = before


def options_of(warps: int, registers: int | None, hip: bool = torch.version.hip is not None) -> dict[str, int]:
    """What a kernel is compiled with. NVIDIA's assembler may be told how many registers a thread can have: left alone
    it stops at 32, 40, 48 ... of them for the sake of more programs at a time, and some kernels then spill a few."""
    return {"num_warps": warps} if hip or registers is None else {"num_warps": warps, "maxnreg": registers}


def launch(
    kernel: Any, programs: int, *arguments: Any, warps: int = 4, registers: int | None = None, **constants: Any
) -> None:
    if _recorded is not None:
        _recorded.append(Launch(kernel, arguments, warps, registers, constants))
    elif programs:
        kernel[(programs,)](*arguments, **options_of(warps, registers), **constants)


class Shape(NamedTuple):
    """How a row is cut: ``block`` labels at a time by so many warps; ``streamed`` where it has more than one block.
    ``held``: so many blocks are read once, and then in registers (0: each is read when it is its turn)."""

    block: int
    warps: int
    streamed: bool
    held: int = 0


def shape_of(
    labels: int,
    most_warps: int = 16,
    streamed_block: int = 512,
    streamed_warps: int = 0,
    most_labels: int = IN_REGISTERS,
    piece: int = 0,
) -> Shape:
    """``most_warps``: 8 of a kernel that needs more registers than 16 warps have; ``most_labels``: what they hold as
    one block; ``piece``: longer rows that fit into registers are held in blocks of so many labels."""
    block = max(16, triton.next_power_of_2(labels))
    if piece and most_labels < labels <= IN_REGISTERS:
        return Shape(piece, most_warps, True, IN_REGISTERS // piece)
    if labels > most_labels:
        return Shape(streamed_block, streamed_warps or max(1, streamed_block // 128), True)
    return Shape(block, min(most_warps, max(1, block // 256)), False)


def rows_of(matrix: Tensor) -> Tensor:
    """A matrix whose rows lie in one piece each, wherever they begin."""
    return matrix if matrix.stride(-1) == 1 or matrix.shape[-1] <= 1 else matrix.contiguous()


def on_device(tensor: Tensor) -> Any:
    """Launches inside go to the device of this tensor."""
    return torch.cuda.device_of(tensor)


INDEX, DENSE, SPARSE = "index", "dense", "sparse"


class Target(NamedTuple):
    """A target as kernels read it: ``kind``, then what it is made of (None: not of this kind)."""

    kind: str
    labels: Tensor  # class indices; or a label matrix; or the labels that are stored, row after row
    offsets: Tensor | None = None  # where the stored labels of each row begin
    values: Tensor | None = None  # what is stored, and last what all others are
    stride: int = 0  # of a label matrix

    @staticmethod
    def of(parts: Sequence[Tensor]) -> "Target":
        if len(parts) > 1:
            offsets, labels, values = parts
            return Target(SPARSE, labels.contiguous(), offsets.contiguous(), values.contiguous())
        if parts[0].ndim == 1:
            return Target(INDEX, parts[0].contiguous())
        matrix = rows_of(parts[0])
        matrix = matrix.view(torch.int8) if matrix.dtype == torch.bool else matrix
        return Target(DENSE, matrix, None, None, matrix.stride(0))


@dataclass
class LossCall:
    """What every loss kernel reads and writes, and how rows become one loss."""

    scores: Tensor
    target: Target
    weight: Tensor | None
    reduction: str
    groups: int
    grad: Tensor | None
    row_loss: Tensor
    row_weight: Tensor
    share: Tensor | None  # what gradients are multiplied by: the factor, or of class indices 1 / what a group counts
    factor: Tensor | None  # all there is to multiply by, of groups or (reduction "none") rows: no loss is asked for
    flag: Tensor | None
    flag_base: int

    @staticmethod
    def of(
        scores: Tensor, parts: Sequence[Tensor], weight: Tensor | None, reduction: str, groups: int, with_grad: WithGrad
    ) -> "LossCall":
        from shortlist.kernels.triton.finish import index_shares

        scores, target = rows_of(scores), Target.of(parts)
        rows = scores.shape[0]
        factor = with_grad.contiguous() if isinstance(with_grad, Tensor) else None
        wanted = factor is not None or with_grad is True
        grad = torch.empty(scores.shape, dtype=scores.dtype, device=scores.device) if wanted else None
        row_loss, row_weight = (scores.new_empty(rows, dtype=torch.float32) for _ in range(2))
        # what is wrong with the target was told when the loss was computed, and by the thread of that call
        flag, base = device_flags.flag(scores.device) if factor is None else (None, 0)
        weight = None if weight is None else weight.contiguous()
        share = factor
        if target.kind == INDEX and reduction == "mean" and with_grad is True:
            share = index_shares(target.labels, weight, groups, scores.shape[1])
        return LossCall(
            scores, target, weight, reduction, groups, grad, row_loss, row_weight, share, factor, flag, base
        )

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The arguments with which every loss kernel begins: S, T, OFFSETS, VALUES, W, SHARE, LOSS, WEIGHT, GRAD, FLAG,
        base, n, stride, tstride, size."""
        rows, labels = self.scores.shape
        return (
            self.scores,
            self.target.labels,
            self.target.offsets,
            self.target.values,
            self.weight,
            self.share,
            self.row_loss,
            self.row_weight,
            self.grad,
            self.flag,
            self.flag_base,
            labels,
            self.scores.stride(0),
            self.target.stride,
            1 if self.factor is not None and self.reduction == "none" else max(1, rows // max(1, self.groups)),
        )

    def launched(self, kernel: Any, shape: Shape, *more: Any, **constants: Any) -> tuple[Tensor, Tensor | None, Tensor]:
        """The results of a kernel that is launched for each row, with more arguments than the usual ones (and, among
        the constants, what `launch` takes)."""
        with on_device(self.scores):
            launch(
                kernel, len(self.scores), *self.arguments, *more, BLOCK=shape.block, warps=shape.warps, **constants
            )
        return self.results()

    def results(self) -> tuple[Tensor, Tensor | None, Tensor]:
        """(loss, grad, scale) as the operator returns them."""
        from shortlist.kernels.triton.finish import reduce_rows

        if self.factor is not None:
            return self.row_loss, self.grad, self.factor
        loss, scale = reduce_rows(self.row_loss, self.row_weight, self.reduction, self.groups, self.share is not None)
        return loss, self.grad, scale
