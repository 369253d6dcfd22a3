"""SetClassifier: features in any form, and what is told of them."""

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone

from shortlist.errors import ShortlistError, ShortlistWarning
from shortlist.estimators import SetClassifier
from tests.estimators.made import NAMES, X, Y, classifier


def test_a_column_that_numbers_the_rows_is_told() -> None:
    rows, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    frame = pd.DataFrame({"a": rows[:, 0], "id": range(60), "far": np.arange(60) * 7})[::2]
    with pytest.warns(ShortlistWarning, match=r"numbers the rows: 'id': .* X\.drop\(columns=\['id'\]\)"):
        SetClassifier(epochs=1, lr=0.1).fit(frame, (y + rows[:, 1] > 0)[::2])


def test_a_second_fit_without_preprocessing_forgets_that_of_the_first() -> None:
    model = SetClassifier(random_state=0).fit(X, Y).set_params(preprocess=None).fit(X * 100 + 1000, Y)
    fresh = SetClassifier(preprocess=None, random_state=0).fit(X * 100 + 1000, Y)
    np.testing.assert_array_equal(model.predict_proba(X * 100 + 1000), fresh.predict_proba(X * 100 + 1000))


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


def test_sparse_features_give_the_same_scores() -> None:
    sparse = np.where(np.abs(X) > 1, X, 0)
    dense = classifier(preprocess=None).fit(sparse, Y).decision_function(sparse)
    for form in (csr_matrix, csr_array):
        model = classifier(preprocess=None).fit(form(sparse), Y)
        assert np.array_equal(model.decision_function(form(sparse)), dense)
    full_batch = SetClassifier(preprocess=None, random_state=0).fit(sparse, Y).predict_proba(sparse)
    model = SetClassifier(preprocess=None, random_state=0).fit(csr_array(sparse), Y)
    np.testing.assert_allclose(model.predict_proba(csr_array(sparse)), full_batch, atol=0.01)


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


@pytest.mark.parametrize(("rows", "said"), [
    ({"a": 1.0}, "X is a dict: give a list of dicts"),
    (pd.Series([1.0, "u"]), "X is a Series: give a frame, X.to_frame"),
])  # fmt: skip
def test_one_row_or_column_alone_is_told_to_come_in_a_frame(rows: Any, said: str) -> None:
    model = classifier().fit(X, Y)
    for ask in (lambda: classifier().fit(rows, Y), lambda: model.predict(rows)):
        with pytest.raises(ShortlistError, match=said):
            ask()


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


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_rows_may_be_tensors_of_any_precision_that_have_gradients(kind: torch.dtype) -> None:
    rows = torch.from_numpy(X).to(kind).requires_grad_()
    model = SetClassifier(weight_decay=1.0, hidden=(), random_state=0)
    plain = clone(model).fit(rows.detach().float().numpy(), Y).predict_proba(rows.detach().float().numpy())
    assert np.array_equal(clone(model).fit(rows, torch.from_numpy(Y)).predict_proba(rows), plain)


def test_rows_may_be_dicts_and_sparse_frames() -> None:
    frame = pd.DataFrame({"a": np.arange(40) % 2 * 1.0, "b": np.arange(40) % 3 * 1.0})
    expected = SetClassifier(random_state=0).fit(frame, frame.a).predict_proba(frame)
    for rows in (frame.to_dict("records"), frame.astype(pd.SparseDtype("float", 0))):
        assert np.array_equal(SetClassifier(random_state=0).fit(rows, frame.a).predict_proba(rows), expected)
