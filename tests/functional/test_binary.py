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
