"""Sets of labels inside a label matrix, and sums over them that stay exact when a set is empty."""

from typing import Any

import torch
from torch import Tensor

from shortlist.checks import check_label_matrix, check_scores
from shortlist.distributed import max_over_processes, sum_over_processes
from shortlist.errors import ShortlistError
from shortlist.labels.sparse_labels import dense_labels


def read_label_matrix(scores: Tensor, target: Any) -> tuple[Tensor, Tensor]:
    """Check the inputs of a label-matrix loss; which labels are present and which absent."""
    check_scores(scores)
    target = dense_labels(target)
    check_label_matrix(scores, target)
    return target == 1, target == 0


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
    exponents = (x - peak.unsqueeze(dim)) / temperature
    largest = torch.zeros_like(peak)  # of the exponents
    if weight is not None:  # a heavy term may be far below the largest score, which may weigh next to nothing
        exponents = exponents + weight.log()
        largest = exponents.detach().amax(dim) if x.shape[dim] else largest
        largest = max_over_processes(largest, world).nan_to_num(nan=0.0, neginf=0.0)
    total = sum_over_processes((exponents - largest.unsqueeze(dim)).exp().sum(dim), world)
    empty = total == 0
    return peak, temperature * (largest + total.masked_fill(empty, 1.0).log()), ~empty


def is_label(index: Tensor, num_labels: int) -> Tensor:
    """The one-hot form of class indices, as bools; -1 gives a row of False."""
    return index.unsqueeze(-1) == torch.arange(num_labels, device=index.device)


def is_present(target: Tensor, scores: Tensor) -> Tensor:
    """Which labels are present, of class indices or a label matrix."""
    return is_label(target, scores.shape[-1]) if target.ndim < scores.ndim else target == 1


def largest_members(x: Tensor, member: Tensor, k: int) -> Tensor:
    """The k largest members of each row (all of them where there are fewer); ties go to the lower label."""
    k = min(k, x.shape[-1])
    if k == 0:
        return torch.zeros_like(member)
    low, most = torch.finfo(x.dtype).min, float("inf")
    x = x.detach().nan_to_num(nan=low, posinf=most, neginf=low)  # a NaN is the last
    x = torch.where(member, x, torch.tensor(-most, dtype=x.dtype))
    values = x.topk(k).values
    cut = values[..., -1:].clamp(min=low)
    above, tied, missing = x > cut, x == cut, (values == cut).sum(-1, keepdim=True)
    del x
    return torch.where(tied, tied.cumsum(-1, dtype=torch.int32) <= missing, above)
