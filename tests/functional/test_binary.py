"""Masked binary cross-entropy against PyTorch's."""

import pytest
import torch

import shortlist.functional as F
from tests.functional import oracles_multilabel as oracles
from tests.functional.harness import some_scores, some_target, value_and_gradient

SCORES, TARGET = some_scores(7, 6), some_target("binary", 7, 6)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_with_every_label_known_it_is_pytorchs(reduction: str, kernel: str) -> None:
    target = (TARGET == 1).double()
    expected = torch.nn.functional.binary_cross_entropy_with_logits(SCORES, target, reduction=reduction)
    torch.testing.assert_close(F.binary_loss(SCORES, target, reduction=reduction), expected, rtol=1e-13, atol=0)


@pytest.mark.parametrize("pos_weight", [3.0, torch.arange(6, dtype=torch.float64)])
def test_pos_weight_weighs_present_labels(pos_weight: torch.Tensor | float, kernel: str) -> None:
    actual = value_and_gradient(F.binary_loss, SCORES, TARGET, pos_weight=pos_weight)
    exact = value_and_gradient(oracles.binary, SCORES, TARGET, pos_weight=pos_weight)
    torch.testing.assert_close(actual, exact, rtol=1e-13, atol=1e-16)


def test_the_mean_divides_by_the_known_labels(path: str) -> None:
    assert F.binary_loss(torch.zeros(2, 2), torch.tensor([[1, -1], [-1, -1]])) == torch.tensor(2.0).log()


@pytest.mark.parametrize(
    ("pos_weight", "message"),
    [
        (torch.ones(5), r"one weight per label, shape \(6,\); got shape \(5,\)"),
        (-1.0, "pos_weight is -1.0: weights are numbers from 0"),
    ],
)
def test_a_pos_weight_that_does_not_fit_is_refused(pos_weight: torch.Tensor | float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        F.binary_loss(SCORES, TARGET, pos_weight=pos_weight)


@pytest.mark.parametrize("pos_weight", [None, torch.arange(1.0, 7.0, dtype=torch.float64)])
@pytest.mark.parametrize("spread", [1.0, 30.0, 1e6])
def test_probabilities_give_the_expected_loss_to_the_last_digits(
    pos_weight: torch.Tensor | None, spread: float, path: str
) -> None:
    """Of certain labels, too, of which a sum of softplus and score would have no digit left."""
    scores = SCORES * spread
    chance = torch.where(TARGET < 0, -1.0, torch.where(TARGET > 0, 1.0 - torch.arange(6) / 8, torch.arange(6) / 8))
    up, down = torch.where(chance < 0, 0.0, chance), torch.where(chance < 0, 0.0, 1 - chance)
    up = up if pos_weight is None else up * pos_weight
    zero = torch.zeros_like(scores)
    value = (up * torch.logaddexp(zero, -scores) + down * torch.logaddexp(zero, scores)).sum()
    gradient = down * scores.sigmoid() - up * (-scores).sigmoid()
    found = value_and_gradient(F.binary_loss, scores, chance.double(), reduction="sum", pos_weight=pos_weight)
    torch.testing.assert_close(found, (value, gradient), rtol=1e-13, atol=1e-300)


def test_probabilities_may_be_learned() -> None:
    chance = torch.tensor([[0.25, 1.0, 0.0]], dtype=torch.float64, requires_grad=True)
    scores = SCORES[:1, :3].detach()
    F.binary_loss(scores, chance, reduction="sum").backward()
    torch.testing.assert_close(chance.grad, -scores)  # softplus(-s) - softplus(s)


def test_a_heavy_pos_weight_costs_no_digits_of_likely_labels(path: str) -> None:
    """The side that weighs a millionth of the other has the loss: it is not a difference of large numbers."""
    chance, weight, score = 0.3, 1e7 / 3, torch.full((1, 1), 29.7, dtype=torch.float64)
    value = F.binary_loss(score, torch.full_like(score, chance), pos_weight=weight)
    expected = chance * weight * torch.exp(-score).log1p() + (1 - chance) * (score + torch.exp(-score).log1p())
    torch.testing.assert_close(value, expected.squeeze(), rtol=1e-14, atol=0)


def test_a_nan_in_a_label_matrix_names_what_takes_it() -> None:
    target = torch.tensor([[1.0, 0.0], [torch.nan, 1.0]])
    with pytest.raises(ValueError, match=r"target\[1, 0\] is nan: .* shortlist\.labels\.from_nan takes NaN as unknown"):
        F.binary_loss(torch.zeros(2, 2), target)
