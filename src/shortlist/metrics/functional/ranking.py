"""Metrics of the first k labels of every row: top-k accuracy, precision, recall and NDCG at k.

Equal scores are ranked by label number, the lower first. Unknown labels do not take part: they occupy no rank and are
neither right nor wrong.
"""

from typing import Any

import torch
from torch import Tensor

from shortlist.checks import check_choice, check_k
from shortlist.metrics._truth import Truth, scores_and_truth
from shortlist.metrics.inputs import EMPTY
from shortlist.metrics.top import top_labels


def top_k_accuracy(scores: Any, target: Any, k: int) -> Tensor:
    """Share of the examples whose label is among the k best scores.

    The target holds class indices (-1: unknown, ignored), or a label matrix with at most one present label per row
    (rows without one are ignored). NaN where nothing was observed.

    >>> import torch
    >>> scores = torch.tensor([[3.0, 2.0, 1.0], [1.0, 3.0, 2.0]])
    >>> top_k_accuracy(scores, torch.tensor([1, 0]), k=2)
    tensor(0.5000)
    """
    correct, total = top_k_counts(scores, target, k)
    return (correct.sum() / total.sum()).float()


def precision_at_k(scores: Any, target: Any, k: int) -> Tensor:
    """Mean over rows of the share of present labels among the k best.

    A row that knows fewer than k labels is judged on those it knows; a row that knows none is ignored.

    >>> import torch
    >>> scores = torch.tensor([[4.0, 3.0, 2.0, 1.0], [1.0, 2.0, 3.0, 4.0]])
    >>> precision_at_k(scores, torch.tensor([[1, 1, 0, 0], [1, 0, 1, -1]]), k=2)
    tensor(0.7500)
    """
    return precision_rows(scores, target, k).mean().float()


def recall_at_k(scores: Any, target: Any, k: int, *, empty: str = "skip") -> Tensor:
    """Mean over rows of the share of a row's present labels that are among its k best.

    Rows without a present label are left out (``empty="skip"``) or count as 0 (``"zero"``).

    >>> import torch
    >>> scores = torch.tensor([[4.0, 3.0, 2.0, 1.0], [1.0, 2.0, 3.0, 4.0]])
    >>> recall_at_k(scores, torch.tensor([[1, 1, 1, 0], [0, 0, 0, 0]]), k=2)
    tensor(0.6667)
    """
    return recall_rows(scores, target, k, empty).mean().float()


def ndcg_at_k(scores: Any, target: Any, k: int, *, empty: str = "skip") -> Tensor:
    """Mean over rows of the discounted gain of the k best labels: sum of 1 / log2(1 + rank), over the best possible.

    Rows without a present label are left out (``empty="skip"``) or count as 0 (``"zero"``).

    >>> import torch
    >>> ndcg_at_k(torch.tensor([[4.0, 3.0, 2.0, 1.0]]), torch.tensor([[0, 1, 0, 0]]), k=2)
    tensor(0.6309)
    """
    return ndcg_rows(scores, target, k, empty).mean().float()


def top_k_counts(scores: Any, target: Any, k: int) -> tuple[Tensor, Tensor]:
    """For every label: how many of its examples have it among their k best, and how many it has."""
    hits, _, truth = _hits(scores, target, k)
    rows, labels = truth.single_labels()
    correct = hits.any(1)[rows]
    return _count(labels[correct], truth), _count(labels, truth)


def precision_rows(scores: Any, target: Any, k: int) -> Tensor:
    hits, known, _ = _hits(scores, target, k)
    counted = known > 0
    return hits.sum(1)[counted].double() / known[counted].clamp(max=k)


def recall_rows(scores: Any, target: Any, k: int, empty: str) -> Tensor:
    hits, known, truth = _hits(scores, target, k)
    return _over_present(hits.sum(1).double(), truth.present_per_row.double(), known, empty)


def ndcg_rows(scores: Any, target: Any, k: int, empty: str) -> Tensor:
    hits, known, truth = _hits(scores, target, k)
    discount = 1 / torch.arange(2, k + 2, device=hits.device, dtype=torch.float64).log2()
    best = torch.cat([discount.new_zeros(1), discount.cumsum(0)])[truth.present_per_row.clamp(max=k)]
    return _over_present((hits * discount).sum(1), best, known, empty)


def _hits(scores: Any, target: Any, k: int) -> tuple[Tensor, Tensor, Truth]:
    """Is the label at each of the first k ranks present (n, k); how many labels each row knows; the truth."""
    scores, truth = scores_and_truth(scores, target)
    k = check_k(k, scores.shape[-1], "the number of labels")
    labels = top_labels(scores, k, truth.unknown)
    rows = torch.arange(len(labels), device=labels.device)[:, None]
    return truth.is_present(rows, labels), truth.known_per_row, truth


def _over_present(gain: Tensor, best: Tensor, known: Tensor, empty: str) -> Tensor:
    """gain / best of the rows that count, with rows that have no present label skipped or 0."""
    check_choice(empty, "empty", EMPTY)
    counted = best > 0 if empty == "skip" else known > 0
    return gain[counted] / torch.where(best > 0, best, 1.0)[counted]


def _count(labels: Tensor, truth: Truth) -> Tensor:
    return torch.bincount(labels, minlength=truth.num_labels)
