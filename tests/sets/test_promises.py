"""Every promise of a set rule, as its docstring states it, over 1,000 draws of calibration data: from 20 to 2,000 rows,
scores with and without ties, classes that are absent from the calibration rows."""

import warnings
from functools import cache

import numpy as np
import pytest

from shortlist.errors import ShortlistWarning
from shortlist.sets import AverageK, Conformal, OnlineConformal, Risk, RiskControl
from shortlist.sets.risks import RISKS, find_risk

DRAWS, NEW, LABELS, ALPHA = 1000, 16, 5, 0.15
ROWS = [20, 35, 60, 100, 20, 200, 45, 20, 300, 2000]  # of the calibration data, in turn
RARE = 0.03  # how often class 4 comes: among 20 rows it is absent as often as not


@cache
def draws():
    """(calibration scores, their labels, new scores, their labels), the model being wrong in its own way."""
    rng, found = np.random.default_rng(7), []
    for i in range(DRAWS):
        n = ROWS[i % len(ROWS)] + NEW
        scores = rng.normal(size=(n, LABELS)) * 1.5
        scores[:, 4] += np.log(RARE * LABELS)
        target = (scores + rng.gumbel(size=scores.shape)).argmax(-1)
        scores[:, 0] -= 1  # unfair to class 0
        if i % 2:
            scores = scores.round()  # ties, within rows and between them
        found.append((scores[NEW:].astype(np.float32), target[NEW:], scores[:NEW].astype(np.float32), target[:NEW]))
    return found


def at_least(hits, seen, promised):
    """Is the share of hits at least what was promised, to within four standard errors? One entry for each draw; a draw
    is one observation, as its rows share their calibration."""
    hits, seen = np.asarray(hits, float), np.asarray(seen, float)
    share = hits.sum() / seen.sum()
    error = np.sqrt(((hits - share * seen) ** 2).sum()) / seen.sum()
    assert share >= promised - 4 * error, (share, error)
    assert error < 0.02
    return share, error


def fit(rule, *data, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortlistWarning)  # few rows are part of the test
        return rule.fit(*data, **more)


# The rule calibrates each draw as a group of its own, all of them at once (test_conformal.py checks that the sets of a
# group are those of its rows alone): the promise for every group is then that of each calibration.


def all_draws():
    calibration = [np.concatenate(part) for part in zip(*((a, b) for a, b, _, _ in draws()), strict=True)]
    new = [np.concatenate(part) for part in zip(*((a, b) for _, _, a, b in draws()), strict=True)]
    numbers = np.repeat(np.arange(DRAWS), [len(target) for _, target, _, _ in draws()])
    return calibration, numbers, new, np.repeat(np.arange(DRAWS), NEW)


def held_in(rule):
    (scores, target), draw, (new, truth), new_draw = all_draws()
    rule = fit(rule, scores, target, groups=draw)
    return rule, rule.predict(new, groups=new_draw).contains(truth), truth, new_draw


@pytest.mark.parametrize(
    ("score", "seed"),
    [("lac", None), ("margin", None), *((one, u) for one in ("aps", "raps", "saps", "top-k") for u in (None, 3))],
)
def test_conformal_sets_hold_the_label_as_often_as_promised(score, seed):
    _, held, _, draw = held_in(Conformal(ALPHA, score, seed=seed, by_group=True))
    share, _ = at_least(np.bincount(draw, held), np.bincount(draw), 1 - ALPHA)
    assert share <= 0.99  # and not by holding everything


def test_the_promise_for_every_class_and_group_holds_for_each():
    _, held, truth, draw = held_in(Conformal(ALPHA, per_class=True, by_group=True))
    for label in range(LABELS):
        own = truth == label
        at_least(np.bincount(draw[own], held[own], DRAWS), np.bincount(draw[own], minlength=DRAWS), 1 - ALPHA)


