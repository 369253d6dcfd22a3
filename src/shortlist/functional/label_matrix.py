"""Sets of labels inside a label matrix, and sums over them that stay exact when a set is empty."""

import torch
from torch import Tensor

from shortlist.checks import (
    check_class_weight,
    check_indices,
    check_label_matrix,
    check_mask,
    check_sample_weight,
    check_scores,
    is_index_target,
    mask_indices,
    raise_bad_label,
    values_visible,
    without_denormals,
)
from shortlist.distributed import max_over_processes, sum_over_processes
from shortlist.errors import ShortlistError
from shortlist.kernels import native_serves, ops


def read_label_matrix(scores: Tensor, target: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Check the inputs of a label-matrix loss; which labels are present and which absent (a masked one is neither)."""
    check_scores(scores)
    check_label_matrix(scores, target)
    present, absent = target == 1, target == 0
    if mask is not None:
        check_mask(scores, mask)
        present, absent = present & mask, absent & mask
    return present, absent


def rows_that_count(rows: Tensor, sample_weight: Tensor | None, scores: Tensor) -> Tensor:
    """The weight of each row: 0 where ``rows`` is False, else its sample weight (1)."""
    sample_weight = check_sample_weight(scores, sample_weight)
    weight = rows.to(scores.dtype)
    return weight if sample_weight is None else weight * sample_weight


def check_couples_batch(reduction: str, what: str) -> None:
    if reduction not in ("mean", "sum"):
        raise ShortlistError(
            f"{what} couples the rows of the batch: reduction must be 'mean' or 'sum', got {reduction!r}"
        )


def masked_logsumexp(
    x: Tensor, member: Tensor, dim: int, weight: Tensor | None = None, world: int = 1, temperature: float = 1.0
) -> tuple[Tensor, Tensor, Tensor]:
    """``T log sum over members of weight * e^(x / T)`` along ``dim`` as the largest ``x`` and what the sum adds to it.

    Two numbers, because one would lose the digits of the second where scores are large. The third says whether the sum
    has a term at all; where it has none the numbers are 0, and their gradients: the caller decides what that means.
    ``world`` > 1 continues the sum over the processes (`sum_over_processes`).
    """
    if weight is not None:
        member = member & (weight > 0)
    x = x.masked_fill(~member, float("-inf"))
    shape = [*x.shape[:dim], *x.shape[dim:][1:]]
    peak = x.detach().amax(dim) if x.shape[dim] else x.new_full(shape, float("-inf"))
    peak = max_over_processes(peak, world)
    peak = peak.masked_fill(peak.isinf(), 0.0)
    terms = ((x - peak.unsqueeze(dim)) / temperature).exp()
    if weight is not None:
        terms = terms * weight
    total = sum_over_processes(terms.sum(dim), world)
    empty = total == 0
    return peak, temperature * total.masked_fill(empty, 1.0).log(), ~empty


def read_single_positive(scores: Tensor, target: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Class indices, from indices or from a label matrix with one present label per row; and the mask at full shape.

    -1 marks a row that is not observed: an unknown index, no present label, or a label that the mask takes out.
    """
    check_scores(scores)
    if is_index_target(scores, target):
        check_indices(scores, target)
        index = target.long()
    elif native_serves(scores) and values_visible(scores, target):
        index = _present_label(scores, target)
    else:
        check_label_matrix(scores, target)
        present = target == 1
        count = present.sum(-1)
        if values_visible(count) and bool((count > 1).any()):
            row = int((count > 1).flatten().nonzero()[0])
            _raise_several(row, int(count.flatten()[row]))
        index = torch.where(count > 0, present.to(torch.uint8).argmax(-1), -1)
    return mask_indices(scores, index, mask), None if mask is None else mask.expand(scores.shape)


def _present_label(scores: Tensor, target: Tensor) -> Tensor:
    """The same in one pass over the matrix, its values checked on the way."""
    check_label_matrix(scores, target, values=False)
    labels = scores.shape[-1]
    try:
        index = ops.single_positive(ops.in_kernel_type(target).reshape(-1, labels))
    except ops.BadTarget as bad:
        raise_bad_label(target, bad.position)
    if bool((index < -1).any()):
        row = int((index < -1).nonzero()[0])
        _raise_several(row, -int(index[row]))
    return index.reshape(scores.shape[:-1])


def _raise_several(row: int, count: int) -> None:
    raise ShortlistError(
        f"row {row} of target holds {count} present labels: "
        f"this loss takes class indices, or a label matrix with at most one present label per row"
    )


def single_positive_weights(
    scores: Tensor, index: Tensor, weight: Tensor | None, sample_weight: Tensor | None
) -> Tensor:
    """The weight of each row: 0 where the index is -1, else its class's weight times its sample weight."""
    weight = check_class_weight(scores, weight)
    rows = rows_that_count(index >= 0, sample_weight, scores)
    return rows if weight is None else without_denormals(rows * weight[index.clamp(min=0)])


def is_label(index: Tensor, num_labels: int) -> Tensor:
    """The one-hot form of class indices, as bools; -1 gives a row of False."""
    return index.unsqueeze(-1) == torch.arange(num_labels, device=index.device)


def largest_members(x: Tensor, member: Tensor, k: int) -> Tensor:
    """The k largest members of each row (all of them where there are fewer); ties go to the lower label."""
    k = min(k, x.shape[-1])
    if k == 0:
        return torch.zeros_like(member)
    x = x.detach().masked_fill(~member | x.isnan(), float("-inf"))  # a NaN is the last
    cut = x.topk(k).values[..., -1:]
    above = member & (x > cut)
    tied = member & (x == cut)
    return above | (tied & (tied.cumsum(-1) <= k - above.sum(-1, keepdim=True)))


def wide(x: Tensor) -> Tensor:
    """In float64 where the device has it: for long running sums and exact counts."""
    return x.float() if x.device.type == "mps" else x.double()
