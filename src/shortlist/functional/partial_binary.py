"""Partial binary cross-entropy: rows with few known labels are weighted up."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist.checks import check_positive
from shortlist.functional import _targets
from shortlist.functional._frame import bounded, huge, selector, signed, slope, softplus, where_above
from shortlist.functional._row_loss import RowLoss
from shortlist.kernels import ops
from shortlist.labels.sparse_labels import Target


def _partial_binary_twin(
    scores: Tensor, target: Tensor, boost: float, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Losses of all rows, and whether each has a known label."""
    is_known = target != -1
    known = is_known.sum(-1).to(scores.dtype)
    times = _times(known, scores.shape[-1] if mask is None else mask.sum(-1).clamp(min=1), boost)
    scores = torch.where(is_known, bounded(scores), 0.0)  # an ignored NaN stays ignored
    entries = -F.logsigmoid(torch.where(target == 1, scores, -scores))
    return times * torch.where(is_known, entries, 0.0).sum(-1), known > 0


def _times(known: Tensor, num_labels: int | Tensor, boost: float) -> Tensor:
    """g(share known) / L, where g(0.1) = boost and g(1) = 1."""
    return (boost + (1.0 - boost) * (known / num_labels - 0.1) / 0.9) / num_labels


def _partial_binary_lean(
    scores: Tensor, target: Tensor, boost: float, mean: bool = False
) -> tuple[Tensor, int, Callable[[Tensor], Tensor]]:
    """The same, with the gradient: of all rows, or of their mean."""
    n, target, planes = scores.shape[-1], selector(target, scores), scores.new_empty(3, *scores.shape)
    logs, _, right = planes
    signed(scores, target, out=right).clamp_(min=-huge(scores))
    softplus(right, -1, out=logs)  # of the probability of what was seen
    where_above(planes[::2], target, -0.5, out=planes[::2])  # an ignored NaN stays ignored
    torch.ge(target, 0, out=planes[1])
    flat = scores.new_empty(2 * len(scores) + 2)
    losses, known = rows = torch.sum(planes[:2], -1, out=flat[:-2].view(2, -1))
    # `_times`, less than 0, and room for two sums
    ends = torch.rsub(flat[len(scores) :], (boost - (1.0 - boost) / 9.0) / -n, alpha=(1.0 - boost) / (0.9 * n * n))
    times = ends[:-2]
    losses.mul_(times)
    known.clamp_(2.0**-100, 1)  # no mean is divided by 0

    def gradient(factor: Tensor) -> Tensor:
        each = signed((factor * times).unsqueeze(-1).expand_as(scores), target, out=logs)
        return slope(each, right, -1)

    if not mean:
        return rows, 1, gradient
    torch.sum(rows, -1, out=ends[-2:])
    ends = ends / ends[-1]  # the weights of rows, and their loss
    times = ends[:-2]
    return ends[-2].detach(), 1, gradient


_LOSS = RowLoss(
    ops.partial_binary,
    _partial_binary_twin,
    _targets.label_matrix,
    spreads_nan=False,
    minds_mask=True,
    lean=_partial_binary_lean,
    lean_means=True,
)


def partial_binary_loss(
    scores: Tensor,
    target: Target,
    *,
    boost: float = 5.0,
    mask: Tensor | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
    sync: bool | None = None,
) -> Tensor:
    """Partial binary cross-entropy: the sum over known labels, weighted by how few of the row's labels are known.

    Formula:
        g(share) / L * sum_{known j} -[y_j log p_j + (1 - y_j) log(1 - p_j)],  p = sigmoid(s)
        share = known labels of the row / L,  g linear with g(0.1) = boost and g(1) = 1
        mean over the rows that have a known label

    Use it when:
        the share of known labels differs from row to row, and rows with few known labels should not be drowned out.

    Needs:
        label matrix, unknowns
        Unknown labels enter through the share alone.

    Reference:
        Durand, Mehrasa, Mori, "Learning a Deep ConvNet for Multi-label Classification with Partial Labels", CVPR 2019.

    Options:
        boost: g at a share of one tenth; 1 weighs every known label alike.
        mask: bool, broadcastable to the scores; False takes a label out of its row (and of L).
        sample_weight: one weight per row.
        reduction: "mean", "sum" or "none" (one loss per row).
        sync: count over all processes; None means yes when ``torch.distributed`` is initialised.

    Example:
        >>> import torch
        >>> scores = torch.tensor([[2.0, -1.0, 0.5], [-1.0, 3.0, 0.0]])
        >>> partial_binary_loss(scores, torch.tensor([[1, 0, -1], [0, 1, 1]]))
        tensor(0.3579)
    """
    check_positive(boost, "boost")
    return _LOSS(scores, target, (boost,), mask, None, sample_weight, reduction, sync)
