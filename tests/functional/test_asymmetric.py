"""ASL: its options, its identity with binary cross-entropy, and the two gradients."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import shortlist.functional as F
from tests.functional import oracles_multilabel as oracles
from tests.functional.harness import some_scores, some_target, value_and_gradient

SCORES, TARGET = some_scores(7, 6, scale=2.0), some_target("asymmetric", 7, 6)


@pytest.mark.parametrize("detach_focus", [False, True])
@pytest.mark.parametrize("clip", [0.0, 0.05, 0.3])
@pytest.mark.parametrize(("gamma_pos", "gamma_neg"), [(0.0, 0.0), (1.0, 4.0), (0.5, 0.3), (2.0, 1.0)])
def test_equals_the_formula_with_every_option(
    gamma_pos: float, gamma_neg: float, clip: float, detach_focus: bool, kernel: str
) -> None:
    options = {"gamma_pos": gamma_pos, "gamma_neg": gamma_neg, "clip": clip, "detach_focus": detach_focus}
    actual = value_and_gradient(F.asymmetric_loss, SCORES, TARGET, **options)
    exact = value_and_gradient(oracles.asymmetric, SCORES, TARGET, **options)
    torch.testing.assert_close(actual, exact, rtol=1e-12, atol=1e-15)


def test_without_focus_and_clip_it_is_binary_cross_entropy(path: str) -> None:
    options = {"gamma_pos": 0.0, "gamma_neg": 0.0, "clip": 0.0}
    actual = value_and_gradient(F.asymmetric_loss, SCORES, TARGET, **options)
    torch.testing.assert_close(actual, value_and_gradient(F.binary_loss, SCORES, TARGET), rtol=1e-13, atol=1e-16)


def test_detaching_the_focus_changes_the_gradient_alone(path: str) -> None:
    true_value, true_gradient = value_and_gradient(F.asymmetric_loss, SCORES, TARGET)
    value, gradient = value_and_gradient(F.asymmetric_loss, SCORES, TARGET, detach_focus=True)
    assert torch.equal(value, true_value)
    assert not torch.allclose(gradient, true_gradient, rtol=0.1)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("clip", [0.0, 0.05])
def test_saturated_and_infinite_scores_have_finite_gradients(gamma: float, clip: float, path: str) -> None:
    scores = torch.tensor([[-1e4, -float("inf"), -100.0, 0.0, 100.0, 1e4]])
    for target in (torch.zeros(1, 6), torch.tensor([[0.0, 0.0, 1.0, 1.0, 1.0, 1.0]])):
        _, gradient = value_and_gradient(
            F.asymmetric_loss, scores, target, gamma_neg=gamma, gamma_pos=gamma, clip=clip
        )
        assert bool(gradient.isfinite().all())


@pytest.mark.parametrize(("option", "value"), [("gamma_neg", -1.0), ("gamma_pos", float("nan")), ("clip", 1.0)])
def test_options_out_of_range_are_refused(option: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{option} must be"):
        F.asymmetric_loss(SCORES, TARGET, **{option: value})


@pytest.mark.parametrize("clip", [1e-9, 1e-6, 1e-4, 1e-3])
@pytest.mark.parametrize("loss", [F.asymmetric_loss, F.partial_selective_loss])
def test_a_small_clip_costs_no_digits(loss: Callable[..., Tensor], clip: float, path: str) -> None:
    scores, target = torch.tensor([[-3.0, 4.0, 10.0, 16.0, 18.0, 40.0]]), torch.zeros(1, 6, dtype=torch.int8)
    found = value_and_gradient(loss, scores, target, clip=clip)
    exact = value_and_gradient(loss, scores.double(), target, clip=clip)
    torch.testing.assert_close(found, (exact[0].float(), exact[1].float()), rtol=2e-5, atol=1e-7)