def test_the_promise_for_every_cluster_of_classes_holds_for_each():
    hits, seen = np.zeros((DRAWS, 4)), np.zeros((DRAWS, 4))
    for i, (scores, target, new, truth) in enumerate(draws()):
        rule = fit(Conformal(ALPHA, clusters=2), scores, target)
        cell = np.array([rule._cells.cluster_of.get(y, -1) for y in truth.tolist()]) + 1
        np.add.at(hits[i], cell, rule.predict(new).contains(truth))
        np.add.at(seen[i], cell, 1)
    assert (seen.sum(0)[:3] > 300).all()
    for cell in range(3):
        at_least(hits[:, cell], seen[:, cell], 1 - ALPHA)


def test_right_weights_keep_the_promise_where_the_rows_are_others():
    (scores, target), draw, (new, truth), new_draw = all_draws()
    # rows with a small third score are likelier among the new ones: these are drawn by their weight
    weight, new_weight = np.exp(-scores[:, 2].clip(-2, 2)), np.exp(-new[:, 2].clip(-2, 2))
    chosen = np.random.default_rng(1).random(len(new)) < new_weight / np.exp(2)
    rule = fit(Conformal(ALPHA, weighted=True, by_group=True), scores, target, groups=draw, weights=weight)
    held = rule.predict(new, groups=new_draw, weights=new_weight).contains(truth)[chosen]
    draw = new_draw[chosen]
    at_least(np.bincount(draw, held, DRAWS), np.bincount(draw, minlength=DRAWS), 1 - ALPHA)


@pytest.mark.parametrize("options", [{"score": "aps", "seed": 1}, {"per_class": True}, {"clusters": 2}], ids=str)
def test_p_values_of_true_labels_are_small_no_oftener_than_they_say(options):
    (scores, target), draw, (new, truth), new_draw = all_draws()
    rule = fit(Conformal(ALPHA, **options, by_group=True), scores, target, groups=draw)
    p = rule.p_values(new, groups=new_draw)
    assert np.array_equal(p > ALPHA, rule.predict(new, groups=new_draw).to_dense())
    for level in (0.05, 0.1, 0.3, 0.6):
        large = p[np.arange(len(new)), truth] > level
        at_least(np.bincount(new_draw, large), np.bincount(new_draw), 1 - level)


def test_online_sets_miss_within_the_bound_whatever_comes():
    rng = np.random.default_rng(3)
    for i, (scores, target, _, _) in enumerate(draws()):
        rule = fit(OnlineConformal(ALPHA, step=0.05), scores, target)
        stream = rng.normal(size=(300, LABELS)).astype(np.float32)
        truth = stream.argmin(-1) if i % 3 == 0 else rng.integers(0, LABELS, 300)  # the worst label, or any
        if i % 3 == 1:
            truth[100:] = stream[100:].argmax(-1)
        sets = rule.observe(stream, truth)
        missed = 1 - sets.contains(truth).mean()
        assert abs(missed - ALPHA) <= rule.bound(300) + 1e-12
        assert rule.missed == round(300 * missed)


# ---- several labels: rows are drawn from a finite population, so that the risk of any threshold is known exactly

SOME_ROWS = [20, 50, 120, 20, 300, 60, 20, 30, 40, 2000]


def rows_of(i, most=2000):
    """How many rows calibration i has. ``most``, for slow methods: more only in every hundredth calibration."""
    rows = SOME_ROWS[i % len(SOME_ROWS)]
    return rows if i % 100 == 9 else min(rows, most)


@cache
def population():
    rng = np.random.default_rng(5)
    scores = (3 * (rng.normal(size=(900, 4)) * 2 - 0.5)).round() / 3
    scores[450:] += rng.normal(size=(450, 4)) / 9  # half of the rows with ties
    target = (rng.random(scores.shape) < 1 / (1 + np.exp(-2 * scores))).astype(np.int8)
    target[rng.random(scores.shape) < 0.1] = -1
    target[:, 3] = np.where(rng.random(900) < 0.95, 0, target[:, 3])  # a rare label
    return scores.astype(np.float32), target


