"""One meaning of ``reduction`` for every loss: "mean" divides by what was observed, nothing observed gives 0."""

import torch
from torch import Tensor


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


def row_weights(target: Tensor, weight: Tensor | None, sample_weight: Tensor | None, like: Tensor) -> Tensor:
    """Weight of each row of an index loss: 0 where the label is unknown (-1), else class weight times sample weight."""
    observed = (target >= 0).to(like.dtype)
    if weight is not None:
        observed = observed * weight.to(like.dtype)[target.clamp(min=0)]
    if sample_weight is not None:
        observed = observed * sample_weight.to(like.dtype)
    return observed
