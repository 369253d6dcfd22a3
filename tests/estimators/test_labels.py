"""SetClassifier: labels in any form, and what is told of them."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from scipy.sparse import csr_array, csr_matrix
from sklearn.datasets import make_multilabel_classification
from sklearn.exceptions import DataConversionWarning

from shortlist.errors import ShortlistError, ShortlistWarning
from shortlist.estimators import SetClassifier
from shortlist.estimators.targets import read_target
from shortlist.labels import LabelSets, SparseLabels
from tests.estimators.made import MX, MY, NAMES, X, Y, classifier


def test_names_that_look_like_several_labels_are_told() -> None:
    y = ["joy|love", "joy", "love", "joy|love"] * 5
    with pytest.warns(ShortlistWarning, match=r"joy\|love.* in y is taken as one class: .*name\.split\('\|'\)"):
        SetClassifier(epochs=1, lr=0.1).fit(np.eye(4).repeat(5, 0), y)


def test_names_that_look_like_lists_are_told() -> None:
    with pytest.warns(ShortlistWarning, match=r"is taken as one class: if these are lists of labels, give lists"):
        classifier(epochs=1).fit(X[:8], ["['a', 'b']", "['a']", "['b']", "['a', 'b']"] * 2)


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


def test_the_objective_follows_from_the_target() -> None:
    partial = MY.copy()
    partial[::2, 0] = -1
    assert SetClassifier(epochs=1).fit(X, Y).objective_ == "cross-entropy"
    assert SetClassifier(epochs=1).fit(MX, MY).objective_ == "binary"
    assert SetClassifier(epochs=1).fit(MX, partial).objective_ == "binary"


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


@pytest.mark.parametrize("y", [["drama", " drama", "comedy"] * 10, [["drama"], [" drama"], ["comedy", "drama"]] * 10])
def test_labels_that_differ_in_blanks_alone_are_told(y: Any) -> None:
    with pytest.warns(ShortlistWarning, match="y: 2 labels differ only in case or blanks: ' drama', 'drama'"):
        SetClassifier(random_state=0).fit(X[:30], y)


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


def test_a_matrix_with_one_label_in_each_row_is_told_of() -> None:
    with pytest.warns(ShortlistWarning, match=r"each row of y has exactly one label.* y\.argmax\(1\)"):
        SetClassifier(k=1, epochs=1, solver="adamw", hidden=()).fit(X, np.eye(3, dtype=int)[np.arange(len(X)) % 3])
