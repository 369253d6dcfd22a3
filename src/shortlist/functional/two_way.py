"""The two-way loss: present labels above absent ones, along each row and along each label."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist.checks import check_choice, check_finite, check_positive
from shortlist.functional import _targets
from shortlist.functional._frame import bounded, huge, observed, slope, softplus, where_above
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
    ways: tuple[int, ...],
    weight: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
    """Of all columns (-2), or of the columns and then of the rows (-1): the losses, 1 where there is a
    present entry (else 0), the slopes (2, ...) of the absent and the present side, and for each way (2, rows, labels):
    what each entry's slope is, but for that factor. ``weight``: (rows, 1), of the entries of a column."""
    none = -4 * huge(scores)  # below every score: a side without an entry is as far below the other as can be
    z = scores.expand(2, *scores.shape).clamp(-huge(scores), huge(scores))
    z[1].neg_()
    z.masked_fill_(target != torch.arange(2, device=target.device).view(2, 1, 1), none)
    peaks = [z.amax(dim) for dim in ways]
    peak, sizes = _joined(peaks), [each.shape[-1] for each in peaks]
    del peaks
    unseen = peak[1] == none
    peak.masked_fill_(unseen, none)
    added, totals, heaviest = [], [], None
    for dim, top, out in zip(ways, peak.split(sizes, -1), unseen.split(sizes), strict=True):
        fill = z.masked_fill_ if dim == ways[-1] else z.masked_fill
        terms = fill(out.unsqueeze(dim), none).sub_(top.unsqueeze(dim))
        if negative_temperature != 1:
            terms[0].div_(negative_temperature)
        if positive_temperature != 1:
            terms[1].div_(positive_temperature)
        if weight is not None and dim == -2:  # a heavy term may be far below the largest score, which weighs nothing
            terms.add_(weight.log())
            heaviest = terms.amax(dim).clamp_(min=-1e4)
            terms.sub_(heaviest.unsqueeze(dim))
        added.append(terms)
        totals.append(terms.exp_().sum(dim))
    total = _joined(totals)
    del totals
    if heaviest is not None:
        total.clamp_(min=torch.finfo(total.dtype).tiny)  # nobody weighs anything
    log_total = total.log()
    if heaviest is not None:
        log_total[:, : sizes[0]].add_(heaviest)
    if negative_temperature != 1:
        log_total[0].mul_(negative_temperature)
    rest = log_total[0].add_(log_total[1], alpha=positive_temperature)
    gap = peak[0].add_(peak[1]).add_(rest.add_(margin) if margin else rest)
    del log_total, rest
    slope = torch.div(gap.sigmoid(), total, out=total)
    return softplus(gap), torch.logical_not(unseen, out=torch.empty_like(gap)), slope, added


def _joined(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)


def _pair_rows_lean(
    scores: Tensor, target: Tensor, positive_temperature: float, negative_temperature: float, margin: float
) -> tuple[Tensor, int, Callable[[Tensor], Tensor]]:
    rows, none = scores.new_empty(3, len(scores)), -4 * huge(scores)  # the losses, what is present, what is absent
    unseen = torch.lt(target.amax(-1), 1, out=rows[2])  # in a row without a present label nothing is absent, either
    observed(unseen, out=rows[1])
    z = scores.new_empty(2, *scores.shape)
    torch.neg(torch.clamp(scores, -huge(scores), huge(scores), out=z[1]), out=z[0])
    z.masked_fill_(target != rows[1:].unsqueeze(-1), none)
    peak = z.amax(-1)
    if (positive_temperature, negative_temperature) != (1, 1):
        z.sub_(peak.unsqueeze(-1))
        z[0].div_(positive_temperature)
        z[1].div_(negative_temperature)
    p = z.softmax(-1)
    del z
    log_top = p.amax(-1).log_()  # less the log of each sum of powers, by its largest
    rest = log_top[1] if negative_temperature == 1 else log_top[1].mul_(negative_temperature)
    rest.add_(log_top[0], alpha=positive_temperature)
    gap = (peak[0] + peak[1]).sub_(rest.sub_(margin) if margin else rest)
    softplus(gap, out=rows[0])
    difference = p[1] - p[0]
    return rows[:2], 1, lambda factor: difference.mul_(slope(factor, gap.unsqueeze(-1)))


def _two_way_lean(
    scores: Tensor, target: Tensor, weight: Tensor | None, reduction: str, *options: Any
) -> tuple[Tensor, Tensor, None]:
    *of_pairs, sample_way = options
    n, of_rows = scores.shape[-1], None
    if weight is not None:
        of_rows = weight.unsqueeze(-1)
        target = target.view(torch.int8) if target.dtype == torch.bool else target  # which has no -1
        target = target.masked_fill(of_rows == 0, -1)
    ways = (-2, -1) if sample_way else (-2,)
    losses, share, slope, z = _sides(scores, target, *of_pairs, ways=ways, weight=of_rows)
    if weight is not None:
        share[n:].mul_(weight[: len(share) - n])
    if reduction == "mean":
        for of_way in share.split([n, len(share) - n])[: len(ways)]:
            of_way.div_(of_way.sum().clamp_(min=torch.finfo(scores.dtype).tiny))
    slope.mul_(share)
    z[0].mul_(slope[:, :n].unsqueeze(-2))
    gradient, known = z[0][0].sub_(z[0][1]), z[0][1].copy_(target)
    gradient = where_above(gradient, known, -0.5, out=gradient)  # no unknown entry, whatever its column holds
    if sample_way:
        of_sides = z.pop().mul_(slope[:, n:].unsqueeze(-1))
        gradient.add_(of_sides[0]).sub_(of_sides[1])
        del of_sides
    return (losses * share).sum(), gradient, None


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
    check_choice(way, "way", ("both", "sample", "class"))
    if way != "sample":
        check_couples_batch(reduction, f"two_way_loss with way={way!r}")
    check_positive(positive_temperature, "positive_temperature")
    check_positive(negative_temperature, "negative_temperature")
    check_finite(margin, "margin")
    loss, both = (PAIR_ROWS, ()) if way == "sample" else (_TWO_WAY, (way == "both",))
    args = (positive_temperature, negative_temperature, margin, *both)
    return loss(scores, target, args, mask, None, sample_weight, reduction, sync)
