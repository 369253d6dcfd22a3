"""Conformal: definitions against brute force and mapie, and the promises over many draws."""

import math
import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist.errors import ShortlistError, ShortlistWarning
from shortlist.sets import Conformal, OnlineConformal, SetRule
from tests.sets.oracles import (
    aps,
    conformal_limit,
    lac,
    margin,
    rank_of,
    raps,
    risk_threshold,
    saps,
    softmax,
    weighted_limit,
)


def draw(rows, labels, rng, scale=1.5):
    """Scores, and labels drawn from their softmax."""
    scores = rng.normal(size=(rows, labels)) * scale
    return scores, (scores + rng.gumbel(size=scores.shape)).argmax(-1)


def score_of(name):
    return {
        "lac": lac,
        "aps": aps,
        "raps": lambda p, y: raps(p, y, penalty=0.05, free_rank=2),
        "saps": lambda p, y: saps(p, y, weight=0.05),
        "top-k": lambda p, y: rank_of(p, y) - 1,
        "margin": margin,
    }[name]


ALL = ["lac", "aps", "raps", "saps", "top-k", "margin"]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(("n", "alpha"), [(1, 0.5), (9, 0.1), (8, 0.1), (9, 0.7), (50, 0.25), (200, 0.05), (99, 0.31)])
def test_sets_are_those_of_the_definition(name, n, alpha):
    rng = np.random.default_rng(n)
    scores, target = draw(n + 30, 6, rng)
    rule = Conformal(alpha, score=name, penalty=0.05, free_rank=2).fit(scores[:n], target[:n])
    score = score_of(name)
    p = [softmax(row) for row in scores]
    limit = conformal_limit([score(p[i], target[i]) for i in range(n)], alpha)
    for i, labels in enumerate(rule.predict(scores).to_lists()):
        clear = [y for y in range(6) if abs(score(p[i], y) - limit) > 1e-12]
        assert [y for y in labels if y in clear] == [y for y in clear if score(p[i], y) < limit]
        if name == "top-k":  # ranks are whole numbers: those on the limit are in
            assert labels == [y for y in range(6) if score(p[i], y) <= limit]
    # the calibration row that sets the limit is itself covered: at least r of n are
    covered = rule.predict(scores[:n]).contains(target[:n]).sum()
    assert covered >= min(n, math.ceil((n + 1) * (1 - alpha) - 1e-9))


@pytest.mark.parametrize("name", ALL)
def test_per_class_limits_are_those_of_each_class_alone(name):
    rng = np.random.default_rng(5)
    scores, target = draw(430, 5, rng)
    target[:400][target[:400] == 4] = 3  # class 4 has no calibration row: it is in every set
    rule = Conformal(0.2, score=name, per_class=True, penalty=0.05, free_rank=2).fit(scores[:400], target[:400])
    score = score_of(name)
    p = [softmax(row) for row in scores]
    limits = [conformal_limit([score(p[i], c) for i in range(400) if target[i] == c], 0.2) for c in range(5)]
    assert limits[4] == math.inf
    expected = [[y for y in range(5) if score(p[i], y) <= limits[y] + 1e-12] for i in range(400, 430)]
    assert rule.predict(scores[400:]).to_lists() == expected


@pytest.mark.parametrize("score", ["lac", "aps", "raps"])
@pytest.mark.parametrize("per_class", [False, True])
def test_too_few_rows_for_the_level_give_all_labels(score, per_class):
    scores, target = draw(8, 4, np.random.default_rng(0))
    with pytest.warns(ShortlistWarning, match="hold all labels whatever the scores: alpha=0.1 needs at least 9"):
        rule = Conformal(0.1, score=score, per_class=per_class).fit(scores, target)
    assert rule.predict(scores).sizes.tolist() == [4] * 8
    assert rule.always_listed == 4
    assert SetRule.from_json(rule.to_json()).concern == rule.concern


@pytest.mark.parametrize("labels", ["single", "multi"])
@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3, 0.45])
def test_the_rows_needed_are_the_fewest_that_do_not_always_give_all_labels(labels, alpha):
    for n in range(1, 25):
        scores = np.random.default_rng(n).normal(size=(n, 3))
        target = np.zeros(n, dtype=int) if labels == "single" else np.eye(3, dtype=int)[np.zeros(n, dtype=int)]
        with warnings.catch_warnings(record=True) as said:
            rule = Conformal(alpha, labels=labels).fit(scores, target)
        far = np.array([[50.0, -50, -50]])
        assert (rule.predict(far).sizes[0] == 3) == (n < rule.rows_needed) == bool(rule.concern) == bool(said)


