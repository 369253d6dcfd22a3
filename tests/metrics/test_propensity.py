"""Propensity-scored precision and NDCG, against the definitions row by row."""

import math

import pytest
import torch

from shortlist.errors import ShortlistError
from shortlist.metrics import PropensityNDCGAtK, PropensityPrecisionAtK
from shortlist.metrics.functional import (
    label_propensities,
    ndcg_at_k,
    propensity_ndcg_at_k,
    propensity_precision_at_k,
)


def by_definition(scores: torch.Tensor, target: torch.Tensor, k: int, p: list[float], discounted: bool) -> float:
    """Equation 8 of Jain et al. over the largest value that any ranking could have."""
    gained = possible = 0.0
    for row, truth in zip(scores.tolist(), target.tolist(), strict=True):
        ranked = sorted((label for label in range(len(row)) if truth[label] != -1), key=lambda label: -row[label])[:k]
        right = sorted((label for label in range(len(row)) if truth[label] == 1), key=lambda label: p[label])
        discount = [1 / math.log2(rank + 2) if discounted else 1.0 for rank in range(k)]
        scale = sum(discount[: min(k, len(right))]) if discounted else 1.0
        if right:
            gained += sum(discount[rank] / p[label] for rank, label in enumerate(ranked) if truth[label] == 1) / scale
            possible += sum(discount[rank] / p[label] for rank, label in enumerate(right[:k])) / scale
    return gained / possible


@pytest.mark.parametrize("k", [1, 3, 5])
@pytest.mark.parametrize("discounted", [False, True])
def test_it_is_the_gain_over_the_largest_gain(k: int, discounted: bool) -> None:
    generator = torch.Generator().manual_seed(k)
    scores = torch.randn(40, 9, generator=generator)
    target = (torch.rand(40, 9, generator=generator) < 0.3).int()
    target[torch.rand(40, 9, generator=generator) < 0.1] = -1
    p = label_propensities(torch.arange(9) ** 2, rows=500)
    function, kind = (
        (propensity_ndcg_at_k, PropensityNDCGAtK) if discounted else (propensity_precision_at_k, PropensityPrecisionAtK)
    )
    expected = by_definition(scores, target, k, p.tolist(), discounted)
    assert float(function(scores, target, k, p)) == pytest.approx(expected, rel=1e-6)
    metric = kind(k, p)
    for part in range(0, 40, 16):
        metric.update(scores[part : part + 16], target[part : part + 16])
    assert float(metric.compute()) == pytest.approx(expected, rel=1e-6)


def test_propensities_follow_the_formula_and_grow_with_the_count() -> None:
    found = label_propensities([0, 3, 700], rows=1000, a=0.6, b=2.6)
    c = (math.log(1000) - 1) * 3.6**0.6
    assert found.tolist() == pytest.approx([1 / (1 + c * math.exp(-0.6 * math.log(n + 2.6))) for n in (0, 3, 700)])
    assert bool((found.diff() > 0).all())
    assert label_propensities([0, 1], rows=1).tolist() == [1, 1]


def test_equal_propensities_leave_ndcg_of_rows_with_one_label_as_it_is() -> None:
    scores, target = torch.randn(30, 6), torch.eye(6, dtype=torch.int8).repeat(5, 1)
    same = torch.full((6,), 0.3)
    assert float(propensity_ndcg_at_k(scores, target, 3, same)) == pytest.approx(float(ndcg_at_k(scores, target, 3)))


@pytest.mark.parametrize("wrong", [torch.ones(3), torch.zeros(4), torch.full((4,), 1.5), torch.full((4,), torch.nan)])
def test_propensities_that_are_none_are_refused(wrong: torch.Tensor) -> None:
    with pytest.raises(ShortlistError, match="propensities are one number above 0, and at most 1, for each of the 4"):
        propensity_precision_at_k(torch.randn(2, 4), torch.zeros(2, 4, dtype=torch.int8), 1, wrong)
