"""The published algorithms compute what they claim to, so that measuring against them is fair."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from shortlist_recipes.published.bracketing import lml_by_bracketing
from shortlist_recipes.published.divide_and_conquer import divide_and_conquer
from shortlist_recipes.published.recursive_backward import marginals
from shortlist_recipes.published.smooth_topk import smooth_topk_loss
from shortlist_recipes.published.summation import summation

ALGORITHMS = [summation, divide_and_conquer]


def random_scores(rows: int, labels: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(rows, labels, dtype=torch.float64, generator=generator).requires_grad_()


def enumerated_loss(scores: Tensor, target: Tensor, k: int, tau: float, alpha: float) -> Tensor:
    """The definition: a log-sum-exp over all k-subsets, minus one over those that hold the target."""
    losses = []
    for row, y in zip(scores, target.tolist(), strict=True):
        subsets = list(itertools.combinations(range(len(row)), k))
        sums = torch.stack([row[list(subset)].sum() / k for subset in subsets])
        holds = torch.tensor([y in subset for subset in subsets])
        margin = alpha * (~holds).to(row.dtype)
        losses.append(tau * (torch.logsumexp((sums + margin) / tau, 0) - torch.logsumexp(sums[holds] / tau, 0)))
    return torch.stack(losses).mean()


@pytest.mark.parametrize("custom_backward", [False, True])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(("k", "tau"), [(1, 1.0), (2, 1.0), (3, 0.3), (5, 1.0), (5, 4.0)])
def test_a_rival_loss_and_its_gradient_equal_enumeration(algorithm, custom_backward, k, tau):
    scores, target = random_scores(3, 9), torch.tensor([0, 8, 4])
    expected = enumerated_loss(scores, target, k, tau, 1.0)
    actual = smooth_topk_loss(scores, target, k, tau=tau, algorithm=algorithm, custom_backward=custom_backward)
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)
    gradients = [torch.autograd.grad(loss, scores)[0] for loss in (actual, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("labels", [1, 2, 7, 8, 13])
def test_the_symmetric_sums_of_equal_numbers_are_binomials(algorithm, labels):
    with torch.no_grad():
        sums = algorithm(torch.zeros(2, labels, dtype=torch.float64), min(labels, 5)).exp()
    binomials = torch.tensor([math.comb(labels, j) for j in range(min(labels, 5) + 1)])
    torch.testing.assert_close(sums, binomials.double()[:, None].expand_as(sums), rtol=1e-12, atol=0)


def test_the_summation_overflows_at_a_small_temperature_and_log_space_does_not():
    log_e = 30 * torch.randn(2, 50, generator=torch.Generator().manual_seed(0))
    assert summation(log_e, 5)[5].isinf().any()
    assert divide_and_conquer(log_e, 5).isfinite().all()


def test_the_approximate_gradient_takes_over_where_one_label_dominates():
    k, dominant = 5, 40.0
    log_e = random_scores(1, 30).detach()
    log_e[0, 3] = dominant
    with torch.no_grad():
        sums = divide_and_conquer(log_e, k + 1)
    below, at = marginals(log_e, sums, k, order=1)
    # a label this far ahead is in every subset, to 16 digits; the recursion alone would have lost all of them
    torch.testing.assert_close(below[0, 3].item(), 1.0, rtol=0, atol=1e-9)
    torch.testing.assert_close(at[0, 3].item(), 1.0, rtol=0, atol=1e-9)


@pytest.mark.parametrize("points", [10, 100])
@pytest.mark.parametrize("k", [1, 3, 6])
def test_bracketing_finds_the_projection(points, k):
    x = (3 * random_scores(4, 8)).detach()
    low, high = -x.amax(-1) - 40, -x.amin(-1) + 40
    for _ in range(200):  # plain bisection
        middle = (low + high) / 2
        too_small = torch.sigmoid(x + middle[:, None]).sum(-1) < k
        low, high = torch.where(too_small, middle, low), torch.where(too_small, high, middle)
    expected = torch.sigmoid(x + low[:, None])
    torch.testing.assert_close(lml_by_bracketing(x, k, points), expected, rtol=0, atol=1e-6)


def test_the_implicit_gradient_of_bracketing_equals_finite_differences(monkeypatch):
    # finite differences need the exact root
    monkeypatch.setattr("shortlist_recipes.published.bracketing.TOLERANCE", 1e-14)
    assert torch.autograd.gradcheck(lambda x: lml_by_bracketing(x, 3), random_scores(2, 7))
