"""SetClassifier: labels, decision values and calibrated probabilities."""

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import softmax
from sklearn.metrics import f1_score

from shortlist.estimators import SetClassifier
from shortlist.estimators.decisions import Decision, best_decision, log_odds
from shortlist.metrics.functional import calibration_error
from tests.estimators.made import X, Y, classifier


def test_predict_of_several_labels_has_the_best_micro_f1_on_held_out_rows() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        linked = torch.from_numpy(rng.integers(1, 9, (6, 4)) / 10)
        target = torch.from_numpy(rng.integers(0, 2, (6, 4)))
        decision = best_decision(linked, target)
        tried = [Decision(cut, one).of(linked) for cut in np.arange(0.05, 1, 0.1) for one in (False, True)]
        best = max(f1_score(target, found, average="micro", zero_division=0) for found in tried)
        assert f1_score(target, decision.of(linked), average="micro", zero_division=0) == pytest.approx(best)


def test_the_best_threshold_is_found_though_few_scores_are_sorted() -> None:
    """All present labels but one have low scores: many cuts have to be looked at."""
    scores = torch.linspace(1, 0, 400).reshape(20, 20)
    target = torch.zeros(20, 20, dtype=torch.int8)
    target[0, 0], target[-1, -6:] = 1, 1

    def f1(predicted: torch.Tensor) -> float:
        return 2 * int((predicted & (target == 1)).sum()) / int(predicted.sum() + 7)

    best = max(f1(scores > cut) for cut in (*scores.flatten().tolist(), -1.0))
    assert f1(best_decision(scores, target).of(scores)) >= best


def test_two_classes_have_one_decision_value_and_probabilities_agree_with_it() -> None:
    for objective in ("cross-entropy", "assume-negative"):
        model = classifier(objective).fit(X, Y > 3)
        decision, proba = model.decision_function(X), model.predict_proba(X)
        assert decision.shape == (300,)
        assert np.array_equal(decision > 0, model.predict(X))
        np.testing.assert_allclose(proba[:, 1], 1 / (1 + np.exp(-decision.astype(float))), rtol=1e-5)


def test_decision_values_of_single_labels_are_log_odds_and_rank_rows_as_probabilities_do() -> None:
    model = classifier().fit(X, Y)
    decision, proba = model.decision_function(X), model.predict_proba(X)
    np.testing.assert_allclose(decision, np.log(proba / (1 - proba)), rtol=1e-6)
    assert np.array_equal(decision.argsort(0, kind="stable"), proba.argsort(0, kind="stable"))


def test_log_odds_tell_very_sure_rows_apart() -> None:
    odds = log_odds(torch.tensor([[50.0, 0.0, 0.0], [60.0, 0.0, -1.0]], dtype=torch.float64))
    expected = torch.tensor([50 - np.log(2), 60 - np.log1p(np.exp(-1))], dtype=torch.float64)
    torch.testing.assert_close(odds[:, 0], expected)


@pytest.mark.parametrize("kind", ["temperature", "vector", "isotonic"])
@pytest.mark.parametrize("several", [False, True])
def test_scaling_makes_probabilities_right_also_after_saving(kind: str, several: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 4))
    chances = softmax(x @ rng.normal(size=(4, 3)), axis=1)
    drawn = rng.random(chances.shape) < chances, (chances.cumsum(1) > rng.random((1500, 1))).argmax(1)
    y = drawn[0].astype(int) if several else drawn[1]
    weak = {"weight_decay": 1000.0, "solver": "lbfgs", "calibration": 0.3, "random_state": 0}  # far too unsure
    plain, scaled = (SetClassifier(scaling=one, k=1.0, **weak).fit(x[:1000], y[:1000]) for one in (None, kind))
    truth = torch.from_numpy(y[1000:])

    def error(model: SetClassifier) -> float:
        return float(calibration_error(torch.from_numpy(model.predict_proba(x[1000:])), truth, link="none"))

    assert error(scaled) < (0.6 if kind != "temperature" else 0.9) * error(plain)
    assert np.array_equal(scaled.predict(x), plain.predict(x)) or several
    assert scaled.rule_.link == scaled.link_
    scaled.save(tmp_path / "model.safetensors")
    again = SetClassifier.load(tmp_path / "model.safetensors")
    assert np.array_equal(again.predict_proba(x), scaled.predict_proba(x))
    if not several:
        np.testing.assert_allclose(scaled.predict_proba(x).sum(1), 1, rtol=1e-6)
