"""SetClassifier: scikit-learn's own checks, every form of input, calibrated sets, files, pipelines and searches."""

import json
import math
import pickle
import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sklearn
import torch
from scipy.sparse import csr_array, csr_matrix
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_wine, make_blobs, make_multilabel_classification
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score, label_ranking_average_precision_score
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from shortlist.errors import ShortlistError, ShortlistWarning
from shortlist.estimators import SetClassifier, set_scorer
from shortlist.estimators.decisions import Decision, best_decision, log_odds
from shortlist.estimators.solvers import choose_training
from shortlist.estimators.targets import read_target
from shortlist.labels import LabelSets, SparseLabels
from shortlist.metrics.functional import calibration_error
from shortlist.nn import SmoothTopKLoss
from shortlist.objectives import OBJECTIVES
from shortlist.sets import TopK
from shortlist.training.full_batch import binary_columns, softmax_rows
from shortlist.training.strengths import best_stretch
from tests.data.readers.made_files import SHARED

X, Y = make_blobs(300, 6, centers=8, cluster_std=2.0, random_state=0)
X = (X / 6).astype(np.float32)
MX, MY = make_multilabel_classification(300, 12, n_classes=5, n_labels=2, random_state=0)
MX = (MX / 5).astype(np.float32)
NAMES = np.array(["ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen"])


def classifier(objective: str = "cross-entropy", **params: Any) -> SetClassifier:
    return SetClassifier(objective, **{"epochs": 5, "lr": 0.05, "random_state": 0, **params})


