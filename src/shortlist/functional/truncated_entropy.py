"""The truncated top-k entropy: cross-entropy that forgives the k - 1 strongest rivals."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist.checks import check_scores, whole
from shortlist.functional import _targets
from shortlist.functional._frame import finite, huge, observed, place, slope, softplus
from shortlist.functional._row_loss import RowLoss
from shortlist.functional.label_matrix import is_present
from shortlist.kernels import ops
from shortlist.labels.sparse_labels import Target

_MINUS_INF = float("-inf")


def _truncated_entropy_twin(scores: Tensor, target: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Each row's loss and whether it has a present label."""
    present = is_present(target, scores)
    count = present.sum(-1, keepdim=True)
    observed = count > 0
    scores = torch.where(observed, scores, 0.0)  # an ignored row may hold anything
    scores = finite(scores)
    others = scores.masked_fill(present, _MINUS_INF)
    strongest = others.detach().topk(min(k, scores.shape[-1]), dim=-1).indices
    drop = torch.arange(strongest.shape[-1], device=scores.device) < k - count
    dropped = torch.zeros_like(present).scatter(-1, strongest, drop)
    rivals = others.masked_fill(dropped, _MINUS_INF)
    alone = (rivals == _MINUS_INF).all(-1, keepdim=True)
    rivals = torch.where(alone, 0.0, rivals)
    largest = rivals.detach().amax(-1, keepdim=True)  # taken out first: an offset of the scores costs no digits
    total = torch.logsumexp(rivals - largest, -1, keepdim=True)
    losses = torch.where(present & ~alone, -F.logsigmoid((scores - largest) - total), 0.0)
    return losses.sum(-1), observed.squeeze(-1)


def _truncated_entropy_lean(scores: Tensor, target: Tensor, k: int) -> tuple[Tensor, Any, Any]:
    """The same, with the gradient: what each present label is pulled up by, its rivals are pushed down by."""
    n, low = scores.shape[-1], -4 * huge(scores)
    if target.ndim < scores.ndim:
        return _one_label_lean(scores, target, k)
    present = target == 1
    count = present.sum(-1, keepdim=True)
    unseen = count == 0
    own = scores.masked_fill(unseen, 0.0).clamp_(max=huge(scores))
    z = own.masked_fill(present, _MINUS_INF)
    strongest, at = z.topk(min(k, n), dim=-1)
    drop = torch.arange(at.shape[-1], device=z.device) < k - count
    z.scatter_(-1, at, strongest.masked_fill(drop, _MINUS_INF))
    peak = z.amax(-1, keepdim=True).clamp_(min=low)
    first = strongest[:, :1]  # a NaN is the largest of all
    peak = torch.where(first.isnan(), first, peak)
    total = z.sub_(peak).exp_().sum(-1, keepdim=True).clamp_(min=1)
    gap = own.neg_().add_(peak).add_(total.log())
    out = ~present | (peak == low)  # low: no rival
    gap.masked_fill_(out & (gap == gap), _MINUS_INF)  # a NaN counts, with or without rivals
    losses = softplus(gap)
    slopes = gap.sigmoid_()
    return losses.sum(-1), ~unseen.squeeze(-1), z.mul_(slopes.sum(-1, keepdim=True) / total).sub_(slopes)


def _one_label_lean(scores: Tensor, target: Tensor, k: int) -> tuple[Tensor, int, Callable[[Tensor], Tensor]]:
    """Of class indices. What ``low`` is added to is out of its row, but for a NaN."""
    label, unseen, both, low = place(target, scores), target < 0, scores.new_empty(2, len(scores)), -2 * huge(scores)
    z = scores.clamp(low, huge(scores)).masked_fill_(unseen.unsqueeze(-1), low)
    own = z.gather(-1, label)
    strongest, at = z.scatter_(-1, label, low, reduce="add").topk(k, dim=-1)
    z.scatter_(-1, at[:, :-1], low, reduce="add")
    logs, peak = z.log_softmax(-1), F.threshold(strongest[:, -1:], low / 2, _MINUS_INF)  # no rival
    del z
    added, _ = torch.ops.aten.nll_loss_forward(logs, at[:, -1], None, 0, -1)  # by the rivals beside the strongest one
    gap = torch.addcdiv(added.unsqueeze(-1), peak - own, own > low)  # without end for a label that is out of its row
    softplus(gap.squeeze(-1), out=both[0])
    observed(unseen, out=both[1])

    def gradient(factor: Tensor) -> Tensor:
        slopes, label_of = slope(factor, gap).squeeze(-1), label.squeeze(-1)
        pull = torch.ops.aten.nll_loss_backward(slopes, logs, label_of, None, 0, -1, factor)  # minus that, at the label
        return torch.ops.aten._log_softmax_backward_data(pull, logs, -1, logs.dtype)

    return both, 1, gradient


_LOSS = RowLoss(
    ops.truncated_entropy, _truncated_entropy_twin, _targets.indices_or_matrix, lean=_truncated_entropy_lean
)


def truncated_entropy_loss(
    scores: Tensor,
    target: Target,
    k: int,
    *,
    mask: Tensor | None = None,
    weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
    sync: bool | None = None,
    soft: bool | None = None,
) -> Tensor:
    """Truncated top-k entropy: cross-entropy in which the k - 1 strongest rivals do not count.

    Formula:
        L = sum_{y in Y} log(1 + sum_{j in J} e^(s_j - s_y))
        J = the labels not observed present, less their max(k - |Y|, 0) largest

    Use it when:
        an answer counts as right if the label is among the k, and you want the plainest such loss: a label already in
        the top k is hardly pushed. k = 1 is cross-entropy for one label. Nothing pulls the k - 1 strongest rivals
        down: with noisy labels and a hidden layer one label can settle among the first k of every row. Look at how
        often each label is there; smooth_topk_loss, k = 2, plain SGD or no hidden layer are the ways out.

    Needs:
        indices or label matrix, unknowns, shares
        Unknown labels count as not observed: they are rivals unless masked. With no rival left the loss is 0.

    Reference:
        Lapin, Hein, Schiele, "Loss Functions for Top-k Error", CVPR 2016; for several labels Amos et al. 2019, eq. 13.

    Options:
        mask: bool, broadcastable to the scores; False takes a label out of its row.
        weight: one per class (index targets only). sample_weight: one per row.
        reduction: "mean" (over rows with a present label), "sum" or "none".
        sync: count over all processes; None means yes when ``torch.distributed`` is initialised.
        soft: whether floats of the scores' shape are shares of labels. None: their values tell; where nobody looks at
            them, on a GPU or under ``torch.compile``, they are a label matrix.

    Example:
        >>> scores = torch.tensor([[2.0, 1.0, 0.0, -1.0]])
        >>> [f"{truncated_entropy_loss(scores, torch.tensor([1]), k):.4f}" for k in (1, 2)]
        ['1.4402', '0.4076']
    """
    check_scores(scores)
    k = min(whole(k, "k", 1), scores.shape[-1])  # more than all rivals cannot be forgiven
    return _LOSS(scores, target, (k,), mask, weight, sample_weight, reduction, sync, soft)