def risks_of(rule, most=2000):
    """The risk that each of 1,000 calibrations has on the whole population."""
    scores, target = population()
    rng, found = np.random.default_rng(9), []
    risks = [find_risk(one) for one in (rule["risk"] if isinstance(rule["risk"], list) else [rule["risk"]])]
    for i in range(DRAWS):
        rows = rng.integers(0, len(scores), rows_of(i, most))
        made = fit(RiskControl(**rule), scores[rows], target[rows])
        inside = np.zeros_like(target, bool) if made.threshold is None else made.predict(scores).to_dense()
        known = (target >= 0).any(-1)
        # where no threshold keeps the promise the rule gives no sets, and breaks none
        none = made.threshold is None
        found.append([0.0 if none else risk.losses(inside, target)[known].mean() for risk in risks])
    return np.array(found)


def test_conformal_sets_of_several_labels_miss_no_larger_share_than_promised():
    scores, target = population()
    rng, found = np.random.default_rng(9), []
    for i in range(DRAWS):
        rows = rng.integers(0, len(scores), rows_of(i))
        rule = fit(Conformal(ALPHA, labels="multi"), scores[rows], target[rows])
        missed = RISKS["recall"].losses(rule.predict(scores).to_dense(), target)
        found.append(missed[(target >= 0).any(-1)].mean())
    assert np.mean(found) <= ALPHA + 4 * np.std(found) / np.sqrt(DRAWS)
    assert np.mean(found) >= 0.4 * ALPHA  # and not by holding everything


def test_conformal_sets_hold_a_vote_as_often_as_promised():
    scores, _ = population()
    rng, found = np.random.default_rng(4), []
    votes = rng.multinomial(5, np.full(4, 0.25), len(scores)) + (scores > 1)  # people who know less than the model
    shares = votes / votes.sum(-1, keepdims=True)
    for i in range(DRAWS):
        rows = rng.integers(0, len(scores), rows_of(i))
        rule = fit(Conformal(ALPHA, ["lac", "aps"][i % 2], labels="votes"), scores[rows], votes[rows])
        found.append((shares * rule.predict(scores).to_dense()).sum(-1).mean())
    assert np.mean(found) >= 1 - ALPHA - 4 * np.std(found) / np.sqrt(DRAWS)
    assert np.mean(found) <= 0.99


def test_a_risk_of_ones_own_is_above_its_level_in_at_most_delta_of_the_calibrations():
    def far_off(inside, target):
        """Whether the size of the set differs from the number of right labels by two or more."""
        return (abs(inside.sum(-1) - (target == 1).sum(-1)) >= 2).astype(float)

    scores, target = population()
    rng, found = np.random.default_rng(9), []
    for i in range(DRAWS):
        rows = rng.integers(0, len(scores), rows_of(i, 120))
        made = fit(RiskControl(far_off, 0.4, 0.2), scores[rows], target[rows])
        inside = None if made.threshold is None else made.predict(scores).to_dense()
        found.append(0.0 if inside is None else far_off(inside, target)[(target >= 0).any(-1)].mean())
    violated = np.mean(np.array(found) > 0.4)
    assert violated <= 0.2 + 4 * np.sqrt(0.16 / DRAWS)
    assert max(found) > 0


# functions of the user: is any right label missing, or any wrong one there?
ANY_MISSED = Risk("any-missed", of_sets=lambda inside, target: (~inside & (target == 1)).any(-1), grows=False)
ANY_WRONG = Risk("any-wrong", of_sets=lambda inside, target: (inside & (target == 0)).any(-1), grows=True)
IN_EXPECTATION = [
    ({"risk": "recall", "alpha": 0.15}, 2000),
    ({"risk": "false-positives", "alpha": 0.4}, 2000),
    ({"risk": "false-positives", "alpha": 0.4, "max_size": 2}, 300),
    ({"risk": ANY_MISSED, "alpha": 0.25}, 120),
    ({"risk": ANY_WRONG, "alpha": 0.25}, 120),
]


