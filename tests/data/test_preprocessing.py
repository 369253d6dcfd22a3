"""Preprocessing: equal to scikit-learn's own transformers, columns by name, kept as JSON."""

import json
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix, random_array
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from shortlist.data.preprocessing import Preprocessor
from shortlist.errors import ShortlistError, ShortlistWarning

RANDOM = np.random.default_rng(0)
TABLE = pd.DataFrame({
    "age": np.where(RANDOM.random(200) < 0.1, np.nan, RANDOM.normal(40, 10, 200)),
    "city": RANDOM.choice(["Oslo", "Rome", "Bonn", "Lima"], 200, p=[0.5, 0.3, 0.19, 0.01]),
    "size": RANDOM.lognormal(10, 2, 200),
    "open": RANDOM.random(200) < 0.5,
})  # fmt: skip


def again(prepared: Preprocessor) -> Preprocessor:
    return Preprocessor.from_json(json.loads(json.dumps(prepared.to_json())))


def test_a_frame_becomes_what_scikit_learn_makes_of_it() -> None:
    theirs = ColumnTransformer([
        ("numbers", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), ["age", "size", "open"]),
        ("blank", make_pipeline(SimpleImputer(strategy="median", add_indicator=True)), ["age"]),
        ("names", OneHotEncoder(min_frequency=2, handle_unknown="infrequent_if_exist", sparse_output=False), ["city"]),
    ]).fit(TABLE)  # fmt: skip
    new = TABLE.sample(50, random_state=1).assign(city=["Oslo", "Paris"] * 25)
    expected = np.delete(theirs.transform(new), 3, axis=1)  # the imputed age once more
    prepared = Preprocessor.fit(TABLE)
    for one in (prepared, again(prepared)):
        assert one.width == expected.shape[1]
        np.testing.assert_allclose(one.transform(new), expected, rtol=1e-5, atol=1e-6)


def test_dense_numbers_are_standardised_and_blanks_filled() -> None:
    values = RANDOM.normal(5, 3, (40, 6))
    values[::7, 2] = np.nan
    values[:, 4] = 1.5
    prepared = Preprocessor.fit(values)
    imputed = SimpleImputer(strategy="median").fit_transform(np.delete(values, 4, axis=1))
    expected = np.column_stack([StandardScaler().fit_transform(imputed), np.isnan(values[:, 2])])
    np.testing.assert_allclose(again(prepared).transform(values), expected, rtol=1e-5, atol=1e-6)
    assert prepared.left_out == {4: "always the same"}


@pytest.mark.parametrize("rows", [40_001, 40_000])
def test_medians_of_many_rows_are_exact(rows: int) -> None:
    random = np.random.default_rng(rows)
    values = random.normal(size=(rows, 20)).astype(np.float32)  # more columns than are turned over at once
    values[random.random(rows) < 0.7, 1] = np.nan
    values[:, 2] = random.integers(0, 3, rows)
    values[::4, 3] += 1000  # the sample, every fourth row, says nothing of the others
    values[:, 4] = np.where(np.arange(rows) == 7, 5, np.nan)
    values[: rows // 2, 5] = 0
    prepared = Preprocessor.fit(values)
    expected = SimpleImputer(strategy="median").fit(values).statistics_
    assert prepared.numbers is not None
    assert prepared.numbers.columns == tuple(range(20))
    np.testing.assert_allclose(prepared.numbers.fill, expected, rtol=1e-6)


def test_sparse_input_stays_sparse_and_is_scaled_between_max_abs_and_standard() -> None:
    counts = csr_matrix(random_array((60, 8), density=0.3, rng=1, data_sampler=lambda size: np.arange(1.0, size + 1)))
    found = again(Preprocessor.fit(counts)).transform(counts)
    dense = counts.toarray()
    expected = dense / np.sqrt(np.abs(dense).max(0) * dense.std(0))
    assert (found.format, found.nnz, found.dtype) == ("csr", counts.nnz, np.float32)
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-5)


def test_rows_of_length_one_are_left_alone() -> None:
    rows = csr_matrix(np.array([[0.6, 0.8, 0], [0, 0, 1], [0, 0, 0]]))
    prepared = Preprocessor.fit(rows)
    assert prepared.sparse_scale is None
    np.testing.assert_allclose(prepared.transform(rows).toarray(), rows.toarray(), rtol=1e-6)


