"""The partial selective loss: which unknown labels count as absent."""

import pytest
import torch

import shortlist.functional as F
from tests.functional import oracles_multilabel as oracles
from tests.functional.harness import some_scores, some_target, value_and_gradient

SCORES, TARGET = some_scores(9, 8), some_target("partial_selective", 9, 8)
PRIOR = torch.tensor([0.01, 0.3, 0.02, 0.04, 0.06, 0.2, 0.001, 0.049])


@pytest.mark.parametrize("mode", ["selective", "ignore", "negative"])
@pytest.mark.parametrize("prior", [None, PRIOR])
@pytest.mark.parametrize("likelihood_topk", [0, 2, 5, 50])
def test_equals_the_formula_with_every_rule(
    mode: str, prior: torch.Tensor | None, likelihood_topk: int, kernel: str
) -> None:
    options = {"mode": mode, "prior": prior, "likelihood_topk": likelihood_topk, "clip": 0.02, "gamma_pos": 0.5}
    actual = value_and_gradient(F.partial_selective_loss, SCORES, TARGET, **options)
    exact = value_and_gradient(oracles.partial_selective, SCORES, TARGET, **options)
    torch.testing.assert_close(actual, exact, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("score", [0.0, -float("inf")])
def test_equal_scores_are_ignored_from_the_lowest_label_on(score: float, path: str) -> None:
    target, scores = torch.tensor([[-1, 0, -1, -1, -1]]), torch.full((1, 5), score)
    scores[0, 1] = 0.0
    _, gradient = value_and_gradient(F.partial_selective_loss, scores, target, likelihood_topk=2)
    counted = [False, True, False, score == 0, score == 0]
    assert (gradient != 0).tolist() == [counted]
    known = torch.tensor([[0, 0, 0, 0, 0]])[:, counted]  # only labels 1, 3 and 4 count, whatever they cost
    mean = F.partial_selective_loss(scores, target, likelihood_topk=2, gamma_unknown=0.0, gamma_neg=0.0)
    torch.testing.assert_close(mean, known.shape[1] / 3 * torch.tensor(2.0).log())


def test_a_nan_is_less_likely_than_any_score(path: str) -> None:
    scores, target = torch.tensor([[float("nan"), -float("inf"), 1.0]]), torch.full((1, 3), -1)
    loss, gradient = value_and_gradient(F.partial_selective_loss, scores, target, likelihood_topk=2)
    assert loss.isnan()
    assert gradient.isnan().tolist() == [[True, False, False]]
    loss, gradient = value_and_gradient(F.partial_selective_loss, scores, target, likelihood_topk=3)
    assert loss == 0
    assert not gradient.any()


def test_ignoring_unknown_labels_is_the_asymmetric_loss(path: str) -> None:
    focus = {"gamma_neg": 1.0, "gamma_pos": 0.0, "clip": 0.0}
    ignoring = F.partial_selective_loss(SCORES, TARGET, mode="ignore", **focus)
    assert torch.equal(ignoring, F.asymmetric_loss(SCORES, TARGET, **focus))


def test_the_choice_of_ignored_labels_is_the_same_at_any_extra_batch_dimension() -> None:
    options = {"likelihood_topk": 2, "reduction": "none"}
    twice = F.partial_selective_loss(SCORES.expand(2, 9, 8), TARGET.expand(2, 9, 8), **options)
    assert torch.equal(twice[1], F.partial_selective_loss(SCORES, TARGET, **options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "guess"}, "mode must be 'selective', 'ignore' or 'negative', got 'guess'"),
        ({"likelihood_topk": -1}, "likelihood_topk must be a whole number of at least 0, got -1"),
        ({"prior": torch.ones(3)}, r"prior must be of shape \(8,\), one per label, got \(3,\)"),
        ({"gamma_unknown": -1.0}, "gamma_unknown must be"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        F.partial_selective_loss(SCORES, TARGET, **options)
