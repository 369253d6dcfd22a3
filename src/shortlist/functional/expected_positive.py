"""Expected positive regularisation: push up the observed label, and hold the expected number of labels at k."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist.checks import LARGEST, check_not_negative, check_number, check_scores
from shortlist.distributed import sum_over_processes
from shortlist.functional import _targets
from shortlist.functional._frame import bounded, huge, place, selector, slope, softplus, where_above
from shortlist.functional._row_loss import RowLoss
from shortlist.functional.label_matrix import check_couples_batch
from shortlist.functional.reduction import reduce_over_processes
from shortlist.kernels import ops
from shortlist.labels.sparse_labels import Target


def expected_positive_rows(scores: Tensor, index: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """-log p_y and the expected number of labels sum_j p_j of all rows."""
    known = (index >= 0).unsqueeze(-1)
    scores = torch.where(known if mask is None else known & mask, bounded(scores), 0.0)
    positive = -F.logsigmoid(scores.gather(-1, place(index, scores)).squeeze(-1))
    chances = scores.sigmoid() if mask is None else torch.where(mask, scores.sigmoid(), 0.0)
    return positive, chances.sum(-1)


def _expected_positive_twin(
    scores: Tensor,
    index: Tensor,
    weight: Tensor | None,
    reduction: str,
    k: float,
    beta: float,
    normalize: bool,
    mask: Tensor | None = None,
    world: int = 1,
) -> Tensor:
    num_labels, counts = scores.shape[-1], _counts(scores, index, weight)
    positive, expected = expected_positive_rows(scores, index, mask)
    total = sum_over_processes(counts.sum().detach(), world)
    mean_expected = sum_over_processes((counts * expected).sum(), world) / torch.where(total > 0, total, 1.0)
    regulariser = torch.where(total > 0, beta * (mean_expected - k) ** 2, 0.0)
    loss = reduce_over_processes(positive, counts, "mean", world)
    loss = loss / num_labels + regulariser / num_labels**2 if normalize else loss + regulariser
    return loss if reduction == "mean" else loss * total


def _counts(scores: Tensor, index: Tensor, weight: Tensor | None) -> Tensor:
    """What each row counts."""
    observed = (index >= 0).to(scores.dtype)
    return observed if weight is None else observed * weight


def _expected_positive_lean(
    scores: Tensor, index: Tensor, weight: Tensor | None, reduction: str, k: float, beta: float, normalize: bool
) -> tuple[Tensor, Any, Tensor | None]:
    """The same, with the gradient."""
    if weight is None and scores.device.type != "mps":  # where nll_loss counts the rows that it leaves out
        return _unweighted_lean(scores, index, reduction, k, beta, normalize)
    counts = _counts(scores, index, weight)
    label, norm = place(index, scores), scores.shape[-1] if normalize else 1
    p, rows = scores.clamp(-huge(scores), huge(scores)), scores.new_empty(2, len(scores))
    p.masked_fill_((counts == 0).unsqueeze(-1), 0.0)
    own: Tensor = torch.ops.aten.log_sigmoid(p.gather(-1, label).squeeze(-1), out=rows[0])
    torch.sum(p.sigmoid_(), -1, out=rows[1]).sub_(k)
    total = counts.sum()
    share = counts / total.clamp(min=torch.finfo(counts.dtype).tiny)
    log_chance, excess = (rows * share).sum(-1)
    push = share * excess.mul(2 * beta / norm**2)
    loss = torch.addcmul(log_chance.div(-norm), excess, excess, value=beta / norm**2)
    gradient: Tensor = torch.ops.aten.sigmoid_backward(push.unsqueeze(-1), p)
    own = own.expm1_().mul_(share)
    gradient.scatter_add_(-1, label, (own.div_(norm) if normalize else own).unsqueeze(-1))
    return (loss * total, gradient, total.reciprocal()) if reduction == "sum" else (loss, gradient, None)


def _unweighted_lean(
    scores: Tensor, index: Tensor, reduction: str, k: float, beta: float, normalize: bool
) -> tuple[Tensor, Callable[[Tensor], Tensor], Tensor | None]:
    """By the sums of all rows, which count alike."""
    n, most, planes = scores.shape[-1], huge(scores), scores.new_empty(2, *scores.shape)
    label, sums, total = index.clamp(-1, n - 1), scores.new_empty(2), scores.new_empty(())
    z, p = torch.clamp(scores, -most, most, out=planes[0]), planes[1]
    torch.ops.aten.nll_loss_forward(softplus(z, -1, out=p), label, None, 2, -1, output=sums[0], total_weight=total)
    torch.sigmoid(z, out=p)
    where_above(planes, selector(label, scores).unsqueeze(-1), -0.5, out=planes)  # an ignored row stays ignored
    torch.sub(p.sum(), total, alpha=k, out=sums[1])
    divisor = total.clamp(min=1)
    if normalize:
        divisor.mul_(n)
    own, excess = sums / divisor

    def gradient(factor: Tensor) -> Tensor:
        found = torch.ops.aten.nll_loss_backward(factor, z, label, None, 1, -1, divisor)
        return slope(found.addcmul_(p, factor * excess / divisor, value=2 * beta), z, -1, out=found)

    loss = torch.addcmul(own, excess, excess, value=beta)
    return (loss * total, gradient, total.clamp(min=1).reciprocal_()) if reduction == "sum" else (loss, gradient, None)


_LOSS = RowLoss(
    ops.expected_positive,
    _expected_positive_twin,
    _targets.single_positive_rows,
    of="batch",
    minds_mask=True,
    lean=_expected_positive_lean,
)


def expected_positive_loss(
    scores: Tensor,
    target: Target,
    k: float,
    *,
    beta: float = 0.01,
    normalize: bool = False,
    mask: Tensor | None = None,
    weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
    sync: bool | None = None,
    soft: bool | None = None,
) -> Tensor:
    """Expected-positive loss: raise the observed label, keep the batch's mean number of expected labels near k.

    Formula:
        mean_i(-log p_{i,y_i}) + beta (K - k)^2,  K = mean_i sum_j p_ij,  p = sigmoid(s)
        normalize: mean_i(-log p_{i,y_i}) / L + beta ((K - k) / L)^2
        means over the rows that have an observed label

    Use it when:
        one label per example was recorded, about k apply on average, and nothing is known of the others.

    Needs:
        indices or label matrix, unknowns, shares
        A label matrix has at most one present label per row. Scores of absent and unknown labels alike enter K, by
        definition; rows without an observed label do not.

    Reference:
        Cole et al., "Multi-Label Learning from Single Positive Labels", CVPR 2021; as in Garcin et al.,
        "A two-head loss function for deep Average-K classification", 2023, eq. 8.

    Options:
        k: expected number of labels per example, not necessarily whole.
        beta: strength of the regulariser.
        normalize: Cole's own normalisation by the number of labels L.
        mask: bool, broadcastable to the scores; False takes a label out of its row.
        weight: one weight per class, of the rows with that label. sample_weight: one weight per row.
        reduction: "mean" or "sum" (the mean times the number of observed rows): the square couples the batch.
        sync: act on the global batch of all processes; None means yes when ``torch.distributed`` is initialised.
        soft: whether floats of the scores' shape are shares of labels. None: their values tell; where nobody looks at
            them, on a GPU or under ``torch.compile``, they are a label matrix.

    Example:
        >>> scores = torch.tensor([[2.0, -1.0, 0.5], [-1.0, 3.0, 0.0]])
        >>> expected_positive_loss(scores, torch.tensor([0, 1]), k=1)
        tensor(0.0933)
    """
    check_couples_batch(reduction, "expected_positive_loss")
    check_scores(scores)
    num_labels = scores.shape[-1]
    check_number(k, 1 / LARGEST, num_labels, f"k must be above 0 and at most {num_labels} (the number of labels)")
    check_not_negative(beta, "beta")
    return _LOSS(scores, target, (k, beta, normalize), mask, weight, sample_weight, reduction, sync, soft)
