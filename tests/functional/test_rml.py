"""RML: WARP's weights on a bounded ramp."""

import pytest
import torch

import shortlist.functional as F
from tests.functional import oracles_multilabel as oracles
from tests.functional.harness import some_scores, some_target, value_and_gradient

SCORES, TARGET = some_scores(7, 6), some_target("rml", 7, 6)


@pytest.mark.parametrize("ramp", [-0.8, 0.5, -5.0])
@pytest.mark.parametrize("label_weight", [0.0, 1.0, 0.3])
def test_equals_the_formula_with_every_option(ramp: float, label_weight: float) -> None:
    actual = value_and_gradient(F.rml_loss, SCORES, TARGET, ramp=ramp, label_weight=label_weight)
    exact = value_and_gradient(oracles.rml, SCORES, TARGET, ramp=ramp, label_weight=label_weight)
    torch.testing.assert_close(actual, exact, rtol=1e-12, atol=1e-15)


def test_without_bound_and_label_term_it_is_exact_warp() -> None:
    ranking = F.rml_loss(SCORES, TARGET, ramp=-1e6, label_weight=0.0)
    torch.testing.assert_close(ranking, F.warp_loss(SCORES, TARGET, exact=True), rtol=1e-12, atol=0)


def test_a_hopelessly_wrong_label_stops_pulling() -> None:
    _, gradient = value_and_gradient(F.rml_loss, torch.tensor([[-50.0, 3.0, -9.0]]), torch.tensor([[1, 0, 0]]))
    assert not gradient.any()


@pytest.mark.parametrize(("option", "value"), [("ramp", 1.0), ("label_weight", -1.0)])
def test_options_out_of_range_are_refused(option: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{option} must"):
        F.rml_loss(SCORES, TARGET, **{option: value})
