"""Sets of labels inside a label matrix, and sums over them that stay exact when a set is empty."""

from torch import Tensor

from shortlist.functional._distributed import max_over_processes, sum_over_processes
from shortlist.functional._inputs import apply_mask, check_label_matrix, check_sample_weight, check_scores


def read_label_matrix(scores: Tensor, target: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Check the inputs of a label-matrix loss; which labels are present and which absent (a masked one is neither)."""
    check_scores(scores)
    check_label_matrix(scores, target)
    present, absent = target == 1, target == 0
    if mask is not None:
        apply_mask(scores.detach(), mask)  # for its check alone
        present, absent = present & mask, absent & mask
    return present, absent


def rows_that_count(rows: Tensor, sample_weight: Tensor | None, scores: Tensor) -> Tensor:
    """The weight of each row: 0 where ``rows`` is False, else its sample weight (1)."""
    check_sample_weight(scores, sample_weight)
    weight = rows.to(scores.dtype)
    return weight if sample_weight is None else weight * sample_weight.to(scores.dtype)


def check_couples_batch(reduction: str, what: str) -> None:
    if reduction not in ("mean", "sum"):
        raise ValueError(f"{what} couples the rows of the batch: reduction must be 'mean' or 'sum', got {reduction!r}")


def masked_logsumexp(
    x: Tensor, member: Tensor, dim: int, weight: Tensor | None = None, world: int = 1
) -> tuple[Tensor, Tensor]:
    """``log sum over members of weight * e^x`` along ``dim``, and whether that sum has a term at all.

    Where it has none the value is 0, not -inf, and its gradient 0, not NaN: the caller decides what an empty set means.
    ``world`` > 1 continues the sum over the processes (`sum_over_processes`).
    """
    if weight is not None:
        member = member & (weight > 0)
    x = x.masked_fill(~member, float("-inf"))
    shape = [*x.shape[:dim], *x.shape[dim:][1:]]
    peak = x.detach().amax(dim) if x.shape[dim] else x.new_full(shape, float("-inf"))
    peak = max_over_processes(peak, world)
    peak = peak.masked_fill(peak.isinf(), 0.0)
    terms = (x - peak.unsqueeze(dim)).exp()
    if weight is not None:
        terms = terms * weight
    total = sum_over_processes(terms.sum(dim), world)
    empty = total == 0
    return peak + total.masked_fill(empty, 1.0).log(), ~empty
