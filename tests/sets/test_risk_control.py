"""RiskControl: thresholds against brute force over every score, the bounds against their formulas, mapie, errors."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from shortlist.errors import ShortlistError, ShortlistWarning
from shortlist.sets import Conformal, Risk, RiskControl, SetRule, register_risk
from shortlist.sets._bounds import betting_accepts, hoeffding_bentkus_budget

pytestmark = pytest.mark.filterwarnings("ignore::shortlist.errors.ShortlistWarning")


def loss_of(name, listed, truth):
    """The loss of one row, from its definition; unknown labels take no part."""
    known = truth != -1
    listed, truth = listed[known], truth[known]
    hits, size, right = int((listed & (truth == 1)).sum()), int(listed.sum()), int((truth == 1).sum())
    return {
        "recall": 1 - hits / right if right else 0.0,
        "precision": 1 - hits / size if size else 0.0,
        "f1": 1 - 2 * hits / (size + right) if size + right else 0.0,
        "false-positives": float(size - hits),
    }[name]


def hoeffding_bentkus_p(mean, n, alpha):
    mean = min(mean, alpha)
    entropy = (mean * math.log(mean / alpha) if mean else 0) + (1 - mean) * math.log((1 - mean) / (1 - alpha))
    return min(math.exp(-n * entropy), math.e * binom.cdf(math.ceil(n * mean - 1e-9), n, alpha))


def wealth(losses, alpha, delta):
    """The largest wealth of the betting test, one row at a time."""
    now = most = 1.0
    seen, squares, n = 0.5, 0.25, len(losses)
    for i, loss in enumerate(losses, start=1):
        stake = min(1, math.sqrt(2 * math.log(1 / delta) / (n * squares / i)))
        now *= 1 - stake * (loss - alpha)
        most = max(most, now)
        seen += loss
        squares += (loss - seen / (i + 1)) ** 2
    return most


def oracle(name, values, target, alpha, delta, bound, top=1.0):
    """Every threshold from the safe end, until one does not allow the promise."""
    inwards = name != "recall"
    rows = (target != -1).any(-1)
    values, target = values[rows], target[rows]
    thresholds = sorted({*values.reshape(-1).tolist(), -math.inf if inwards else math.inf}, reverse=inwards)
    answer = math.inf if inwards else -math.inf
    for threshold in thresholds:
        losses = np.array([loss_of(name, v >= threshold, t) for v, t in zip(values, target, strict=True)])
        n, mean = len(losses), losses.mean() / top
        if delta is None:
            allowed = (losses.sum() + top) / (n + 1) <= alpha + 1e-12
        elif bound == "hoeffding-bentkus":
            allowed = hoeffding_bentkus_p(mean, n, alpha / top) <= delta
        else:
            allowed = wealth(losses / top, alpha / top, delta) >= 1 / delta
        if not allowed:
            return answer
        answer = threshold
    return answer


def some_data(seed, rows=60, labels=4, ties=True):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(rows, labels)) * 2
    scores = (3 * scores).round() / 3 if ties else scores
    target = (rng.random(scores.shape) < 1 / (1 + np.exp(-3 * scores))).astype(int)
    target[rng.random(scores.shape) < 0.15] = -1
    target[3] = 0
    target[4] = -1
    return scores, target


CASES = [
    ("recall", 0.3, None, "hoeffding-bentkus"),
    ("recall", 0.25, 0.2, "hoeffding-bentkus"),
    ("recall", 0.25, 0.2, "waudby-smith-ramdas"),
    ("precision", 0.4, 0.3, "hoeffding-bentkus"),
    ("precision", 0.3, 0.2, "waudby-smith-ramdas"),
    ("false-positives", 0.5, None, "hoeffding-bentkus"),
    ("false-positives", 0.9, 0.3, "hoeffding-bentkus"),
    ("false-positives", 0.6, 0.2, "waudby-smith-ramdas"),
]


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize(("risk", "alpha", "delta", "bound"), CASES, ids=str)
def test_the_threshold_is_the_last_before_the_promise_breaks(risk, alpha, delta, bound, ties, monkeypatch):
    monkeypatch.setattr("shortlist.sets._walk._CHUNK", 16)  # many chunks
    finite = 0
    for seed in range(3):
        scores, target = some_data(seed, rows=60, ties=ties)
        rule = RiskControl(risk, alpha, delta, link="none", bound=bound).fit(scores, target)
        top = 4.0 if risk == "false-positives" else 1.0
        expected = oracle(risk, scores, target, alpha, delta, bound, top)
        finite += math.isfinite(rule.threshold)
        known = target != -1
        assert np.array_equal(rule.predict(scores).to_dense()[known], (scores >= expected)[known])
    assert finite == 3


def test_recall_in_expectation_is_the_conformal_rule_of_several_labels():
    scores, target = some_data(0, rows=300)
    expected = Conformal(0.2, labels="multi").fit(scores, target).predict(scores)
    assert RiskControl("recall", 0.2).fit(scores, target).predict(scores) == expected


@pytest.mark.parametrize(("n", "alpha", "delta"), [(20, 0.1, 0.1), (100, 0.3, 0.05), (1000, 0.02, 0.2), (57, 0.5, 0.4)])
def test_the_budget_is_the_largest_sum_with_a_small_p_value(n, alpha, delta):
    budget = hoeffding_bentkus_budget(n, alpha, delta)
    if budget >= 0:
        assert hoeffding_bentkus_p(budget / n - 1e-9, n, alpha) <= delta * (1 + 1e-6)
    assert hoeffding_bentkus_p(max(budget, 0) / n + 1e-6, n, alpha) > delta
    binary = hoeffding_bentkus_budget(n, alpha, delta, binary=True)
    assert binary < 0 or binom.cdf(binary, n, alpha) <= delta
    assert binom.cdf(max(binary + 1, 0), n, alpha) > delta


def test_the_betting_test_is_that_of_its_definition():
    rng = np.random.default_rng(0)
    answers = []
    for shift in np.linspace(0, 0.3, 30):
        losses = np.clip(rng.beta(2, 20, 80) + shift, 0, 1)
        answers.append(betting_accepts(losses, 0.2, 0.1))
        assert answers[-1] == (wealth(losses, 0.2, 0.1) >= 10)
    assert 5 < sum(answers) < 25


@pytest.mark.parametrize("risk", [["recall", "false-positives"], "f1"], ids=str)
def test_a_threshold_that_was_chosen_is_tested_on_other_rows(risk):
    alpha = [0.3, 0.6] if isinstance(risk, list) else 0.35
    scores, target = some_data(0, rows=600, ties=False)
    rule = RiskControl(risk, alpha, 0.1, link="none").fit(scores, target)
    rows = (target != -1).any(-1)
    used, truth = scores[rows], target[rows]
    risks, levels = (risk, alpha) if isinstance(risk, list) else ([risk], [alpha])

    def means(threshold, which):
        return [
            np.mean([loss_of(name, v >= threshold, t) for v, t in zip(used[which], truth[which], strict=True)])
            for name in risks
        ]

    choosing = np.arange(len(used)) % 3 == 0
    tops = [4.0 if name == "false-positives" else 1.0 for name in risks]

    def excess(threshold):
        return max((m - a) / t for m, a, t in zip(means(threshold, choosing), levels, tops, strict=True))

    assert rule.threshold in used[choosing]
    assert excess(rule.threshold) <= min(excess(v) for v in np.quantile(used[choosing], np.linspace(0, 1, 40))) + 1e-12
    for mean, level, top in zip(means(rule.threshold, ~choosing), levels, tops, strict=True):
        assert hoeffding_bentkus_p(mean / top, int((~choosing).sum()), level / top) <= 0.1
    hopeless = RiskControl(risk, [0.001, 0.001] if isinstance(risk, list) else 0.001, 0.1, link="none")
    with pytest.warns(ShortlistWarning, match="no threshold keeps the promise"):
        hopeless.fit(scores, target)
    with pytest.raises(ValueError, match=r"no threshold keeps the promise .*: calibrate on more rows, or ask for less"):
        hopeless.predict(scores)
    assert SetRule.from_json(hopeless.to_json()).threshold is None


@pytest.mark.parametrize("delta", [None, 0.2])
@pytest.mark.parametrize("risk", ["recall", "false-positives"])
def test_every_label_has_the_threshold_of_its_own_rows(risk, delta):
    scores, target = some_data(1, rows=120)
    rule = RiskControl(risk, 0.3, delta, link="none", per_label=True).fit(scores, target)
    for label in range(4):
        own = scores[:, label][target[:, label] == (risk == "recall")]
        lost = (own[:, None] < np.unique(own)) if risk == "recall" else (own[:, None] >= np.unique(own))
        n = len(own)
        allowed = [
            (k + 1) / (n + 1) <= 0.3 if delta is None else binom.cdf(k, n, 0.3) <= delta for k in lost.sum(0).tolist()
        ]
        passing = np.unique(own)[allowed]
        assert rule.threshold[label] == (passing.max() if risk == "recall" else passing.min())
    assert np.array_equal(rule.predict(scores).to_dense(), scores >= rule.threshold)


def test_max_size_keeps_the_best_labels_and_makes_the_promise_cheaper():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(400, 30)) - 3
    target = (rng.random(scores.shape) < 1 / (1 + np.exp(-scores))).astype(int)
    plain = RiskControl("false-positives", 1.0, 0.1).fit(scores, target)
    capped = RiskControl("false-positives", 1.0, 0.1, max_size=4).fit(scores, target)
    sets, inside = capped.predict(scores), plain.predict(scores)
    assert sets.sizes.max() <= 4
    assert sets.sizes.mean() > inside.sizes.mean()
    fourth = np.sort(scores, -1)[:, -4]
    assert (np.nonzero(sets.to_dense() & (scores < fourth[:, None]))[0]).size == 0


def test_class_indices_are_a_label_matrix_with_one_label():
    rng = np.random.default_rng(0)
    scores, target = rng.normal(size=(100, 5)), rng.integers(0, 5, 100)
    matrix = np.eye(5, dtype=int)[target]
    target[7], matrix[7] = -1, -1
    for risk, alpha in (("recall", 0.4), ("false-positives", 2.5)):
        one, other = (RiskControl(risk, alpha, link="softmax").fit(scores, given) for given in (target, matrix))
        assert one.to_json() == other.to_json()


def test_recall_in_expectation_is_that_of_mapie_up_to_its_grid():
    from mapie.risk_control import MultiLabelClassificationController

    for seed in range(3):
        rng = np.random.default_rng(seed)
        p = 1 / (1 + np.exp(-2 * rng.normal(size=(120, 4))))
        target = (rng.random(p.shape) < p).astype(int)
        p, target = p[target.any(-1)], target[target.any(-1)]  # mapie takes no rows without labels
        grid = np.arange(0, 1, 0.01)
        theirs = MultiLabelClassificationController(
            lambda x: x, risk="recall", method="crc", target_level=0.8, predict_params=grid
        )
        theirs.calibrate(p, target)
        ours = RiskControl("recall", 0.2, link="none").fit(p, target).threshold
        assert theirs.best_predict_param[0] == grid[grid < ours].max()  # ours is the largest of all, not of a grid


# ---- functions of the user


def two_wrong(inside, target):
    return (inside & (target == 0)).sum(-1) >= 2


def test_a_function_of_set_and_truth_is_a_risk():
    scores, target = some_data(2, rows=200, ties=False)
    for grows, method in ((True, "rcps"), (None, "ltt")):
        rule = RiskControl(Risk("two-wrong", of_sets=two_wrong, grows=grows), 0.3, 0.1, link="none")
        assert rule.method == method
        rule.fit(scores, target)
        assert two_wrong(rule.predict(scores).to_dense(), target).mean() < 0.3
    counted = RiskControl("recall", 0.3, 0.1, link="none").fit(scores, target)
    missed = Risk("missed", of_sets=lambda inside, t: 1 - counted_recall(inside, t), grows=False)
    assert RiskControl(missed, 0.3, 0.1, link="none").fit(scores, target).threshold == counted.threshold


def counted_recall(inside, target):
    right = (target == 1).sum(-1)
    return np.where(right > 0, (inside & (target == 1)).sum(-1) / np.maximum(right, 1), 1.0)


def test_a_function_goes_to_json_by_its_registered_name():
    scores, target = some_data(2, rows=200, ties=False)
    with pytest.raises(ValueError, match=r"the risk 'two_wrong' is a function: give it a name with register_risk"):
        RiskControl(two_wrong, 0.3, 0.1).fit(scores, target).to_json()
    register_risk(Risk("two-wrong-labels", of_sets=two_wrong, grows=True))
    rule = RiskControl("two-wrong-labels", 0.3, 0.1).fit(scores, target)
    assert SetRule.from_json(rule.to_json()).predict(scores) == rule.predict(scores)


def test_a_function_must_keep_its_bounds():
    scores, target = some_data(2)
    with pytest.raises(ValueError, match=r"one loss for each of 20 rows, from 0 to 1.0; it .* to 7"):
        RiskControl(lambda inside, target: np.full(len(target), 7), 0.3, 0.1).fit(scores, target)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"risk": "speed"}, "there is no risk 'speed'; there are recall, precision, f1, false-positives"),
        ({"alpha": 0}, "alpha must be above 0 and below 1"),
        ({"alpha": [0.1, 0.2]}, "give an alpha for each risk: 1 risks"),
        ({"delta": 0.1, "method": "crc"}, "has no delta"),
        ({"method": "ltt"}, "hold with probability 1 - delta: got method='ltt', delta=None"),
        ({"risk": "precision"}, "precision is not monotone in the size of sets: use method='ltt' with a delta"),
        ({"delta": 2}, "delta must be between 0 and 1"),
        ({"bound": "hope"}, "bound must be one of 'hoeffding-bentkus', 'waudby-smith-ramdas', got 'hope'"),
        ({"risk": "f1", "delta": 0.1, "per_label": True}, "per_label is for the risks 'recall' and 'false-positives'"),
        ({"max_size": 3}, "max_size goes with the risk 'false-positives'"),
        ({"method": "magic"}, "method must be one of 'crc', 'rcps', 'ltt', got 'magic'"),
    ],
)
def test_settings_that_make_no_promise_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        RiskControl(**{"risk": "recall", "alpha": 0.1, **options})


def test_the_promise_is_said_in_words():
    scores, target = some_data(0)
    said = RiskControl("recall", 0.2, 0.1).fit(scores, target).promise
    assert said == (
        "on average at most 20.0% of an example's right labels are missed (among the labels that are looked at), "
        "with a confidence of 90.0%"
    )
    assert "a set has at most 2 wrong labels, over calibrations" in RiskControl("false-positives", 2).promise
    few = RiskControl("recall", 0.05, 0.05).fit(scores[:10], target[:10])
    assert few.concern == f"9 calibration rows allow the promise of {few!r} only with sets of every label"
    assert few.predict(scores - 99).sizes.min() == 4


def test_no_option_is_named_that_would_not_help_to_find_a_risk() -> None:
    with pytest.raises(ShortlistError, match="the name that register_risk gave it") as refused:
        RiskControl("json:loads", 0.1)
    assert "allow" not in str(refused.value)


def test_one_row_is_said_to_be_one_and_rows_without_right_labels_to_teach_nothing() -> None:
    scores, target = np.zeros((5, 3)), np.zeros((5, 3), int)
    one = RiskControl("false-positives", 1, 0.1).fit(scores[:1], target[:1])
    assert one.concern.startswith("1 calibration row allows the promise of ")
    assert one.promise == "on average a set has at most 1 wrong label, with a confidence of 90.0%"
    for per_label, listed in ((False, "sets are empty"), (True, "sets hold every label")):
        nothing = RiskControl("recall", 0.1, per_label=per_label).fit(scores, target)
        assert nothing.concern == f"none of the 5 calibration rows has a right label: {listed}, and nothing is known"


def test_rows_like_those_of_calibration_are_answered_alike_in_another_type() -> None:
    scores = np.full((40, 3), 0.1) * [1, 3, 7]  # their sigmoids differ in the last bits of the two types
    target = np.tile([0, 1, 0], (40, 1))
    for first, second in ((np.float32, np.float64), (np.float64, np.float32)):
        rule = RiskControl("recall", 0.1).fit(scores.astype(np.float32).astype(first), target)
        assert rule.predict(scores.astype(np.float32).astype(second)).to_lists()[0] == [1, 2]
