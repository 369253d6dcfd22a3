"""fit: tables however they are written, and new ones that are written otherwise."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import shortlist as sl
from shortlist import ShortlistError, ShortlistWarning, runs
from shortlist.runs.guess import guess_source
from shortlist.runs.plan import Plan
from tests.runs.fit.made_tables import leaves, write


def test_a_table_below_blank_lines_is_guessed_as_it_is_written() -> None:
    Path("t.csv").write_text("\n;;\nlength;kind\n1,5;oak\n2,5;elm\n0,5;oak\n")
    how = {"delimiter": ";", "decimal": ","}
    assert guess_source("t.csv").source == {"reader": "features", "path": "t.csv", "labels_key": "kind", **how}


@pytest.mark.parametrize(
    ("encoding", "options"), [("cp1252", {"encoding": "cp1252"}), ("utf-16", {}), ("utf-8-sig", {}), ("utf-8", {})]
)
def test_text_is_read_however_excel_wrote_it(encoding: str, options: dict[str, Any]) -> None:
    Path("t.csv").write_text("Länge;Art\n1,5;Föhre\n2,5;Ulme\n0,1;Föhre\n", encoding=encoding)
    guess = guess_source("t.csv")
    how = {"delimiter": ";", "decimal": ",", **options}
    assert guess.source == {"reader": "features", "path": "t.csv", "labels_key": "Art", **how}
    data = sl.data.read(**guess.source)
    assert (data.vocabulary, data.columns.features) == (("Föhre", "Ulme"), ("Länge",))
    assert any("read as cp1252" in note for note in guess.notes) == bool(options)


@pytest.mark.parametrize(
    ("written", "mark", "encoding", "options"),
    [
        ("t.tsv", ",", "utf-8", []),
        ("t.tsv", ",", "utf-8", ["delimiter=,"]),
        ("t.csv", " ", "utf-8", ["delimiter= "]),
        ("t.csv", ",", "shift_jis", ["encoding=shift_jis"]),
        ("t.csv", ":", "utf-8", ["delimiter=:", "decimal=,"]),
    ],
)
def test_how_a_table_is_written_may_be_given_before_anything_is_guessed(
    written: str, mark: str, encoding: str, options: list[str]
) -> None:
    table = "長さ,幅,種類\n1,2,松\n3,4,杉\n5,6,松\n".replace(",", mark)
    Path(written).write_text(table.replace("1:", "1,5:"), encoding=encoding)
    plan = Plan.of(written, overrides=options)
    data = sl.data.read(**plan.reading().data.train.model_dump())
    assert (data.vocabulary, data.inputs[0, 0].item()) == (("杉", "松"), 1.5 if mark == ":" else 1.0)
    assert not any("cp1252" in note for note in plan.notes)


def test_text_in_an_encoding_that_is_not_found_asks_for_its_name() -> None:
    Path("t.csv").write_text("長さ,種類\n1,松\n", encoding="shift_jis")
    with pytest.raises(ShortlistError, match=r"or name its encoding, such as .* encoding=shift_jis"):
        guess_source("t.csv")


def test_new_data_is_read_however_it_is_written_and_only_new_columns_are_told_of() -> None:
    frame = leaves(60)
    frame["Köln"] = np.where(frame["shore"] == "north", "östlich", "westlich")
    frame.to_csv("old.csv", index=False, encoding="cp1252")
    runs.fit("old.csv", "run", labels=["species"], overrides=["epochs=1"])
    frame.drop(columns="species").to_csv("new.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # that a text and an id are no features was told in training
        first = runs.predict("run", "new.csv", rule="top-k:k=1")["first"]
        assert runs.predict("run", "old.csv", rule="top-k:k=1")["first"] == first
        runs.evaluate("run", "old.csv")
    frame.assign(shoe=1).to_csv("new.csv", index=False)
    with pytest.warns(ShortlistWarning, match=r"columns that were not there in training are ignored: 'shoe'$"):
        runs.predict("run", "new.csv", rule="top-k:k=1")


def test_a_test_table_may_be_written_in_another_way_than_the_training_table() -> None:
    leaves(90).to_csv("train.csv", index=False)
    leaves(40).to_csv("test.csv", index=False, sep=";", decimal=",")
    done = runs.fit("train.csv", "run", overrides=["data.test=test.csv"])
    assert done["evaluation"]["examples"] == 40
    assert runs.Run("run").config.data.test.options["delimiter"] == ";"


def test_commas_between_thousands_are_read_in_new_tables_that_do_not_tell() -> None:
    """1,234,567 says that 1,500 is fifteen hundred; the new table has no such cell."""
    random = np.random.default_rng(0)
    people = random.integers(1000, 3_000_000, 120)
    kinds = np.where(people > 10**6, "city", "town")
    write("old.csv", pd.DataFrame({"people": [f"{n:,}" for n in people], "kind": kinds}))
    runs.fit("old.csv", "run")
    Path("new.csv").write_text('people\n"1,500"\n"950"\n')
    first = runs.predict("run", "new.csv", rule="top-k:k=1")["first"]
    assert [one["labels"] for one in first] == [["town"], ["town"]]
    assert runs.Run("run").config.data.train.options["decimal"] == "."


def test_fractions_of_three_digits_are_no_thousands_where_tabs_stand_between_cells() -> None:
    """Beside 0.5, 12.750 is no 12,750: a new table with 12.8 would then be another quantity."""
    random = np.random.default_rng(0)
    grams = random.uniform(1, 90, 120)
    frame = pd.DataFrame({"grams": [f"{n:.3f}" for n in grams], "share": [f"{n:.1f}" for n in random.random(120)]})
    frame.assign(kind=np.where(grams > 45, "large", "small")).to_csv("old.tsv", sep="\t", index=False)
    runs.fit("old.tsv", "run")
    Path("new.tsv").write_text("grams\tshare\n88.5\t0.5\n2\t0.5\n")
    first = runs.predict("run", "new.tsv", rule="top-k:k=1")["first"]
    assert [one["labels"] for one in first] == [["large"], ["small"]]
