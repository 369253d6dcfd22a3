"""The log-sum-exp pairwise loss (LSEP)."""

from torch import Tensor

from shortlist.functional.two_way import PAIR_ROWS
from shortlist.labels.sparse_labels import Target


def lsep_loss(
    scores: Tensor,
    target: Target,
    *,
    mask: Tensor | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
    sync: bool | None = None,
) -> Tensor:
    """Log-sum-exp pairwise loss: a smooth count of the pairs ranked the wrong way, over all pairs at once.

    Formula:
        log(1 + sum_{p in P, n in N} e^(s_n - s_p)) = softplus(log sum_N e^(s_n) + log sum_P e^(-s_p))
        mean over the rows that have a present label

    Use it when:
        the order of labels within a row is all that matters. It is the sample way of `two_way_loss` at temperature 1,
        and at least log(1 + the number of pairs in the wrong order).

    Needs:
        label matrix, unknowns
        Unknown labels are in neither set. A row without an absent label costs 0.

    Reference:
        Li, Song, Luo, "Improving Pairwise Ranking for Multi-label Image Classification", CVPR 2017.

    Options:
        mask: bool, broadcastable to the scores; False takes a label out of its row.
        sample_weight: one weight per row.
        reduction: "mean", "sum" or "none" (one loss per row).
        sync: count over all processes; None means yes when ``torch.distributed`` is initialised.

    Example:
        >>> import torch
        >>> scores = torch.tensor([[2.0, -1.0, 0.5], [-1.0, 3.0, 0.0]])
        >>> lsep_loss(scores, torch.tensor([[1, 0, -1], [0, 1, 1]]))
        tensor(0.1876)
    """
    return PAIR_ROWS(scores, target, (1.0, 1.0, 0.0), mask, None, sample_weight, reduction, sync)