@parametrize_with_checks(
    [
        SetClassifier(random_state=0),
        SetClassifier("cross-entropy", preprocess=None, epochs=12, lr=0.1, random_state=0),
        SetClassifier("binary", rule="threshold", solver="lbfgs", weight_decay=0.1, random_state=0),
    ],
    expected_failed_checks=lambda _: {
        "check_methods_subset_invariance": "BLAS adds up float32 in an order that depends on the number of rows: 1e-6",
        "check_sample_weight_equivalence_on_dense_data": "rows are drawn for folds and batches; float32 rounds",
        "check_sample_weight_equivalence_on_sparse_data": "rows are drawn for folds and batches; float32 rounds",
    },
)
def test_scikit_learns_own_checks(estimator: SetClassifier, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


# ---- rows that count more than others

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


def test_a_column_that_numbers_the_rows_is_told() -> None:
    rows, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    frame = pd.DataFrame({"a": rows[:, 0], "id": range(60), "far": np.arange(60) * 7})[::2]
    with pytest.warns(ShortlistWarning, match=r"numbers the rows: 'id': .* X\.drop\(columns=\['id'\]\)"):
        SetClassifier(epochs=1, lr=0.1).fit(frame, (y + rows[:, 1] > 0)[::2])


def test_names_that_look_like_several_labels_are_told() -> None:
    y = ["joy|love", "joy", "love", "joy|love"] * 5
    with pytest.warns(ShortlistWarning, match=r"joy\|love.* in y is taken as one class: .*name\.split\('\|'\)"):
        SetClassifier(epochs=1, lr=0.1).fit(np.eye(4).repeat(5, 0), y)


def test_names_that_look_like_lists_are_told() -> None:
    with pytest.warns(ShortlistWarning, match=r"is taken as one class: if these are lists of labels, give lists"):
        classifier(epochs=1).fit(X[:8], ["['a', 'b']", "['a']", "['b']", "['a', 'b']"] * 2)


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


# ---- labels in, in any form


@pytest.mark.parametrize(
    ("y", "told"),
    [
        (np.where(np.arange(300) % 5, 1.0, np.nan), r"y\[0\] is nan, and 60 of 300 examples have no class"),
        (np.array(["ant", "bee", None] * 100, dtype=object), r"y\[2\] is None, and 100 of 300 .* Leave these rows out"),
        (pd.Series(["ant", pd.NA, "bee"] * 100, dtype="string"), r"y\[1\] is <NA>"),
        ([["ant", "bee"], ["bee"], None] * 100, r"have no list of labels \(one without any is \[\]\)"),
        (pd.DataFrame({"ant": [1, 0, np.nan] * 100, "bee": [0, 1, 1] * 100}), "labels.from_nan takes NaN as unknown"),
    ],
)
def test_missing_labels_are_named_with_what_to_do(y: Any, told: str) -> None:
    with pytest.raises(ShortlistError, match=told):
        SetClassifier().fit(X, y)


def test_names_give_the_same_model_as_their_indices() -> None:
    by_index, by_name = classifier().fit(X, Y), classifier().fit(X, NAMES[Y])
    assert by_name.classes_.tolist() == NAMES.tolist()
    assert np.array_equal(by_name.decision_function(X), by_index.decision_function(X))
    assert np.array_equal(by_name.predict(X), NAMES[by_index.predict(X)])
    assert by_name.predict_sets(X).names[0] == NAMES[by_index.predict_sets(X)[0]].tolist()


def present(row: Any) -> list[int]:
    return np.flatnonzero(np.asarray(row) == 1).tolist()


@pytest.mark.parametrize(
    "form",
    [
        lambda y: y.tolist(),
        lambda y: torch.from_numpy(y),
        lambda y: csr_matrix(y),
        lambda y: csr_array(y),
        lambda y: pd.DataFrame(y),
        lambda y: [set(present(row)) for row in y],
        lambda y: pd.Series([frozenset(present(row)) for row in y]),
        lambda y: LabelSets.from_dense(y),
    ],
    ids=["lists", "tensor", "csr_matrix", "csr_array", "frame", "sets", "series of sets", "LabelSets"],
)
def test_a_label_matrix_in_other_forms_is_the_same_target(form: Any) -> None:
    classes, target = read_target(form(MY))
    assert classes.tolist() == [0, 1, 2, 3, 4]
    assert np.array_equal(target.numpy(), MY)


@pytest.mark.parametrize("kind", ["boolean", "Int64", "float64[pyarrow]", "bool[pyarrow]"])
def test_a_frame_of_pandas_nullable_types_is_a_label_matrix(kind: str) -> None:
    frame = pd.DataFrame(MY.astype(bool), columns=list("abcde")).astype(float if "float" in kind else bool)
    labels, target = read_target(frame.astype(kind))
    assert labels.tolist() == list("abcde")
    assert np.array_equal(target.numpy(), MY)
    frame = frame.astype(kind)
    frame.iloc[3, 1] = pd.NA
    with pytest.raises(ShortlistError, match=r"\[3, 1\] is nan.* labels\.from_nan"):
        read_target(frame)


def test_labels_with_names_of_several_levels_travel(tmp_path: Path) -> None:
    y = pd.DataFrame(MY, columns=pd.MultiIndex.from_product([["topic"], list("abcde")]))
    model = classifier("binary").fit(MX, y)
    model.save(tmp_path / "model")
    loaded = SetClassifier.load(tmp_path / "model")
    assert loaded.classes_.tolist() == model.classes_.tolist() == [f"('topic', '{name}')" for name in "abcde"]
    assert loaded.score(MX, y) == model.score(MX, y)


def test_classes_that_are_numbers_held_as_objects_are_numbers() -> None:
    labels, target = read_target(np.array([3, 1, 3], dtype=object))
    assert labels.dtype == np.int64
    assert (labels.tolist(), target.tolist()) == ([1, 3], [1, 0, 1])


@pytest.mark.parametrize(
    "form",
    [
        lambda y: [NAMES[present(row)].tolist() for row in y],
        lambda y: [tuple(NAMES[present(row)]) for row in y],
        lambda y: pd.Series([NAMES[present(row)].tolist() for row in y]),
        lambda y: [set(NAMES[present(row)].tolist()) for row in y],
        lambda y: pd.DataFrame(y, columns=NAMES[:5]),
        lambda y: pa.table(pd.DataFrame(y, columns=NAMES[:5])),
        lambda y: pa.array([NAMES[present(row)].tolist() for row in y]),
        lambda y: LabelSets.from_dense(y, NAMES[:5].tolist()),
    ],
    ids=["lists", "tuples", "series", "sets", "frame", "Arrow table", "Arrow lists", "LabelSets"],
)
def test_names_of_several_labels_are_the_same_target(form: Any) -> None:
    classes, target = read_target(form(MY))
    assert classes.tolist() == NAMES[:5].tolist()
    assert np.array_equal(target.numpy(), MY)


def test_lists_of_as_many_names_each_are_not_a_matrix() -> None:
    classes, target = read_target([["b", "a"], ["c", "b"]])
    assert classes.tolist() == ["a", "b", "c"]
    assert target.tolist() == [[1, 1, 0], [0, 1, 1]]


def test_a_column_of_names_is_classes() -> None:
    with pytest.warns(DataConversionWarning, match="column-vector"):
        classes, target = read_target(np.array([["b"], ["a"], ["b"]]))
    assert (classes.tolist(), target.tolist()) == (["a", "b"], [1, 0, 1])


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (np.arange(60) % 4 - 1, "-1 in y is taken as a class of its own: .*, leave its rows out"),
        (np.array(["nan", "owl", "cat"])[np.arange(60) % 3], "'nan' in y is taken as a class"),
        (np.array([[1, 0, -1], [0, 1, -1]])[np.arange(60) % 2], "2 in y is a label of which nothing is known"),
    ],
)
def test_what_may_stand_for_unknown_is_told(y: Any, said: str) -> None:
    with pytest.warns(ShortlistWarning, match=said):
        SetClassifier("binary" if y.ndim == 2 else "auto").fit(X[:60], y)


def test_classes_minus_one_and_one_are_classes() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert SetClassifier().fit(X, np.where(Y[0] == Y, -1, 1)).classes_.tolist() == [-1, 1]


