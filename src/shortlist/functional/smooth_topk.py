"""The smooth top-k SVM loss and its hinge limit."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist.checks import check_finite, check_k, check_positive, check_scores
from shortlist.functional import _targets
from shortlist.functional._contour import swap_sums
from shortlist.functional._frame import BARELY, finite, huge, place, split, where_above, where_positive, wide
from shortlist.functional._row_loss import RowLoss
from shortlist.functional.subsets import swap
from shortlist.kernels import ops


def _smooth_topk_twin(scores: Tensor, target: Tensor, k: int, tau: float, alpha: float) -> tuple[Tensor, Tensor]:
    """Loss of each row and whether it has a label; tau = 0 is the hinge."""
    label = place(target, scores)
    observed = target >= 0
    scores = torch.where(observed.unsqueeze(-1), scores, 0.0)  # an ignored row may hold anything
    scores = finite(scores)
    own = scores.gather(-1, label).squeeze(-1)
    others = scores.scatter(-1, label, float("-inf"))
    rivals = (others > float("-inf")).sum(-1)
    enough = (rivals >= k) | scores.isnan().any(-1)
    others = torch.where(enough.unsqueeze(-1), others, torch.zeros_like(others).scatter(-1, label, float("-inf")))
    if tau == 0:
        kth = others.topk(k, dim=-1).values[..., -1]
        return torch.where(enough, F.relu(alpha + (kth - own) / k), 0.0), observed
    parts = split(others, k)
    sums = swap(parts, k, 1 / (k * tau))
    margin = alpha + wide(parts.high.squeeze(-1) - own) / k
    z = margin / tau + sums.log_sum() - sums.log_sum(smaller=1)
    loss = -tau * F.logsigmoid(-z)
    return torch.where(enough, loss, 0.0).to(scores.dtype), observed


def _smooth_topk_lean(scores: Tensor, target: Tensor, k: int, tau: float, alpha: float) -> tuple[Tensor, Any, Any]:
    """The same, with the gradient of each row's loss."""
    if tau == 0:
        return _hinge_lean(scores, target, k, alpha)
    label, observed = place(target, scores), target >= 0
    held = scores.masked_fill(~observed.unsqueeze(-1), 0.0).clamp_(max=huge(scores))
    own = held.gather(-1, label)
    is_nan = held.isnan().any(-1, keepdim=True)
    held.scatter_(-1, label, float("-inf"))
    enough = (((held > float("-inf")).sum(-1, keepdim=True) >= k) | is_nan) & observed.unsqueeze(-1)
    held.masked_fill_(~enough, 0.0).scatter_(-1, label, float("-inf"))
    sums = swap_sums(held, k, 1 / (k * tau), (1.0, -1.0))
    del held
    margin = alpha + wide(sums.high.unsqueeze(-1) - own) / k
    z = margin / tau + (sums.log_sums[0] - sums.log_sums[1]).unsqueeze(-1)
    loss = torch.where(enough, -tau * F.logsigmoid(-z), 0.0).to(scores.dtype)
    slope = (torch.where(enough, z.sigmoid(), 0.0) / k).to(scores.dtype)
    gradient = sums.slopes.mul_(slope)
    gradient.scatter_(-1, label, -slope).masked_fill_(is_nan, torch.nan)
    return loss.masked_fill_(is_nan, torch.nan).squeeze(-1), observed, gradient


def _hinge_lean(scores: Tensor, target: Tensor, k: int, alpha: float) -> tuple[Tensor, int, Callable[[Tensor], Tensor]]:
    rows, both = len(scores), scores.new_empty(2, len(scores))
    labels, rivals = target.new_empty(k + 1, rows), scores.new_empty(k, rows)  # the last label is the row's own
    label = torch.clamp(target, 0, scores.shape[-1] - 1, out=labels[k]).unsqueeze(-1)
    held = scores.clamp(max=huge(scores))
    own = held.gather(-1, label).squeeze(-1)
    torch.topk(held.scatter_(-1, label, float("-inf")).t(), k, dim=0, out=(rivals, labels[:k]))
    kth = torch.minimum(rivals[0], rivals[-1])  # a NaN is the first of all, and the smaller of any two
    counts = torch.add(target, 1, out=both[1]).clamp_(BARELY, 1)
    margin = where_above(torch.rsub(kth - own, alpha, alpha=-1 / k), kth, float("-inf"))  # else too few rivals
    losses = torch.clamp(where_above(margin, counts, 0.5), min=0, out=both[0])

    def gradient(factor: Tensor) -> Tensor:
        slopes, factor = scores.new_empty(2, rows), factor.flatten()
        where_positive(factor, 1 / k, losses, out=slopes[0])
        where_positive(factor, -1 / k, losses, out=slopes[1])
        base = losses.unsqueeze(-1).expand_as(scores).clamp(0, 0)  # a NaN fills its row
        return base.scatter_add_(-1, labels[k - 1 :].t(), slopes.t())

    return both, 1, gradient


