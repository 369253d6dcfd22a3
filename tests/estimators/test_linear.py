"""SetClassifier: linear models fitted to all rows at once, their strength and the scales of their columns."""

import warnings

import numpy as np
import pytest
import torch
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler

from shortlist.estimators import SetClassifier
from shortlist.training.full_batch import binary_columns, softmax_rows
from shortlist.training.strengths import best_stretch
from tests.estimators.made import MX, MY, X, Y, best_tried, scaled


def test_the_default_is_the_logistic_regression_of_the_chosen_strength_stretched_away_from_the_base_rates() -> None:
    model = SetClassifier(k=2, hidden=(), random_state=0).fit(MX, MY)
    best = best_tried(model, len(MY))
    assert model.weight_decay_ == best["weight_decay"]
    assert len(model.selection_) >= 4
    peer = OneVsRestClassifier(LogisticRegression(C=1 / model.weight_decay_, tol=1e-6, max_iter=1000))
    x = scaled(MX, best["scale"])
    base = np.log((MY.sum(0) + 0.5) / ((1 - MY).sum(0) + 0.5))
    scores = base + best["stretch"] * (peer.fit(x, MY).decision_function(x) - base)
    np.testing.assert_allclose(model.decision_function(MX), scores, atol=0.03)


def test_columns_of_one_kind_keep_their_common_scale_where_held_out_rows_say_so() -> None:
    """Wide columns tell the class, many narrow ones are noise, which would drown them if all were standardised."""
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=200)
    scales = np.concatenate([np.full(3, 5.0), np.full(150, 0.1)])
    x = rng.normal(size=(200, 153)) * scales
    x[:, :3] += 6 * rng.normal(size=(4, 3))[y]
    model = SetClassifier(k=1, random_state=0).fit(x, y)
    best = best_tried(model, 200)
    assert best["scale"] == "one for all columns"
    assert model.weight_decay_ == best["weight_decay"]
    peer = LogisticRegression(C=1 / model.weight_decay_, tol=1e-6, max_iter=5000)
    common = scaled(x, best["scale"])
    stretch = model.history_[0]["stretch"]
    centre = np.log((np.bincount(y) + 0.5) / 202) if stretch >= 1 else 0  # too large scores are divided
    scores = centre + stretch * (peer.fit(common, y).decision_function(common) - centre)
    np.testing.assert_allclose(model.predict_proba(x), softmax(scores, axis=1), atol=0.02)


def test_columns_on_scales_of_their_own_are_tried_with_less_decay_where_the_first_is_too_much_for_them() -> None:
    """One wide column beside forty of 0 and 1, in one of which each row has a 1: a class is a range of both."""
    rng = np.random.default_rng(4)
    wide, kind = rng.normal(2800, 300, 1500), rng.integers(0, 40, 1500)
    x = np.column_stack([wide, np.eye(40)[kind]])
    y = np.clip(((wide - 2200) / 200 + (kind < 20) + rng.normal(0, 0.3, 1500)).round(), 1, 7).astype(int)
    model = SetClassifier(k=1, random_state=0).fit(x[:1000], y[:1000])
    peer = LogisticRegression(C=1, max_iter=1000).fit(StandardScaler().fit_transform(x[:1000]), y[:1000])
    scaled = (x[1000:] - x[:1000].mean(0)) / x[:1000].std(0)
    assert model.score(x[1000:], y[1000:]) >= peer.score(scaled, y[1000:]) - 0.01


def test_columns_of_two_values_beside_numbers_of_any_unit_count_like_the_categories_of_a_table() -> None:
    """On scales of their own, the rarest of forty kinds would count most."""
    rng = np.random.default_rng(0)
    kind, chance = rng.choice(40, 2300, p=rng.dirichlet(np.full(40, 0.5))), rng.normal(size=(2300, 6))
    scores = chance @ rng.normal(size=(6, 5)) + rng.normal(size=(40, 5))[kind] + rng.gumbel(size=(2300, 5))
    x, y = np.column_stack([3000 + 500 * chance, np.eye(40)[kind]]), scores.argmax(1)
    model = SetClassifier(k=1, random_state=0).fit(x[:300], y[:300])
    assert model.selection_[0]["scale"] == "between the two"
    grid = GridSearchCV(LogisticRegression(max_iter=1000), {"C": [0.01, 0.1, 1, 10]}, cv=3)
    standard = StandardScaler().fit(x[:300])
    peer = grid.fit(standard.transform(x[:300]), y[:300])
    assert model.score(x[300:], y[300:]) > peer.score(standard.transform(x[300:]), y[300:]) + 0.02


