"""Partial binary cross-entropy: the weight of rows with few known labels."""

import pytest
import torch

import shortlist.functional as F
from tests.functional import oracles_multilabel as oracles
from tests.functional.harness import some_scores, some_target, value_and_gradient


@pytest.mark.parametrize("boost", [1.0, 5.0, 20.0])
def test_equals_the_formula_at_any_boost(boost: float, kernel: str) -> None:
    scores, target = some_scores(7, 6), some_target("partial_binary", 7, 6)
    actual = value_and_gradient(F.partial_binary_loss, scores, target, boost=boost)
    exact = value_and_gradient(oracles.partial_binary, scores, target, boost=boost)
    torch.testing.assert_close(actual, exact, rtol=1e-13, atol=1e-16)


def test_a_row_with_a_tenth_of_its_labels_known_counts_each_five_times() -> None:
    target = torch.full((1, 10), -1)
    target[0, 3] = 1
    torch.testing.assert_close(F.partial_binary_loss(torch.zeros(1, 10), target), 5 / 10 * torch.tensor(2.0).log())


def test_with_every_label_known_it_is_binary_cross_entropy() -> None:
    scores, target = some_scores(7, 6), some_target("partial_binary", 7, 6).clamp(min=0)
    torch.testing.assert_close(F.partial_binary_loss(scores, target), F.binary_loss(scores, target))


def test_a_boost_that_is_not_positive_is_refused() -> None:
    with pytest.raises(ValueError, match="boost must be a positive finite number"):
        F.partial_binary_loss(torch.zeros(1, 2), torch.zeros(1, 2), boost=0.0)