def test_classes_of_too_few_rows_are_counted():
    scores, target = draw(100, 5, np.random.default_rng(0))
    target[target == 4] = 3
    with pytest.warns(ShortlistWarning, match="hold 1 label whatever .* rows of each class"):
        rule = Conformal(0.2, per_class=True).fit(scores, target)
    assert rule.predict(scores).to_dense()[:, 4].all()


def test_rows_with_an_unknown_target_are_left_out():
    scores, target = draw(100, 4, np.random.default_rng(0))
    target[::3] = -1
    known = target >= 0
    rule, expected = Conformal(0.2).fit(scores, target), Conformal(0.2).fit(scores[known], target[known])
    assert rule.to_json() == expected.to_json()
    with pytest.raises(ValueError, match="without a known target"):
        Conformal(0.2).fit(scores, np.full(100, -1))


# ---- mapie


class Model:
    """A fitted scikit-learn classifier whose probabilities are given: X holds their logarithms."""

    def __init__(self, labels):
        self.classes_ = np.arange(labels)
        self.n_features_in_ = labels
        self.is_fitted_ = True

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, x, y):
        return self

    def predict_proba(self, x):
        return np.array([softmax(row) for row in x])

    def predict(self, x):
        return self.predict_proba(x).argmax(-1)


def mapie_sets(name, alpha, scores, target, fresh, **options):
    from mapie.classification import SplitConformalClassifier
    from sklearn.base import BaseEstimator, ClassifierMixin

    model = type("Given", (Model, ClassifierMixin, BaseEstimator), {})(scores.shape[1])
    mapie = SplitConformalClassifier(model, 1 - alpha, conformity_score=name, prefit=True, random_state=0)
    mapie.conformalize(scores, target)
    return mapie.predict_set(fresh, conformity_score_params=options)[1][:, :, 0]


@pytest.mark.parametrize(("seed", "alpha"), list(product(range(3), [0.05, 0.2, 0.4])))
@pytest.mark.parametrize("score", ["lac", "top-k"])
def test_sets_are_those_of_mapie(score, seed, alpha):
    scores, target = draw(700, 6, np.random.default_rng(seed))
    sets = Conformal(alpha, score).fit(scores[:300], target[:300]).predict(scores[300:])
    theirs = mapie_sets(score.replace("-", "_"), alpha, scores[:300], target[:300], scores[300:])
    assert (sets.to_dense() == theirs).all()


def test_randomised_aps_has_the_coverage_and_size_of_mapie():
    rng, ours, theirs = np.random.default_rng(0), [], []
    for seed in range(20):
        scores, target = draw(900, 8, rng)
        fit, fresh, true = (scores[:400], target[:400]), scores[400:], target[400:]
        sets = Conformal(0.15, score="aps", seed=seed).fit(*fit).predict(fresh).to_dense()
        other = mapie_sets("aps", 0.15, *fit, fresh, include_last_label="randomized")
        rows = np.arange(len(true))
        ours.append((sets[rows, true].mean(), sets.sum(-1).mean()))
        theirs.append((other[rows, true].mean(), other.sum(-1).mean()))
    difference = np.array(ours) - np.array(theirs)
    assert (abs(difference.mean(0)) < 4 * difference.std(0) / math.sqrt(20)).all()


@pytest.mark.parametrize("alpha", [0.05, 0.15, 0.4])
def test_with_the_same_random_numbers_randomised_aps_has_the_sets_of_mapie(alpha, monkeypatch):
    for seed in range(3):
        scores, target = draw(700, 6, np.random.default_rng(seed))
        # mapie draws anew from the same state for calibration and for prediction: a number for each row in turn
        numbers = np.random.RandomState(0).uniform(size=400)
        monkeypatch.setattr("shortlist.sets._nonconformity._uniform", lambda rows, _, u=numbers: u[: len(rows)])
        monkeypatch.setattr("shortlist.sets._nonconformity.FIRST", 6)  # all ranks of all rows at once
        ours = Conformal(alpha, score="aps", seed=0).fit(scores[:300], target[:300]).predict(scores[300:])
        theirs = mapie_sets("aps", alpha, scores[:300], target[:300], scores[300:], include_last_label="randomized")
        # mapie asks after the last label only if it passes the limit: the one before it may be in by rounding alone
        assert (ours.to_dense() == theirs).mean() == 1


# ---- the promises, over many draws


