"""Calibrated probabilities as links: against independent fits, on a model that is too sure, and to JSON and back."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from shortlist.errors import ShortlistError
from shortlist.links import ScaledLink, link_rows
from shortlist.metrics import functional as M
from shortlist.named import Named
from shortlist.sets import AverageK, Conformal, RiskControl, SetRule, fit_scaling
from shortlist.sets.named import fit_rules


def one_label(rows=3000, labels=6, sure=2.5):
    """A model that is too sure of itself, and wrongly fond of label 0."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(rows, labels))
    target = (scores + rng.gumbel(size=scores.shape)).argmax(-1)
    return (sure * scores + np.eye(labels)[0]).astype(np.float32), target


def several_labels(rows=3000, labels=4):
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(rows, labels))
    target = (rng.random(scores.shape) < 1 / (1 + np.exp(-scores))).astype(np.int8)
    target[rng.random(scores.shape) < 0.1] = -1
    return (scores * [1, 2, 3, 4] + [0, 0, 1, -1]).astype(np.float32), target


@pytest.mark.parametrize("kind", ["temperature", "vector", "isotonic"])
@pytest.mark.parametrize("data", [one_label, several_labels])
def test_probabilities_of_new_rows_are_nearer_to_what_happens(kind, data):
    scores, target = data()
    base = "softmax" if target.ndim == 1 else "sigmoid"
    link = fit_scaling(kind, scores[:1500], target[:1500])
    before = M.calibration_error(scores[1500:], torch.from_numpy(target[1500:]), link=base)
    after = M.calibration_error(scores[1500:], torch.from_numpy(target[1500:]), link=link)
    assert after < (0.5 if kind != "temperature" else 0.8) * before
    assert kind == "temperature" or after < 0.04
    p = link_rows(scores, link)
    assert p.dtype == np.float32
    if base == "softmax":
        assert np.allclose(p.sum(-1), 1, atol=1e-5)


def test_the_temperature_is_the_most_likely_one():
    scores, target = one_label()
    found = fit_scaling("temperature", scores, target).scale[0]
    loss = [
        torch.nn.functional.cross_entropy(torch.from_numpy(scores) * scale, torch.from_numpy(target)).item()
        for scale in (found / 1.02, found, found * 1.02)
    ]
    assert loss[1] == min(loss)


def test_an_offset_of_the_scores_leaves_the_temperature_alone() -> None:
    scores = torch.randn(500, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    labels = scores.argmax(-1).roll(1)
    plain, far = (fit_scaling("temperature", scores + offset, labels).scale[0] for offset in (0.0, -1e5))
    assert abs(plain - far) < 1e-6 < abs(plain - 1)


def test_vector_scaling_of_a_label_is_logistic_regression_and_isotonic_scaling_is_sklearns():
    scores, target = several_labels()
    link = fit_scaling("vector", scores, target)
    maps = fit_scaling("isotonic", scores, target)
    p = link_rows(scores, "sigmoid").astype(np.float64)
    for label in range(4):
        known = target[:, label] >= 0
        fit = LogisticRegression(C=1e6).fit(scores[known, label][:, None], target[known, label])
        assert link.scale[label] == pytest.approx(fit.coef_[0, 0], rel=0.01)
        assert link.shift[label] == pytest.approx(fit.intercept_[0], abs=0.02)
        theirs = IsotonicRegression(out_of_bounds="clip").fit(p[known, label], target[known, label])
        assert np.allclose(link_rows(scores, maps)[known, label], theirs.predict(p[known, label]), atol=1e-4)


def test_a_rule_with_a_scaled_link_goes_to_json_and_back():
    scores, target = one_label(400)
    for kind in ("temperature", "vector", "isotonic"):
        link = fit_scaling(kind, scores[:200], target[:200])
        for rule in (AverageK(2, link=link), Conformal(0.2, "aps", link=link), RiskControl("recall", 0.2, link=link)):
            rule.fit(scores[200:], target[200:])
            again = SetRule.from_json(rule.to_json())
            assert again.link == link
            assert again.to_json() == rule.to_json()
            assert again.predict(scores) == rule.predict(scores)
            assert again.merge(rule).predict(scores).num_labels == 6
    assert "ScaledLink(isotonic of softmax)" in repr(rule)


def test_scaling_by_name_leaves_the_rule_rows_of_its_own():
    scores, target = (torch.from_numpy(part) for part in one_label(800))
    rules = [Named.of("conformal", alpha=0.2, scaling="vector"), Named.of("conformal", alpha=0.2)]
    fitted = fit_rules(rules, scores, target, "softmax")
    assert list(fitted) == ["conformal-0.2-vector", "conformal-0.2"]
    link = fit_scaling("vector", scores[::2], target[::2])
    expected = Conformal(0.2, link=link).fit(scores[1::2], target[1::2])
    assert fitted["conformal-0.2-vector"].predict(scores) == expected.predict(scores)


def test_what_cannot_be_scaled_is_refused():
    scores, target = one_label(100)
    with pytest.raises(ValueError, match="scaling must be one of 'temperature', 'vector', 'isotonic', got 'platt'"):
        fit_scaling("platt", scores, target)
    with pytest.raises(ValueError, match="with link='none' there are no probabilities"):
        fit_scaling("vector", scores, target, "none")
    with pytest.raises(ValueError, match="fitted on rows and their labels"):
        fit_scaling("vector", scores, None)
    with pytest.raises(ValueError, match="the scaling of the link has 6 labels, these scores have 3"):
        AverageK(2, link=fit_scaling("vector", scores, target)).fit(scores[:, :3])
    with pytest.raises(ValueError, match="numbers of the vector scaling do not fit together"):
        ScaledLink("vector", "softmax", (1.0,), (0.0, 0.0))
    with pytest.raises(ValueError, match=r"rules\.0: scaling calibrates the link of a rule"):
        fit_rules([Named.of("top-k", k=2, scaling="vector")], scores, target, "softmax")


@pytest.mark.parametrize("kind", ["temperature", "vector", "isotonic"])
def test_a_nan_among_the_scores_is_named(kind: Any) -> None:
    scores = np.zeros((3, 2))
    scores[1, 1] = np.nan
    with pytest.raises(ShortlistError, match="row 1, label 1 is NaN"):
        fit_scaling(kind, scores, np.array([0, 1, 0]))
