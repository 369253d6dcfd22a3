"""Assume negative: binary cross-entropy in which every label but the observed one counts as absent."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist.checks import check_number
from shortlist.functional import _targets
from shortlist.functional._frame import bounded, huge, observed, place, slope, softplus
from shortlist.functional._row_loss import RowLoss
from shortlist.functional.label_matrix import is_label
from shortlist.kernels import ops
from shortlist.labels.sparse_labels import Target


def _assume_negative_twin(
    scores: Tensor, index: Tensor, weighted: bool, label_smoothing: float, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Losses of all rows, and which have an observed label (the others have only absent ones)."""
    label = is_label(index, scores.shape[-1])
    others = ~label if mask is None else mask & ~label
    scores = torch.where((label | others) & (index >= 0).unsqueeze(-1), bounded(scores), 0.0)
    right = torch.where(label, scores, -scores)
    entries = -F.logsigmoid(right)
    if label_smoothing > 0:
        entries = torch.lerp(entries, -F.logsigmoid(-right), label_smoothing / 2)
    absent = torch.where(others, entries, 0.0).sum(-1)
    if weighted:
        absent = absent / others.sum(-1).clamp(min=1)
    return torch.where(label, entries, 0.0).sum(-1) + absent, index >= 0


def _assume_negative_lean(
    scores: Tensor, index: Tensor, weighted: bool, label_smoothing: float
) -> tuple[Tensor, int, Callable[[Tensor], Tensor]]:
    """The same so many times as there are absent labels if these are ``weighted``, and the gradient."""
    label, unseen, both = place(index, scores), index < 0, scores.new_empty(2, len(scores))
    out, times = unseen.unsqueeze(-1), max(scores.shape[-1] - 1, 1) if weighted else 1
    wrong = scores.clamp(-huge(scores), huge(scores))
    wrong.scatter_(-1, label, -1.0, reduce="multiply").masked_fill_(out, float("-inf"))
    cost = softplus(wrong)
    if label_smoothing > 0:
        # what the other answer costs is less by the score
        cost.sub_(wrong, alpha=label_smoothing / 2).masked_fill_(out, 0.0)
    torch.sum(cost.scatter_(-1, label, times, reduce="multiply"), -1, out=both[0])
    observed(unseen, out=both[1]).mul_(times)

    def gradient(factor: Tensor) -> Tensor:
        found = slope(factor, wrong)
        if label_smoothing > 0:
            found = found.sub_(factor, alpha=label_smoothing / 2).masked_fill_(out, 0.0)
        return found.scatter_(-1, label, -times, reduce="multiply")

    return both, times, gradient


_LOSS = RowLoss(
    ops.assume_negative,
    _assume_negative_twin,
    _targets.single_positive_rows,
    spreads_nan=False,
    minds_mask=True,
    lean=_assume_negative_lean,
)


def assume_negative_loss(
    scores: Tensor,
    target: Target,
    *,
    weighted: bool = True,
    label_smoothing: float = 0.0,
    mask: Tensor | None = None,
    weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
    sync: bool | None = None,
    soft: bool | None = None,
) -> Tensor:
    """Assume-negative loss: one observed label per row, every other label counts as absent.

    Formula:
        -log p_y - 1/(L-1) sum_{j != y} log(1 - p_j),  p = sigmoid(s)
        mean over the rows that have an observed label

    Use it when:
        one label per example was recorded, others may apply too, and you want sigmoid scores: the simplest baseline
        for average-K and for single-positive multi-label data.

    Needs:
        indices or label matrix, unknowns, shares
        A label matrix has at most one present label per row; absent and unknown labels alike count as absent, by
        definition.

    Reference:
        Cole et al., "Multi-Label Learning from Single Positive Labels", CVPR 2021; weights as in Garcin et al.,
        "A two-head loss function for deep Average-K classification", 2023, eq. 5.

    Options:
        weighted: weigh the absent labels by 1/(L-1), so that together they count as much as the present one; False
            weighs every label by 1.
        label_smoothing: e moves each label's target to 1 - e/2 and e/2 (Cole's AN-LS).
        mask: bool, broadcastable to the scores; False takes a label out of its row (and of L).
        weight: one weight per class, of the rows with that label. sample_weight: one weight per row.
        reduction: "mean", "sum" or "none" (one loss per row).
        sync: count over all processes; None means yes when ``torch.distributed`` is initialised.
        soft: whether floats of the scores' shape are shares of labels. None: their values tell; where nobody looks at
            them, on a GPU or under ``torch.compile``, they are a label matrix.

    Example:
        >>> scores = torch.tensor([[2.0, -1.0, 0.5], [-1.0, 3.0, 0.0]])
        >>> assume_negative_loss(scores, torch.tensor([0, 1]))
        tensor(0.6612)
    """
    check_number(label_smoothing, 0, 1, "label_smoothing must be between 0 and 1")
    return _LOSS(scores, target, (weighted, label_smoothing), mask, weight, sample_weight, reduction, sync, soft)