def test_unknown_labels_do_not_train() -> None:
    """Rows of unknown labels change nothing but the number of steps: with one batch, not even that."""
    y = MY.copy()
    y[::3] = -1
    one_batch = {"batch_size": 1000, "rule": "threshold", "weight_decay": 0.0, "preprocess": None}
    with_unknown = classifier("binary", **one_batch).fit(MX, y)
    without = classifier("binary", **one_batch).fit(MX[y[:, 0] != -1], y[y[:, 0] != -1])
    np.testing.assert_allclose(with_unknown.decision_function(MX), without.decision_function(MX), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[1, 0], [0, 2]], r"x\[1, 1\] is 2: allowed are 1"),
        ([[1, 0], [0]], "rows of different lengths"),
        ([{"a"}, {1}], "all names or all whole numbers, got int, str"),
        ([1, 1], "one class"),
        (np.array(["a", 1], dtype=object), "must be all names or all numbers, got int, str"),
        ([[], []], "one class or none"),
        (None, "requires y"),
    ],
)
def test_y_that_is_no_target_is_refused(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        classifier("binary").fit(np.eye(2), y)


def test_several_labels_need_an_objective_that_takes_them() -> None:
    with pytest.raises(ValueError, match=r"'cross-entropy' takes class indices.*binary"):
        classifier().fit(MX, MY)


# ---- what it decides by itself


def test_the_objective_follows_from_the_target() -> None:
    partial = MY.copy()
    partial[::2, 0] = -1
    assert SetClassifier(epochs=1).fit(X, Y).objective_ == "cross-entropy"
    assert SetClassifier(epochs=1).fit(MX, MY).objective_ == "binary"
    assert SetClassifier(epochs=1).fit(MX, partial).objective_ == "binary"


def test_where_no_label_is_known_to_be_absent_that_is_said_and_unknown_ones_are_taken_as_absent() -> None:
    positives = np.where(MY == 1, 1, -1)
    with pytest.warns(UserWarning, match="no label is known to be absent"):
        model = SetClassifier(k=None, random_state=0).fit(MX, positives)
    known = SetClassifier(k=None, random_state=0).fit(MX[MY.any(1)], MY[MY.any(1)])
    assert model.objective_ == "binary"
    assert model.score(MX, MY) == pytest.approx(known.score(MX, MY), abs=0.02)
    single = np.full_like(MY, -1)
    single[np.arange(len(MY)), MY.argmax(1)] = 1
    with pytest.warns(UserWarning, match="'assume-negative'"):
        assert SetClassifier(k=2).fit(MX, single).objective_ == "assume-negative"


def mentioned(share_absent: float) -> np.ndarray:
    """Half of the present labels, and so many of the absent ones; nothing is known of the others."""
    random = np.random.default_rng(1)
    kept = random.random(MY.shape) < np.where(MY == 1, 0.5, share_absent)
    return np.where(kept, MY, -1)


def test_a_few_labels_that_are_known_to_be_absent_do_not_make_the_model_take_all_others_to_be_present() -> None:
    target = mentioned(0.02)
    assert (target == 0).any()
    with pytest.warns(UserWarning, match=r"few labels are known to be absent \(\d+ entries"):
        model = SetClassifier(random_state=0).fit(MX, target)
    assert model.predict_sets(MX).sizes.mean() < 0.5 * MY.shape[1]
    assert model.score(MX, MY) > SetClassifier("binary", random_state=0).fit(MX, target).score(MX, MY) + 0.05


def test_where_absent_labels_are_recorded_as_present_ones_are_unknown_ones_are_left_out(recwarn: Any) -> None:
    target = mentioned(0.5)
    assert SetClassifier(random_state=0).fit(MX, target)._unknown_is_absent is False
    assert not [one for one in recwarn if "absent" in str(one.message)]


@pytest.mark.parametrize("objective", ["binary", "partial-selective"])
def test_predict_does_not_give_every_label_where_only_present_ones_are_known(objective: str) -> None:
    positives = np.where(MY == 1, 1, -1)
    model = SetClassifier(objective, solver="adamw", epochs=5, lr=0.01, weight_decay=1.0, random_state=0)
    assert model.fit(MX, positives).predict(MX).mean() < 0.9


SCALES = "between the two", "one for all columns", "each column's own"  # as they are tried on columns of one kind


def best_tried(model: SetClassifier, rows: int) -> dict[str, Any]:
    """What has the smallest held-out loss less one per right row, plus doubts about strength and scale; of what was
    tried on all three folds."""

    def cost(one: dict[str, Any]) -> float:
        doubt = np.log10(one["weight_decay"] / 10**0.5) ** 2
        doubt += 0.5 * SCALES.index(one["scale"]) if one["scale"] in SCALES else 0
        return float(rows * (one["loss"] - one["precision_at_1"]) + doubt)

    return min((one for one in model.selection_ if one["folds"] == 3), key=cost)


def scaled(x: Any, scale: str) -> Any:
    standard = StandardScaler().fit(x)
    kept = standard.scale_ ** dict(zip(SCALES, (0.5, 1, 0), strict=True))[scale]  # of the spread of columns
    return standard.transform(x) * kept / np.sqrt(np.mean(kept**2))


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


def test_classes_that_occur_once_are_told_where_they_are_many() -> None:
    """They are never among the calibration rows: conformal sets of new rows hold the label far less often."""
    rng = np.random.default_rng(0)
    y = np.r_[np.arange(60), np.repeat(np.arange(60, 63), 80)]
    x = rng.normal(size=(63, 20))[y] + rng.normal(size=(len(y), 20))
    for rule in ("average-k", "conformal"):
        with pytest.warns(ShortlistWarning, match="60 of 300 rows are the only ones of their class, and cannot"):
            SetClassifier(k=2, rule=rule, random_state=0).fit(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ShortlistWarning)
        SetClassifier(rule="top-k", k=2, random_state=0).fit(x, y)  # has nothing to calibrate
        SetClassifier(k=2, random_state=0).fit(x[51:], y[51:])  # nine of them


def test_a_second_fit_without_preprocessing_forgets_that_of_the_first() -> None:
    model = SetClassifier(random_state=0).fit(X, Y).set_params(preprocess=None).fit(X * 100 + 1000, Y)
    fresh = SetClassifier(preprocess=None, random_state=0).fit(X * 100 + 1000, Y)
    np.testing.assert_array_equal(model.predict_proba(X * 100 + 1000), fresh.predict_proba(X * 100 + 1000))


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


def test_a_solver_that_cannot_is_named() -> None:
    with pytest.raises(ValueError, match=r"\"lbfgs\" is for linear models.*hidden is \(4,\)"):
        SetClassifier(solver="lbfgs", hidden=(4,)).fit(X, Y)
    with pytest.raises(ValueError, match="solver must be"):
        SetClassifier(solver="sgd").fit(X, Y)


@pytest.mark.parametrize("rows", [4, 8, 12, 30])
def test_a_handful_of_rows_will_do(rows: int) -> None:
    y = np.arange(rows) % 2
    for target in (y, np.stack([y, 1 - y, y], 1)):
        model = SetClassifier(k=1, random_state=0).fit(X[:rows], target)
        assert model.predict(X[:rows]).shape == target.shape


def test_predict_of_several_labels_has_the_best_micro_f1_on_held_out_rows() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        linked = torch.from_numpy(rng.integers(1, 9, (6, 4)) / 10)
        target = torch.from_numpy(rng.integers(0, 2, (6, 4)))
        decision = best_decision(linked, target)
        tried = [Decision(cut, one).of(linked) for cut in np.arange(0.05, 1, 0.1) for one in (False, True)]
        best = max(f1_score(target, found, average="micro", zero_division=0) for found in tried)
        assert f1_score(target, decision.of(linked), average="micro", zero_division=0) == pytest.approx(best)


# ---- scorers of sets


def test_the_sets_of_very_many_scores_are_made_batch_by_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    model = classifier(epochs=1).fit(X, Y)
    whole = model.predict_sets(X)
    monkeypatch.setattr("shortlist.estimators.set_classifier.KEPT_BYTES", 100)
    monkeypatch.setattr("shortlist.training.learner.BATCH_SCORES", 7 * 8)  # seven rows of eight labels
    monkeypatch.delattr(SetClassifier, "_scores_tensor")
    assert model.predict_sets(X) == whole


def test_a_grid_search_over_k_scores_the_sets() -> None:
    pipeline = make_pipeline(StandardScaler(), SetClassifier(random_state=0))
    search = GridSearchCV(pipeline, {"setclassifier__k": [1, 4, 7]}, scoring=set_scorer("f1"), cv=2).fit(X, Y)
    assert search.best_params_ == {"setclassifier__k": 1}
    search = GridSearchCV(SetClassifier(), {"k": [0.5, 1, 4]}, scoring=set_scorer("coverage", largest=1.5), cv=2)
    assert search.fit(X, Y).best_params_ == {"k": 1}


@pytest.mark.parametrize("y", [["drama", " drama", "comedy"] * 10, [["drama"], [" drama"], ["comedy", "drama"]] * 10])
def test_labels_that_differ_in_blanks_alone_are_told(y: Any) -> None:
    with pytest.warns(ShortlistWarning, match="y: 2 labels differ only in case or blanks: ' drama', 'drama'"):
        SetClassifier(random_state=0).fit(X[:30], y)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_rows_without_names_are_those_of_the_frame_of_training() -> None:
    frame = pd.DataFrame({"size": np.arange(60) % 7, "colour": ["red", "blue", "red"] * 20, "old": [True, False] * 30})
    y = np.arange(60) % 3
    model = SetClassifier(random_state=0).fit(frame, y)
    known = model.predict_proba(frame)
    np.testing.assert_array_equal(model.predict_proba(frame.to_numpy(object)), known)
    np.testing.assert_array_equal(model.predict_proba(frame.assign(old=frame["old"].astype(str))), known)
    with pytest.raises(ValueError, match="X has 2 features, but SetClassifier is expecting 3"):
        model.predict(frame.to_numpy(object)[:, :2])
    with pytest.raises(ShortlistError, match=r"X is an array that holds texts: give a frame, .*'red'"):
        SetClassifier().fit(frame.to_numpy(object), y)


@pytest.mark.parametrize("tried", [{"k": [1, 2]}, {"rule": ["top-k", "average-k"]}])
def test_a_search_that_does_not_see_the_sets_is_told(tried: dict[str, Any]) -> None:
    with pytest.warns(ShortlistWarning, match=f"a search over {min(tried)} needs scoring=.*set_scorer"):
        GridSearchCV(SetClassifier(random_state=0), tried, cv=2).fit(X, Y)


@pytest.mark.parametrize(
    ("options", "tried"),
    [({"epochs": 1}, {"weight_decay": [0.1, 1.0]}), ({"objective": "topk-hinge", "epochs": 1}, {"k": [1, 2]})],
)
def test_a_search_over_what_changes_scores_is_not_warned_of(options: dict[str, Any], tried: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ShortlistWarning)
        GridSearchCV(SetClassifier(random_state=0, **options), tried, cv=2, error_score="raise").fit(X, Y)


def test_a_grid_search_over_rules_scores_the_sets_of_each() -> None:
    """Sets of two labels, one of which is right: F1 is 2/3 always; those of 1.2 labels on average do better."""
    tried = {"rule": ["top-k", "average-k"], "k": [1.2, 2]}
    search = GridSearchCV(SetClassifier(random_state=0), tried, scoring=set_scorer("micro-f1"), cv=2).fit(X, Y)
    found = {
        (one["rule"], one["k"]): score
        for one, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True)
    }
    assert found["top-k", 2] <= 2 / 3 + 1e-6 < found["average-k", 1.2] < found["top-k", 1.2]
    model = SetClassifier(k=1.2, rule_options={"min_size": 1}, random_state=0).fit(X, Y)
    assert model.predict_sets(X).sizes.min() == 1


