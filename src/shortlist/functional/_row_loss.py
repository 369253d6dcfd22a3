"""A loss of rows as one object: its kernel, its PyTorch twin, and the one place that decides between them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from shortlist import device_flags
from shortlist.checks import (
    IGNORE_INDEX,
    bad_label_at,
    check_mask,
    check_reduction,
    check_sample_weight,
    check_scores,
    check_shares,
    holds_shares,
    in_compute_type,
    is_learned,
    raise_bad_index,
    transforms_active,
    unknown_as_minus_1,
    values_visible,
)
from shortlist.distributed import world_size
from shortlist.errors import ShortlistError
from shortlist.functional import _targets
from shortlist.functional._calls import Again, Call, Drawn, observed_by, share_of
from shortlist.functional._frame import BARELY, bounded
from shortlist.functional._native import Traced, apply_eager, can_be_lean, eager, is_plain
from shortlist.functional._targets import Counted, Reader
from shortlist.functional.reduction import NotedMean, reduce_over_processes, spread_nan
from shortlist.kernels import native_serves, ops, triton_serves
from shortlist.kernels.dispatch import triton_takes
from shortlist.labels.sparse_labels import SparseLabels, Target


@dataclass(frozen=True, eq=False)
class RowLoss:
    """A loss of (..., L) scores, a target and its own ``args``: first tensors (or None), then numbers.

    ``twin(scores, target, *args)`` gives the losses of rows or entries, and whether each was observed; of a loss that
    couples the rows of a batch, ``twin(scores, target, weight, reduction, *args, world=)`` gives the reduced loss.
    The ``kernel`` (None until one is written) must say the same. Backward multiplies the gradient that the kernel has
    computed with the loss; the gradient of the gradient is the twin's.

    Args:
        kernel, twin: as above.
        read: what the target may be, of `shortlist.functional._targets`. A loss of one label per row also takes the
            shares of the labels that it may be (soft targets), and is then the expected loss.
        of: what has a loss of its own: "rows", "entries" (the kernel then only reduces) or only the whole "batch".
        linear: piecewise, so that the gradient has no slope of its own; `piecewise_linear` makes such a loss.
        spreads_nan: every score of a row counts, so that a NaN among them makes the row NaN; False where some are left
            out, and the twin sees to the others.
        per_label: its tensor has one number per label, not per row: where vmap may batch it the twin serves.
        lean: the twin with a gradient of its own, in closed form: far fewer operations and less memory than
            differentiating the twin. ``lean(scores, target, *args)`` gives the losses of rows or entries, how much
            each row or entry counts, and the gradient in the scores, all 0 where nothing is observed. It saves
            launches if it gives losses and counts (`BARELY` at least) as one tensor (2, ...), a number that both and
            the gradient are multiplied by, and the gradient as a function of a factor, a number or one for each row.
            Of a "batch", ``lean(scores, target, weight, reduction, *args)`` gives the reduced loss, its gradient and
            what that is still to be divided by, or None.
        lean_means: with ``mean=True`` that gives the mean itself and its gradient, for where nothing is weighed.
        lean_in_double: that asks for float64, which not every device has.
        by_chance: the loss draws random numbers of its own: nothing may be computed a second time.
        lean_at_once: that takes many times the memory of the scores: not more than so many of them at a time, and the
            numbers of each row (seeds) with them.
        minds_mask: what is out of its row is not the same as unknown: only the twin knows of it, by ``mask=``.
    """

    kernel: ops.Kernel | None
    twin: Callable[..., Any]
    read: Reader
    of: Literal["rows", "entries", "batch"] = "rows"
    linear: bool = False
    spreads_nan: bool = True
    per_label: bool = False
    minds_mask: bool = False
    lean: Callable[..., tuple[Tensor, Any, Any]] | None = None
    lean_means: bool = False
    lean_in_double: bool = False
    lean_at_once: int = 0
    by_chance: bool = False

    def __call__(
        self,
        scores: Tensor,
        target: Target,
        args: tuple[Any, ...],
        mask: Tensor | None,
        weight: Tensor | None,
        sample_weight: Tensor | None,
        reduction: str,
        sync: bool | None,
        soft: bool | None = None,
    ) -> Tensor:
        """``soft``: floats of the scores' shape are shares of labels. None: where their values can be seen, and for
        nothing, they tell."""
        check_reduction(reduction)
        alone = mask is None and weight is None and sample_weight is None
        if alone and self._is_plain(scores, target, args, reduction) and world_size(sync) == 1:
            assert isinstance(target, Tensor)
            try:
                return self._plain(scores, target, args, reduction)
            except ops.BadTarget:  # told below, if it is one: -100 is unknown
                target = unknown_as_minus_1(target) if target.ndim == 1 else target
        check_scores(scores)
        counted = (mask, weight, sample_weight)
        if (scores.is_cpu and not triton_takes(scores)) or not values_visible(scores):
            return self._told(scores, target, args, counted, reduction, sync, soft)
        device_flags.begin(self.name, scores.device)
        loss = self._told(scores, target, args, counted, reduction, sync, soft)
        device_flags.end(scores.device)
        return loss

    def _is_plain(self, scores: Tensor, target: Target, args: tuple[Any, ...], reduction: str) -> bool:
        """Whether the native kernel can be called with what is given, `is_plain`. What is plain passes every check but
        that of the target's values, which the kernel looks at; what is not may pass, too."""
        return (
            self.kernel is not None
            and is_plain(scores)
            and type(reduction) is str
            and not (self.of == "entries" and reduction == "none")
            and not (self.per_label and args[0] is not None)
            and _targets.is_plain(self.read, scores, target)
            and self.kernel.native
        )

    def _plain(self, scores: Tensor, target: Tensor, args: tuple[Any, ...], reduction: str) -> Tensor:
        assert self.kernel is not None
        run, own = self.kernel.run, self.kernel.own
        if scores.requires_grad and torch.is_grad_enabled():
            call = Call(self, run, reduction, own, args[own:], scores.dtype)
            return apply_eager(call, scores, None, *args[:own], target)
        return run(scores, (target,), None, *args[:own], reduction, 0, False, *args[own:])[0]

    @property
    def name(self) -> str:
        """Of the loss, for errors that are told later than in its call."""
        return self.twin.__name__.removeprefix("_").removesuffix("_twin")

    def _told(
        self,
        scores: Tensor,
        target: Target,
        args: tuple[Any, ...],
        counted: Counted,
        reduction: str,
        sync: bool | None,
        soft: bool | None,
    ) -> Tensor:
        """With a target of any kind."""
        rest = args, counted, reduction, sync
        floats = isinstance(target, Tensor) and target.is_floating_point() and target.shape == scores.shape
        if not isinstance(target, Tensor) or not floats or self.read in (_targets.label_matrix, _targets.chances):
            return self._labelled(scores, target, *rest)
        if soft or self.read is _targets.indices:
            return self._expected(scores, target, *rest)
        if soft is False or device_flags.waits(target):  # nobody looks: a fraction is told as a wrong value
            return self._labelled(scores, target, *rest)
        try:  # a label matrix of floats is not looked through for fractions first
            return self._labelled(scores, target, *rest)
        except ShortlistError:
            if not holds_shares(target):
                raise
        return self._expected(scores, target, *rest)

    def _labelled(
        self, scores: Tensor, given: Target, args: tuple[Any, ...], counted: Counted, reduction: str, sync: bool | None
    ) -> Tensor:
        """With labels that are known: class indices or a label matrix."""
        mask, weight, sample_weight = counted
        world = world_size(sync)
        allowed = (
            not (is_learned(weight) or is_learned(sample_weight))
            and not (self.read is _targets.chances and is_learned(given))
            and not (self.of == "entries" and reduction == "none")
            and not (self.of == "batch" and world > 1)
            and not (self.minds_mask and mask is not None)
            and not (self.per_label and args[0] is not None and (is_learned(args[0]) or transforms_active()))
        )
        kernel = self.kernel if allowed else None
        by_triton = kernel is not None and triton_serves(kernel.name, scores, *args)
        x = scores if by_triton else in_compute_type(scores)
        native = by_triton or (kernel is not None and kernel.native and native_serves(x))
        x, target, rows = self.read(x, given, counted, native)
        shape = x.shape[:-1]
        if x.ndim != 2:
            assert isinstance(target, Tensor)  # sparse labels go with two dimensions
            x = x.reshape(-1, x.shape[-1])
            target = target.reshape(-1) if target.ndim == len(shape) else target.reshape(x.shape)
            rows = None if rows is None else rows.reshape(-1)
            if not self.per_label:
                args = tuple(a.reshape(-1) if isinstance(a, Tensor) else a for a in args)
        if allowed and not native and self._leans(x, args):
            kernel = ops.Kernel(self._lean_kernel, self._lean_kernel, "")
            native = True
        if native:
            assert kernel is not None
            loss = self._native(kernel, x, target, rows, reduction, args, shape, world)
        else:
            assert isinstance(target, Tensor)
            if self.minds_mask and mask is not None:
                args = (*args, mask.expand(*shape, x.shape[-1]).reshape(x.shape))
            loss = self.reduced_twin(x, target, rows, reduction, args, world)
        if reduction == "none" and len(shape) != 1:
            loss = loss.reshape((*shape, *loss.shape[1:]))
        return loss if loss.dtype == scores.dtype else loss.to(scores.dtype)

    def _expected(
        self, scores: Tensor, target: Tensor, args: tuple[Any, ...], counted: Counted, reduction: str, sync: bool | None
    ) -> Tensor:
        """The expected loss of labels drawn by their shares, exactly: each row once for every label that has a share,
        which is its weight."""
        mask, weight, sample_weight = counted
        n, shape = scores.shape[-1], scores.shape[:-1]
        shares = check_shares(in_compute_type(scores), target).reshape(-1, n)
        if values_visible(shares):
            row, label = (shares.detach() > 0).nonzero(as_tuple=True)
        else:  # how many there are may not be asked: all of them
            row = torch.arange(len(shares), device=shares.device).repeat_interleave(n)
            label = torch.arange(n, device=shares.device).repeat(len(shares))
        each = shares[row, label].clamp(min=0)
        rows_weight = check_sample_weight(scores, sample_weight)
        if rows_weight is not None:
            each = each * rows_weight.to(each.dtype).reshape(-1)[row]
        if mask is not None:
            check_mask(scores, mask)
            mask = mask.expand(scores.shape).reshape(-1, n)[row]
        if not self.per_label:
            args = tuple(a.reshape(-1)[row] if isinstance(a, Tensor) else a for a in args)
        loss = self(scores.reshape(-1, n)[row], label, args, mask, weight, each, reduction, sync)
        if reduction == "none":
            loss = loss.new_zeros(len(shares)).index_add(0, row, loss).reshape(shape)
        return loss

    def reduced_twin(
        self,
        scores: Tensor,
        target: Tensor,
        weight: Tensor | None,
        reduction: str,
        args: tuple[Any, ...],
        world: int = 1,
    ) -> Tensor:
        if self.of == "batch":
            return self.twin(scores, target, weight, reduction, *args, world=world)
        losses, observed = self.twin(scores, target, *args)
        if self.spreads_nan:
            losses = spread_nan(losses, scores, observed)
        counts = observed.to(losses.dtype)
        if weight is not None:
            counts = counts * (weight if weight.ndim == counts.ndim else weight.unsqueeze(-1))
        return reduce_over_processes(losses, counts, reduction, world)

    def _leans(self, scores: Tensor, args: tuple[Any, ...]) -> bool:
        """Whether `lean` takes this: a tensor of one number per row (a k, a seed) is the twin's."""
        per_row = not (self.per_label or self.lean_at_once) and any(isinstance(value, Tensor) for value in args)
        return self.lean is not None and not per_row and scores.numel() > 0 and can_be_lean(scores, self.lean_in_double)

    def _lean_kernel(
        self, scores: Tensor, target: tuple[Tensor], weight: Tensor | None, *given: Any
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """What a kernel gives, by PyTorch: one group of rows, always with the gradient, which is still to be divided by
        the third result."""
        assert self.lean is not None
        own = next(i for i, value in enumerate(given) if isinstance(value, str))
        reduction, args = str(given[own]), (*given[:own], *given[own + 3 :])
        kept = given[own + 1] > 0  # `Traced` keeps tensors alone
        scores = scores.contiguous()  # the same bits whatever the strides
        if self.of == "batch":
            loss, gradient, total = self.lean(scores, target[0], weight, reduction, *args)
            if kept and callable(gradient):
                gradient = gradient(scores.new_ones(()))
            return loss, gradient, loss.new_ones(()) if total is None and kept else total
        if self.lean_means and weight is None and type(given[own]) is str and reduction == "mean" and not kept:
            loss, _, gradient = self.lean(scores, target[0], *args, mean=True)
            return loss, gradient, None
        rows, most = len(scores), max(1, self.lean_at_once // scores.shape[-1])
        if self.lean_at_once and rows > most:
            cut = [slice(start, start + most) for start in range(0, rows, most)]
            of_rows = [[a[at] if isinstance(a, Tensor) else a for a in args] for at in cut]
            parts = [self.lean(scores[at], target[0][at], *some) for at, some in zip(cut, of_rows, strict=True)]
            losses, counts, gradient = (torch.cat(part) for part in zip(*parts, strict=True))
            del parts
        else:
            losses, counts, gradient = self.lean(scores, target[0], *args)
        if kept and callable(gradient):
            gradient = gradient(scores.new_ones(()))
        if not isinstance(counts, Tensor):  # losses and counts in one, both so many times what they are
            if weight is None and reduction == "mean":
                loss, total = losses.flatten(1).sum(-1)
                return loss / total, gradient, total
            if weight is None and reduction == "sum":
                losses = losses.flatten(1).sum(-1)
            elif losses.ndim == 3:
                losses = losses.sum(-1)
            times, (losses, counts) = counts, losses if counts == 1 else losses / counts
            if callable(gradient):
                gradient = gradient(scores.new_full((), 1 / times))
            elif times != 1:
                gradient.div_(times)
        if weight is not None:
            losses, counts = (part if part.ndim == 1 else part.sum(-1) for part in (losses, counts))
            out, counts = weight == 0, counts * weight
            losses = (losses * weight).masked_fill_(out, 0.0)  # whatever an ignored row holds
            gradient.mul_(weight.unsqueeze(-1)).masked_fill_(out.unsqueeze(-1), 0.0)
        if reduction == "none":
            return losses, gradient, counts
        if reduction == "sum":
            return losses.sum() if losses.ndim else losses, gradient, losses.new_ones(()) if kept else None
        total = counts.sum(dtype=losses.dtype).clamp_(min=BARELY)
        return losses.sum() / total, gradient, total

    def _native(
        self,
        kernel: ops.Kernel,
        scores: Tensor,
        target: Tensor | SparseLabels,
        weight: Tensor | None,
        reduction: str,
        args: tuple[Any, ...],
        shape: torch.Size,
        world: int,
    ) -> Tensor:
        """By the kernel: directly, or as an operator where the call is traced."""
        own = 0
        while own < len(args) and (args[own] is None or isinstance(args[own], Tensor)):
            own += 1
        labels = (target,) if isinstance(target, Tensor) else target.tensors
        tensors, numbers = (scores, weight, *args[:own], *labels), args[own:]
        learns = scores.requires_grad and torch.is_grad_enabled()
        divides = kernel.run == self._lean_kernel
        try:
            traces = world > 1 or torch.compiler.is_compiling()
            half = scores.dtype == torch.float16  # by Triton: no other kernel reads it
            made = Again if half else Drawn if self.by_chance else Call
            if transforms_active() or (learns and traces):
                call = made(self, kernel.op, reduction, own, numbers, scores.dtype, divides, groups=1)
                loss, *_, scale = Traced.apply(call, *tensors)
                if reduction == "none":
                    return loss
                loss, scale = loss.squeeze(0), scale.squeeze(0)
            elif learns:
                return eager(made(self, kernel.run, reduction, own, numbers, scores.dtype, divides), *tensors)
            else:
                run = kernel.op if traces else kernel.run
                loss, _, scale = run(scores, labels, weight, *args[:own], reduction, 0, False, *numbers)
                if isinstance(reduction, NotedMean):
                    reduction.observed = observed_by(loss, scale, labels, weight, divides)
        except ops.BadTarget as bad:  # in terms of the target's own shape
            assert isinstance(target, Tensor)  # what is sparse was checked when it was made
            n = scores.shape[-1]
            if target.ndim == 1 and bool((target == IGNORE_INDEX).any()):
                known = unknown_as_minus_1(target)
                return self._native(kernel, scores, known, weight, reduction, args, shape, world)
            if target.ndim == 1:
                raise_bad_index(target.reshape(shape), bad.position, n)
            raise bad_label_at(target.reshape(*shape, n), bad.position) from None
        return loss if world == 1 else share_of(loss, scale, labels, weight, reduction, world, divides)


def piecewise_linear(
    kernel: ops.Kernel | None, lean: Callable[..., tuple[Tensor, Tensor, Tensor]], read: Reader, **more: Any
) -> RowLoss:
    """A loss whose gradient has no slope of its own: ``lean`` says all that there is to say, and makes the twin."""

    def twin(scores: Tensor, target: Tensor, *args: Any) -> tuple[Tensor, Tensor]:
        losses, observed, gradient = lean(scores.detach(), target, *args)
        x = bounded(scores)
        nothing = torch.where(gradient != 0, gradient * (x - x.detach()), 0.0).sum(-1)  # but its slope is the gradient
        return losses + nothing, observed

    twin.__name__ = lean.__name__.replace("_lean", "_twin")
    return RowLoss(kernel, twin, read, linear=True, lean=lean, **more)
