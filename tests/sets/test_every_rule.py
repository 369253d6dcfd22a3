"""What holds for every rule: containers, shapes and types of scores, own row only, JSON, merging, errors."""

import base64
import json
import pickle
import zlib
from functools import partial

import numpy as np
import pytest
import torch

from shortlist.errors import ShortlistError
from shortlist.labels import LabelSets
from shortlist.sets import (
    AverageK,
    Conformal,
    OnlineConformal,
    Penalized,
    PointwiseError,
    RiskControl,
    SetRule,
    Threshold,
    TopK,
    fit_scaling,
)

RULES = [
    TopK(2),
    Threshold(0.2),
    Threshold(0.4, link="sigmoid"),
    Threshold(-0.3, link="none"),
    AverageK(1.7),
    AverageK(2, link="sigmoid"),
    AverageK(3, link="none"),
    AverageK(2.2, min_size=1),
    AverageK(2.2, min_size=1, max_size=4, confidence=0.7),
    Conformal(0.3),
    Conformal(0.2, score="aps"),
    Conformal(0.2, score="raps", seed=7),
    Conformal(0.2, score="aps", per_class=True),
    Conformal(0.3, labels="multi"),
    Conformal(0.2, score="saps"),
    Conformal(0.2, score="top-k", seed=1),
    Conformal(0.2, score="margin"),
    Conformal(0.2, clusters=1),
    Conformal(0.7, min_size=1),
    Conformal(0.8, score="aps", seed=3, min_size=1),
    Conformal(0.8, clusters=1, min_size=1),
    Conformal(0.7, labels="multi", min_size=1),
    OnlineConformal(0.2, score="aps"),
    RiskControl("recall", 0.3, 0.2),
    RiskControl("false-positives", 3.0, link="none"),
    RiskControl("precision", 0.8, 0.2),
    RiskControl(["recall", "precision"], [0.95, 0.95], 0.3),
    RiskControl("recall", 0.4, per_label=True),
    PointwiseError(0.3),
    Penalized(0.15),
]
LEARNING = [rule for rule in RULES if not rule.is_fitted]
ROWS, LABELS = 60, 7


def half_scores():
    """float16 scores with many ties, so that every container holds the same numbers and ties are met everywhere."""
    return (np.random.default_rng(0).normal(size=(ROWS, LABELS)) * 4).round().astype(np.float16) / np.float16(2)


def target_for(rule):
    rng = np.random.default_rng(1)
    if getattr(rule, "labels", "") == "single":
        return rng.integers(0, LABELS, ROWS)
    return rng.integers(-1, 2, (ROWS, LABELS)) if rule.needs_target else None


def fitted(rule):
    return SetRule.from_json(rule.to_json()).fit(half_scores().astype(np.float32), target_for(rule))


every_rule = pytest.mark.parametrize("rule", RULES, ids=repr)


@every_rule
def test_the_container_and_its_type_do_not_matter(rule, tmp_path):
    scores, rule = half_scores(), fitted(rule)
    np.save(tmp_path / "scores.npy", scores)
    expected = rule.predict(scores.astype(np.float32))
    assert len(expected) == ROWS
    for same in (
        scores,
        scores.astype(">f4"),
        np.asfortranarray(scores),
        np.load(tmp_path / "scores.npy", mmap_mode="r"),
        torch.from_numpy(scores),
        torch.from_numpy(scores).float().requires_grad_(),
        torch.from_numpy(scores).bfloat16(),
    ):
        assert rule.predict(same) == expected


@every_rule
@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_fitting_on_another_type_gives_the_same_sets(rule, dtype):
    scores = half_scores()
    other = SetRule.from_json(rule.to_json()).fit(torch.from_numpy(scores.astype(dtype)), target_for(rule))
    # in float64 some ties of linked scores come undone: sets are those of float64, so compare within one type
    again = SetRule.from_json(rule.to_json()).fit(scores.astype(dtype), target_for(rule))
    assert other.predict(scores.astype(dtype)) == again.predict(scores.astype(dtype))
    if dtype == np.float16:
        assert other.predict(scores) == fitted(rule).predict(scores)