def test_a_scorer_sees_the_sets_of_a_search_within_a_pipeline_and_the_other_way_round() -> None:
    tried = {"setclassifier__k": [1, 2]}
    search = GridSearchCV(make_pipeline(classifier()), tried, cv=2, scoring=set_scorer("coverage"))
    model = make_pipeline(StandardScaler(), search).fit(X, Y)
    assert search.best_params_ == {"setclassifier__k": 2}
    sets = search.best_estimator_[-1].predict_sets(model[0].transform(X))
    assert set_scorer("coverage")(model, X, Y) == np.mean(sets.to_dense()[np.arange(300), Y])


def test_a_scorer_of_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="no set metric 'f2'"):
        set_scorer("f2")
    with pytest.raises(ValueError, match="needs an estimator with predict_sets, got LogisticRegression"):
        set_scorer()(LogisticRegression(), X, Y)


# ---- features in, in any form


@pytest.mark.parametrize(
    "options", [{"hidden": (8,), "epochs": 2, "lr": 0.01}, {"rule": "conformal", "epochs": 2, "lr": 0.01}, {}]
)
def test_labels_that_stay_sparse_give_the_same_model(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_multilabel_classification(120, 10, n_classes=6, random_state=0)
    found = []
    for large in (2**26, 1):
        monkeypatch.setattr("shortlist.estimators.targets.LARGE_MATRIX", large)
        assert isinstance(read_target(csr_array(y))[1], SparseLabels) == (large == 1)
        model = SetClassifier(random_state=0, **options).fit(X, csr_array(y))
        found.append((model.predict_proba(X), model.predict_sets(X), model.decision_, model.k_, model.score(X, y)))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5, atol=1e-7)
    assert found[0][1:4] == found[1][1:4]
    assert found[0][4] == pytest.approx(found[1][4])


