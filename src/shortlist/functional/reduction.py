"""One meaning of ``reduction`` for every loss: "mean" divides by what was observed, nothing observed gives 0."""

import torch
from torch import Tensor

from shortlist import device_flags
from shortlist.checks import values_visible
from shortlist.distributed import sum_over_processes


class NotedMean(str):
    """The reduction "mean" that also notes what it has divided by, for whoever joins the means of parts to one."""

    observed: Tensor

    def __new__(cls) -> "NotedMean":
        return super().__new__(cls, "mean")


def reduce_loss(loss: Tensor, weight: Tensor, reduction: str) -> Tensor:
    """Reduce losses with weights that say how much each counts (0: not observed, whatever its loss holds).

    ``loss`` and ``weight`` have one shape: one entry per row, or per label where the loss is element-wise.
    """
    weighted = torch.where(weight > 0, loss * weight, 0.0)  # not 0 * loss: an ignored NaN or inf stays ignored
    if reduction == "none":
        return weighted
    if reduction == "sum":
        return weighted.sum()
    total = weight.sum()
    return weighted.sum() / torch.where(total > 0, total, 1.0)


def reduce_over_processes(loss: Tensor, weight: Tensor, reduction: str, world: int) -> Tensor:
    """`reduce_loss` over the global batch: "mean" divides by what all processes observed. "none" stays local."""
    if isinstance(reduction, NotedMean):
        reduction.observed = weight.sum().detach()
    if world == 1 or reduction == "none":
        return reduce_loss(loss, weight, reduction)
    local = world * reduce_loss(loss, weight, "sum")
    if reduction == "sum":
        return local
    total = sum_over_processes(weight.sum().detach(), world)
    return local / torch.where(total > 0, total, 1.0)


def spread_nan(rows: Tensor, scores: Tensor, observed: Tensor) -> Tensor:
    """Row losses, NaN (and with a NaN gradient for the whole row) where an observed row's scores hold a NaN."""
    largest = scores.detach().amax(-1) if scores.shape[-1] else torch.zeros_like(rows)
    bad = largest.isnan() & observed  # the largest of a row is NaN if any is
    if values_visible(bad) and not device_flags.waits(bad) and not bool(bad.any()):
        return rows
    bad_entries = bad.unsqueeze(-1)
    poisoned = torch.where(bad_entries, scores * torch.where(bad_entries, torch.nan, 1.0), 0.0).sum(-1)
    return torch.where(bad, poisoned.to(rows.dtype), rows)
