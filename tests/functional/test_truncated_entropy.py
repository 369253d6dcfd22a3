"""The truncated top-k entropy (seed 000, eq. 9 and 13) against its definition."""

import math

import pytest
import torch

import shortlist.functional as F
from tests import oracles
from tests.functional.harness import (
    FLOATS,
    LOSSES,
    assert_gradients,
    assert_losses,
    exactly,
    random_matrix,
    random_scores,
    random_target,
    value_and_gradient,
)

LOSS = LOSSES["truncated_entropy_loss"]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0, 1e3])
@pytest.mark.parametrize(("n", "k"), [(2, 1), (6, 1), (6, 2), (6, 5), (200, 5), (200, 150)])
def test_equals_its_definition_for_class_indices(n: int, k: int, scale: float, dtype: torch.dtype, kernel: str) -> None:
    scores, target = random_scores(6, n, dtype=dtype, scale=scale), random_target(6, n)
    loss, gradient = value_and_gradient(F.truncated_entropy_loss, scores, target, k, reduction="none")
    exact = exactly(LOSS, scores, target, k)
    assert_losses(loss, exact[0])
    assert_gradients(gradient, exact[1])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("scale", [1.0, 30.0])
@pytest.mark.parametrize(("n", "k"), [(2, 1), (6, 2), (6, 5), (40, 5), (40, 30)])
def test_equals_its_definition_for_a_matrix(n: int, k: int, scale: float, dtype: torch.dtype, kernel: str) -> None:
    scores, target = random_scores(6, n, dtype=dtype, scale=scale), random_matrix(6, n)
    exact = exactly(LOSS, scores, target, k)
    for matrix in (target, target.to(dtype)):
        loss, gradient = value_and_gradient(F.truncated_entropy_loss, scores, matrix, k, reduction="none")
        assert_losses(loss, exact[0])
        assert_gradients(gradient, exact[1])


def test_a_label_matrix_of_bools_is_taken_as_present_and_absent(kernel: str) -> None:
    scores, target = random_scores(6, 9), random_matrix(6, 9) == 1
    expected = F.truncated_entropy_loss(scores, target.long(), 3, reduction="none")
    torch.testing.assert_close(F.truncated_entropy_loss(scores, target, 3, reduction="none"), expected, rtol=0, atol=0)


def test_an_index_says_the_same_as_its_row_of_a_label_matrix(kernel: str) -> None:
    scores, target = random_scores(6, 9), random_target(6, 9)
    matrix = torch.nn.functional.one_hot(target, 9)
    by_index = value_and_gradient(F.truncated_entropy_loss, scores, target, 3, reduction="none")
    by_matrix = value_and_gradient(F.truncated_entropy_loss, scores, matrix, 3, reduction="none")
    torch.testing.assert_close(by_index, by_matrix, rtol=1e-6, atol=1e-7)


def test_is_cross_entropy_at_k_1(kernel: str) -> None:
    for dtype in FLOATS:
        scores, target = random_scores(16, 50, dtype=dtype, scale=4.0), random_target(16, 50)
        ours = value_and_gradient(F.truncated_entropy_loss, scores, target, 1, reduction="none")
        theirs = value_and_gradient(torch.nn.functional.cross_entropy, scores, target, reduction="none")
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_drops_k_minus_1_of_the_others_even_when_the_label_is_outside_the_top_k(kernel: str) -> None:
    """The published code drops one more there."""
    scores, target = torch.tensor([[3.0, 2.0, 1.0, 0.0, -1.0]], dtype=torch.float64), torch.tensor([4])
    expected = math.log(1 + math.exp(3) + math.exp(2) + math.exp(1))  # k = 2: of the others only the 3.0 is dropped
    loss = F.truncated_entropy_loss(scores, target, 2)
    assert float(loss) == pytest.approx(expected, rel=1e-12)