def test_columns_are_found_by_name_missing_ones_refused_and_others_ignored_aloud() -> None:
    prepared = Preprocessor.fit(TABLE)
    expected = prepared.transform(TABLE)
    assert np.array_equal(prepared.transform(TABLE[["size", "open", "city", "age"]]), expected)
    with pytest.warns(UserWarning, match="ignored: 'height'"):
        assert np.array_equal(prepared.transform(TABLE.assign(height=1)), expected)
    with pytest.raises(ValueError, match="missing: 'age', 'size'"):
        prepared.transform(TABLE[["open", "city"]])
    with pytest.raises(ValueError, match="'size' was fitted with numbers, now it holds 'large', first in row"):
        prepared.transform(TABLE.assign(size="large"))


def test_a_huge_cell_in_a_column_of_numbers_is_not_shown_whole():
    with pytest.raises(ValueError, match=r"now it holds 'x+\.\.\.x+', first in row") as caught:
        Preprocessor.fit(TABLE).transform(TABLE.assign(size="x" * 100_000))
    assert len(str(caught.value)) < 300


def test_a_column_that_was_left_out_may_be_missing() -> None:
    prepared = Preprocessor.fit(TABLE.assign(unit="cm"))
    assert np.array_equal(prepared.transform(TABLE), Preprocessor.fit(TABLE).transform(TABLE))


def test_texts_that_mean_nothing_are_blanks_and_numbers_in_text_are_numbers() -> None:
    table = pd.DataFrame({"x": ["1.5", "?", "2.5", " NA "], "y": ["a", "-", "b", "a"]})
    prepared = Preprocessor.fit(table)
    assert prepared.numbers is not None
    assert prepared.numbers.columns == (0,)
    assert prepared.transform(table)[:, 1].tolist() == [0, 1, 0, 1]  # where x is blank
    only_question = Preprocessor.fit(table, na_values=["?"])
    assert only_question.numbers is None  # " NA " is a name now
    empty = Preprocessor.fit(pd.concat([table.replace("-", "")] * 5), na_values=["?"])
    assert "y ((missing), a, b)" in empty.describe()  # an empty text is blank, as it is in a .csv


def test_text_ids_are_left_out_aloud() -> None:
    table = pd.DataFrame({"x": np.arange(80.0), "note": [f"note {i}" for i in range(80)]})
    with pytest.warns(UserWarning, match=r"'note' \(80 different values in 80 rows: text or an id\)"):
        prepared = Preprocessor.fit(table)
    assert prepared.width == 1


def test_nothing_to_learn_from_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"no column is left to learn from: 'unit' \(always the same\)"):
        Preprocessor.fit(pd.DataFrame({"unit": ["cm"] * 5}))
    said = r"'icon' \(80 different values in 80 rows: text or an id\); if 'icon' holds texts: text_column=icon"
    with pytest.warns(UserWarning, match="columns left out: 'icon'"), pytest.raises(ValueError, match=said):
        Preprocessor.fit(pd.DataFrame({"icon": [f"arrow-{i}" for i in range(80)]}))


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"kind": "pickle"},
        {"num_columns": 3},
        {"column_names": None},
        {"numbers": {"columns": [9], "fill": [0], "centre": [0], "scale": [1], "marked": []}},
        {"numbers": {"columns": [0], "fill": [0], "centre": [0], "scale": [0], "marked": []}},
        {"numbers": {"columns": [0], "fill": [0], "centre": [0, 1], "scale": [1], "marked": []}},
        {"numbers": {"columns": [0], "fill": [0], "centre": [float("inf")], "scale": [1], "marked": []}},
        {"categories": [{"column": 1, "names": [1, 2], "has_rare": False}]},
        {"categories": 5},
    ],
)
def test_facts_that_do_not_fit_together_are_refused(change: dict[str, Any]) -> None:
    facts = Preprocessor.fit(TABLE).to_json() | change
    with pytest.raises(ValueError, match="preprocessing"):
        Preprocessor.from_json(facts)


