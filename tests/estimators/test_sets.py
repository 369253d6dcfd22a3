"""SetClassifier: sets of labels, their sizes and what they promise."""

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.datasets import make_multilabel_classification

from shortlist.errors import ShortlistError
from shortlist.estimators import SetClassifier
from tests.data.readers.made_files import SHARED
from tests.estimators.made import MX, MY, X, Y, classifier


def test_the_sets_of_very_many_scores_are_made_batch_by_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    model = classifier(epochs=1).fit(X, Y)
    whole = model.predict_sets(X)
    monkeypatch.setattr("shortlist.estimators.set_classifier.KEPT_BYTES", 100)
    monkeypatch.setattr("shortlist.training.learner.BATCH_SCORES", 7 * 8)  # seven rows of eight labels
    monkeypatch.delattr(SetClassifier, "_scores_tensor")
    assert model.predict_sets(X) == whole


@pytest.mark.parametrize("k", [1, 1.5, 3])
def test_average_k_sets_have_k_labels_on_average_on_new_data(k: float) -> None:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, 8))
    y = rng.integers(10, size=6000)
    x = centres[y] + rng.normal(size=(6000, 8))
    sets = classifier(k=k, calibration=0.2).fit(x[:3000], y[:3000]).predict_sets(x[3000:])
    assert sets.sizes.mean() == pytest.approx(k, abs=0.1)  # 600 calibration rows: 3 standard errors are below 0.1 k
    assert len(np.unique(sets.sizes)) > 1


def test_k_beyond_the_number_of_labels_means_all_of_them() -> None:
    for k in (50, np.inf):
        for rule in ("average-k", "top-k"):
            assert (classifier(k=k, rule=rule, epochs=1).fit(X, Y).predict_sets(X).sizes == 8).all()
    assert classifier("smooth-topk", k=50, epochs=1).fit(X, Y).learner_.objective.config.k == 7


def test_no_k_with_several_labels_is_their_mean_number() -> None:
    model = classifier("binary", k=None).fit(MX, MY)
    assert model.rule_.k == pytest.approx(MY.sum(1).mean(), abs=0.005)


def test_a_rule_without_anything_to_learn_holds_nothing_out() -> None:
    model = classifier(rule="top-k", k=2, batch_size=1, epochs=1)
    rows, held = model.fit(X, Y)._hold_out(torch.from_numpy(Y))
    assert (len(rows), len(held)) == (300, 0)


def test_held_out_rows_leave_every_label_to_train_on() -> None:
    y = np.array([0, 1, 2, 3, 4, 5, 6, 7] + [0] * 32)
    model = classifier(calibration=0.5).fit(X[:40], y)
    rows, held = model._hold_out(torch.from_numpy(y))
    assert set(y[rows]) == set(range(8))
    assert len(held) >= 10
    assert sorted([*rows.tolist(), *held.tolist()]) == list(range(40))


def test_conformal_sets_cover() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(6, size=4000)
    x = rng.normal(size=(6, 5))[y] + rng.normal(size=(4000, 5))
    model = classifier(rule="conformal", rule_options={"alpha": 0.2}, calibration=0.3).fit(x[:2000], y[:2000])
    assert model.predict_sets(x[2000:]).contains(y[2000:]).mean() == pytest.approx(0.8, abs=0.06)


def test_emotions_rank_well_and_sets_have_the_true_size() -> None:
    path = SHARED / "mulan_multilabel" / "emotions.npz"
    if not path.is_file():
        pytest.skip(f"needs the shared data folder ({SHARED})")
    with np.load(path) as file:
        parts = [_sparse(file, name) for name in ("X_train", "Y_train", "X_test", "Y_test")]
    train_x, train_y, test_x, test_y = parts
    model = SetClassifier(k=None, random_state=0).fit(train_x.toarray(), train_y)
    assert model.score(test_x.toarray(), test_y) > 0.78
    assert model.predict_sets(test_x.toarray()).sizes.mean() == pytest.approx(test_y.sum(1).mean(), abs=0.35)


def _sparse(file: Any, name: str) -> Any:
    return csr_matrix((file[f"{name}_data"], file[f"{name}_indices"], file[f"{name}_indptr"]), file[f"{name}_shape"])


def test_sets_of_all_labels_are_warned_of_and_none_is_fewer() -> None:
    with pytest.warns(UserWarning, match="every set will hold all of them; give a smaller k, or k=None"):
        classifier(k=50).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert classifier().fit(X, Y > 3).predict_sets(X).sizes.mean() == pytest.approx(1, abs=0.1)
        assert SetClassifier(random_state=0).fit(X, Y % 5).k_ == 3
        assert SetClassifier(random_state=0).fit(MX, MY).k_ == pytest.approx(MY.sum(1).mean(), abs=0.01)


@pytest.mark.parametrize(
    ("rule", "options"),
    [("risk-control", {"risk": "recall", "alpha": 0.2}), ("average-k", {"max_size": 5, "confidence": 0.9})],
)
def test_a_rule_that_promises_is_calibrated_on_rows_of_its_own(rule: str, options: dict[str, Any]) -> None:
    X, Y = make_multilabel_classification(200, n_classes=6, random_state=0)
    model = SetClassifier(k=2, rule=rule, rule_options=options, random_state=0).fit(X, Y)
    assert model.rule_.promise
    assert model._hold_out(torch.as_tensor(Y))[1].numel() == 20  # a tenth, which the model has not learned from


def test_scaling_of_an_unknown_kind_is_refused_and_goes_with_rules_that_learn_nothing() -> None:
    with pytest.raises(ShortlistError, match="scaling must be one of 'temperature', 'vector', 'isotonic', got 'platt'"):
        classifier(scaling="platt").fit(X, Y)
    model, plain = (classifier(rule="top-k", k=2, scaling=kind).fit(X, Y) for kind in ("temperature", None))
    assert set(model.predict_sets(X).sizes.tolist()) == {2}
    assert not np.allclose(model.predict_proba(X), plain.predict_proba(X))


def test_a_rule_that_needs_groups_is_refused_before_training() -> None:
    with pytest.raises(ShortlistError, match=r"SetClassifier knows no groups of rows: .*, groups=\.\.\."):
        classifier(rule="conformal", rule_options={"by_group": True}).fit(X, Y)
