"""The full-batch solver: the optimum that scikit-learn finds, for one problem or one per label."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from torch.nn.functional import cross_entropy

from shortlist.errors import ShortlistError
from shortlist.training.full_batch import Turned, binary_columns, fit_linear, log_odds, softmax_rows, times, whole

X, Y = make_multilabel_classification(200, 10, n_classes=4, random_state=0)
X = ((X - X.mean(0)) / X.std(0)).astype(np.float32)


def oracle(target: np.ndarray, strength: float) -> np.ndarray:
    model = LogisticRegression(C=1 / strength, tol=1e-8, max_iter=5000).fit(X, target)
    return np.concatenate([model.coef_.T, model.intercept_[None]])


@pytest.mark.parametrize("strength", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("form", [torch.from_numpy, csr_matrix], ids=["dense", "sparse"])
def test_every_label_has_the_weights_of_its_own_logistic_regression(strength: float, form: object) -> None:
    start = torch.zeros(11, 4)
    found = fit_linear(form(X), torch.from_numpy(Y), start, binary_columns, strength, tolerance=1e-5)  # type: ignore[operator]
    expected = np.concatenate([oracle(Y[:, label], strength) for label in range(4)], axis=1)
    np.testing.assert_allclose(found.weights.numpy(), expected, atol=5e-3)
    assert not start.any()


def test_turned_columns_lead_to_the_same_scores_in_fewer_steps() -> None:
    mixed = X @ np.random.default_rng(0).normal(size=(10, 10)) + 3  # columns that go together, off the middle
    inputs, rest = torch.from_numpy(mixed.astype(np.float32)), (torch.from_numpy(Y), torch.zeros(11, 4), binary_columns)
    turned = Turned.of(inputs)
    assert turned is not None
    plain = fit_linear(inputs, *rest, 1.0, tolerance=1e-5)
    helped = fit_linear(turned.columns, *rest, 1.0, turned.variances, tolerance=1e-5)
    scores = times(inputs, plain.weights)
    np.testing.assert_allclose(times(turned.columns, helped.weights), scores, atol=5e-3)
    weights, biases = turned.head(helped.weights[:-1], helped.weights[-1])
    np.testing.assert_allclose(inputs @ weights + biases, scores, atol=5e-3)
    assert helped.evaluations < plain.evaluations / 2


@pytest.mark.parametrize(("shape", "axes"), [((6, 20), 5), ((40, 8), 8)])
def test_turned_columns_are_the_principal_components(shape: tuple[int, int], axes: int) -> None:
    """One less than rows, where these are few: their mean is taken off."""
    inputs = torch.from_numpy(np.random.default_rng(0).normal(1.0, size=shape)).float()
    turned = Turned.of(inputs)
    assert turned is not None
    assert turned.columns.shape == (shape[0], axes)
    torch.testing.assert_close(turned.columns @ turned.axes.T + turned.centre, inputs)
    torch.testing.assert_close(turned.axes.T @ turned.axes, torch.eye(axes), atol=1e-5, rtol=0)
    covariance = turned.columns.T @ turned.columns / len(inputs)
    torch.testing.assert_close(covariance, turned.variances.diag(), atol=1e-4, rtol=0)


def test_neither_sparse_nor_very_many_columns_are_turned() -> None:
    assert Turned.of(csr_matrix(X)) is None
    assert Turned.of(torch.zeros(3, 3000)) is None


def test_every_label_can_have_its_own_strength() -> None:
    strengths = torch.tensor([0.1, 1.0, 10.0, 100.0])
    found = fit_linear(torch.from_numpy(X), torch.from_numpy(Y), torch.zeros(11, 4), binary_columns, strengths)
    expected = np.concatenate([oracle(Y[:, j], float(strengths[j])) for j in range(4)], axis=1)
    np.testing.assert_allclose(found.weights.numpy(), expected, atol=3e-2)


def test_a_start_that_is_nearly_good_enough_is_still_improved_on() -> None:
    """Rows that can be told apart: the loss hardly bends, and with a little less decay the first gradient is small."""
    inputs, target = torch.from_numpy(X), torch.from_numpy((X[:, 0] > 0).astype(np.int64))
    turned = Turned.of(inputs)
    assert turned is not None
    first = fit_linear(turned.columns, target, torch.zeros(11, 2), softmax_rows, 0.01, turned.variances, tolerance=3e-3)
    rest = softmax_rows, 0.003, turned.variances
    again = fit_linear(turned.columns, target, first.weights, *rest, tolerance=3e-3)

    def cost(weights: torch.Tensor) -> float:
        loss = softmax_rows(times(turned.columns, weights), target)[0]
        return float(loss) + 0.003 / 2 * float(weights[:-1].square().sum())

    least = cost(fit_linear(turned.columns, target, first.weights, *rest, tolerance=1e-6, most=2000).weights)
    assert cost(again.weights) - least < 0.5 * (cost(first.weights) - least)


def test_a_loss_of_all_labels_is_one_problem() -> None:
    target = Y.argmax(1)
    loss = whole(cross_entropy)
    found = fit_linear(torch.from_numpy(X), torch.from_numpy(target), torch.zeros(11, 4), loss, 1.0, tolerance=1e-5)
    scores = torch.from_numpy(X) @ found.weights[:-1] + found.weights[-1]
    model = LogisticRegression(C=1, tol=1e-8, max_iter=5000).fit(X, target)
    np.testing.assert_allclose(scores.softmax(1), model.predict_proba(X), atol=2e-3)


def test_the_softmax_loss_and_its_gradient_are_those_of_autograd() -> None:
    scores, target = 3 * torch.randn(50, 4, dtype=torch.float64), torch.arange(50) % 5 - 1
    expected = whole(lambda scores, target: cross_entropy(scores, target, ignore_index=-1))(scores, target)
    for found, wanted in zip(softmax_rows(scores, target), expected, strict=True):
        torch.testing.assert_close(found, wanted)


def test_unknown_labels_change_nothing() -> None:
    some = torch.from_numpy(Y).clone()
    some[::3, 1] = -1
    rows = (some[:, 1] != -1).nonzero()[:, 0]
    whole_set = fit_linear(torch.from_numpy(X), some, torch.zeros(11, 4), binary_columns, 1.0, tolerance=1e-5)
    part = fit_linear(torch.from_numpy(X)[rows], some[rows], torch.zeros(11, 4), binary_columns, 1.0, tolerance=1e-5)
    np.testing.assert_allclose(whole_set.weights[:, 1], part.weights[:, 1], atol=1e-3)


def test_a_label_that_never_occurs_gets_a_low_bias_and_no_weights() -> None:
    target = torch.cat([torch.from_numpy(Y), torch.zeros(200, 1, dtype=torch.int64)], dim=1)
    start = torch.zeros(11, 5)
    start[-1] = log_odds(target, 5)
    found = fit_linear(torch.from_numpy(X), target, start, binary_columns, 1.0).weights
    assert found.isfinite().all()
    assert float(found[-1, 4]) < -5
    assert float(found[:-1, 4].abs().max()) < 0.1


@pytest.mark.parametrize("rows", [200, 5], ids=["many rows", "few rows"])
def test_inputs_whose_squares_overflow_are_refused(rows: int) -> None:
    with pytest.raises(ShortlistError, match=r"inputs hold numbers from -.*e.30 to .*e.30, whose squares are beyond"):
        Turned.of(torch.from_numpy(X[:rows] * 1e30))
