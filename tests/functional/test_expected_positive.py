"""Expected positive regularisation (seed 004, eq. 8) and Cole's normalisation."""

import pytest
import torch

import shortlist.functional as F
from tests.functional import oracles_multilabel as oracles
from tests.functional.harness import some_scores, some_target, value_and_gradient

SCORES, TARGET = some_scores(7, 6), some_target("expected_positive", 7, 6)


@pytest.mark.parametrize("k", [0.5, 2, 6])
@pytest.mark.parametrize("beta", [0.0, 0.01, 3.0])
@pytest.mark.parametrize("normalize", [False, True])
def test_equals_the_formula_with_every_option(k: float, beta: float, normalize: bool) -> None:
    actual = value_and_gradient(F.expected_positive_loss, SCORES, TARGET, k, beta=beta, normalize=normalize)
    exact = value_and_gradient(oracles.expected_positive, SCORES, TARGET, k, beta=beta, normalize=normalize)
    torch.testing.assert_close(actual, exact, rtol=1e-12, atol=1e-16)


def test_the_sum_is_the_mean_times_the_observed_rows() -> None:
    total = F.expected_positive_loss(SCORES, TARGET, 2, reduction="sum")
    torch.testing.assert_close(total, 6 * F.expected_positive_loss(SCORES, TARGET, 2))


def test_half_chances_meet_an_expectation_of_half_the_labels() -> None:
    loss = F.expected_positive_loss(torch.zeros(3, 8), torch.tensor([0, 1, 2]), k=4, beta=100.0)
    torch.testing.assert_close(loss, torch.tensor(2.0).log())


@pytest.mark.parametrize("k", [0, -1.0, 6.5])
def test_an_impossible_k_is_refused(k: float) -> None:
    with pytest.raises(ValueError, match="k must be above 0 and at most 6"):
        F.expected_positive_loss(SCORES, TARGET, k)