def test_names_that_are_numbers_are_found_in_a_column_of_numbers() -> None:
    prepared = Preprocessor.fit(pd.DataFrame({"grade": ["1", "2", "A"] * 10}))
    expected = prepared.transform(pd.DataFrame({"grade": ["1", "2", "A"]}))
    assert prepared.transform(pd.DataFrame({"grade": [1.0, 2.0]})).tolist() == expected[:2].tolist()
    assert prepared.transform(pd.DataFrame({"grade": [2, 1]})).tolist() == expected[[1, 0]].tolist()


@pytest.mark.parametrize("cells", [[], [None], ["NA"]])
def test_columns_may_be_blank_in_all_new_rows(cells: list[Any]) -> None:
    prepared = Preprocessor.fit(TABLE)
    found = prepared.transform(pd.DataFrame({name: pd.Series(cells, dtype=object) for name in TABLE.columns}))
    assert found.shape == (len(cells), prepared.width)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("as_frame", [False, True])
def test_numbers_far_from_all_others_are_cut_off_aloud(as_frame: bool) -> None:
    rest = np.linspace(0, 1, 99)
    values: Any = np.column_stack([np.append(rest, -9999.0), np.append(rest, 3.0)])
    if as_frame:
        values = pd.DataFrame(values, columns=["age", "size"])
    low = 0.05 * 0.98 - 3 * 0.9 * 0.98  # roughly; the quantiles are those of all 100 numbers
    with pytest.warns(ShortlistWarning, match=r"cut off: ('age'|0) \(1 outside -2\.\d+ to .*: -9999\)"):
        prepared = Preprocessor.fit(values)
    assert prepared.numbers is not None
    assert list(prepared.numbers.cut) == [0]
    bounds = np.quantile(np.append(rest, -9999.0), [0.05, 0.95])
    width = bounds[1] - bounds[0]
    assert prepared.numbers.cut[0] == pytest.approx((bounds[0] - 3 * width, bounds[1] + 3 * width))
    assert prepared.numbers.cut[0][0] == pytest.approx(low, rel=0.05)
    found = again(prepared).transform(values)
    cut = np.append(rest, bounds[0] - 3 * width)
    np.testing.assert_allclose(found[:, 0], (cut - cut.mean()) / cut.std(), rtol=1e-5)
    assert np.ptp(found[:-1, 0]) > 0.1  # what the others tell apart is still there
    assert "cut off (1): " in prepared.describe()


def test_names_that_were_not_learnt_are_told_of_where_they_are_many() -> None:
    prepared = Preprocessor.fit(pd.DataFrame({"member": ["yes", "no"] * 30}))
    again = Preprocessor.from_json(json.loads(json.dumps(prepared.to_json())))
    mixed = pd.DataFrame({"member": ["yes"] * 57 + ["Yes", "Yes", "NO"]})
    told = r"'member' \(3 of 60 rows: 'Yes', 'NO'; learnt were 'no', 'yes'; they differ only in case or blanks\)"
    with pytest.warns(ShortlistWarning, match=told):
        again.transform(mixed)
    with pytest.warns(ShortlistWarning, match=r"3 of 60 rows: 'maybe'; learnt were 'no', 'yes'\)"):
        again.transform(pd.DataFrame({"member": ["yes"] * 57 + ["maybe"] * 3}))
    rare = pd.DataFrame({"city": ["Oslo"] * 50 + ["Rome"] * 40 + [f"town {n}" for n in range(10)]})
    often = Preprocessor.fit(rare)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again.transform(mixed.iloc[1:59])  # two rows
        again.transform(pd.DataFrame({"member": ["yes"] * 58 + ["maybe"] * 3}))  # below 5 %
        again.transform(pd.DataFrame({"member": ["yes"] * 57 + [None] * 3}))
        often.transform(rare)  # as rare as in training
        old = often.to_json()
        del old["categories"][0]["rare_share"]
        Preprocessor.from_json(old).transform(rare.iloc[40:])  # what is usual is not known
    with pytest.warns(ShortlistWarning, match="'city' \\(10 of 40 rows: 'town 0', "):
        often.transform(rare.iloc[60:])