@every_rule
def test_a_row_gets_the_same_set_alone_as_in_any_batch(rule):
    scores = np.random.default_rng(2).normal(size=(ROWS, LABELS)).astype(np.float32)
    scores[::3] = half_scores()[::3]
    rule = fitted(rule)
    together = rule.predict(scores).to_lists()
    assert [rule.predict(row[None]).to_lists()[0] for row in scores] == together
    shuffle = np.random.default_rng(3).permutation(ROWS)
    assert rule.predict(scores[shuffle]).to_lists() == [together[i] for i in shuffle]


@every_rule
def test_leading_dimensions_are_flattened_to_rows(rule):
    scores, rule, target = half_scores(), fitted(rule), target_for(rule)
    expected = rule.predict(scores)
    assert rule.predict(scores.reshape(3, 4, 5, LABELS)) == expected
    assert rule.predict(scores[0]) == expected[:1]
    if target is not None:
        target = target.reshape(6, 10, *target.shape[1:])
    assert rule.fit(scores.astype(np.float32).reshape(6, 10, LABELS), target).predict(scores) == expected


@every_rule
def test_batches_are_the_same_as_the_whole(rule, monkeypatch):
    scores, rule, target = half_scores().astype(np.float32), fitted(rule), target_for(rule)
    expected = rule.predict(scores)
    assert rule.predict(iter(np.split(scores, 4))) == expected
    assert rule.predict(lambda: (torch.from_numpy(part) for part in np.split(scores, 4))) == expected
    parts = np.split(scores, 4) if target is None else list(zip(np.split(scores, 4), np.split(target, 4), strict=True))
    assert rule.fit(parts).predict(scores) == expected
    monkeypatch.setattr(type(rule), "block_size", 50)  # seven rows at a time
    assert rule.fit(scores, target).predict(scores) == expected


@every_rule
def test_no_rows_give_no_sets(rule):
    assert fitted(rule).predict(np.zeros((0, LABELS), np.float32)) == LabelSets([0], [], LABELS)


@every_rule
def test_inputs_are_not_modified(rule):
    scores = half_scores().astype(np.float32)
    target, before = target_for(rule), scores.copy()
    fitted(rule).fit(scores, target).predict(scores)
    assert (scores == before).all()


@every_rule
def test_json_gives_back_an_equal_rule_fitted_or_not(rule):
    for original in (rule, fitted(rule)):
        text = original.to_json()
        loaded = SetRule.from_json(text)
        assert type(loaded) is type(rule)
        assert type(rule).from_json(text).to_json() == text
        assert repr(loaded) == repr(rule)
        assert loaded.is_fitted == original.is_fitted
        json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert loaded.predict(half_scores()) == original.predict(half_scores())
    assert pickle.loads(pickle.dumps(original)).to_json() == text


def test_a_pickled_rule_that_counted_a_stream_is_as_small_as_its_json():
    scores = np.random.default_rng(0).normal(size=(2000, 100)).astype(np.float32)
    for rule in (AverageK(5).fit(scores), AverageK(5).fit(iter(np.split(scores, 10)))):
        assert len(pickle.dumps(rule)) < 1.1 * len(rule.to_json())
        assert pickle.loads(pickle.dumps(rule)).merge(rule).to_json() == rule.merge(rule).to_json()


@every_rule
def test_two_shards_merge_into_a_new_rule(rule):
    scores, target = half_scores().astype(np.float32), target_for(rule)
    first, second = (None, None) if target is None else (target[:30], target[30:])
    a = SetRule.from_json(rule.to_json()).fit(scores[:30], first)
    b = SetRule.from_json(rule.to_json()).fit(scores[30:], second)
    merged = a.merge(b)
    assert merged is not a
    if isinstance(rule, AverageK):  # ties: within the stated rank error
        wanted = fitted(rule).predict(scores).sizes.sum()
        assert abs(int(merged.predict(scores).sizes.sum()) - wanted) <= merged.rank_error
    else:
        assert merged.predict(scores) == fitted(rule).predict(scores)


# ---- bad input


@pytest.mark.parametrize("rule", LEARNING, ids=repr)
def test_predict_before_fit_says_what_to_do(rule):
    with pytest.raises(ValueError, match=f"{type(rule).__name__}.* is not fitted: call fit"):
        rule.predict(half_scores())