@pytest.mark.parametrize(
    "options",
    [{}, {"score": "aps"}, {"score": "raps"}, {"score": "aps", "seed": 3}, {"score": "raps", "seed": 3}],
    ids=str,
)
def test_coverage_is_in_its_finite_sample_band(options):
    n, alpha, fresh, draws = 60, 0.15, 300, 250
    rng = np.random.default_rng(11)
    covered = []
    for _ in range(draws):
        scores, target = draw(n + fresh, 8, rng)
        rule = Conformal(alpha, **options).fit(scores[:n], target[:n])
        covered.append(rule.predict(scores[n:]).contains(target[n:]).mean())
    error = 4 * np.std(covered) / math.sqrt(draws)
    assert 1 - alpha - error <= np.mean(covered) <= 1 - alpha + 1 / (n + 1) + error
    assert error < 0.02


def test_coverage_holds_for_a_model_that_is_wrong():
    rng = np.random.default_rng(2)
    covered = []
    for _ in range(150):
        scores, target = draw(360, 8, rng)
        scores = rng.normal(size=scores.shape) + 0.2 * scores**3
        covered.append(Conformal(0.2).fit(scores[:60], target[:60]).predict(scores[60:]).contains(target[60:]).mean())
    assert np.mean(covered) >= 0.8 - 4 * np.std(covered) / math.sqrt(150)


def test_without_a_seed_aps_sets_are_never_empty():
    scores, target = draw(500, 5, np.random.default_rng(0), scale=4)
    for name in ("aps", "raps", "saps", "top-k"):
        assert Conformal(0.5, score=name).fit(scores, target).predict(scores).sizes.min() >= 1


def test_the_same_seed_gives_the_same_sets_and_another_seed_others():
    scores, target = draw(300, 6, np.random.default_rng(0))
    sets = [Conformal(0.2, score="aps", seed=s).fit(scores, target).predict(scores) for s in (1, 1, 2)]
    assert sets[0] == sets[1] != sets[2]


@pytest.mark.parametrize("score", ["aps", "raps", "saps", "top-k"])
@pytest.mark.parametrize("seed", [None, 1])
def test_sets_do_not_depend_on_how_many_ranks_are_looked_at_first(score, seed, monkeypatch):
    rng = np.random.default_rng(0)
    scores = (rng.normal(size=(200, 30)) * 3).round(1).astype(np.float32)
    target = (scores + rng.gumbel(size=scores.shape)).argmax(-1)
    for alpha in (0.05, 0.3):
        rule = Conformal(alpha, score, seed=seed, free_rank=3).fit(scores, target)
        expected = rule.predict(scores)
        assert np.array_equal(rule.p_values(scores) > alpha, expected.to_dense())
        for first in (1, 2, 17):
            with monkeypatch.context() as patch:
                patch.setattr("shortlist.sets._nonconformity.FIRST", first)
                assert rule.predict(scores) == expected


# ---- groups, weights, clusters, p-values, one row after the other


def test_the_sets_of_a_group_are_those_of_its_rows_alone():
    scores, target = draw(300, 5, np.random.default_rng(0))
    group = np.array(["red", "green", "blue"])[np.arange(300) % 3]
    rule = Conformal(0.2, "aps", by_group=True).fit(scores[:200], target[:200], groups=group[:200])
    sets = rule.predict(scores[200:], groups=group[200:])
    for name in ("red", "green", "blue"):
        own, new = np.flatnonzero(group[:200] == name), 200 + np.flatnonzero(group[200:] == name)
        alone = Conformal(0.2, "aps").fit(scores[own], target[own])
        assert sets[new - 200] == alone.predict(scores[new])


def test_rows_of_a_group_without_calibration_rows_get_every_label():
    scores, target = draw(100, 4, np.random.default_rng(0))
    rule = Conformal(0.2, by_group=True).fit(scores, target, groups=np.zeros(100, int))
    assert rule.predict(scores[:2], groups=np.array([0, 1])).sizes[1] == 4
    with pytest.warns(ShortlistWarning, match=r"all labels in 1 group \(few\): alpha=0.2 needs at least 4"):
        Conformal(0.2, by_group=True).fit(scores, target, groups=["few" if row < 3 else "many" for row in range(100)])


