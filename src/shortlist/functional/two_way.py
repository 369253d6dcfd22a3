"""The two-way loss: present labels above absent ones, along each row and along each label."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist.checks import check_finite, check_positive
from shortlist.errors import ShortlistError
from shortlist.functional import _targets
from shortlist.functional._frame import bounded, huge, softplus
from shortlist.functional._row_loss import RowLoss
from shortlist.functional.label_matrix import check_couples_batch, masked_logsumexp
from shortlist.functional.reduction import reduce_loss, reduce_over_processes
from shortlist.kernels import ops
from shortlist.labels.sparse_labels import Target


def _pair_rows_twin(
    scores: Tensor,
    target: Tensor,
    positive_temperature: float,
    negative_temperature: float,
    margin: float,
    *,
    dim: int = -1,
    weight: Tensor | None = None,
    world: int = 1,
) -> tuple[Tensor, Tensor]:
    """Losses of all rows (``dim=-1``) or labels (``dim=0``), and whether each has a present entry.

    softplus(T_N log sum_{n in N} e^(x_n/T_N) + T_P log sum_{p in P} e^(-x_p/T_P) + margin), 0 where P or N is empty.
    """
    dim, scores = dim % scores.ndim, bounded(scores)
    of_batch = (dim, weight, world)
    absent_peak, absent_rest, has_absent = masked_logsumexp(scores, target == 0, *of_batch, negative_temperature)
    present_peak, present_rest, has_present = masked_logsumexp(-scores, target == 1, *of_batch, positive_temperature)
    gap = (absent_peak + present_peak) + (absent_rest + present_rest + margin)
    # -logsigmoid(-gap) is softplus without F.softplus's cut-off at 20
    return torch.where((has_present & has_absent) | gap.isnan(), -F.logsigmoid(-gap), 0.0), has_present


def _sides(
    scores: Tensor,
    target: Tensor,
    positive_temperature: float,
    negative_temperature: float,
    margin: float,
    *,
    dim: int = -1,
    weight: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Losses, whether each has a present entry, and (2, rows, labels): how much each absent and each present entry adds
    to its loss. ``weight``: (rows, 1)."""
    none = -4 * huge(scores)  # below every score: a side without an entry is as far below the other as can be
    z = scores.expand(2, *scores.shape).clamp(-huge(scores), huge(scores))
    z[1].neg_()
    z.masked_fill_(target != torch.arange(2, device=target.device).view(2, 1, 1), none)
    if weight is not None:
        z.masked_fill_(weight == 0, none)
    peak = z.amax(dim, keepdim=True)
    unseen = peak[1] == none
    peak.masked_fill_(unseen, none)
    z.masked_fill_(unseen, none).sub_(peak)
    if negative_temperature != 1:
        z[0].div_(negative_temperature)
    if positive_temperature != 1:
        z[1].div_(positive_temperature)
    rest = None
    if weight is not None:  # a heavy term may be far below the largest score, which may weigh next to nothing
        z.add_(weight.log())
        rest = z.amax(dim, keepdim=True).clamp_(min=-1e4)
        z.sub_(rest)
    total = z.exp_().sum(dim, keepdim=True)
    if weight is not None:
        total.clamp_(min=torch.finfo(total.dtype).tiny)  # nobody weighs anything
    rest = total.log() if rest is None else total.log().add_(rest)
    if negative_temperature != 1:
        rest[0].mul_(negative_temperature)
    rest = torch.add(rest[0], rest[1], alpha=positive_temperature)
    gap = peak.sum(0).add_(rest.add_(margin) if margin else rest)
    z.mul_(gap.sigmoid() / total)
    return softplus(gap).squeeze(dim), ~unseen.squeeze(dim), z


def _pair_rows_lean(scores: Tensor, target: Tensor, *options: float) -> tuple[Tensor, Tensor, Tensor]:
    losses, observed, z = _sides(scores, target, *options)
    return losses, observed, z[0] - z[1]