@pytest.mark.parametrize("rule", LEARNING, ids=repr)
def test_no_calibration_rows_are_refused(rule):
    with pytest.raises(ValueError, match="cannot be fitted on no rows"):
        SetRule.from_json(rule.to_json()).fit([])


@every_rule
@pytest.mark.parametrize("batched", [False, True])
def test_nan_is_refused_with_its_row_and_label(rule, batched):
    scores, rule = half_scores().astype(np.float32), fitted(rule)
    scores[41, 3] = np.nan
    with pytest.raises(ValueError, match="row 41, label 3 is NaN"):
        rule.predict(np.split(scores, 6) if batched else scores)


@pytest.mark.parametrize("rule", LEARNING, ids=repr)
def test_a_failed_fit_leaves_the_rule_unfitted(rule):
    scores, target = half_scores().astype(np.float32), target_for(rule)
    scores[41, 3] = np.nan
    rule = fitted(rule)
    with pytest.raises(ValueError, match="row 41, label 3 is NaN"):
        rule.fit(scores, target)
    with pytest.raises(ValueError, match="not fitted"):
        rule.predict(half_scores())


@pytest.mark.parametrize("rule", [AverageK(2), Conformal(), PointwiseError(0.1), Penalized(0.1)], ids=repr)
@pytest.mark.parametrize(("row", "held"), [([1, np.inf], r"\+inf"), ([-np.inf] * 2, "-inf for every label")])
def test_a_row_without_a_softmax_is_refused(rule, row, held):
    with pytest.raises(ValueError, match=f"softmax of scores row 1 is undefined: it holds {held}"):
        rule.fit(np.array([[0, 0], row]), np.array([0, 0])).predict(np.array([[0, 0], row]))


OWN_LIMITS = [rule for rule in RULES if getattr(rule, "clusters", None) or getattr(rule, "per_label", False)]


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule not in OWN_LIMITS], ids=repr)
def test_labels_of_minus_infinity_are_allowed_and_come_last(rule):
    scores = half_scores().astype(np.float32)
    scores[:, 2] = -np.inf
    rule = fitted(rule).fit(scores, target_for(rule))
    assert rule.predict(scores).to_dense()[:, 2].sum() <= rule.predict(scores).to_dense()[:, 0].sum()


@every_rule
def test_another_number_of_labels_than_fitted_is_refused(rule):
    with pytest.raises(ValueError, match="was fitted on 7 labels, these scores have 6"):
        fitted(rule).predict(half_scores()[:, :6])


@every_rule
@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.zeros((3, 7), int), "floating point, got dtype int64"),
        (np.array(1.0), r"at least one label, got shape \(\)"),
        (np.zeros((3, 0)), r"at least one label, got shape \(3, 0\)"),
        (np.ma.masked_equal(np.eye(7, dtype=np.float32), 1), "scores is a masked array, which hides 7 of 49"),
        ("scores.npy", "an iterable of such batches or a function that returns one, got str"),
        (5, "got int"),
        ([[0.1, 0.2, 0.3]], "batch 0 must be a torch.Tensor or numpy array of scores, got list"),
        ([np.zeros((2, 7)), np.zeros((2, 6))], "batch 1 has 6 labels, the batches before it 7"),
        ([], "got no batch of scores"),
    ],
)
def test_what_is_not_scores_is_refused(rule, scores, message):
    with pytest.raises(ValueError, match=message):
        fitted(rule).predict(scores)


@pytest.mark.parametrize("fit", [AverageK(1).fit, Conformal(0.1).fit, partial(fit_scaling, "temperature")])
def test_numbers_without_labels_are_no_scores_to_fit_on(fit):
    with pytest.raises(ValueError, match=r"\(rows, labels\), got \(20,\): a single row is scores\[None\]; of"):
        fit(np.zeros(20, np.float32), np.arange(20) % 2)


def test_a_target_that_hides_labels_is_refused():
    target = np.ma.masked_equal(np.arange(20) % 5, 3)
    with pytest.raises(ValueError, match="known of the rows is a masked array, which hides 4 of 20"):
        Conformal(0.2).fit(np.random.default_rng(0).normal(size=(20, 5)), target)