def test_weighted_limits_are_those_of_the_definition_and_equal_weights_change_nothing():
    rng = np.random.default_rng(0)
    scores, target = draw(60, 4, rng)
    weights = rng.integers(0, 5, 60) / 2
    rule = Conformal(0.3, weighted=True).fit(scores[:40], target[:40], weights=weights[:40])
    p = [softmax(row) for row in scores]
    true = [lac(p[i], target[i]) for i in range(40)]
    for i, labels in zip(range(40, 60), rule.predict(scores[40:], weights=weights[40:]).to_lists(), strict=True):
        limit = weighted_limit(true, weights[:40], weights[i], 0.3)
        assert labels == [y for y in range(4) if lac(p[i], y) <= limit + 1e-12]
    ones = Conformal(0.3, weighted=True).fit(scores[:40], target[:40], weights=np.ones(40))
    plain = Conformal(0.3).fit(scores[:40], target[:40])
    assert ones.predict(scores[40:], weights=np.ones(20)) == plain.predict(scores[40:])
    assert np.allclose(ones.p_values(scores, weights=np.ones(60)), plain.p_values(scores))


def test_groups_and_weights_go_through_batches_json_and_merging():
    rng = np.random.default_rng(0)
    scores, target = draw(90, 4, rng)
    more = {"groups": np.arange(90) % 3, "weights": rng.random(90)}
    rule = Conformal(0.3, by_group=True, weighted=True).fit(scores, target, **more)
    expected = rule.predict(scores, **more)
    part = [{name: values[start : start + 30] for name, values in more.items()} for start in (0, 30, 60)]
    batches = [(scores[30 * i : 30 * i + 30], target[30 * i : 30 * i + 30], part[i]) for i in range(3)]
    batched = Conformal(0.3, by_group=True, weighted=True).fit(batches)
    assert batched.predict(batches) == expected
    assert SetRule.from_json(rule.to_json()).predict(scores, **more) == expected
    shards = [Conformal(0.3, by_group=True, weighted=True).fit([batch]) for batch in batches]
    assert shards[0].merge(*shards[1:]).to_json() == rule.to_json()


def test_what_a_rule_needs_and_what_it_has_no_use_for_is_said():
    scores, target = draw(20, 4, np.random.default_rng(0))
    with pytest.raises(ValueError, match="Conformal needs the groups of the rows: fit"):
        Conformal(0.3, by_group=True).fit(scores, target)
    with pytest.raises(ValueError, match="needs the weights of the rows"):
        Conformal(0.3, weighted=True).fit(scores, target, weights=np.ones(20)).predict(scores)
    with pytest.raises(ValueError, match="has no use for groups"):
        Conformal(0.3).fit(scores, target, groups=target)
    with pytest.raises(ValueError, match="weights must be finite and not negative: that of row 3 is -1"):
        Conformal(0.3, weighted=True).fit(scores, target, weights=np.where(np.arange(20) == 3, -1, 1))
    with pytest.raises(ValueError, match=r"groups of shape \(4,\) do not fit scores of shape \(20, 4\): one for each"):
        Conformal(0.3, by_group=True).fit(scores, target, groups=np.zeros(4))


def test_classes_with_similar_scores_share_a_cluster():
    rng = np.random.default_rng(0)
    scores, target = draw(3000, 6, rng, scale=2)
    scores[np.arange(3000), target] += np.where(target < 3, 4.0, 0.0)  # classes 0 to 2 are easy
    rule = Conformal(0.1, clusters=2).fit(scores, target)
    clusters = [rule._cells.cluster_of[label] for label in range(6)]
    assert clusters[:3] == [clusters[0]] * 3
    assert clusters[3:] == [1 - clusters[0]] * 3


def test_p_values_count_the_calibration_rows_that_suit_no_better():
    scores, target = draw(80, 4, np.random.default_rng(0))
    rule = Conformal(0.3, per_class=True).fit(scores[:60], target[:60])
    p = [softmax(row) for row in scores]
    for i, row in zip(range(60, 80), rule.p_values(scores[60:]), strict=True):
        for y in range(4):
            own = [lac(p[j], y) for j in range(60) if target[j] == y]
            assert row[y] == pytest.approx((1 + sum(s >= lac(p[i], y) for s in own)) / (1 + len(own)))


