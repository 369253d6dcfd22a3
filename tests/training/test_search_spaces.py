"""Sums of rows: the same steps as among all weights, in shorter arrays."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix, random_array
from sklearn.linear_model import LogisticRegression

from shortlist.training.full_batch import Loss, binary_columns, fit_linear, softmax_rows
from shortlist.training.search_spaces import AllWeights, SumsOfRows, space_of

ROWS, COLUMNS, LABELS = 120, 400, 5
DRAW = np.random.default_rng(0)
WIDE = csr_matrix(random_array((ROWS, COLUMNS), density=0.1, rng=DRAW, dtype=np.float32))
SCORES = WIDE @ DRAW.normal(size=(COLUMNS, LABELS)) + DRAW.normal(size=LABELS)
START = torch.from_numpy(DRAW.normal(size=(COLUMNS + 1, LABELS)).astype(np.float32))


@pytest.mark.parametrize("strength", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("start", [torch.zeros_like(START), START], ids=["zero", "anywhere"])
def test_every_label_of_a_wide_matrix_has_the_weights_of_its_own_logistic_regression(
    strength: float, start: torch.Tensor
) -> None:
    target = (SCORES > 0).astype(np.int64)
    found = fit_linear(WIDE, torch.from_numpy(target), start, binary_columns, strength, tolerance=1e-5).weights.numpy()
    for label in range(LABELS):
        model = LogisticRegression(C=1 / strength, tol=1e-8, max_iter=5000).fit(WIDE, target[:, label])
        expected = np.concatenate([model.coef_[0], model.intercept_])
        np.testing.assert_allclose(found[:, label], expected, atol=1e-2)


@pytest.mark.parametrize(
    ("loss", "target"),
    [(binary_columns, (SCORES > 0).astype(np.int64)), (softmax_rows, SCORES.argmax(1))],
    ids=["binary", "softmax"],
)
@pytest.mark.parametrize("most", [2, 5, 30])  # before the memory is full, and after
def test_the_steps_are_those_among_all_weights(
    loss: Loss, target: np.ndarray, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fitted(space: Callable[..., object]) -> np.ndarray:
        monkeypatch.setattr("shortlist.training.full_batch.space_of", space)
        rest = torch.from_numpy(target), START, loss, 0.1
        return fit_linear(WIDE, *rest, tolerance=1e-5, most=most).weights.numpy()

    expected = fitted(AllWeights)
    np.testing.assert_allclose(fitted(SumsOfRows), expected, atol=2e-3 * np.abs(expected).max())


def test_a_place_has_the_scores_and_the_products_of_its_weights() -> None:
    space = SumsOfRows(WIDE, START.numpy())
    place = space.start + space.gradient(DRAW.normal(size=(ROWS, LABELS)).astype(np.float32))
    head = space.head(place)
    np.testing.assert_allclose(space.scores(place), WIDE @ head[:-1] + head[-1], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose((place[0] * place[-1]).sum(0), (head**2).sum(0), rtol=1e-4)


def test_some_labels_have_the_scores_that_they_had_among_all() -> None:
    space, some = SumsOfRows(WIDE, START.numpy()), np.array([True, False, True, True, False])
    by_scores = DRAW.normal(size=(ROWS, LABELS)).astype(np.float32)
    place = space.start + space.gradient(by_scores)
    few = space.of(some)
    np.testing.assert_allclose(few.head(place.compress(some, -1)), space.head(place)[:, some], rtol=1e-5)
    np.testing.assert_allclose(few.gradient(by_scores[:, some]), space.gradient(by_scores)[..., some], rtol=1e-4)


def test_only_sparse_columns_that_are_many_more_than_rows_are_fitted_by_sums_of_rows() -> None:
    def kind(inputs: object, columns: int) -> type:
        return type(space_of(inputs, np.zeros((columns + 1, 1), np.float32)))

    assert kind(WIDE, COLUMNS) is SumsOfRows
    assert kind(WIDE[:, :200], 200) is AllWeights
    assert kind(WIDE.toarray(), COLUMNS) is AllWeights
