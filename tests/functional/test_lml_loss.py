"""The likelihood of observed labels under the LML projection (Algorithm 2 of seed 000)."""

import pytest
import torch
from torch import Tensor

import shortlist.functional as F
from tests import oracles
from tests.functional.harness import (
    FLOATS,
    LOSSES,
    assert_gradients,
    assert_losses,
    exactly,
    present_labels,
    random_matrix,
    random_scores,
    random_target,
    value_and_gradient,
)

LOSS = LOSSES["lml_loss"]


def check(scores: Tensor, target: Tensor, k: int, mask: Tensor | None = None) -> None:
    loss, gradient = value_and_gradient(F.lml_loss, scores, target, k, mask=mask, reduction="none")
    exact = exactly(LOSS, scores, target, k, mask)
    assert_losses(loss, exact[0])
    assert_gradients(gradient, exact[1])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("scale", [0.01, 1.0, 10.0, 1e3, 1e5])
@pytest.mark.parametrize(("n", "k"), [(2, 1), (7, 1), (7, 3), (7, 6), (150, 5)])
def test_equals_the_likelihood_of_an_index(n: int, k: int, scale: float, dtype: torch.dtype, kernel: str) -> None:
    check(random_scores(4, n, scale=scale).to(dtype), random_target(4, n), k)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("scale", [1.0, 10.0, 1e3])
@pytest.mark.parametrize(("n", "k"), [(2, 1), (9, 3), (9, 8)])
def test_equals_the_likelihood_of_a_label_matrix(n: int, k: int, scale: float, dtype: torch.dtype, kernel: str) -> None:
    scores, target = random_scores(5, n, scale=scale).to(dtype), random_matrix(5, n)
    check(scores, target, k)
    check(scores, target.to(dtype), k)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_saturated_row_has_its_true_loss(dtype: torch.dtype, kernel: str) -> None:
    """A rule that watches |sum y - k| gives 25.80 here."""
    scores = torch.tensor([[40.0, 0.0, 0.0]], dtype=dtype)
    assert float(F.lml_loss(scores, torch.tensor([2]), 1)) == pytest.approx(20.35, abs=5e-3)
    for target in range(3):
        check(scores, torch.tensor([target]), 1)
        check(scores, torch.tensor([target]), 2)


@pytest.mark.parametrize("gap", [1.0, 30.0, 99.0, 101.0, 500.0, 2e4])
@pytest.mark.parametrize("dtype", FLOATS)
def test_is_exact_while_a_gap_grows(gap: float, dtype: torch.dtype, kernel: str) -> None:
    scores = random_scores(2, 10).to(dtype)
    scores[:, :3] += gap
    check(scores, torch.tensor([1, 7]), 3)


def test_index_and_one_hot_row_say_the_same(kernel: str) -> None:
    scores, target = random_scores(6, 9), random_target(6, 9)
    by_index = value_and_gradient(F.lml_loss, scores, target, 3, reduction="none")
    by_matrix = value_and_gradient(F.lml_loss, scores, torch.nn.functional.one_hot(target, 9), 3, reduction="none")
    torch.testing.assert_close(by_index, by_matrix, rtol=1e-6, atol=1e-7)


def test_is_the_log_of_the_layer(kernel: str) -> None:
    scores, target = random_scores(6, 9, dtype=torch.float64), random_matrix(6, 9)
    for temperature in (0.5, 1.0, 4.0):
        ours = value_and_gradient(F.lml_loss, scores, target, 3, temperature=temperature, reduction="none")
        log = value_and_gradient(
            lambda s, t=temperature: -(F.lml(s, 3, temperature=t).log() * (target == 1)).sum(-1), scores
        )
        torch.testing.assert_close(ours, log, rtol=1e-10, atol=1e-12)


def test_temperature_reaches_the_gradient(kernel: str) -> None:
    scores, target = random_scores(4, 9, dtype=torch.float64), random_target(4, 9)
    loss, gradient = value_and_gradient(F.lml_loss, scores, target, 3, temperature=0.3, reduction="none")
    exact = oracles.over_rows(
        lambda row, y, usable: oracles.lml(row, 3, usable, 0.3).loss(y), scores, present_labels(target)
    )
    assert_losses(loss, exact[0])
    assert_gradients(gradient, exact[1])


def test_unknown_and_absent_labels_add_nothing(kernel: str) -> None:
    scores = random_scores(2, 5)
    unknown, absent = torch.tensor([[1, -1, 0, -1, 1]] * 2), torch.tensor([[1, 0, 0, 0, 1]] * 2)
    assert torch.equal(F.lml_loss(scores, unknown, 2), F.lml_loss(scores, absent, 2))


def test_a_mask_takes_labels_out_of_the_row(kernel: str) -> None:
    scores, target = random_scores(6, 9, dtype=torch.float64), random_target(6, 9)
    mask = (random_scores(6, 9, seed=3) > -0.5) | (torch.nn.functional.one_hot(target, 9) == 1)
    check(scores, target, 3, mask)
    check(scores.float(), target, 3, mask)


@pytest.mark.parametrize("kind", ["index", "matrix"])
def test_a_row_with_no_more_usable_labels_than_k_costs_nothing(kind: str, kernel: str) -> None:
    scores = random_scores(2, 6)
    target = torch.tensor([1, 1]) if kind == "index" else torch.tensor([[0, 1, 1, 0, 0, 0]] * 2)
    mask = torch.tensor([[True] * 3 + [False] * 3, [True] * 6])
    loss, gradient = value_and_gradient(F.lml_loss, scores, target, 3, mask=mask, reduction="none")
    assert loss[0] == 0
    assert loss[1] > 0
    assert not gradient[0].any()
    assert bool(gradient.isfinite().all())


def test_k_may_differ_between_rows(kernel: str) -> None:
    scores, target, k = random_scores(4, 8, dtype=torch.float64), random_target(4, 8), torch.tensor([1, 3, 7, 3])
    loss, gradient = value_and_gradient(F.lml_loss, scores, target, k, reduction="none")
    for i in range(4):
        exact = exactly(LOSS, scores[i : i + 1], target[i : i + 1], int(k[i]))
        assert_losses(loss[i : i + 1], exact[0])
        assert_gradients(gradient[i : i + 1], exact[1])


def test_a_hundred_thousand_labels_keep_the_gradient_of_the_label(kernel: str) -> None:
    scores, target = random_scores(1, 100_000, scale=2.0), torch.tensor([17])
    scores[0, 17] = -40.0
    loss, gradient = value_and_gradient(F.lml_loss, scores, target, 5)
    assert float(loss) == pytest.approx(-float(F.lml(scores.double(), 5)[0, 17].log()), rel=1e-5)
    assert float(gradient[0, 17]) == pytest.approx(-1.0, abs=1e-4)