def test_partial_fit_takes_labels_that_stay_sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shortlist.estimators.targets.LARGE_MATRIX", 1)
    X, y = make_multilabel_classification(120, 10, n_classes=6, random_state=0)
    model = SetClassifier(random_state=0)
    for part in (slice(0, 60), slice(60, 120)):
        model.partial_fit(X[part], csr_array(y[part]))
    assert model.predict(X).shape == y.shape


def test_the_best_threshold_is_found_though_few_scores_are_sorted() -> None:
    """All present labels but one have low scores: many cuts have to be looked at."""
    scores = torch.linspace(1, 0, 400).reshape(20, 20)
    target = torch.zeros(20, 20, dtype=torch.int8)
    target[0, 0], target[-1, -6:] = 1, 1

    def f1(predicted: torch.Tensor) -> float:
        return 2 * int((predicted & (target == 1)).sum()) / int(predicted.sum() + 7)

    best = max(f1(scores > cut) for cut in (*scores.flatten().tolist(), -1.0))
    assert f1(best_decision(scores, target).of(scores)) >= best


def test_sparse_features_give_the_same_scores() -> None:
    sparse = np.where(np.abs(X) > 1, X, 0)
    dense = classifier(preprocess=None).fit(sparse, Y).decision_function(sparse)
    for form in (csr_matrix, csr_array):
        model = classifier(preprocess=None).fit(form(sparse), Y)
        assert np.array_equal(model.decision_function(form(sparse)), dense)
    full_batch = SetClassifier(preprocess=None, random_state=0).fit(sparse, Y).predict_proba(sparse)
    model = SetClassifier(preprocess=None, random_state=0).fit(csr_array(sparse), Y)
    np.testing.assert_allclose(model.predict_proba(csr_array(sparse)), full_batch, atol=0.01)


def test_a_matrix_with_one_label_in_each_row_is_told_of() -> None:
    with pytest.warns(ShortlistWarning, match=r"each row of y has exactly one label.* y\.argmax\(1\)"):
        SetClassifier(k=1, epochs=1, solver="adamw", hidden=()).fit(X, np.eye(3, dtype=int)[np.arange(len(X)) % 3])


def test_a_frame_gives_the_same_scores_and_its_columns_are_checked() -> None:
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(6)])
    model = classifier().fit(frame, Y)
    assert np.array_equal(model.decision_function(frame), classifier().fit(X, Y).decision_function(X))
    with pytest.raises(ValueError, match="missing: 'f0'"):
        model.predict(frame.rename(columns={"f0": "g0"}))


def test_columns_are_found_by_name() -> None:
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = classifier().fit(frame, Y)
    swapped = frame[list("fedcba")]
    assert np.array_equal(model.decision_function(swapped), model.decision_function(frame))
    assert np.array_equal(model.decision_function(pa.Table.from_pandas(swapped)), model.decision_function(frame))
    with pytest.warns(UserWarning, match="ignored: 'more'"):
        assert np.array_equal(model.predict(swapped.assign(more=1)), model.predict(frame))


def test_an_index_of_y_in_another_order_is_told() -> None:
    frame, labels = pd.DataFrame(X, columns=list("abcdef")), pd.Series(Y)
    with pytest.warns(ShortlistWarning, match=r"index of X in another order, .* give y\.loc\[X\.index\]"):
        classifier().fit(frame, labels[::-1])
    with pytest.warns(ShortlistWarning, match=r"give sample_weight\.loc\[X\.index\]"):
        classifier().fit(frame, labels, sample_weight=(labels + 1)[::-1])
    with warnings.catch_warnings():
        warnings.simplefilter("error", ShortlistWarning)
        classifier().fit(frame[::-1], labels[::-1])
        classifier().fit(frame, labels.set_axis(range(1000, 1000 + len(Y))))


