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
