"""Numbers in texts: the same rules in every table and frame."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pytest
from scipy.sparse import csr_matrix

from shortlist.data import read_features
from shortlist.data.preprocessing import Preprocessor
from shortlist.errors import ShortlistError, ShortlistWarning
from shortlist.estimators import SetClassifier
from shortlist.runs.written import how_written

AMOUNTS = np.random.default_rng(0).integers(1000, 9000, 60)
WRITTEN = {
    "dollars": [f"${x if x % 3 else x // 10:,}" for x in AMOUNTS],
    "per cent": [f"{x / 100:.1f}%" for x in AMOUNTS],
    "thousands": [f"{x / 100:.1f}k" for x in AMOUNTS],
    "brackets": [f"({x})" if x % 2 else str(x) for x in AMOUNTS],
    "blanks": ["NA" if x % 5 == 0 else f"{x} kg" for x in AMOUNTS],
    "nulls": [None if x % 5 == 0 else f"€ {x}" for x in AMOUNTS],
    "MySQL's nulls": [r"\N" if x % 5 == 0 else f"{x}" for x in AMOUNTS],
    "apostrophes": [f"{x:,}.5".replace(",", "'") for x in AMOUNTS],
    "decimal commas": [f"{x / 7:.2f}".replace(".", ",") for x in AMOUNTS],
    "euros, whole or with points": [f"€{x if x % 3 else x // 10:,}".replace(",", ".") for x in AMOUNTS],
    "commas and points": [f"{x:,}".replace(",", ".") + ",5" for x in AMOUNTS],
    "lakhs": [f"₹{x // 100},{x % 100:02},{x % 1000:03}" if x % 3 else f"₹{x:,}" for x in AMOUNTS],
    "ordinals": [f"{x}{'th' if x // 10 % 10 == 1 else {1: 'st', 2: 'nd', 3: 'rd'}.get(x % 10, 'th')}" for x in AMOUNTS],
    "names": ["oak" if x % 2 else "elm" for x in AMOUNTS],
    "codes": [f"{x:05}" for x in AMOUNTS],
    "one comma, which tells nothing": [f"{x // 10 * 10:,}" for x in AMOUNTS],
    "some of another unit": [f"{x} kg" if x % 2 else f"{x} g" for x in AMOUNTS],
}


@pytest.mark.parametrize("kind", ["csv", "semicolons", "parquet", "jsonl", "arrow", "polars"])
@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.filterwarnings("ignore::shortlist.ShortlistWarning")
def test_a_frame_and_a_table_of_the_same_content_give_the_same_features(
    tmp_path: Path, written: str, kind: str
) -> None:
    frame = pd.DataFrame({"x": WRITTEN[written], "other": AMOUNTS % 7})
    labelled, path = frame.assign(label=np.where(AMOUNTS > 5000, "a", "b")), tmp_path / "all.csv"
    how: dict[str, Any] = {}
    if kind in ("csv", "semicolons"):
        if kind == "semicolons" and "one comma" in written:
            pytest.skip("where semicolons stand between cells, a comma in a number is taken as that of a fraction")
        labelled.to_csv(path, sep="," if kind == "csv" else ";", index=False)
        how = how_written(path)
    elif kind == "parquet":
        labelled.to_parquet(path := tmp_path / "all.parquet")
    elif kind == "jsonl":
        labelled.to_json(path := tmp_path / "all.jsonl", orient="records", lines=True)
    else:
        table = pyarrow.Table.from_pandas(frame)
        given = table if kind == "arrow" else pytest.importorskip("polars").from_arrow(table)
        y = labelled["label"].to_numpy()
        assert SetClassifier(k=1).fit(given, y).preprocessor_ == SetClassifier(k=1).fit(frame, y).preprocessor_
        return
    read = read_features(path, labels_key="label", as_table=True, **how).inputs.frame
    ours, theirs = Preprocessor.fit(frame), Preprocessor.fit(read)
    expected = csr_matrix(theirs.transform(read)).toarray()
    for features in (ours.transform(frame), ours.transform(read), theirs.transform(frame)):
        np.testing.assert_array_equal(csr_matrix(features).toarray(), expected)


def test_a_model_of_numbers_takes_them_written_in_texts() -> None:
    numbers = pd.DataFrame({"price": np.where(AMOUNTS % 3, AMOUNTS, AMOUNTS // 10).astype(float)})
    model = SetClassifier(k=1, random_state=0).fit(numbers, np.where(AMOUNTS > 5000, "a", "b"))
    texts = pd.DataFrame({"price": WRITTEN["dollars"]})
    np.testing.assert_array_equal(model.predict_proba(texts), model.predict_proba(numbers))


def test_what_stands_before_fractions_is_known_of_the_training_frame() -> None:
    prepared = Preprocessor.fit(pd.DataFrame({"x": WRITTEN["commas and points"]}))
    prepared = Preprocessor.from_json(prepared.to_json())
    one, same = (prepared.transform(pd.DataFrame({"x": [cell]})) for cell in ("1.500", "1.500,0"))
    np.testing.assert_array_equal(one, same)


def test_texts_that_may_mean_several_numbers_are_told() -> None:
    with pytest.warns(ShortlistWarning, match=r"look like numbers.*'price' \('1,500'"):
        Preprocessor.fit(pd.DataFrame({"price": ["1,500", "2,250"] * 20, "size": range(40)}))


def test_names_are_no_texts_that_may_be_numbers() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Preprocessor.fit(pd.DataFrame({"kind": ["oak", "elm"] * 20, "size": range(40)}))


def test_a_unit_that_numbers_of_a_frame_had_in_training_is_missed() -> None:
    prepared = Preprocessor.fit(pd.DataFrame({"x": WRITTEN["per cent"]}))
    with pytest.warns(ShortlistWarning, match="in training %, now none"):
        prepared.transform(pd.DataFrame({"x": AMOUNTS / 100}))


def test_what_a_user_keeps_in_the_attrs_of_a_frame_is_left_alone() -> None:
    frame = pd.DataFrame({"x": WRITTEN["dollars"]})
    frame.attrs["units"] = "m"
    assert Preprocessor.fit(frame).units == {"x": "$"}
    assert frame.attrs == {"units": "m"}


def test_a_mark_before_fractions_that_cannot_be_is_refused() -> None:
    facts = Preprocessor.fit(pd.DataFrame({"x": WRITTEN["dollars"]})).to_json()
    with pytest.raises(ShortlistError, match="decimal must be"):
        Preprocessor.from_json({**facts, "decimal": "x"})


def test_a_first_row_of_units_in_a_frame_is_refused() -> None:
    frame = pd.DataFrame({"x": ["kg", *map(str, AMOUNTS)], "z": [None, *AMOUNTS.tolist()]})
    with pytest.raises(ShortlistError, match=r"first row of the frame is no example.*'x' \(kg\): leave it out, X.iloc"):
        Preprocessor.fit(frame)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([("d", "string"), (None, "meta")], "kinds of the columns, as Orange does"),
        ([("Which sex?", "Name"), ('{"ImportId":"QID1"}', '{"ImportId":"QID2"}')], "questions .* as Qualtrics does"),
    ],
)
def test_first_rows_of_orange_and_qualtrics_in_a_frame_are_refused(rows: list[Any], says: str) -> None:
    frame = pd.DataFrame([*rows, ("male", "Ann"), ("female", "Bo")], columns=["sex", "name"])
    with pytest.raises(ShortlistError, match=rf"{says}.*and the next one, X.iloc\[2:\]"):
        Preprocessor.fit(frame)


PRICES = pd.DataFrame({"price": ["$1,250.50", "$7.00", "$10", "free"] * 15, "size": range(60)})


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet"])
def test_amounts_beside_a_word_are_names_as_they_are_written_wherever_new_rows_come_from(
    tmp_path: Path, kind: str
) -> None:
    prepared = Preprocessor.fit(_kept_as(PRICES, kind, tmp_path))
    assert prepared.categories[0].names == ("$1,250.50", "$10", "$7.00", "free")
    expected = prepared.transform(PRICES)
    for other in ("frame", "csv", "parquet"):
        for rows in (PRICES, PRICES[:3], PRICES[:1]):
            frame = _kept_as(rows, other, tmp_path, name_columns=prepared.name_columns)
            np.testing.assert_array_equal(prepared.transform(frame), expected[: len(rows)])


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet"])
def test_amounts_beside_a_word_that_means_blank_are_numbers(tmp_path: Path, kind: str) -> None:
    frame = _kept_as(PRICES.assign(weight=[f"{size} kg" for size in PRICES["size"]]), kind, tmp_path)
    prepared = Preprocessor.fit(frame, na_values=["free"])
    assert prepared.name_columns == ()
    assert prepared.units == {"price": "$", "weight": "kg"}
    assert np.isfinite(prepared.transform(frame)).all()
    with pytest.raises(ShortlistError, match="now it holds 'dear', first in row"):
        prepared.transform(frame.replace("free", "dear"))


def _kept_as(frame: pd.DataFrame, kind: str, folder: Path, **options: Any) -> pd.DataFrame:
    """The frame as it is read from such a file."""
    if kind == "frame":
        return frame
    path = folder / f"rows.{kind}"
    labelled = frame.assign(y="a")
    labelled.to_csv(path, index=False) if kind == "csv" else labelled.to_parquet(path)
    return read_features(path, labels_key="y", as_table=True, **options).inputs.frame


@pytest.mark.parametrize("slip", ["n.a.", "<5", "\u22125", "5-", "1o"])
def test_numbers_of_a_frame_that_a_slip_makes_names_are_told_as_those_of_a_file(slip: str) -> None:
    cells = [slip if x % 9 == 0 else str(x % 7) for x in range(60)]
    with pytest.warns(ShortlistWarning, match=f"taken as names.*'x' \\(7 of 60 cells: '{slip}'\\): mend them"):
        Preprocessor.fit(pd.DataFrame({"x": cells, "size": range(60)}))


def test_numbers_that_are_meant_as_names_are_not_told() -> None:
    cells = ["many" if x % 9 == 0 else str(x % 7) for x in range(60)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Preprocessor.fit(pd.DataFrame({"x": pd.Categorical(cells), "size": range(60)}))


def test_digits_of_another_script_are_told() -> None:
    cells = [chr(0xFF11 + x % 7) for x in range(60)]
    with pytest.warns(ShortlistWarning, match="look like numbers are taken as names.*'x'"):
        Preprocessor.fit(pd.DataFrame({"x": cells, "size": range(60)}))


def test_a_column_of_yes_and_no_may_have_blanks_in_new_rows() -> None:
    frame = pd.DataFrame({"is_new": [True, False] * 30, "size": range(60)})
    prepared = Preprocessor.fit(frame)
    new = prepared.transform(pd.DataFrame({"is_new": [True, None, False], "size": [0, 1, 1]}))
    np.testing.assert_array_equal(new[[0, 2]], prepared.transform(frame[:2]))


def test_rupees_are_read_as_in_india() -> None:
    written = pd.DataFrame({"x": ["₹5,25,000", "₹1,05,00,000.50", "₹999", "₹12,345"] * 10, "other": range(40)})
    numbers = written.assign(x=[525_000, 10_500_000.5, 999, 12_345] * 10)
    y = np.arange(40) % 2
    both = [SetClassifier(random_state=0).fit(frame, y).predict_proba(frame) for frame in (written, numbers)]
    np.testing.assert_array_equal(*both)


def test_ordinals_are_numbers_and_told(tmp_path: Path) -> None:
    places = ["1st", "2nd", "3rd", "11th", "NA"] * 4
    frame = pd.DataFrame({"place": places, "kind": ["oak", "elm"] * 10})
    frame.to_csv(tmp_path / "t.csv", index=False)
    data = read_features(tmp_path / "t.csv", labels_key="kind", as_table=True)
    assert data.notes == ("ordinals are numbers, 2nd is 2: 'place'",)
    features = Preprocessor.fit(frame[["place"]])
    assert (
        features.transform(pd.DataFrame({"place": ["22nd", "2nd"]})).tolist()
        == (
            Preprocessor.fit(pd.DataFrame({"place": [1, 2, 3, 11, np.nan] * 4})).transform(
                pd.DataFrame({"place": [22, 2]})
            )
        ).tolist()
    )