@pytest.mark.parametrize("make", [list, np.array, pd.Series])
def test_texts_alone_are_told_to_come_in_a_frame(make: Any) -> None:
    texts = make(["so happy", "so sad"] * 10)
    with pytest.raises(ShortlistError, match="give a frame with a column of them"):
        SetClassifier().fit(texts, ["joy", "sorrow"] * 10)


def test_what_a_masked_array_hides_is_not_learnt() -> None:
    hidden = np.arange(len(X)) < 3
    with pytest.raises(ShortlistError, match="y is a masked array, which hides 3 of 300: say what they are"):
        SetClassifier().fit(X, np.ma.masked_array(Y, hidden))
    with pytest.raises(ShortlistError, match="X is a masked array, which hides 18 of 1800"):
        SetClassifier().fit(np.ma.masked_array(X, np.outer(hidden, np.ones(6))), Y)
    with pytest.raises(ShortlistError, match="sample_weight is a masked array"):
        SetClassifier().fit(X, Y, sample_weight=np.ma.masked_array(np.ones(300), hidden))


def test_a_frame_may_have_a_form_of_its_own_for_arrow() -> None:
    class Polars:
        """polars, which is not installed here."""

        columns, __arrow_c_stream__ = ("tags",), None

        def to_arrow(self) -> pa.Table:
            return pa.table({"tags": [["a"], ["b"]] * 150})

    y = ["yes", "no"] * 150
    assert classifier().fit(Polars(), y).score(Polars(), y) == 1


def test_a_frame_that_was_not_collected_is_told() -> None:
    class LazyFrame:
        columns = ()

        def collect(self) -> pd.DataFrame:
            return pd.DataFrame(X)

    with pytest.raises(ShortlistError, match=r"a LazyFrame holds no rows yet: give what its collect\(\) returns"):
        SetClassifier().fit(LazyFrame(), Y)