_LOSS = RowLoss(ops.smooth_topk, _smooth_topk_twin, _targets.indices, lean=_smooth_topk_lean, lean_in_double=True)


def _options(scores: Tensor, k: int, alpha: float) -> int:
    """Check what both losses are given; k as a plain number."""
    check_scores(scores)
    check_finite(alpha, "alpha")
    return check_k(k, scores.shape[-1] - 1, "the number of labels less one")


def smooth_topk_loss(
    scores: Tensor,
    target: Tensor,
    k: int,
    *,
    tau: float = 1.0,
    alpha: float = 1.0,
    mask: Tensor | None = None,
    weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
    sync: bool | None = None,
) -> Tensor:
    """Smooth top-k SVM loss: the label's subsets of size k against all others, at temperature tau.

    Formula:
        L = tau log(1 + e^(alpha/tau) sigma_k(e^(s'/(k tau))) / (e^(s_y/(k tau)) sigma_{k-1}(e^(s'/(k tau)))))
        s' = the scores without label y, sigma_k = sum over k-subsets of the product

    Use it when:
        an answer counts as right if the label is among the k, and training labels are ambiguous or noisy: unlike
        cross-entropy it does not force one winner. tau = 1 is a good start; smaller values approach the hinge.
        k = 1, tau = 1, alpha = 0 is cross-entropy.

    Needs:
        indices, shares
        1 <= k <= L - 1. A row with fewer than k usable rivals (mask, -inf) has loss 0. Shares of votes
        (`shortlist.labels.from_votes`) give the expected loss of a label drawn by them, at the cost of as many rows as
        labels have a share.

    Reference:
        Berrada, Zisserman, Kumar, "Smooth Loss Functions for Deep Top-k Classification", ICLR 2018.

    Options:
        tau: temperature, above 0.
        alpha: margin.
        mask: bool, broadcastable to the scores; False takes a label out of its row (its own label: the row is ignored).
        weight: one per class, as in ``torch.nn.functional.cross_entropy``.
        sample_weight: one per row.
        reduction: "mean" (over what was observed), "sum" or "none". Rows with target -1 or -100 are ignored.
        sync: count over all processes; None means yes when ``torch.distributed`` is initialised.

    Example:
        >>> scores = torch.tensor([[2.0, 1.0, 0.5, -1.0], [0.0, 0.0, 3.0, 1.0]])
        >>> smooth_topk_loss(scores, torch.tensor([0, 3]), k=2)
        tensor(1.0024)
    """
    check_positive(tau, "tau")
    return _LOSS(scores, target, (_options(scores, k, alpha), tau, alpha), mask, weight, sample_weight, reduction, sync)


def topk_hinge_loss(
    scores: Tensor,
    target: Tensor,
    k: int,
    *,
    alpha: float = 1.0,
    mask: Tensor | None = None,
    weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
    sync: bool | None = None,
) -> Tensor:
    """Top-k hinge loss: the label should beat the k-th best of the others by a margin. The limit tau -> 0.

    Formula:
        L = max(0, alpha + (s'_[k] - s_y) / k),   s' = the scores without label y, [k] = the k-th largest

    Use it when:
        comparing with the smooth loss; alone its gradient touches two labels per row and trains poorly.

    Needs:
        indices, shares

    Reference:
        Lapin, Hein, Schiele, "Top-k Multiclass SVM", NIPS 2015, in the form of Berrada et al. 2018, eq. 19.

    Options:
        alpha, mask, weight, sample_weight, reduction, sync: as in ``smooth_topk_loss``.

    Example:
        >>> topk_hinge_loss(torch.tensor([[2.0, 1.0, 0.5, -1.0]]), torch.tensor([3]), k=2)
        tensor(2.)
    """
    return _LOSS(scores, target, (_options(scores, k, alpha), 0.0, alpha), mask, weight, sample_weight, reduction, sync)