@pytest.mark.parametrize(("rule", "most"), IN_EXPECTATION, ids=str)
def test_the_expected_risk_is_below_its_level_on_average_over_calibrations(rule, most):
    found = risks_of(rule, most=most)[:, 0]
    error = found.std() / np.sqrt(DRAWS)
    assert found.mean() <= rule["alpha"] + 4 * error
    assert found.mean() >= 0.4 * rule["alpha"]  # and not by sets that are always safe


@pytest.mark.parametrize(
    ("rule", "most"),
    [
        ({"risk": "recall", "alpha": 0.2, "delta": 0.2}, 2000),
        ({"risk": "recall", "alpha": 0.2, "delta": 0.2, "bound": "waudby-smith-ramdas"}, 120),
        ({"risk": "false-positives", "alpha": 0.6, "delta": 0.2}, 2000),
        ({"risk": "false-positives", "alpha": 0.6, "delta": 0.2, "max_size": 2}, 300),
        ({"risk": "precision", "alpha": 0.2, "delta": 0.2}, 2000),
        ({"risk": "f1", "alpha": 0.4, "delta": 0.2}, 2000),
        ({"risk": ["recall", "precision"], "alpha": [0.45, 0.45], "delta": 0.2}, 2000),
        ({"risk": "precision", "alpha": 0.2, "delta": 0.2, "bound": "waudby-smith-ramdas"}, 120),
        ({"risk": "f1", "alpha": 0.4, "delta": 0.2, "bound": "waudby-smith-ramdas"}, 300),
        ({"risk": ANY_MISSED, "alpha": 0.35, "delta": 0.2}, 120),
        ({"risk": [ANY_MISSED, ANY_WRONG], "alpha": [0.6, 0.6], "delta": 0.2}, 120),
    ],
    ids=str,
)
def test_the_risk_is_above_its_level_in_at_most_delta_of_the_calibrations(rule, most):
    found = risks_of(rule, most=most)
    violated = (found > np.array(rule["alpha"]) + 1e-12).any(-1).mean()
    assert violated <= rule["delta"] + 4 * np.sqrt(rule["delta"] * (1 - rule["delta"]) / DRAWS)
    assert (found > 0).any()


@pytest.mark.parametrize(
    ("risk", "delta"), [("recall", None), ("recall", 0.2), ("false-positives", None), ("false-positives", 0.2)]
)
def test_the_promise_for_every_label_holds_for_each(risk, delta):
    scores, target = population()
    rng, found = np.random.default_rng(9), []
    for i in range(DRAWS):
        rows = rng.integers(0, len(scores), rows_of(i))
        made = fit(RiskControl(risk, 0.2, delta, per_label=True), scores[rows], target[rows])
        inside = made.predict(scores).to_dense()
        wrong, of = (~inside, target == 1) if risk == "recall" else (inside, target == 0)
        found.append((wrong & of).sum(0) / of.sum(0))
    found = np.array(found)
    if delta is None:
        assert (found.mean(0) <= 0.2 + 4 * found.std(0) / np.sqrt(DRAWS)).all()
    else:
        assert ((found > 0.2).mean(0) <= delta + 4 * np.sqrt(delta * (1 - delta) / DRAWS)).all()


def test_the_mean_size_of_new_sets_is_above_k_in_at_most_one_minus_confidence_of_the_calibrations():
    scores, _ = population()
    rng, found = np.random.default_rng(2), []
    for i in range(DRAWS):
        rows = rng.integers(0, len(scores), rows_of(i))
        rule = fit(AverageK(1.8, link="sigmoid", min_size=i % 3 % 2, max_size=3, confidence=0.8), scores[rows])
        found.append(rule.predict(scores).sizes.mean())
    above = (np.array(found) > 1.8).mean()
    assert above <= 0.2 + 4 * np.sqrt(0.16 / DRAWS)
    assert np.mean(found) > 1.2
