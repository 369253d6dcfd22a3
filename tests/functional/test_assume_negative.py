"""Assume negative (seed 004, eq. 5): its options and identities."""

import pytest
import torch

import shortlist.functional as F
from tests.functional import oracles_multilabel as oracles
from tests.functional.harness import some_scores, some_target, value_and_gradient

SCORES, TARGET = some_scores(7, 6), some_target("assume_negative", 7, 6)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1, 1.0])
def test_equals_the_formula_with_every_option(weighted: bool, label_smoothing: float, kernel: str) -> None:
    options = {"weighted": weighted, "label_smoothing": label_smoothing}
    actual = value_and_gradient(F.assume_negative_loss, SCORES, TARGET, **options)
    exact = value_and_gradient(oracles.assume_negative, SCORES, TARGET, **options)
    torch.testing.assert_close(actual, exact, rtol=1e-13, atol=1e-16)


def test_unweighted_it_is_the_binary_cross_entropy_of_the_one_hot_target(path: str) -> None:
    target = TARGET.clamp(min=0)
    matrix = torch.nn.functional.one_hot(target, 6)
    expected = F.binary_loss(SCORES, matrix, reduction="none").sum(-1)
    torch.testing.assert_close(F.assume_negative_loss(SCORES, target, weighted=False, reduction="none"), expected)


def test_weighted_absent_labels_count_together_as_much_as_the_present_one(path: str) -> None:
    loss = F.assume_negative_loss(torch.zeros(1, 9), torch.tensor([4]))
    torch.testing.assert_close(loss, 2 * torch.tensor(2.0).log())


def test_a_row_of_one_label_has_no_absent_term(path: str) -> None:
    assert F.assume_negative_loss(torch.zeros(1, 1), torch.tensor([0])) == torch.tensor(2.0).log()


def test_smoothing_outside_0_and_1_is_refused() -> None:
    with pytest.raises(ValueError, match=r"label_smoothing must be between 0 and 1, got 1\.5"):
        F.assume_negative_loss(SCORES, TARGET, label_smoothing=1.5)
