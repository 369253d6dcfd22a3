"""SetClassifier: rows that count more than others."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sklearn
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from shortlist.errors import ShortlistError
from shortlist.estimators import SetClassifier
from shortlist.labels import LabelSets
from tests.estimators.made import MX, MY, NAMES, X, Y, classifier

WEIGHTS = np.random.default_rng(0).integers(0, 4, 300)


@pytest.mark.parametrize("preprocess", ["auto", None])
@pytest.mark.parametrize(
    ("objective", "several"),
    [("cross-entropy", False), ("smooth-topk", False), ("lml", False), ("binary", True), ("lsep", True)],
)
@pytest.mark.parametrize("settings", [
    {"solver": "lbfgs", "weight_decay": 1.0},
    {"solver": "adamw", "weight_decay": 0.1, "epochs": 30, "lr": 0.05, "batch_size": 1000},
])  # fmt: skip
def test_whole_weights_are_as_good_as_rows_that_are_repeated(
    objective: str, several: bool, settings: dict[str, Any], preprocess: str | None
) -> None:
    model = SetClassifier(objective, k=2, preprocess=preprocess, calibration=0, random_state=0, **settings)
    inputs, labels = (MX, MY) if several else (X, Y)
    weighted = clone(model).fit(inputs, labels, sample_weight=WEIGHTS).decision_function(inputs)
    repeated = clone(model).fit(inputs.repeat(WEIGHTS, 0), labels.repeat(WEIGHTS, 0)).decision_function(inputs)
    np.testing.assert_allclose(weighted, repeated, atol=0.02 * np.abs(repeated).max())
    assert np.abs(weighted - clone(model).fit(inputs, labels).decision_function(inputs)).max() > 0.1


def test_the_strength_that_folds_choose_is_that_of_weighted_rows() -> None:
    weights = np.where(Y < 4, 1.0, 1e-3)  # half of the classes hardly count
    model = SetClassifier(hidden=(), random_state=0).fit(X, Y, weights)
    right = model.predict(X) == Y
    assert right[Y < 4].mean() > SetClassifier(hidden=(), random_state=0).fit(X, Y).score(X[Y < 4], Y[Y < 4])
    assert model.selection_[0]["precision_at_1"] > 0.8 > right.mean()


@pytest.mark.parametrize("kind", [np.asarray, csr_matrix, pd.DataFrame, lambda x: pa.table(pd.DataFrame(x))])
@pytest.mark.parametrize("several", [False, True])
def test_a_row_of_weight_0_is_as_if_it_were_not_there(kind: Any, several: bool) -> None:
    there = np.arange(300) % 3 > 0
    labels: Any = LabelSets.from_lists([np.flatnonzero(row).tolist() for row in MY], 5) if several else NAMES[Y]
    if not several:
        labels[~there] = "zebra"
    inputs = np.where(there[:, None], MX, 1e9)
    names = [f"x{place}" for place in range(MX.shape[1])]
    made, kept = (kind(rows) for rows in (inputs, MX[there]))
    if isinstance(made, pd.DataFrame):
        made.columns = kept.columns = names
    weighted = SetClassifier(random_state=0).fit(made, labels, sample_weight=there.astype(float))
    alone = SetClassifier(random_state=0).fit(kept, labels[there], sample_weight=np.ones(200))
    np.testing.assert_allclose(weighted.decision_function(kept), alone.decision_function(kept), atol=1e-4)
    assert weighted.classes_.tolist() == alone.classes_.tolist()


@pytest.mark.parametrize("total", [1.0, 1e-9])
def test_weights_that_sum_to_little_learn_as_well_as_none(total: float) -> None:
    model = SetClassifier(random_state=0)
    plain = clone(model).fit(MX, MY).decision_function(MX)
    weighted = clone(model).fit(MX, MY, sample_weight=np.full(len(MX), total / len(MX))).decision_function(MX)
    np.testing.assert_allclose(weighted, plain, atol=0.02)


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        (np.ones(299), "sample_weight holds 299 weights, and X has 300 rows"),
        (np.ones((300, 1)), r"one number per row, shape \(300,\), got shape \(300, 1\)"),
        (-np.ones(300), r"sample_weight\[0\] is -1: weights are finite numbers from 0"),
        (np.r_[np.ones(299), np.nan], r"sample_weight\[299\] is nan"),
        (np.r_[1.0, np.inf, np.ones(298)], r"sample_weight\[1\] is inf"),
        (np.zeros(300), "sample_weight is zero in every row"),
        (["a"] * 300, "sample_weight must hold numbers, one per row"),
    ],
)
def test_weights_that_cannot_be_are_told(weights: Any, told: str) -> None:
    with pytest.raises(ShortlistError, match=told):
        SetClassifier().fit(X, Y, sample_weight=weights)


def test_an_objective_that_knows_no_weights_of_rows_refuses_them() -> None:
    with pytest.raises(ShortlistError, match="objective 'average-k' takes no sample_weight"):
        classifier("average-k", k=2).fit(X, Y, sample_weight=np.ones(300))


def test_a_search_hands_each_fold_the_weights_of_its_rows() -> None:
    search = GridSearchCV(classifier(), {"lr": [0.01, 0.1]}, cv=2, error_score="raise")
    assert search.fit(X, Y, sample_weight=WEIGHTS).best_estimator_.score(X, Y) > 0.5
    with sklearn.config_context(enable_metadata_routing=True):
        asking = SetClassifier().set_fit_request(sample_weight=True)
        assert asking.get_metadata_routing().fit.requests == {"sample_weight": True}
