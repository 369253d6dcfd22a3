"""What the report says of promises and probabilities."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import betabinom

from shortlist.labels import LabelSets
from shortlist.metrics.functional import calibration_error, set_summary
from shortlist.metrics.functional.set_summary import Estimate
from shortlist.reports.chance import chance_of_at_most, is_missed
from shortlist.reports.contents import contents
from shortlist.reports.data import from_scores, seeds_by_name
from shortlist.reports.page import render
from shortlist.reports.promises import kept, promises
from shortlist.sets import AverageK, Conformal, OnlineConformal, RiskControl, fit_scaling


def some_data(shift=0.0):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(1000, 5)).astype(np.float32)
    target = (scores + rng.gumbel(size=scores.shape)).argmax(-1)
    sure = 3 * scores  # a model that is too sure
    rules = {
        "nine in ten": Conformal(0.1).fit(sure[:500], target[:500]),
        "two at most": AverageK(2, max_size=4, confidence=0.9).fit(sure[:500]),
        "two": AverageK(2).fit(sure[:500]),
    }
    new = sure[500:] + shift * np.eye(5, dtype=np.float32)[0]
    names = ["<ant>", "bee", "cat", "dog", "eel"]
    return from_scores(new, target[500:], names, rules=rules, calibration=sure[:500])


def test_promises_and_how_they_are_kept_are_said_in_words():
    data = some_data()
    [found] = promises(seeds_by_name(data.runs), data)
    assert [rule["rule"] for rule in found["rules"]] == ["nine in ten", "two at most"]
    text = " ".join(found["rules"][0]["said"])
    assert "It promises: the set holds the right label of at least 90.0% of the examples" in text
    for part in ("Of the labels with 20 examples or more", "By size, sets of", "In the worst tenth of the examples"):
        assert part in text
    assert "At least 90.0\u202f% is promised: it is missed here by no more than chance may do" in text
    assert "it costs" in found["rules"][1]["said"][0]
    assert found["alike"].startswith("The scores look like those of the calibration examples (p = ")


def test_it_is_said_whether_a_promise_is_kept():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(800, 4)).astype(np.float32)
    target = (rng.random(scores.shape) < 1 / (1 + np.exp(-scores))).astype(np.int64)
    target[:5] = -1
    rules = {
        "both": RiskControl(["recall", "precision"], [0.4, 0.6], 0.1).fit(scores, target),
        "each": RiskControl("recall", 0.1, per_label=True).fit(scores, target),
        "small": AverageK(2, "sigmoid", max_size=3, confidence=0.9).fit(scores - 3),
    }
    data = from_scores(scores, target, list("abcd"), rules=rules, link="sigmoid")
    [found] = promises(seeds_by_name(data.runs), data)
    said = {rule["rule"]: rule["said"] for rule in found["rules"]}
    inside, known = rules["both"].predict(scores).to_dense(), (target >= 0).any(1)
    right = (target == 1).sum(1)
    missed = np.where(right > 0, (~inside & (target == 1)).sum(1) / np.maximum(right, 1), 0)[known].mean()
    assert said["both"][2].startswith(
        f"Here the share of an example's right labels that is missed is {missed:.3f} on average ("
    )
    assert said["both"][2].endswith("At most 0.4 is promised: that is kept here.")
    assert "the share of a set that is wrong is" in said["both"][3]
    assert not any("is promised" in line for line in said["each"])
    nothing = "of an example's right labels; where an example has no right label, none is missed."
    assert nothing in " ".join(said["each"])
    assert "At most 2 labels are promised: it is missed here by more than chance" in " ".join(said["small"])


def test_a_promise_may_be_missed_by_chance():
    rule, sets = Conformal(0.1).fit(np.eye(2)[[0] * 50], np.zeros(50, int)), LabelSets([0, 1], [0], num_labels=2)
    few = kept(rule, sets, np.zeros(200, int), Estimate(0.83, 0.78, 0.88), Estimate(1, 1, 1))
    assert few == [
        "At least 90.0\u202f% is promised: it is missed here by no more than chance may do in so few examples, or in "
        "so few of calibration."
    ]
    many = Conformal(0.1).fit(np.eye(2)[[0] * 5000], np.zeros(5000, int))
    assert "by more than chance" in kept(many, sets, np.zeros(200, int), Estimate(0.83, 0.78, 0.88), few)[0]
    assert kept(OnlineConformal(0.1), sets, np.zeros(1, int), Estimate(0.89, 0.85, 0.92), Estimate(1, 1, 1)) == []


def test_the_chance_of_so_few_hits_is_the_beta_binomial_tail():
    cases = ((696, 800, 320, 0.1), (0, 3, 9, 0.1), (40, 50, 30, 0.3), (500, 600, 19, 0.05))
    for hits, rows, calibrated, alpha in cases:
        rank = math.ceil(round((calibrated + 1) * (1 - alpha), 9))
        exact = betabinom(rows, rank, calibrated + 1 - rank).cdf(hits)
        assert chance_of_at_most(hits, rows, calibrated, alpha) == pytest.approx(exact, rel=1e-9)
    assert [chance_of_at_most(hits, 5, 8, 0.1) for hits in (4, 5)] == [0.0, 1.0]  # every label is in every set


@pytest.mark.parametrize("labels", ["single", "multi"])
def test_a_promise_is_said_to_be_missed_about_once_in_forty_where_examples_are_alike(labels):
    rng, missed = np.random.default_rng(3), 0
    for _ in range(400):
        scores = rng.normal(size=(300, 5)).astype(np.float32)
        target = (scores + rng.gumbel(size=scores.shape)).argmax(-1)
        if labels == "multi":
            target = (rng.random(scores.shape) < 1 / (1 + np.exp(-scores))).astype(int)
        rule = Conformal(0.2, labels=labels).fit(scores[:100], target[:100])
        held = set_summary(rule.predict(scores[100:]), target[100:])["coverage"]
        missed += is_missed(rule, held, 200)
    assert 1 <= missed <= 20  # without the noise of calibration it was 54 and 35


def test_scores_that_differ_from_the_calibration_ones_are_told():
    data = some_data(shift=3.0)
    [found] = promises(seeds_by_name(data.runs), data)
    assert found["alike"].startswith("The scores do not look like those of the calibration examples (p < 0.001)")


def test_the_reliability_of_a_model_that_is_too_sure_is_drawn_and_said():
    data = some_data()
    [found] = promises(seeds_by_name(data.runs), data)
    assert "on the whole the model is too sure" in found["error"]
    assert "scaling=temperature" in found["error"]
    assert found["reliability"].startswith("<svg")
    page = render(contents(data), [])
    assert "Promises and probabilities" in page
    assert found["reliability"] in page
    assert "<ant>" not in page


@pytest.mark.parametrize(("factor", "leaning"), [(3.0, "too sure"), (0.3, "not sure enough")])
def test_of_several_labels_low_probabilities_are_sure_too(factor, leaning):
    rng = np.random.default_rng(0)
    odds = rng.normal(-4, 1.5, size=(2000, 5)).astype(np.float32)  # most labels are absent
    target = (rng.random(odds.shape) < 1 / (1 + np.exp(-odds))).astype(np.int64)
    scores = -4 + factor * (odds + 4)  # as often present on the whole, more or less
    data = from_scores(scores, target, list("abcde"), link="sigmoid")
    [found] = promises(seeds_by_name(data.runs), data)
    assert f"on the whole the model is {leaning}" in found["error"]


def test_the_error_that_a_scaling_leaves_is_said():
    data = some_data()
    run = data.runs[0]
    link = fit_scaling("temperature", run.calibration, run.calibration.argmax(1))  # surer still
    rules = {**run.rules, "scaled": Conformal(0.1, link=link).fit(run.scores, run.target)}
    [found] = promises({"scores": [replace(run, rules=rules)]}, data)
    left = 100 * float(calibration_error(run.scores, run.target, link=link))
    assert f"With the temperature scaling of scaled it is {left:.1f} percentage points" in found["error"]
    assert "calibrates the probabilities first" not in found["error"]