def test_observing_is_predicting_and_learning_row_by_row():
    scores, target = draw(140, 5, np.random.default_rng(0))
    rule, alpha_t, cal = OnlineConformal(0.2, step=0.1).fit(scores[:60], target[:60]), 0.2, []
    cal = [lac(softmax(scores[i]), target[i]) for i in range(60)]
    target[100] = -1
    found = rule.observe(scores[60:], target[60:]).to_lists()
    for i in range(60, 140):
        limit = -math.inf if alpha_t >= 1 - 1e-9 else math.inf
        if 1e-9 < alpha_t < 1 - 1e-9:
            rank = math.ceil(61 * (1 - alpha_t) - 1e-9)
            limit = sorted(cal)[rank - 1] if rank <= 60 else math.inf
        expected = [y for y in range(5) if lac(softmax(scores[i]), y) <= limit + 1e-12]
        assert found[i - 60] == expected
        if target[i] >= 0:
            alpha_t += 0.1 * (0.2 - (target[i] not in expected))
    assert rule.level == pytest.approx(alpha_t)
    assert rule.observed == 79
    again = SetRule.from_json(rule.to_json())
    assert again.level == rule.level
    assert again.merge(rule).missed == 2 * rule.missed


# ---- several labels


@given(data=st.data(), n=st.integers(1, 12), alpha=st.sampled_from([0.05, 0.1, 0.25, 0.3, 0.5, 0.9]))
def test_risk_threshold_is_the_largest_that_keeps_the_risk(data, n, alpha):
    seed = data.draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    scores = rng.integers(-3, 4, size=(n, 4)).astype(float)  # many ties
    target = rng.choice([-1, 0, 1], size=(n, 4), p=[0.2, 0.4, 0.4])
    target[0, 0] = 1
    rule = Conformal(alpha, labels="multi", link="none").fit(scores, target)
    limit = risk_threshold(scores, target, alpha)
    assert rule.predict(np.concatenate([scores, -scores])).to_dense().tolist() == (
        (np.concatenate([scores, -scores]) >= limit).tolist()
    )


def test_the_expected_share_of_missed_labels_stays_below_alpha():
    n, alpha, draws, rng = 80, 0.1, 200, np.random.default_rng(4)
    risks = []
    for _ in range(draws):
        scores = rng.normal(size=(n + 300, 10)) * 2 - 1
        target = (rng.random(scores.shape) < 1 / (1 + np.exp(-scores))).astype(int)
        missed = ~Conformal(alpha, labels="multi").fit(scores[:n], target[:n]).predict(scores[n:]).to_dense()
        fresh = target[n:]
        risks.append(((missed * fresh).sum(-1) / np.maximum(fresh.sum(-1), 1)).mean())
    error = 4 * np.std(risks) / math.sqrt(draws)
    assert alpha - 2 / (n + 1) - error <= np.mean(risks) <= alpha + error
    assert error < 0.01


def test_an_alpha_that_so_few_rows_cannot_promise_gives_all_labels():
    scores, target = np.random.default_rng(0).normal(size=(9, 4)), np.eye(4, dtype=int)[np.arange(9) % 4]
    assert Conformal(0.09, labels="multi").fit(scores, target).predict(scores).sizes.tolist() == [4] * 9
    assert Conformal(0.1, labels="multi").fit(scores, target).predict(scores).sizes.sum() < 36


def test_unknown_entries_and_rows_are_not_used():
    rng = np.random.default_rng(0)
    scores, target = rng.normal(size=(50, 4)), rng.integers(0, 2, (50, 4))
    extra = Conformal(0.3, labels="multi").fit(
        np.concatenate([scores, rng.normal(size=(20, 4))]), np.concatenate([target, np.full((20, 4), -1)])
    )
    assert extra.to_json() == Conformal(0.3, labels="multi").fit(scores, target).to_json()


# ---- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0}, "alpha must be between 0 and 1, both excluded, got 0"),
        ({"alpha": 1.0}, "alpha must be between"),
        ({"score": "tps"}, "score must be one of 'lac', 'aps', 'raps', 'saps', 'top-k', 'margin', got 'tps'"),
        ({"labels": "many"}, "labels must be one of 'single', 'multi', 'votes', got 'many'"),
        ({"labels": "multi", "score": "aps"}, "weighted and seed do not apply"),
        ({"labels": "multi", "per_class": True}, "weighted and seed do not apply"),
        ({"penalty": -1}, "penalty must be a finite number that is not negative, got -1"),
        ({"link": "probit"}, "link must be one of"),
        ({"free_rank": 2.5}, "free_rank must be a whole number of at least 0, got 2.5"),
        ({"seed": "a"}, "seed must be a whole number, got 'a'"),
    ],
)
def test_settings_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Conformal(**options)


