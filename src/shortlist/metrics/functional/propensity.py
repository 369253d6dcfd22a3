"""Propensity-scored precision and NDCG at k: rare labels, which are often missing from the record, count more.

Jain, Prabhu and Varma: Extreme Multi-label Loss Functions (KDD 2016). The figures are those of the extreme
classification repository: the gain of the k best labels over the largest gain possible, each summed over all rows.
"""

from typing import Any

import torch
from torch import Tensor

from shortlist.checks import check_k
from shortlist.errors import ShortlistError
from shortlist.metrics._truth import Truth, scores_and_truth
from shortlist.metrics.top import top_labels


def label_propensities(counts: Any, rows: int, *, a: float = 0.55, b: float = 1.5) -> Tensor:
    """How likely a label that is right is recorded, from the number of training examples that have it: float64 (L,).

    p = 1 / (1 + C (n + b)^-a) with C = (log rows - 1) (b + 1)^a. ``a`` and ``b`` are the repository's for most of its
    data; it has a=0.5, b=0.4 for Wikipedia and a=0.6, b=2.6 for Amazon.

    Args:
        counts: in how many of the training examples each label is present (L,).
        rows: how many training examples there are.

    >>> label_propensities([0, 10, 1000], rows=10_000)
    tensor([0.0842, 0.2199, 0.7669], dtype=torch.float64)
    """
    found = torch.as_tensor(counts, dtype=torch.float64)
    if found.ndim != 1 or not bool((found >= 0).all()) or rows < 1:
        raise ShortlistError(f"counts are one number of examples for each label, of at least 1 row; got {rows} rows")
    scale = max(torch.log(torch.tensor(float(rows), dtype=torch.float64)).item() - 1, 0.0) * (b + 1) ** a
    return 1 / (1 + scale * (found + b) ** -a)


def propensity_precision_at_k(scores: Any, target: Any, k: int, propensities: Any) -> Tensor:
    """Propensity-scored precision: the sum of 1 / p over the right ones of each row's k best labels, over the largest
    sum possible.

    Unknown labels occupy no rank. ``propensities`` (L,) in (0, 1], as `label_propensities` gives them.

    >>> import torch
    >>> scores, target = torch.tensor([[4.0, 3.0, 2.0, 1.0]]), torch.tensor([[1, 0, 0, 1]])
    >>> propensity_precision_at_k(scores, target, k=1, propensities=torch.tensor([0.5, 0.5, 0.5, 0.125]))
    tensor(0.2500)
    """
    return _ratio(propensity_sums(scores, target, k, propensities, discounted=False))


def propensity_ndcg_at_k(scores: Any, target: Any, k: int, propensities: Any) -> Tensor:
    """Propensity-scored NDCG: as propensity-scored precision, where a right label at rank r gains 1 / (p log2(1 + r)),
    and each row is divided by the gain of its right labels at the first ranks without propensities.

    >>> import torch
    >>> scores, target = torch.tensor([[4.0, 3.0, 2.0, 1.0]]), torch.tensor([[0, 1, 0, 0]])
    >>> propensity_ndcg_at_k(scores, target, k=2, propensities=torch.full((4,), 0.5))
    tensor(0.6309)
    """
    return _ratio(propensity_sums(scores, target, k, propensities, discounted=True))


def propensity_sums(scores: Any, target: Any, k: int, propensities: Any, discounted: bool) -> Tensor:
    """The gain of the k best labels and the largest one possible, each summed over rows: float64 (2,)."""
    rows, truth = scores_and_truth(scores, target)
    k = check_k(k, rows.shape[-1], "the number of labels")
    worth = 1 / checked_propensities(propensities, rows.shape[1]).to(rows.device)
    labels = top_labels(rows, k, truth.unknown)
    number = torch.arange(len(labels), device=labels.device)[:, None]
    gain = truth.is_present(number, labels) * worth[labels]
    best = _best(truth, worth, k)
    if discounted:
        discount = 1 / torch.arange(2, k + 2, device=rows.device, dtype=torch.float64).log2()
        possible = discount.cumsum(0)[truth.present_per_row.clamp(1, k) - 1, None]
        gain, best = gain * discount / possible, best * discount / possible
    return torch.stack([gain.sum(), best.sum()])


def checked_propensities(propensities: Any, num_labels: int) -> Tensor:
    found = torch.as_tensor(propensities, dtype=torch.float64)
    if found.shape != (num_labels,) or not bool(((found > 0) & (found <= 1)).all()):
        raise ShortlistError(
            f"propensities are one number above 0, and at most 1, for each of the {num_labels} labels: "
            f"see label_propensities"
        )
    return found


def _best(truth: Truth, worth: Tensor, k: int) -> Tensor:
    """The k largest worths of each row's present labels, 0 where there are fewer: (n, k)."""
    rows, worths = truth.rows, worth[truth.labels]
    order = torch.argsort(worths, descending=True, stable=True)
    order = order[torch.argsort(rows[order], stable=True)]
    rows, worths = rows[order], worths[order]
    counts = truth.present_per_row
    rank = torch.arange(len(rows), device=rows.device) - (counts.cumsum(0) - counts)[rows]
    best = worth.new_zeros(truth.num_rows, k)
    first = rank < k
    best[rows[first], rank[first]] = worths[first]
    return best


def _ratio(sums: Tensor) -> Tensor:
    return (sums[0] / sums[1]).float()
