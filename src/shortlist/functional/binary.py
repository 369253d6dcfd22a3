"""Binary cross-entropy over the labels that were observed."""

import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist.functional._distributed import reduce_over_processes, world_size
from shortlist.functional._inputs import check_reduction, in_compute_type, values_visible
from shortlist.functional._label_matrix import entries_that_count, read_label_matrix


def _binary_entries(scores: Tensor, present: Tensor, absent: Tensor, pos_weight: Tensor | None) -> Tensor:
    """Losses of all entries, -log of the probability of what was seen; 0 where a label is neither of the two."""
    scores = torch.where(present | absent, scores, 0.0)  # an ignored NaN or inf stays ignored
    entries = -F.logsigmoid(torch.where(present, scores, -scores))
    if pos_weight is not None:
        entries = torch.where(present, entries * pos_weight, entries)
    return torch.where(present | absent, entries, 0.0)


def binary_loss(
    scores: Tensor,
    target: Tensor,
    *,
    pos_weight: Tensor | float | None = None,
    mask: Tensor | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
    sync: bool | None = None,
) -> Tensor:
    """Binary cross-entropy of every observed label, averaged over the observed labels.

    Formula:
        -[y w log p + (1 - y) log(1 - p)],  p = sigmoid(s),  w = pos_weight
        mean over the observed entries

    Use it when:
        you want calibrated, independent probabilities per label, or a plain baseline. With few present labels per row,
        `two_way_loss` and `asymmetric_loss` usually rank better.

    Needs:
        label matrix, unknowns
        Unknown labels are left out of the sum and of the count.

    Reference:
        The logistic likelihood; no single source.

    Options:
        pos_weight: weight of present labels, a number or one per label; it does not enter the count.
        mask: bool, broadcastable to the scores; False takes a label out of its row.
        sample_weight: one weight per row.
        reduction: "mean", "sum" or "none" (one loss per entry).
        sync: count over all processes; None means yes when ``torch.distributed`` is initialised.

    Example:
        >>> scores = torch.tensor([[2.0, -1.0, 0.5], [-1.0, 3.0, 0.0]])
        >>> binary_loss(scores, torch.tensor([[1, 0, -1], [0, 1, 1]]))
        tensor(0.2990)
    """
    check_reduction(reduction)
    present, absent = read_label_matrix(scores, target, mask)
    x = in_compute_type(scores)
    entries = _binary_entries(x, present, absent, _pos_weight(x, pos_weight))
    weight = entries_that_count(present | absent, sample_weight, x)
    return reduce_over_processes(entries, weight, reduction, world_size(sync)).to(scores.dtype)


def _pos_weight(scores: Tensor, pos_weight: Tensor | float | None) -> Tensor | None:
    if pos_weight is None:
        return None
    weight = torch.as_tensor(pos_weight, dtype=scores.dtype, device=scores.device)
    if weight.shape not in ((), scores.shape[-1:]):
        raise ValueError(
            f"pos_weight must be a number or one weight per label, shape {tuple(scores.shape[-1:])}; "
            f"got shape {tuple(weight.shape)}"
        )
    if values_visible(weight) and not bool((weight >= 0).all()):
        raise ValueError("pos_weight must not be negative")
    return weight