def test_rules_with_other_settings_do_not_merge():
    with pytest.raises(ValueError, match=r"same settings can be merged: TopK\(k=2\) and TopK\(k=3\)"):
        TopK(2).merge(TopK(3))
    scores = half_scores()
    with pytest.raises(ValueError, match="fitted on 7 labels, these scores have 6"):
        AverageK(2).fit(scores).merge(AverageK(2).fit(scores[:, :6]))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"rule": "__import__"}',
        '{"rule": "TopK", "settings": {"j": 1}, "num_labels": null, "state": null}',
        '{"rule": "TopK", "settings": {"k": 0}, "num_labels": null, "state": null}',
        '{"rule": "AverageK", "settings": {"k": 1}, "num_labels": 3, "state": {"threshold": 1}}',
    ],
)
def test_other_json_is_refused(text):
    with pytest.raises(ValueError, match="not the JSON of a set rule"):
        SetRule.from_json(text)


def changed(rule, **changes):
    """The rule's JSON with other entries: of its state, or beside it."""
    data = json.loads(rule.to_json())
    for key, value in changes.items():
        (data["state"] if key in data["state"] else data)[key] = value
    return json.dumps(data)


def packed(size):
    return base64.b64encode(zlib.compress(bytes(size), 9)).decode()


SCORES = np.random.default_rng(0).normal(size=(40, 6))
AVERAGE = AverageK(2).fit(SCORES)
CONFORMAL = Conformal(0.2, per_class=True).fit(SCORES, np.arange(40) % 6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (changed(AVERAGE, num_labels=10**30), "num_labels must be a whole number"),
        (changed(CONFORMAL, num_labels=10**30), "num_labels must be a whole number"),
        (changed(AVERAGE, num_labels=10**12), "it counted 240 scores, not those of 40 rows of 1000000000000"),
        (changed(AVERAGE, rows=10**30), "it counted 240 scores"),
        (changed(AVERAGE, counts={"buckets": [packed(1 << 20), packed(1 << 20)]}), "unfold to more than the 524,288"),
        (changed(AVERAGE, counts={str(b): [packed(0)] * 2 for b in range(70)}), "'buckets'"),
        (changed(AVERAGE, hash_limit="f" * 17), "hash limit"),
        (changed(AVERAGE, rows=float("inf")), "cannot convert float infinity"),
        (changed(CONFORMAL, values=packed(1 << 28)), "unfold to more than the 67,108,864 bytes"),
        (changed(CONFORMAL, values=packed(8 * 40)[:-4]), "cut short|Incorrect padding"),
        (changed(CONFORMAL, rows=10**9), "does not fit 1000000000 rows of 6 labels"),
        (changed(CONFORMAL, num_labels=5), "does not fit 40 rows of 5 labels"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_json_with_sizes_that_do_not_fit_what_is_there_is_refused(text, message):
    with pytest.raises(ShortlistError, match=message):
        SetRule.from_json(text)


def test_a_class_without_rows_costs_nothing_however_many_there_are():
    rule = SetRule.from_json(changed(CONFORMAL, num_labels=10**12))
    with pytest.raises(ShortlistError, match="was fitted on 1000000000000 labels"):
        rule.predict(SCORES)


def test_how_far_an_array_may_unfold_can_be_set(monkeypatch):
    assert SetRule.max_unpacked == 1 << 26
    text = changed(CONFORMAL, rows=1 << 18, values=packed(8 << 18), extras=packed(8 << 18))
    monkeypatch.setattr(SetRule, "max_unpacked", 1 << 20)
    with pytest.raises(ShortlistError, match="unfold to more"):
        SetRule.from_json(text)
    monkeypatch.setattr(SetRule, "max_unpacked", 8 << 18)
    assert SetRule.from_json(text).is_fitted


def test_a_rule_does_not_load_as_another():
    with pytest.raises(ValueError, match="it holds the rule 'TopK'; allowed here: AverageK"):
        AverageK.from_json(TopK(2).to_json())


@pytest.mark.parametrize("make", [lambda link: Threshold(0.5, link), lambda link: AverageK(2, link)])
def test_unknown_links_are_refused(make):
    with pytest.raises(ValueError, match="link must be one of 'softmax', 'sigmoid', 'none', got 'logit'"):
        make("logit")