def _two_way_lean(
    scores: Tensor, target: Tensor, weight: Tensor | None, reduction: str, *options: Any
) -> tuple[Tensor, Tensor, Tensor]:
    *of_pairs, sample_way = options
    least = torch.finfo(scores.dtype).tiny
    of_rows = None if weight is None else weight.unsqueeze(-1)
    losses, observed, z = _sides(scores, target, *of_pairs, dim=-2, weight=of_rows)
    count = observed.sum(dtype=scores.dtype).clamp_(min=least) if reduction == "mean" else losses.new_ones(())
    out = target < 0 if of_rows is None else (target < 0) | (of_rows == 0)
    loss, gradient = losses.sum() / count, (z[0] - z[1]).div_(count).masked_fill_(out, 0.0)  # whatever its column holds
    del z, out
    if sample_way:
        losses, observed, z = _sides(scores, target, *of_pairs)
        counts = observed.to(scores.dtype)
        if weight is not None:
            counts, losses = counts.mul_(weight), losses.masked_fill_(weight == 0, 0.0)
            z.masked_fill_((weight == 0).unsqueeze(-1), 0.0)
        if reduction == "mean":
            counts = counts / counts.sum().clamp_(min=least)
        loss = loss + (losses * counts).sum()
        gradient.addcmul_(z[0], counts.unsqueeze(-1)).addcmul_(z[1], counts.unsqueeze(-1), value=-1)
    return loss, gradient, None


def _two_way_twin(
    scores: Tensor, target: Tensor, weight: Tensor | None, reduction: str, *options: Any, world: int = 1
) -> Tensor:
    """The class way, and the sample way with it."""
    *of_pairs, sample_way = options
    weight = scores.new_ones(scores.shape[:-1]) if weight is None else weight
    columns, has_present = _pair_rows_twin(scores, target, *of_pairs, dim=0, weight=weight.unsqueeze(-1), world=world)
    loss = reduce_loss(columns, has_present.to(scores.dtype), reduction)
    if not sample_way:
        return loss
    rows, has_present = _pair_rows_twin(scores, target, *of_pairs)
    return loss + reduce_over_processes(rows, torch.where(has_present, weight, 0.0), reduction, world)


PAIR_ROWS = RowLoss(ops.pair_rows, _pair_rows_twin, _targets.label_matrix, spreads_nan=False, lean=_pair_rows_lean)
_TWO_WAY = RowLoss(ops.two_way, _two_way_twin, _targets.label_matrix, of="batch", lean=_two_way_lean)


def two_way_loss(
    scores: Tensor,
    target: Target,
    *,
    positive_temperature: float = 4.0,
    negative_temperature: float = 1.0,
    margin: float = 0.0,
    way: str = "both",
    mask: Tensor | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
    sync: bool | None = None,
) -> Tensor:
    """Two-way loss: every present label above every absent one, within each row and within each label's column.

    Formula:
        l(P, N) = softplus(T_N log sum_{n in N} e^(s_n / T_N) + T_P log sum_{p in P} e^(-s_p / T_P) + margin)
        sample way: mean of l over the rows that have a present label
        class way:  mean of l over the labels (columns) that have a present row
        both:       their sum

    Use it when:
        several labels are present per example, and both the ranking of labels for one example and the ranking of
        examples for one label matter (mean average precision by sample and by class). The usual first choice for
        multi-label training.

    Needs:
        label matrix, unknowns
        Unknown labels are in neither set. The class way wants batches in which a label is both present and absent.

    Reference:
        Kobayashi, "Two-way Multi-Label Loss", CVPR 2023.

    Options:
        positive_temperature, negative_temperature: T_P, T_N; a larger T_P spreads the gradient over all present labels.
        margin: how far above; added inside the softplus.
        way: "both", "sample" (rows alone) or "class" (columns alone).
        mask: bool, broadcastable to the scores; False takes a label out of its row.
        sample_weight: one weight per row; a weight of 2 counts the row twice, in its column's sums too.
        reduction: "mean" or "sum"; also "none" for ``way="sample"``, the only way in which rows are independent.
        sync: act on the global batch of all processes; None means yes when ``torch.distributed`` is initialised.

    Example:
        >>> scores = torch.tensor([[2.0, -1.0, 0.5], [-1.0, 3.0, 0.0]])
        >>> target = torch.tensor([[1, 0, -1], [0, 1, 1]])
        >>> two_way_loss(scores, target)
        tensor(0.5485)
    """
    if way not in ("both", "sample", "class"):
        raise ShortlistError(f"way must be 'both', 'sample' or 'class', got {way!r}")
    if way != "sample":
        check_couples_batch(reduction, f"two_way_loss with way={way!r}")
    check_positive(positive_temperature, "positive_temperature")
    check_positive(negative_temperature, "negative_temperature")
    check_finite(margin, "margin")
    loss, both = (PAIR_ROWS, ()) if way == "sample" else (_TWO_WAY, (way == "both",))
    args = (positive_temperature, negative_temperature, margin, *both)
    return loss(scores, target, args, mask, None, sample_weight, reduction, sync)