@pytest.mark.parametrize(
    ("labels", "target", "message"),
    [
        ("single", None, r"needs the target of its calibration rows: fit\(scores, target\)"),
        ("single", np.array([0, 1, 4]), "target row 2 is 4: allowed are 0..3, or -1 .or -100. for an unknown row"),
        ("single", np.array([0, -2, 1]), "target row 1 is -2"),
        ("single", np.zeros(3), "takes class indices, one whole number per row, got float64"),
        ("single", np.zeros((3, 4), int), r"takes class indices, one whole number per row, got int64 \(3, 4\)"),
        ("single", np.zeros(4, int), r"target of shape \(4,\) does not fit scores of shape \(3, 4\)"),
        ("multi", np.zeros(3, int), "takes a label matrix of the scores' shape"),
        ("multi", np.full((3, 4), 2), "target row 0, label 0 is 2: a label matrix holds 1"),
    ],
)
def test_a_target_that_does_not_fit_is_refused(labels, target, message):
    with pytest.raises(ValueError, match=message):
        Conformal(labels=labels).fit(np.zeros((3, 4)), target)


def test_where_nothing_weighs_anything_no_label_is_left_out() -> None:
    scores, target = np.log([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2]]), np.array([0, 0, 1])
    rule = Conformal(0.5, weighted=True).fit(scores, target, weights=np.zeros(3))
    assert rule.predict(scores[:1], weights=np.zeros(1)).to_lists() == [[0, 1]]
    assert rule.p_values(scores[:1], weights=np.zeros(1)).tolist() == [[1.0, 1.0]]


def test_a_group_is_the_same_as_a_whole_number_and_as_a_float() -> None:
    scores, target = np.log([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2]]), np.array([0, 0, 0])
    rule = Conformal(0.5, by_group=True).fit(scores, target, groups=np.array([1, 1, 1]))
    assert rule.predict(scores[:1], groups=np.array([1.0])).to_lists() == [[0]]
    others = np.array([np.nan, np.inf, 1.5, 1e300])
    assert rule.predict(scores[[0, 0, 0, 0]], groups=others).sizes.tolist() == [2] * 4  # not met in calibration


def test_weights_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ShortlistError, match="weights must be numbers, one for each row, got dtype <U5"):
        Conformal(0.5, weighted=True).fit(np.zeros((1, 2)), np.array([0]), weights=["heavy"])


@pytest.mark.parametrize("score", ALL)
@pytest.mark.parametrize(("first", "second"), [(np.float32, np.float64), (np.float64, np.float32)])
def test_rows_like_those_of_calibration_are_answered_alike_in_another_type(score, first, second) -> None:
    scores, target = np.zeros((40, 5)), np.arange(40) % 5  # all ties: the last bit decides
    scores[20:, 0] = 1.0
    rule = Conformal(0.1, score).fit(scores.astype(first), target)
    expected = rule.predict(scores.astype(first))
    assert rule.predict(scores.astype(second)) == expected
    assert SetRule.from_json(rule.to_json()).predict(scores.astype(second)) == expected
    assert rule.merge(rule).predict(scores.astype(second)[:1]).sizes[0] > 0
    assert np.array_equal(rule.p_values(scores.astype(second)) > 0.1, expected.to_dense())


def test_rows_without_any_right_label_calibrate_nothing_and_that_is_said() -> None:
    with pytest.warns(ShortlistWarning, match="none of the 40 calibration rows has a right label: sets are empty"):
        Conformal(0.1, labels="multi").fit(np.zeros((40, 3)), np.zeros((40, 3), int))


# ---- never an answer with nothing


def test_min_size_gives_empty_sets_their_best_label_and_leaves_the_others() -> None:
    scores, target = draw(400, 5, np.random.default_rng(0))
    for settings in ({}, {"score": "margin"}, {"per_class": True}, {"score": "aps", "seed": 1}, {"clusters": 2}):
        plain = Conformal(0.7, **settings).fit(scores, target).predict(scores).to_lists()
        never = Conformal(0.7, min_size=1, **settings).fit(scores, target).predict(scores).to_lists()
        assert [] in plain
        assert never == [labels or [best] for labels, best in zip(plain, scores.argmax(1).tolist(), strict=True)]
    tied = np.array([[0.1, 0.1, 0.1, 0.1, -9.0]])
    rule = Conformal(0.7, min_size=1).fit(scores, target)
    assert rule.predict(tied).to_lists() == rule.predict(tied.repeat(3, 0))[1:2].to_lists() == [[0, 1, 2, 3]]
    with pytest.raises(ShortlistError, match="min_size must be 0 or 1, got 2"):
        Conformal(0.1, min_size=2)
