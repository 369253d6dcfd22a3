"""One meaning of ``reduction`` for every loss: "mean" divides by what was observed, nothing observed gives 0."""

import torch
from torch import Tensor

from shortlist.checks import (
    apply_mask,
    check_class_weight,
    check_index_shape,
    check_indices,
    check_label_matrix,
    check_sample_weight,
    check_scores,
    in_compute_type,
    is_index_target,
    is_learned,
    mask_indices,
    values_visible,
    without_denormals,
)
from shortlist.distributed import sum_over_processes
from shortlist.errors import ShortlistError
from shortlist.kernels import native_serves


def reduce_loss(loss: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    """Reduce losses with weights that say how much each counts (0: not observed, whatever its loss holds).

    ``loss`` and ``weight`` have one shape: one entry per row, or per label where the loss is element-wise.
    """
    if weight is None:
        weight = torch.ones_like(loss)
    weighted = torch.where(weight > 0, loss * weight, 0.0)  # not 0 * loss: an ignored NaN or inf stays ignored
    if reduction == "none":
        return weighted
    if reduction == "sum":
        return weighted.sum()
    total = weight.sum()
    return weighted.sum() / torch.where(total > 0, total, 1.0)


def reduce_over_processes(loss: Tensor, weight: Tensor, reduction: str, world: int) -> Tensor:
    """`reduce_loss` over the global batch: "mean" divides by what all processes observed. "none" stays local."""
    if world == 1 or reduction == "none":
        return reduce_loss(loss, weight, reduction)
    local = world * reduce_loss(loss, weight, "sum")
    if reduction == "sum":
        return local
    total = sum_over_processes(weight.sum().detach(), world)
    return local / torch.where(total > 0, total, 1.0)


def spread_nan(rows: Tensor, scores: Tensor, observed: Tensor) -> Tensor:
    """Row losses, NaN (and with a NaN gradient for the whole row) where an observed row's scores hold a NaN."""
    bad = scores.detach().isnan().any(-1) & observed
    if values_visible(bad) and not bool(bad.any()):
        return rows
    bad_entries = bad.unsqueeze(-1)
    poisoned = torch.where(bad_entries, scores * torch.where(bad_entries, torch.nan, 1.0), 0.0).sum(-1)
    return torch.where(bad, poisoned.to(rows.dtype), rows)


def index_weights(
    scores: Tensor, target: Tensor, weight: Tensor | None, sample_weight: Tensor | None
) -> Tensor | None:
    """Weight of each row of an index loss, class weight times sample weight; None when there is neither."""
    if weight is None and sample_weight is None:
        return None
    weight, out = check_class_weight(scores, weight), check_sample_weight(scores, sample_weight)
    if weight is None:
        return out
    check_indices(scores, target)  # before it is used as an index
    weight = weight[target.long().clamp(min=0)]
    return weight if out is None else without_denormals(weight * out)


def index_loss_inputs(
    scores: Tensor,
    target: Tensor,
    mask: Tensor | None,
    weight: Tensor | None,
    sample_weight: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Checked and masked inputs of a row loss that takes indices: scores, target, row weights."""
    check_index_shape(scores, target)
    x = in_compute_type(scores)
    if mask is not None or is_learned(sample_weight) or not native_serves(x):
        check_indices(scores, target)
    if mask is None and weight is None and sample_weight is None:
        return x, target, None
    rows = index_weights(x, target, weight, sample_weight)
    return apply_mask(x, mask), mask_indices(x, target, mask), rows


def label_loss_inputs(
    scores: Tensor,
    target: Tensor,
    mask: Tensor | None,
    weight: Tensor | None,
    sample_weight: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Checked and masked inputs of a row loss that takes indices or a label matrix: scores, target, row weights.

    The native kernels check the target's values themselves; here they are checked where no kernel will.
    """
    check_scores(scores)
    if is_index_target(scores, target):
        return index_loss_inputs(scores, target, mask, weight, sample_weight)
    x = in_compute_type(scores)
    if weight is not None:
        raise ShortlistError("weight (one per class) goes with class indices; a label matrix takes sample_weight")
    values = mask is not None or is_learned(sample_weight) or not native_serves(x)
    check_label_matrix(scores, target, values=values)
    if mask is not None:
        target = torch.where(mask, target, 0)
    return apply_mask(x, mask), target, check_sample_weight(x, sample_weight)