def test_too_large_scores_of_single_labels_are_divided_so_that_no_row_changes_its_class() -> None:
    """More columns than rows, so that the classes fall apart whatever the strength, and some are more common."""
    rng = np.random.default_rng(0)
    y = rng.choice(3, size=1080, p=[0.5, 0.3, 0.2])
    x = rng.normal(size=(1080, 200))
    x[:, :6] += rng.normal(size=(3, 6))[y]
    model = SetClassifier(k=1, preprocess=None, random_state=0).fit(x[:80], y[:80])
    stretch = model.history_[0]["stretch"]
    assert stretch < 0.9
    peer = LogisticRegression(C=1 / model.weight_decay_, tol=1e-6, max_iter=5000).fit(x[:80], y[:80])
    np.testing.assert_array_equal(model.predict(x), peer.predict(x))
    np.testing.assert_allclose(model.predict_proba(x), softmax(stretch * peer.decision_function(x), axis=1), atol=1e-3)


def test_columns_of_very_different_units_are_standardised() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=200)
    x = rng.normal(size=(200, 6)) + 2 * np.eye(3)[y].repeat(2, axis=1)
    model = SetClassifier(k=1, random_state=0).fit(x * 10.0 ** np.arange(-3, 3), y)
    assert best_tried(model, 200)["scale"] == "each column's own"
    assert model.score(x * 10.0 ** np.arange(-3, 3), y) > 0.85


def test_the_stretch_has_the_smallest_loss_on_held_out_rows() -> None:
    scores = torch.from_numpy(np.random.default_rng(0).normal(size=(4000, 2)))
    target = (torch.rand(4000, 2, generator=torch.Generator().manual_seed(0)) < torch.sigmoid(3 * scores)).long()
    stretch, lost = best_stretch(scores, torch.zeros(2), target, binary_columns)
    assert 2.8 < stretch < 3.2
    around = [float(binary_columns(factor * stretch * scores, target)[0].sum()) / 4000 for factor in (0.9, 1.1)]
    assert lost < min(around)


def test_rows_that_are_all_right_do_not_make_scores_as_large_as_they_may_be() -> None:
    target = torch.arange(60) % 3
    scores = torch.eye(3)[target] + 0.1 * torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    stretch, lost = best_stretch(scores, torch.zeros(3), target, softmax_rows)
    # one more row, as sure as they are on average, and wrong
    others = (scores.sum(1) - scores.amax(1)) / 2
    surest = float((scores.amax(1) - others).mean())
    factors = torch.linspace(1, 16, 301).tolist()
    tried = {one: float(softmax_rows(one * scores, target)[0].sum()) + one * surest for one in factors}
    assert abs(stretch - min(tried, key=lambda factor: tried[factor])) < 0.1
    assert lost == pytest.approx(float(softmax_rows(stretch * scores, target)[0].sum()) / 60)


@pytest.mark.parametrize("rows", [4, 8, 12, 30])
def test_a_handful_of_rows_will_do(rows: int) -> None:
    y = np.arange(rows) % 2
    for target in (y, np.stack([y, 1 - y, y], 1)):
        model = SetClassifier(k=1, random_state=0).fit(X[:rows], target)
        assert model.predict(X[:rows]).shape == target.shape


def test_units_do_not_matter_by_default() -> None:
    scales = 10.0 ** np.arange(-3, 3)
    one, other = (SetClassifier(random_state=0).fit(X * units, Y) for units in (scales, scales[::-1]))
    np.testing.assert_allclose(one.decision_function(X * scales), other.decision_function(X * scales[::-1]), atol=1e-4)


def test_columns_of_units_that_are_very_far_apart_are_fitted_without_a_word() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SetClassifier(k=2, random_state=0).fit(X * 10.0 ** np.linspace(-10, 10, X.shape[1]), Y)
    assert model.score(X * 10.0 ** np.linspace(-10, 10, X.shape[1]), Y) > 0.9