def test_unknown_labels_count_as_not_observed_unless_masked(kernel: str) -> None:
    scores = torch.tensor([[0.0, 1.0, 2.0, -1.0]], dtype=torch.float64)
    unknown, absent = torch.tensor([[1, -1, 0, 0]]), torch.tensor([[1, 0, 0, 0]])
    loss = F.truncated_entropy_loss(scores, unknown, 1)
    assert torch.equal(loss, F.truncated_entropy_loss(scores, absent, 1))
    masked = F.truncated_entropy_loss(scores, unknown, 1, mask=unknown >= 0)
    assert float(masked) == pytest.approx(math.log(1 + math.exp(2) + math.exp(-1)), rel=1e-12)


def test_more_present_labels_than_k_drop_nothing(kernel: str) -> None:
    scores = torch.tensor([[0.0, 1.0, 2.0, -1.0]], dtype=torch.float64)
    loss = F.truncated_entropy_loss(scores, torch.tensor([[1, 1, 0, 0]]), 1)
    rest = math.exp(2) + math.exp(-1)
    assert float(loss) == pytest.approx(math.log1p(rest) + math.log1p(rest / math.e), rel=1e-12)


def test_labels_tied_with_the_last_dropped_one_share_its_place(kernel: str) -> None:
    """Which of the tied labels is dropped is not said; how many are is."""
    scores = torch.tensor([[1.0, 1.0, 1.0, 0.0, -1.0]], dtype=torch.float64)
    loss, gradient = value_and_gradient(F.truncated_entropy_loss, scores, torch.tensor([3]), 3)
    exact_loss, exact = oracles.truncated_entropy((1.0, 1.0, 1.0, 0.0, -1.0), [3], 3, (0, 1, 2, 3, 4))
    assert float(loss) == pytest.approx(exact_loss, rel=1e-12)
    assert float(gradient[0, :3].sum()) == pytest.approx(exact[:3].sum(), rel=1e-12)
    assert gradient[0, 3:].tolist() == pytest.approx(exact[3:].tolist(), rel=1e-12)


@pytest.mark.parametrize("kind", ["index", "matrix"])
def test_a_mask_takes_labels_out_of_the_row(kind: str, kernel: str) -> None:
    scores = random_scores(8, 12, dtype=torch.float64)
    target = random_target(8, 12) if kind == "index" else random_matrix(8, 12)
    present = torch.nn.functional.one_hot(target, 12) == 1 if kind == "index" else target == 1
    mask = (random_scores(8, 12, seed=5) > -0.3) | present
    loss, gradient = value_and_gradient(F.truncated_entropy_loss, scores, target, 4, mask=mask, reduction="none")
    exact = exactly(LOSS, scores, target, 4, mask)
    assert_losses(loss, exact[0])
    assert_gradients(gradient, exact[1])


def test_nothing_left_to_sum_gives_zero(kernel: str) -> None:
    scores = torch.zeros(2, 4)
    mask = torch.tensor([[True, True, False, False], [True, True, True, True]])
    loss, gradient = value_and_gradient(
        F.truncated_entropy_loss, scores, torch.tensor([0, 0]), 2, mask=mask, reduction="none"
    )
    assert loss.tolist() == pytest.approx([0.0, math.log(3)])
    assert not gradient[0].any()


@pytest.mark.parametrize("target", [torch.tensor([2, 0]), torch.ones(2, 4, dtype=torch.int8)])
def test_a_nan_makes_its_row_nan_even_where_no_rival_is_left(target: torch.Tensor, kernel: str) -> None:
    scores = random_scores(2, 4)
    scores[0, 2] = math.nan
    losses, gradient = value_and_gradient(F.truncated_entropy_loss, scores, target, 4, reduction="none")
    assert losses.isnan().tolist() == [True, False]
    assert gradient.isnan().any(-1).tolist() == [True, False]


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_label_at_minus_infinity_is_without_end_below_any_rival(k: int, kernel: str) -> None:
    scores = torch.tensor([[-torch.inf, 2.0, 1.0, 0.0], [-torch.inf] * 4, [torch.nan] + [-torch.inf] * 3])
    loss, gradient = value_and_gradient(F.truncated_entropy_loss, scores, torch.tensor([0, 0, 0]), k, reduction="none")
    assert loss[:2].tolist() == [torch.inf, 0]
    assert loss[2].isnan()
    assert gradient[0, 0] == -1
    assert gradient[0].sum().abs() < 1e-6
    assert not gradient[1].any()
