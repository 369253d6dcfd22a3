"""SetClassifier: training in batches and in parts, and what of the program around it does not matter."""

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_wine, make_multilabel_classification
from sklearn.metrics import average_precision_score

from shortlist.estimators import SetClassifier
from shortlist.estimators.solvers import choose_training
from tests.estimators.made import MY, NAMES, X, Y, classifier


def test_hidden_layers_choose_learning_rate_and_epochs_on_held_out_rows() -> None:
    model = SetClassifier(k=2, hidden=(8,), batch_size=64, random_state=0).fit(X, Y)
    best = max(model.selection_, key=lambda tried: tried["score"])
    assert (model.lr_, model.epochs_) == (best["lr"], best["epochs"])
    assert len(model.selection_) == 6
    assert len(model.history_) == model.epochs_


@pytest.mark.parametrize("objective", ["curriculum", "latent-noise"])
def test_what_trains_in_batches_tells_columns_of_0_and_1_that_count_from_those_that_do_not(objective: str) -> None:
    rng = np.random.default_rng(0)
    x = (rng.random((1200, 200)) < 0.05).astype(np.float32)
    scores = x @ (3 * rng.normal(size=(200, 4)) * (rng.random((200, 4)) < 0.1)) + 0.3 * rng.normal(size=(1200, 4))
    y, rows = (scores > np.quantile(scores, 0.8, axis=0)).astype(int), csr_matrix(x)
    model = SetClassifier(objective, epochs=20, lr=0.01, random_state=0).fit(rows[:300], y[:300])
    peer = SetClassifier(random_state=0).fit(rows[:300], y[:300])
    found, usual = (average_precision_score(y[300:], one.decision_function(rows[300:])) for one in (model, peer))
    assert found > usual - 0.06, (found, usual)


def test_what_trains_in_batches_without_preparing_columns_learns_from_those_of_small_numbers_too() -> None:
    x = X * np.logspace(0, 4, X.shape[1])
    model = SetClassifier(k=2, solver="adamw", preprocess=None, epochs=20, lr=0.01, random_state=0).fit(x, Y)
    assert model.score(x, Y) > 0.9


def test_of_settings_that_rank_the_labels_of_rows_alike_those_are_chosen_whose_scores_compare_between_rows() -> None:
    target = torch.from_numpy(MY).to(torch.int8)

    def attempt(inputs: Any, target: Any, weights: Any, held: torch.Tensor, lr: float, epochs: int) -> torch.Tensor:
        return held + lr * torch.randn(len(held), 1, generator=torch.Generator().manual_seed(0))

    chosen, tried = choose_training(attempt, target.float(), target, None, tuple("abcde"), [(9.0, 5), (0.0, 5)], 0)
    assert chosen == [(0.0, 5)]
    assert tried[0]["score"] < tried[1]["score"] == 1


def test_partial_fit_takes_labels_that_stay_sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shortlist.estimators.targets.LARGE_MATRIX", 1)
    X, y = make_multilabel_classification(120, 10, n_classes=6, random_state=0)
    model = SetClassifier(random_state=0)
    for part in (slice(0, 60), slice(60, 120)):
        model.partial_fit(X[part], csr_array(y[part]))
    assert model.predict(X).shape == y.shape


def test_partial_fit_prepares_columns_by_its_first_rows() -> None:
    model = classifier().partial_fit(X[:100], Y[:100], classes=range(8))
    fitted = model.preprocessor_.to_json()
    assert model.partial_fit(X[100:] + 5, Y[100:]).preprocessor_.to_json() == fitted


def test_partial_fit_learns_and_recalibrates() -> None:
    model = classifier(k=2)
    for start in range(0, 300, 60):
        model.partial_fit(X[start : start + 60], NAMES[Y[start : start + 60]], classes=NAMES)
    for _ in range(4):
        model.partial_fit(csr_matrix(X), NAMES[Y])
    assert model.score(X, NAMES[Y]) > 0.6
    assert model.predict_sets(X).sizes.mean() == pytest.approx(2, abs=0.4)
    assert len(model.history_) == 9


def test_partial_fit_learns_in_few_steps() -> None:
    x, y = load_wine(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))
    model = SetClassifier(random_state=0)
    for part in np.array_split(rows[:120], 4):
        model.partial_fit(x[part], y[part], classes=range(3))
    assert model.score(x[rows[120:]], y[rows[120:]]) > 0.7


def test_partial_fit_keeps_a_column_that_begins_to_differ_later() -> None:
    random = np.random.default_rng(0)
    late = (np.arange(600) > 150) & (random.random(600) < 0.5)
    rows = np.stack([random.normal(size=600), late, np.full(600, np.nan)], axis=1)
    model = SetClassifier(random_state=0)
    for part in np.split(np.arange(600), 6):
        model.partial_fit(rows[part], late[part], classes=[False, True])
    assert model.score(rows, late) > 0.95
    assert model.preprocessor_.left_out == {2: "always blank"}


def test_partial_fit_wants_all_labels_first() -> None:
    with pytest.raises(ValueError, match="classes must be passed"):
        classifier().partial_fit(X, Y)
    with pytest.raises(ValueError, match="'zebu', which is not one of 'ant'"):
        classifier().partial_fit(X, NAMES[Y], classes=NAMES).partial_fit(X[:1], ["zebu"])
    with pytest.raises(ValueError, match="remembers every training example"):
        classifier("role").partial_fit(X, Y, classes=range(8))


@pytest.mark.parametrize("settings", [{}, {"hidden": (8,), "epochs": 2, "lr": 0.01}, {"objective": "smooth-topk"}])
@pytest.mark.parametrize("around", ["no_grad", "inference_mode", "double"])
def test_what_a_program_has_set_of_torch_does_not_reach_training(settings: dict[str, Any], around: str) -> None:
    model = SetClassifier(k=2, random_state=0, **settings)
    plain = clone(model).fit(X, Y).predict_proba(X)
    try:
        torch.set_default_dtype(torch.float64 if around == "double" else torch.float32)
        with torch.no_grad() if around != "inference_mode" else torch.inference_mode():
            there = pickle.loads(pickle.dumps(clone(model).fit(X, Y)))
            assert np.array_equal(there.predict_proba(X), plain)
        assert torch.get_default_dtype() == (torch.float64 if around == "double" else torch.float32)
    finally:
        torch.set_default_dtype(torch.float32)


def test_fits_in_several_threads_do_not_disturb_each_other() -> None:
    model = SetClassifier(hidden=(8,), epochs=2, lr=0.01, random_state=0)
    plain = clone(model).fit(X, Y).predict_proba(X)
    with ThreadPoolExecutor(3) as threads:
        for there in threads.map(lambda _: clone(model).fit(X, Y), range(6)):
            assert np.array_equal(there.predict_proba(X), plain)


def test_the_same_random_state_gives_the_same_model_and_leaves_torch_alone() -> None:
    torch.manual_seed(3)

    def scores(seed: int) -> Any:
        return classifier(hidden=(4,), dropout=0.5, random_state=seed).fit(X, Y).decision_function(X)

    first = scores(0)
    drawn = torch.rand(1)
    torch.manual_seed(3)
    assert drawn == torch.rand(1)
    assert np.array_equal(first, scores(0))
    assert not np.array_equal(first, scores(1))


def test_fit_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier().fit(X, Y).predict_sets(X)
    assert capfd.readouterr() == ("", "")