def test_dates_of_a_frame_are_learnt_from_and_durations_left_out_aloud() -> None:
    days = pd.date_range("2024-01-01", periods=len(X), tz="UTC")
    frame = pd.DataFrame({"noise": X[:, 0], "day": np.random.default_rng(0).permutation(days)})
    y = np.asarray(frame["day"] > days[len(X) // 2])
    with pytest.warns(ShortlistWarning, match="left out: 'passed'"):
        assert classifier().fit(frame.assign(passed=days - days[0]), y).score(frame, y) > 0.95


def test_a_frame_of_numbers_names_and_blanks_trains_and_travels(tmp_path: Path) -> None:
    kind = np.where(Y == 3, None, NAMES[Y])
    frame = pd.DataFrame({"wide": X[:, 0] * 1e6, "kind": kind, "rest": X[:, 1], "same": "x"})
    frame.loc[::5, "wide"] = np.nan
    model = SetClassifier(k=2, random_state=0).fit(frame, Y)
    assert model.score(frame, Y) == 1
    assert "left out (1): same (always the same)" in model.preprocessor_.describe()
    model.save(tmp_path / "model.safetensors")
    for again in (SetClassifier.load(tmp_path / "model.safetensors"), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(again.decision_function(frame), model.decision_function(frame))
        assert again.selection_ == model.selection_
        assert again.weight_decay_ == model.weight_decay_


def test_units_do_not_matter_by_default() -> None:
    scales = 10.0 ** np.arange(-3, 3)
    one, other = (SetClassifier(random_state=0).fit(X * units, Y) for units in (scales, scales[::-1]))
    np.testing.assert_allclose(one.decision_function(X * scales), other.decision_function(X * scales[::-1]), atol=1e-4)


def test_partial_fit_prepares_columns_by_its_first_rows() -> None:
    model = classifier().partial_fit(X[:100], Y[:100], classes=range(8))
    fitted = model.preprocessor_.to_json()
    assert model.partial_fit(X[100:] + 5, Y[100:]).preprocessor_.to_json() == fitted


# ---- sets out


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


@pytest.mark.parametrize("name", [name for name in OBJECTIVES if not name.startswith("scene-")])
def test_every_objective_fits_and_travels(name: str, tmp_path: Path) -> None:
    kind = OBJECTIVES[name]
    x, y = (X, Y) if "indices" in kind.accepts or kind.one_positive else (MX, MY)
    model = classifier(name, k=2, epochs=1, hidden=(8,)).fit(x, y)
    sets = model.predict_sets(x)
    assert len(sets) == len(x)
    model.save(tmp_path / "model.safetensors")
    assert SetClassifier.load(tmp_path / "model.safetensors").predict_sets(x) == sets
    assert pickle.loads(pickle.dumps(model)).predict_sets(x) == sets


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


# ---- learning in parts


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


# ---- settings


@pytest.mark.parametrize("params", [{"rule": "top-k:k=2"}, {"objective": "smooth-topk:tau=2"}, {"rule_options": [1]}])
def test_options_beside_a_name_have_their_own_place(params: dict[str, Any]) -> None:
    with pytest.raises(ShortlistError, match=r"(_options must be a dict| must be a name, with)"):
        SetClassifier(**params).fit(X, Y)


def test_columns_of_units_that_are_very_far_apart_are_fitted_without_a_word() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SetClassifier(k=2, random_state=0).fit(X * 10.0 ** np.linspace(-10, 10, X.shape[1]), Y)
    assert model.score(X * 10.0 ** np.linspace(-10, 10, X.shape[1]), Y) > 0.9


def test_copies_of_rows_are_told_where_chance_does_not_repeat_them() -> None:
    again = np.r_[np.arange(len(X)), np.arange(len(X) // 4)]
    with pytest.warns(ShortlistWarning, match=rf"{len(X) // 4} of {len(again)} rows are copies .* sample_weight"):
        SetClassifier(k=2, random_state=0).fit(X[again], Y[again])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SetClassifier(k=2, random_state=0).fit(
            X[again], Y[again] + 8 * (np.arange(len(again)) >= len(X))
        )  # other labels
        SetClassifier(k=2, random_state=0).fit((X[again] > 0).astype(float), Y[again])  # columns of 0 and 1
        day = np.random.default_rng(0).integers(0, 365, 1000) * 2 * np.pi / 365
        SetClassifier(k=1, random_state=0).fit(np.c_[np.sin(day), np.cos(day)], day > 3)  # columns of one thing


def test_a_broken_k_of_exactly_k_labels_is_told() -> None:
    with pytest.warns(ShortlistWarning, match=r'k=1.5 with rule "top-k": every set will hold 2'):
        model = SetClassifier(k=1.5, rule="top-k", weight_decay=1.0).fit(X, Y)
    assert set(model.predict_sets(X).sizes) == {2}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a rule may have a k of its own
        SetClassifier(k=2, rule="top-k", rule_options={"k": 1}, weight_decay=1.0).fit(X, Y)


def test_a_dropout_without_hidden_layers_is_told() -> None:
    with pytest.warns(ShortlistWarning, match=r"dropout=0.5 is of hidden layers, and there are none"):
        SetClassifier(dropout=0.5, weight_decay=1.0).fit(X, Y)


def test_a_weight_decay_alone_is_that_of_all_rows_at_once() -> None:
    model = SetClassifier(weight_decay=2.0, random_state=0).fit(X, Y)
    assert (model.solver_, model.weight_decay_, model.hidden_) == ("lbfgs", 2.0, ())


def test_settings_of_batches_are_told_where_nothing_is_done_in_batches() -> None:
    with pytest.warns(ShortlistWarning, match=r'"lbfgs" .* has no use for epochs=3, lr=0.1: .*"adamw"'):
        SetClassifier(solver="lbfgs", weight_decay=1.0, epochs=3, lr=0.1).fit(X, Y)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_rows_may_be_tensors_of_any_precision_that_have_gradients(kind: torch.dtype) -> None:
    rows = torch.from_numpy(X).to(kind).requires_grad_()
    model = SetClassifier(weight_decay=1.0, hidden=(), random_state=0)
    plain = clone(model).fit(rows.detach().float().numpy(), Y).predict_proba(rows.detach().float().numpy())
    assert np.array_equal(clone(model).fit(rows, torch.from_numpy(Y)).predict_proba(rows), plain)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"objective": "cross-entrpy"}, "no objective 'cross-entrpy'.*cross-entropy"),
        ({"rule": "average"}, "rule.*no rule 'average'.*average-k"),
        ({"rule_options": {"kk": 2}}, "rule.kk: there is no such key"),
        ({"objective_options": {"smoothing": 0.1}}, "smoothing: there is no such key.*label_smoothing"),
        ({"k": 0}, "k must be a number above 0, or None, got 0"),
        ({"k": "5"}, "k must be a number above 0, or None, got '5'"),
        ({"epochs": 0}, "epochs: input should be greater than 0, got 0"),
        ({"lr": -1}, "lr: input should be greater than 0, got -1"),
        ({"hidden": 64}, "hidden must hold the sizes"),
        ({"hidden": (0,)}, "layer sizes of at least 1"),
        ({"hidden": "none"}, "hidden must hold the sizes"),
        ({"hidden": (2.5,)}, "hidden must hold the sizes"),
        ({"dropout": "half"}, "dropout must be a share"),
        ({"calibration": 1.0}, "calibration must be a share"),
        ({"preprocess": "standard"}, "preprocess must be"),
        ({"weight_decay": -1}, "weight_decay must be a number of at least 0"),
        ({"weight_decay": math.inf}, "weight_decay must be a number of at least 0"),
        ({"batch_size": "large"}, "batch_size: .*got 'large'"),
    ],
)
def test_a_wrong_setting_is_named(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        classifier(**params).fit(X, Y)


# ---- files


def test_a_saved_classifier_comes_back_whole(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = classifier(hidden=(5,), objective_options={"label_smoothing": 0.1}).fit(frame, NAMES[Y])
    model.save(path)
    loaded = SetClassifier.load(path)
    assert loaded.get_params() == model.get_params()
    assert np.array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.feature_names_in_.tolist() == list("abcdef")
    loaded.partial_fit(frame, NAMES[Y])
    assert clone(loaded).get_params() == model.get_params()


def test_a_file_that_names_code_runs_none(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    path = tmp_path / "model.safetensors"
    model = classifier().fit(X, Y)
    model.save(path)
    key, text = "shortlist.SetClassifier", header(path)
    facts = json.loads(text)
    facts["model"]["objective"] = "os:system"
    save_file(load_file(path), path, {key: json.dumps(facts)})
    with pytest.raises(ValueError, match=r"model\.safetensors: .*'os:system'"):
        SetClassifier.load(path)
    save_file({name: value[:1] for name, value in model.learner_.weights().items()}, path, {key: text})
    with pytest.raises(ValueError, match="must have shape"):
        SetClassifier.load(path)


def header(path: Path) -> str:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        return file.metadata()["shortlist.SetClassifier"]


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no file"):
        SetClassifier.load(tmp_path / "none")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ValueError, match=r"text: this is not a safetensors file, or it is damaged"):
        SetClassifier.load(tmp_path / "text")


def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    classifier(epochs=1).fit(X, Y).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ValueError, match=r"model\.safetensors: the file is damaged: .* checksum"):
        SetClassifier.load(path)
    path.write_bytes(whole[:-1])
    with pytest.raises(ValueError, match=r"model\.safetensors: .*damaged"):
        SetClassifier.load(path)


def test_a_file_of_an_earlier_version_has_no_checksum_and_is_read(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    path = tmp_path / "model.safetensors"
    model = classifier(epochs=1).fit(X, Y)
    model.save(path)
    save_file(load_file(path), path, {"shortlist.SetClassifier": header(path)})
    assert SetClassifier.load(path).predict_sets(X) == model.predict_sets(X)


def nest(facts: dict[str, Any]) -> str:
    return "[" * 100_000


def set_in(*keys: Any) -> Any:
    """Change one entry of nested facts."""

    def change(facts: dict[str, Any]) -> str:
        *path, last, value = keys
        part: Any = facts
        for key in path:
            part = part[key]
        part[last] = value
        return json.dumps(facts)

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_in("model", "num_labels", 10**9), "it states 1000000000 labels, and names 8"),
        (set_in("model", "in_features", 10**9), "and its model takes 1000000000"),
        (set_in("model", "hidden", [10**9]), "must have shape (1000000000, 6), in the file: missing"),
        (set_in("model", "hidden", [10**30]), "not a file that SetClassifier.save wrote"),
        (set_in("model", "hidden", [1] * 1000), "it states 1000 hidden layers, and has 2 tensors"),
        (set_in("classes_dtype", "(100000000,)f8"), "classes are numbers or text"),
        (nest, "nested too deeply"),
    ],
)
def test_stated_sizes_are_compared_with_the_weights_before_anything_is_made(
    change: Any, message: str, tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file

    path = tmp_path / "model.safetensors"
    classifier(epochs=1).fit(X, Y).save(path)
    save_file(load_file(path), path, {"shortlist.SetClassifier": change(json.loads(header(path)))})
    with pytest.raises(ValueError, match=re.escape(message)):
        SetClassifier.load(path)


# ---- among scikit-learn's own


def test_a_class_that_training_rows_lack_is_in_no_set_of_the_scorer() -> None:
    y = np.array(["a", "b"])[np.arange(40) % 2]
    model = SetClassifier(rule="top-k", k=1).fit(np.eye(2)[np.arange(40) % 2], y)
    assert set_scorer("coverage")(model, np.eye(2), ["a", "new"]) == 0.5
    model = SetClassifier("binary", rule="top-k", k=1).fit(np.eye(2)[np.arange(40) % 2], [[name] for name in y])
    assert set_scorer("coverage")(model, np.eye(2), [["a", "new"], ["b"]]) == 0.75


def test_rows_may_be_dicts_and_sparse_frames() -> None:
    frame = pd.DataFrame({"a": np.arange(40) % 2 * 1.0, "b": np.arange(40) % 3 * 1.0})
    expected = SetClassifier(random_state=0).fit(frame, frame.a).predict_proba(frame)
    for rows in (frame.to_dict("records"), frame.astype(pd.SparseDtype("float", 0))):
        assert np.array_equal(SetClassifier(random_state=0).fit(rows, frame.a).predict_proba(rows), expected)


@pytest.mark.parametrize("options", [{"rule": TopK(k=2)}, {"objective": SmoothTopKLoss(k=2)}])
def test_rules_and_objectives_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(ShortlistError, match=r"must be a name, with its options in .*, got .*TopK"):
        SetClassifier(**options).fit(X, Y)


def test_a_grid_search_over_a_pipeline_chooses_the_objective_by_ranking() -> None:
    pipeline = make_pipeline(StandardScaler(), classifier("binary", k=None, epochs=3))
    grid = {"setclassifier__objective": ["binary", "lsep"], "setclassifier__hidden": [(), (8,)]}
    y = MY.copy()
    y[::7, 0] = -1
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(MX, y)
    assert search.best_score_ == search.cv_results_["mean_test_score"].max() > 0.6
    assert search.predict(MX).shape == y.shape


def test_the_score_of_several_labels_is_scikit_learns_ranking_precision() -> None:
    model = classifier("binary").fit(MX, MY)
    rows = MY.any(1)
    expected = label_ranking_average_precision_score(MY[rows], model.decision_function(MX[rows]))
    assert model.score(MX[rows], MY[rows]) == pytest.approx(expected, rel=1e-5)


def test_fit_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier().fit(X, Y).predict_sets(X)
    assert capfd.readouterr() == ("", "")


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


# ---- calibrated probabilities


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


def test_scaling_of_an_unknown_kind_is_refused_and_goes_with_rules_that_learn_nothing() -> None:
    with pytest.raises(ShortlistError, match="scaling must be one of 'temperature', 'vector', 'isotonic', got 'platt'"):
        classifier(scaling="platt").fit(X, Y)
    model, plain = (classifier(rule="top-k", k=2, scaling=kind).fit(X, Y) for kind in ("temperature", None))
    assert set(model.predict_sets(X).sizes.tolist()) == {2}
    assert not np.allclose(model.predict_proba(X), plain.predict_proba(X))


def test_a_rule_that_needs_groups_is_refused_before_training() -> None:
    with pytest.raises(ShortlistError, match=r"SetClassifier knows no groups of rows: .*, groups=\.\.\."):
        classifier(rule="conformal", rule_options={"by_group": True}).fit(X, Y)
