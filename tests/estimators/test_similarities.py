"""SetClassifier: when similarities to rows take the place of the columns."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from scipy.special import softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler

from shortlist.estimators import SetClassifier
from tests.estimators.made import MX, MY, best_tried


def products(rows: int) -> tuple[Any, Any]:
    """Ten labels, each of which is present where two of twelve columns have the same sign."""
    x = np.random.default_rng(rows).normal(size=(rows, 12)).astype(np.float32)
    x = np.sign(x) + 0.3 * x
    return x, np.stack([x[:, at % 4] * x[:, (at + 1 + at // 4) % 4] > 0 for at in range(10)], 1).astype(np.int64)


def kernel_space(x: Any) -> Any:
    """Where the weights of a kernel method are: in the space of its eigenvectors, however that is turned."""
    z, rows = StandardScaler().fit_transform(x), len(x)
    distances = np.sqrt(((z[:, None] - z[None]) ** 2).sum(-1))
    median = np.sort(distances[np.triu_indices(rows, 1)])[(rows * (rows - 1) // 2 - 1) // 2]
    values, vectors = np.linalg.eigh(np.exp(-((distances / median) ** 2)))
    space = (vectors * np.sqrt(values.clip(min=0)))[:, values > 1e-4 * values[-1]]
    space -= space.mean(0)
    return space * np.sqrt(x.shape[1] / (space**2).sum(1).mean())


def test_similarities_to_rows_are_chosen_where_no_linear_model_will_do_and_are_a_kernel_method() -> None:
    x, y = products(120)
    y = np.where(np.random.default_rng(0).random(y.shape) < 0.15, 1 - y, y)
    model = SetClassifier(k=2, random_state=0).fit(x, y)
    assert model.hidden_ == (120,)
    scale = "of similarities, each column's own"
    assert {one["scale"] for one in model.selection_} == {"each column's own", scale}
    best = best_tried(model, 120)
    assert (best["scale"], best["weight_decay"]) == (scale, model.weight_decay_)
    space = kernel_space(x)
    peer = OneVsRestClassifier(LogisticRegression(C=1 / model.weight_decay_, tol=1e-6, max_iter=1000)).fit(space, y)
    base = np.log((y.sum(0) + 0.5) / ((1 - y).sum(0) + 0.5))
    scores = base + best["stretch"] * (peer.decision_function(space) - base)
    np.testing.assert_allclose(model.decision_function(x), scores, atol=0.05, rtol=0.01)


def test_a_model_of_similarities_predicts_better_and_goes_wherever_a_model_goes(tmp_path: Path) -> None:
    x, y = products(400)
    new, right = products(300)
    model = SetClassifier(k=2, random_state=0).fit(x, y)
    linear = SetClassifier(k=2, hidden=(), random_state=0).fit(x, y)
    assert (model.hidden_, linear.hidden_) == ((120,), ())
    assert model.score(new, right) > linear.score(new, right) + 0.05
    assert f1_score(right, model.predict(new), average="micro") > 0.8
    scores = model.decision_function(new)
    np.testing.assert_allclose(model.decision_function(new[:1]), scores[:1], rtol=1e-4)
    model.save(tmp_path / "model.safetensors")
    for again in (SetClassifier.load(tmp_path / "model.safetensors"), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(again.decision_function(new), scores)
        assert again.hidden_ == model.hidden_
        assert again.predict_sets(new) == model.predict_sets(new)
    assert np.array_equal(clone(model).fit(x, y).decision_function(new), scores)
    model.partial_fit(x, y)
    assert model.score(new, right) > linear.score(new, right)
    with torch.no_grad():
        assert bool(model.learner_.scores(torch.full((1, 12), torch.nan)).isnan().all())


def quarters(rows: int) -> tuple[Any, Any]:
    """Four classes, by which of three columns have the same sign; one in ten is another one by chance."""
    x, rng = np.random.default_rng(rows).normal(size=(rows, 6)).astype(np.float32), np.random.default_rng(0)
    y = 2 * (x[:, 0] * x[:, 1] > 0) + (x[:, 1] * x[:, 2] > 0)
    return x, np.where(rng.random(rows) < 0.1, rng.integers(4, size=rows), y)


def test_single_labels_have_similarities_too() -> None:
    x, y = quarters(300)
    model = SetClassifier(k=1, random_state=0).fit(x, y)
    assert model.hidden_ == (300,)
    *walked, last = (one for one in model.selection_ if one["scale"].startswith("of similarities"))
    assert [one["folds"] for one in (*walked, last)] == [1] * len(walked) + [3]
    best = min(walked, key=lambda one: 100 * (one["loss"] - one["precision_at_1"]))
    assert model.weight_decay_ == best["weight_decay"] == last["weight_decay"]
    space = kernel_space(x)
    peer = LogisticRegression(C=1 / model.weight_decay_, tol=1e-6, max_iter=5000).fit(space, y)
    stretch = model.history_[0]["stretch"]
    assert stretch < 1  # too large scores are divided
    expected = softmax(stretch * peer.decision_function(space), axis=1)
    np.testing.assert_allclose(model.predict_proba(x), expected, atol=0.04)
    linear, (new, right) = SetClassifier(k=1, hidden=(), random_state=0).fit(x, y), quarters(1000)
    assert model.score(new, right) > linear.score(new, right) + 0.2


def test_similarities_of_single_labels_end_with_the_first_fold_where_a_linear_model_is_better() -> None:
    x, _ = quarters(300)
    model = SetClassifier(k=1, random_state=0).fit(x, x[:, :3].argmax(1))
    *linear, last = model.selection_
    assert model.hidden_ == ()
    assert (last["scale"].split(",")[0], last["folds"]) == ("of similarities", 1)
    assert all(one["folds"] == 3 and "similar" not in one["scale"] for one in linear)


def test_similarities_of_single_labels_are_tried_on_other_folds_only_where_the_first_favours_them() -> None:
    """Little is to be learnt, and with the first decay scores are far too large, so that a stronger one is next."""
    (x, _), chance = quarters(300), np.random.default_rng(15).normal(size=300)
    model = SetClassifier(k=1, random_state=0).fit(x, x[:, 0] + 2 * chance > 1.5)
    first, *walked = (one for one in model.selection_ if one["scale"].startswith("of similarities"))
    assert model.hidden_ == ()
    assert first["stretch"] <= 0.5
    assert [one["folds"] for one in walked] == [1] * len(walked)
    assert walked[0]["weight_decay"] == pytest.approx(10 * first["weight_decay"])


def test_nothing_else_is_tried_where_nearly_every_held_out_row_is_right_and_sure() -> None:
    y = np.arange(300) % 3
    x = np.random.default_rng(0).normal(size=(300, 6)) * [1, 2, 3, 4, 5, 6] + 40 * np.eye(6)[y]
    model = SetClassifier(k=1, random_state=0).fit(x, y)
    assert {one["scale"] for one in model.selection_} == {"between the two"}
    assert (model.predict_proba(x).max(1) > 0.98).all()
    unsure = SetClassifier(k=1, random_state=0).fit(x, np.where(np.arange(300) < 20, 0, y))
    assert len({one["scale"] for one in unsure.selection_}) == 4


@pytest.mark.parametrize(
    ("x", "y", "options"),
    [
        (MX, MY, {"hidden": ()}),
        (MX, MY, {"weight_decay": 1.0}),
        (csr_matrix(products(120)[0]), products(120)[1], {}),
        (np.repeat(np.eye(2), [55, 5], axis=0), np.repeat([[1, 0], [0, 1]], [55, 5], axis=0), {}),  # all alike
        (products(120)[0], (products(120)[0][:, :10] > 0).astype(int), {}),  # linear
    ],
)
def test_the_default_stays_linear_where_similarities_are_not_better_or_not_tried(x: Any, y: Any, options: Any) -> None:
    assert SetClassifier(k=1, random_state=0, **options).fit(x, y).hidden_ == ()