@pytest.mark.parametrize("as_frame", [True, False])
def test_numbers_far_from_all_of_training_are_cut_off_aloud(as_frame: bool) -> None:
    random = np.random.default_rng(0)
    values = np.stack([random.normal(75, 8, 200), random.integers(0, 2, 200).astype(float)], axis=1)
    as_given = (lambda rows: pd.DataFrame(rows, columns=["heart", "smokes"])) if as_frame else np.asarray
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prepared = Preprocessor.fit(as_given(values))
        usual = prepared.transform(as_given(values))
        beyond = values[:, 0].max() + 9.9 * values[:, 0].std()  # far, but as it is
        assert prepared.transform(as_given(np.array([[beyond, 0]])))[0, 0] > 10
    np.testing.assert_allclose(usual, (values - values.mean(0)) / values.std(0), atol=1e-5)
    new = np.array([[-9999, 1.0], [75, 0], [-9999, 1], [1e6, 1]])
    again = Preprocessor.from_json(json.loads(json.dumps(prepared.to_json())))
    with pytest.warns(ShortlistWarning, match=r"('heart'|0) \(3 of 4 outside .*: -9999, 1e\+06\): .* leave them blank"):
        found = again.transform(as_given(new))
    low, high = values[:, 0].min() - 10 * values[:, 0].std(), values[:, 0].max() + 10 * values[:, 0].std()
    expected = (np.array([low, 75, low, high]) - values[:, 0].mean()) / values[:, 0].std()
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        few = Preprocessor.fit(values[:19])  # too few to know what is far
        assert few.transform(new)[0, 0] < -500


def test_a_file_of_before_numbers_were_cut_off_is_read() -> None:
    facts = Preprocessor.fit(np.eye(3)).to_json()
    del facts["numbers"]["cut"], facts["numbers"]["reach"]
    assert Preprocessor.from_json(facts) == Preprocessor.fit(np.eye(3))


@pytest.mark.parametrize("blank", ["-9999", "-9999.0"])
def test_a_number_that_stands_for_blank_is_one_in_columns_of_numbers_too(blank: str) -> None:
    table = pd.DataFrame({"age": [1.0, 2.0, -9999.0, 4.0] * 10, "name": ["a", "-9999", "b", "a"] * 10})
    prepared = Preprocessor.fit(table, na_values=["NA", blank])
    assert prepared.numbers is not None
    assert (prepared.numbers.marked, prepared.numbers.cut) == ((0,), {})
    assert prepared.numbers.centre[0] == pytest.approx((1 + 2 + 2 + 4) / 4)  # the median of 1, 2, 4 fills it
    assert prepared.transform(table)[2, 1] == 1


@pytest.mark.parametrize(
    "zips", [["01001", "94105", "60601"], pd.Categorical([1001, 94105, 60601]), pd.Categorical([1001.0, 94105, 60601])]
)
def test_texts_of_digits_with_a_zero_before_and_categories_are_names(zips: Any) -> None:
    prepared = Preprocessor.fit(pd.DataFrame({"zip": list(zips) * 5}, dtype=getattr(zips, "dtype", object)))
    assert (prepared.numbers, prepared.name_columns) == (None, ("zip",))
    numbers = pd.DataFrame({"zip": [60601.0, 1001.0, 94105.0]})  # as another file may have them
    assert prepared.transform(numbers).argmax(1).tolist() == [prepared.categories[0].names.index(n) for n in (
        ("60601", "01001", "94105") if isinstance(zips, list) else ("60601", "1001", "94105")
    )]  # fmt: skip


def test_a_column_of_numbers_stays_one_where_new_cells_have_a_zero_before() -> None:
    prepared = Preprocessor.fit(pd.DataFrame({"size": [1.0, 5, 9]}))
    assert (
        prepared.transform(pd.DataFrame({"size": ["05", "09"]})).tolist()
        == prepared.transform(pd.DataFrame({"size": [5, 9]})).tolist()
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"city": ["OSLO", "ROME"] * 25}, r"no value of 'city' \('OSLO', 'ROME'; learnt were 'Bonn', .*\) is one that"),
        ({"city": ""}, "always blank here: 'city'"),
        ({"age": np.nan, "size": np.nan}, "always blank here: 'age', 'size'"),
    ],
)
def test_columns_of_which_nothing_was_learnt_are_told(change: dict[str, Any], said: str) -> None:
    prepared = Preprocessor.fit(TABLE)
    new = TABLE[:50].assign(**change)
    with pytest.warns(ShortlistWarning, match=said):
        prepared.transform(new)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prepared.transform(pd.concat([new[:2], TABLE[:50]]))  # all but two rows are known
        prepared.transform(TABLE[:0])


