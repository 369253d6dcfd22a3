"""The top-k hinge: relu(alpha + (k-th largest other - s_y) / k), eq. 19 of seed 003 (not its eq. 6)."""

import pytest
import torch
from torch import Tensor

import shortlist.functional as F
from tests import oracles
from tests.functional.harness import (
    FLOATS,
    assert_gradients,
    assert_losses,
    random_scores,
    random_target,
    value_and_gradient,
)


def exactly(scores: Tensor, target: Tensor, k: int, alpha: float) -> tuple[Tensor, Tensor]:
    rows = target.tolist()
    return oracles.over_rows(lambda row, y, usable: oracles.topk_hinge(row, y, k, alpha, usable), scores, rows)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.5])
@pytest.mark.parametrize(("n", "k"), [(2, 1), (6, 1), (6, 3), (6, 5), (500, 5), (500, 200)])
def test_equals_its_formula(n: int, k: int, alpha: float, dtype: torch.dtype, kernel: str) -> None:
    scores, target = random_scores(12, n, dtype=dtype, scale=3.0), random_target(12, n)
    exact = exactly(scores, target, k, alpha)
    loss, gradient = value_and_gradient(F.topk_hinge_loss, scores, target, k, alpha=alpha, reduction="none")
    assert_losses(loss, exact[0], floor=1e-1)
    assert_gradients(gradient, exact[1])


def test_is_the_multiclass_hinge_of_crammer_and_singer_at_k_1(kernel: str) -> None:
    loss = F.topk_hinge_loss(torch.tensor([[1.0, 0.5, -2.0]]), torch.tensor([0]), 1)
    assert float(loss) == pytest.approx(0.5)


def test_divides_the_score_difference_by_k_but_not_the_margin(kernel: str) -> None:
    scores = torch.tensor([[5.0, 4.0, 3.0, 0.0]])
    assert float(F.topk_hinge_loss(scores, torch.tensor([3]), 2)) == pytest.approx(1 + 4.0 / 2)


def test_tied_labels_share_one_unit_of_gradient(kernel: str) -> None:
    scores = torch.tensor([[2.0, 2.0, 2.0, 0.0]])
    loss, gradient = value_and_gradient(F.topk_hinge_loss, scores, torch.tensor([3]), 2)
    assert float(loss) == pytest.approx(2.0)
    assert float(gradient[0, :3].sum()) == pytest.approx(0.5)
    assert float(gradient[0, 3]) == pytest.approx(-0.5)


def test_an_offset_of_a_million_costs_nothing_in_float64(kernel: str) -> None:
    scores, target = random_scores(4, 30, dtype=torch.float64) + 1e6, random_target(4, 30)
    exact = exactly(scores, target, 4, 1.0)
    assert_losses(F.topk_hinge_loss(scores, target, 4, reduction="none"), exact[0])


def test_rows_without_k_other_usable_labels_count_as_right(kernel: str) -> None:
    mask = torch.tensor([[True, True, False, False], [True, True, True, False]])
    loss, gradient = value_and_gradient(
        F.topk_hinge_loss, torch.zeros(2, 4), torch.tensor([0, 0]), 2, mask=mask, reduction="none"
    )
    assert loss.tolist() == [0.0, 1.0]
    assert not gradient[0].any()
    assert gradient[1].any()


# ---- proposition 8 of seed 003: margin and quadratic regularisation are interchangeable


@pytest.mark.parametrize(("strength", "alpha"), [(0.3, 1.0), (2.0, 0.25), (0.5, 0.0), (0.0, 1.0)])
@pytest.mark.parametrize("beta", [0.1, 4.0])
def test_a_margin_and_a_regularisation_can_be_exchanged(strength: float, alpha: float, beta: float) -> None:
    """w solves (strength, alpha) where w / beta solves (beta strength, alpha / beta): the problems are proportional."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(40, 5, generator=generator, dtype=torch.float64)
    target = torch.randint(0, 7, (40,), generator=generator)

    def problem(weights: Tensor, strength: float, alpha: float) -> tuple[Tensor, Tensor]:
        weights = weights.clone().requires_grad_()
        loss = F.topk_hinge_loss(x @ weights, target, 3, alpha=alpha) + strength / 2 * (weights**2).sum()
        return loss.detach(), torch.autograd.grad(loss, weights)[0]

    for seed in range(5):
        weights = torch.randn(5, 7, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        value, gradient = problem(weights, strength, alpha)
        other_value, other_gradient = problem(weights / beta, beta * strength, alpha / beta)
        torch.testing.assert_close(beta * other_value, value)
        torch.testing.assert_close(other_gradient, gradient)  # so that one is zero where the other is


def test_the_best_margin_and_the_best_regularisation_are_the_same_search() -> None:
    """The case beta = alpha of the proposition: all (strength, alpha) have the solution of (alpha strength, 1)."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(30, 4, generator=generator, dtype=torch.float64)
    target = torch.randint(0, 5, (30,), generator=generator)

    def solved(strength: float, alpha: float) -> Tensor:
        weights = torch.zeros(4, 5, dtype=torch.float64, requires_grad=True)
        for step in range(1, 4000):  # subgradients of a strongly convex problem
            loss = F.topk_hinge_loss(x @ weights, target, 2, alpha=alpha) + strength / 2 * (weights**2).sum()
            (gradient,) = torch.autograd.grad(loss, weights)
            with torch.no_grad():
                weights -= gradient / (strength * (step + 20))
        return weights.detach()

    one, other = solved(0.5, 3.0), 3.0 * solved(1.5, 1.0)
    torch.testing.assert_close(one, other, rtol=0.02, atol=0.01)
