"""Softmax cross-entropy against the uniform distribution over the present labels."""

import torch
from torch import Tensor

from shortlist.functional._distributed import reduce_over_processes, world_size
from shortlist.functional._inputs import check_reduction, in_compute_type
from shortlist.functional._label_matrix import masked_logsumexp, read_label_matrix, rows_that_count


def _multilabel_softmax_rows(scores: Tensor, present: Tensor, absent: Tensor) -> tuple[Tensor, Tensor]:
    """Losses of all rows, and whether each has a present label."""
    normaliser, _ = masked_logsumexp(scores, present | absent, scores.ndim - 1)
    gaps = torch.where(present, normaliser.unsqueeze(-1) - scores, 0.0)
    count = present.sum(-1)
    return gaps.sum(-1) / count.clamp(min=1), count > 0


def multilabel_softmax_loss(
    scores: Tensor,
    target: Tensor,
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
    check_reduction(reduction)
    present, absent = read_label_matrix(scores, target, mask)
    x = in_compute_type(scores)
    rows, observed = _multilabel_softmax_rows(x, present, absent)
    weight = rows_that_count(observed, sample_weight, x)
    return reduce_over_processes(rows, weight, reduction, world_size(sync)).to(scores.dtype)
