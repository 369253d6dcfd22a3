"""Softmax cross-entropy against the uniform distribution over the present labels."""

import torch
from torch import Tensor

from shortlist.functional import _targets
from shortlist.functional._frame import BARELY, bounded, huge
from shortlist.functional._row_loss import RowLoss
from shortlist.functional.label_matrix import masked_logsumexp
from shortlist.kernels import ops
from shortlist.labels.sparse_labels import Target


def _multilabel_softmax_twin(scores: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Losses of all rows, and whether each has a present label."""
    present, scores = target == 1, bounded(scores)
    peak, rest, _ = masked_logsumexp(scores, target != -1, scores.ndim - 1)
    gaps = torch.where(present, (peak.unsqueeze(-1) - scores) + rest.unsqueeze(-1), 0.0)
    count = present.sum(-1, keepdim=True)
    return (gaps / count.clamp(min=1)).sum(-1), count.squeeze(-1) > 0


def _multilabel_softmax_lean(
    scores: Tensor, target: Tensor, *, mean: bool = False
) -> tuple[Tensor, Tensor | None, Tensor]:
    """The same, with the gradient: the softmax less the uniform distribution over the present labels."""
    present = target == 1
    count = present.sum(-1, keepdim=True, dtype=scores.dtype)
    if mean:  # each row's loss is divided by how many rows have one
        count = count * torch.linalg.vector_norm(count, 0)
    count = torch.rsub(count, BARELY)  # less than 0, but where nothing is present
    share, unseen = present / count, count > 0
    del present
    held = scores.clamp(-huge(scores), huge(scores)).masked_fill_(target < unseen, -2 * huge(scores))  # and all unknown
    log_p = held.log_softmax(-1)
    losses = torch.mul(log_p, share, out=held).sum(None if mean else -1)
    del held
    gradient: Tensor = torch.ops.aten._log_softmax_backward_data(share, log_p, -1, scores.dtype)
    return losses, None if mean else ~unseen.squeeze(-1), gradient


_LOSS = RowLoss(
    ops.multilabel_softmax,
    _multilabel_softmax_twin,
    _targets.label_matrix,
    spreads_nan=False,
    lean=_multilabel_softmax_lean,
    lean_means=True,
)


def multilabel_softmax_loss(
    scores: Tensor,
    target: Target,
    *,
    mask: Tensor | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
    sync: bool | None = None,
) -> Tensor:
    """Softmax cross-entropy against the uniform distribution over the present labels.

    Formula:
        -1/|P| sum_{p in P} log(e^(s_p) / sum_{j in P or N} e^(s_j))
        mean over the rows that have a present label

    Use it when:
        scores should compare labels within a row and there are few present labels; a strong baseline for tags.

    Needs:
        label matrix, unknowns
        Unknown labels are left out of the softmax.

    Reference:
        Mahajan et al., "Exploring the Limits of Weakly Supervised Pretraining", ECCV 2018.

    Options:
        mask: bool, broadcastable to the scores; False takes a label out of its row.
        sample_weight: one weight per row.
        reduction: "mean", "sum" or "none" (one loss per row).
        sync: count over all processes; None means yes when ``torch.distributed`` is initialised.

    Example:
        >>> scores = torch.tensor([[2.0, -1.0, 0.5], [-1.0, 3.0, 0.0]])
        >>> multilabel_softmax_loss(scores, torch.tensor([[1, 0, -1], [0, 1, 1]]))
        tensor(0.8072)
    """
    return _LOSS(scores, target, (), mask, None, sample_weight, reduction, sync)