def test_a_blank_cell_of_a_single_row_is_no_blank_column_and_a_name_never_learnt_is_still_told() -> None:
    table = pd.DataFrame({"size": np.arange(40.0), "city": ["Oslo", "Rome"] * 20})
    prepared = Preprocessor.fit(table)
    blank = pd.DataFrame({"size": [np.nan] * 5, "city": [None] * 5})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows in (1, 4):
            assert np.isfinite(prepared.transform(blank[:rows])).all()
    with pytest.warns(ShortlistWarning, match="always blank here: 'size', 'city'"):
        prepared.transform(blank)
    with pytest.warns(ShortlistWarning, match=r"no value of 'city' \('OSLO'; learnt were 'Oslo', 'Rome'\)"):
        prepared.transform(pd.DataFrame({"size": [1.0], "city": ["OSLO"]}))


def test_durations_are_left_out_as_what_they_are() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "took": pd.to_timedelta([1, 2, 5], unit="s")})
    with pytest.warns(UserWarning, match=r"columns left out: 'took' \(durations: give them as numbers"):
        Preprocessor.fit(frame)


def test_a_name_of_several_lines_is_described_in_one() -> None:
    frame = pd.DataFrame({"note": ["one\ntwo", "three"] * 20, "size": range(40)})
    assert "categories (1): note (one\\ntwo, three)" in Preprocessor.fit(frame).describe().splitlines()


def test_numbers_whose_squares_overflow_are_refused_by_column() -> None:
    values = np.random.default_rng(0).normal(size=(30, 2)) * [1, 1e200]
    with pytest.raises(ShortlistError, match=r"column 2 holds numbers from -.*e.200.* beyond double precision"):
        Preprocessor.fit(values)
    assert np.isfinite(Preprocessor.fit(values / [1, 1e100]).transform(values / [1, 1e100])).all()
    with pytest.raises(ShortlistError, match=r"column 2 holds numbers from -.*e.200.* beyond double precision"):
        Preprocessor.fit(csr_matrix(values))
    with pytest.raises(ShortlistError, match=r"column 1 holds numbers from -1.7e.308 to 1.7e.308, .* beyond double"):
        Preprocessor.fit(np.where(np.arange(30) % 2, 1.7e308, -1.7e308)[:, None])


def test_sparse_numbers_stored_in_parts_are_scaled_like_their_sums() -> None:
    rows = random_array((50, 4), density=0.5, format="csr", random_state=np.random.default_rng(0))
    halves = np.repeat(rows.data / 2, 2), np.repeat(rows.indices, 2), 2 * rows.indptr
    parted = csr_matrix(halves, shape=rows.shape)
    assert np.array_equal(Preprocessor.fit(parted).sparse_scale, Preprocessor.fit(rows).sparse_scale)
    assert parted.nnz == 2 * rows.nnz


def test_sparse_numbers_beyond_single_precision_are_scaled_before_they_are_narrowed() -> None:
    values = csr_matrix(np.random.default_rng(0).normal(size=(30, 2)))
    large = Preprocessor.fit(values * 1e60).transform(values * 1e60)
    np.testing.assert_allclose(large.toarray(), Preprocessor.fit(values).transform(values).toarray(), rtol=1e-5)


@pytest.mark.parametrize("form", [str, lambda row: str(np.array(row)), np.array, list])
def test_lists_of_numbers_are_left_out_aloud_and_not_counted_as_words(form: Any) -> None:
    frame = pd.DataFrame({"x": range(30), "e": [form(row) for row in RANDOM.normal(size=(30, 3)).tolist()]})
    with pytest.warns(ShortlistWarning, match=r"'e' \(lists of numbers: give a column for each number\)"):
        prepared = Preprocessor.fit(frame)
    assert prepared.width == 1


def test_a_column_that_is_always_blank_needs_no_numbers_made_of_it() -> None:
    frame = TABLE.assign(note="", level=np.nan)
    with pytest.warns(ShortlistWarning) as caught:
        Preprocessor.fit(frame)
    said = "2 columns are left out, always blank in the 200 rows to learn from: 'note', 'level'"
    assert [str(one.message) for one in caught] == [said]
