"""fit: what the other columns of a table are: ids, texts, features."""

import json
import random
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import shortlist as sl
from shortlist import ShortlistError, runs
from shortlist.data.table_concerns import table_concerns
from shortlist.runs.config import Source
from shortlist.runs.guess import guess_source
from shortlist.runs.plan import Plan
from shortlist.runs.setup import as_table, read_source
from tests.runs.fit.made_tables import leaves, write


def test_a_column_that_counts_the_rows_is_their_id() -> None:
    write("t.csv", leaves().assign(leaf_id=range(100, 250)).rename(columns={"leaf_id": "No"}))
    assert guess_source("t.csv").source["ids_key"] == "No"


def test_a_run_learns_each_of_several_choices_in_a_cell_and_knows_them_in_new_mixtures() -> None:
    random = np.random.default_rng(0)
    cells = [random.choice(["R", "SQL", "C", "Go", "Ada"], random.integers(1, 4), replace=False) for _ in range(200)]
    table = pd.DataFrame({"skills": [";".join(cell) for cell in cells], "role": ["R" in cell for cell in cells]})
    write("people.csv", table)
    told: list[str] = []
    run = runs.fit("people.csv", out="run", say=told.append)["run"]
    assert any("several choices in a cell (1): skills (Ada, C, Go, R, SQL, with ';' between)" in line for line in told)
    new = pd.DataFrame({"skills": ["Ada;C;Go;R;SQL", "Ada;C;Go;SQL"]})
    assert sl.load_run(run).predict(new) == ["true", "false"]
    with pytest.raises(ShortlistError, match=r"'skills' holds several choices .*name_columns='\[\"skills\"\]'"):
        runs.export(run, out="model.onnx", rule="top-k:k=1")


def test_lists_of_names_in_json_are_features_also_of_new_files_and_frames() -> None:
    rows = [{"skills": random.Random(row).sample(["Ada", "C", "Go", "R", "SQL"], 1 + row % 4)} for row in range(120)]
    Path("people.json").write_text(json.dumps([{**row, "hired": str("R" in row["skills"])} for row in rows]))
    run = runs.fit("people.json", out="run")["run"]
    new = [{"skills": ["SQL", "R"]}, {"skills": ["SQL", "Cobol"]}, {"skills": []}]
    Path("new.json").write_text(json.dumps(new))
    predictor = sl.load_run(run)
    assert predictor.predict("new.json")[:2] == predictor.predict(pd.DataFrame(new))[:2] == ["true", "false"]
    Path("new.json").write_text(json.dumps(new[2:]))  # of which the kind cannot be seen
    assert len(predictor.predict("new.json")) == 1


def test_words_that_differ_in_every_row_are_ids_whatever_their_column_is_called() -> None:
    frame = leaves().rename(columns={"leaf_id": "Ticket No"})
    frame["day"] = pd.date_range("2024-01-01", periods=len(frame)).strftime("%d.%m.%Y")
    write("t.csv", frame[["day", "note", "Ticket No", "length", "species"]].replace("leaf ", "T-", regex=True))
    guess = guess_source("t.csv")
    assert guess.source["ids_key"] == "Ticket No"
    assert "ids: the column 'Ticket No', which differs in every row (none: data.train.ids_key=null)" in guess.notes
    write("few.csv", frame[["Ticket No", "length", "species"]].replace("leaf ", "T-", regex=True)[:20])
    assert "ids_key" not in guess_source("few.csv").source
    people = [f"{10_000 + 7 * row:,}" for row in range(60)]
    write("people.csv", pd.DataFrame({"people": people, "kind": ["u", "v"] * 30}))
    assert "ids_key" not in guess_source("people.csv").source  # a quantity, though no cell tells how it is meant


@pytest.mark.parametrize(("cell", "ids"), [
    ("leaf {row}", "leaf"), ("Ticket #{row}", "leaf"),
    ("EUR {row}", None), ("{row} leaf", None), ("leaf{row} of oak{row}", None), ("leaf {row} {row}", None),
])  # fmt: skip
def test_the_same_words_with_other_numbers_are_ids(cell: str, ids: str | None) -> None:
    frame = leaves().drop(columns="note").rename(columns={"leaf_id": "leaf"})
    write("t.csv", frame.assign(leaf=[cell.format(row=1200 + row) for row in range(len(frame))]))
    guess = guess_source("t.csv", labels=["species"])
    assert guess.source.get("ids_key") == ids
    assert any("ids: the column 'leaf', which differs in every row" in note for note in guess.notes) == bool(ids)


def test_columns_that_are_given_another_use_are_neither_labels_nor_texts() -> None:
    frame = leaves().assign(remark=[f"remark {row} of many" for row in range(150)], place=["a", "b", "c"] * 50)
    frame.to_csv("t.csv", index=False)
    plan = Plan.of("t.csv", overrides=["ids_key=note", 'other_columns=["place"]'])
    assert plan.content["data"]["train"]["labels_key"] == "species"
    assert not any("'note'" in note or "'place'" in note for note in plan.notes)


def test_prices_dates_and_ids_that_come_again_late_are_no_ids_and_dates_are_no_texts() -> None:
    frame = leaves(1500).drop(columns=["leaf_id", "note"])
    frame.insert(0, "price", [f"${row},{row % 7}00.50" for row in range(1500)])
    frame.insert(0, "code", [f"c{min(row, 1400)}" for row in range(1500)])
    frame.insert(0, "seen at", pd.date_range("2024-01-01", periods=1500, freq="h").strftime("%d.%m.%Y %H:%M"))
    frame.to_csv("t.csv", index=False)
    guess = guess_source("t.csv", labels=["species"])
    assert guess.source == {"reader": "features", "path": "t.csv", "labels_key": "species"}
    assert not guess.notes


def test_names_of_several_words_that_are_many_are_texts() -> None:
    words = [[f"{letter}{place}" for place in range(9)] for letter in "abc"]
    cells = [f"{a} {b} {c}" for a in words[0] for b in words[1] for c in words[2]]  # 729 different ones
    frame = pd.DataFrame({"name": cells * 3, "length": np.arange(2187) % 7, "kind": [cell[:2] for cell in cells * 3]})
    write("t.csv", frame)
    assert any(note.startswith("texts: 'name'") for note in guess_source("t.csv").notes)
    frame["name"] = [f"kind {row % 200}" for row in range(2187)]
    write("t.csv", frame)
    assert not any(note.startswith("texts:") for note in guess_source("t.csv").notes)


@pytest.mark.parametrize("names", ["counts", "words"])
def test_a_first_column_without_a_name_holds_ids_as_r_and_pandas_write_them(names: str) -> None:
    frame = leaves().drop(columns=["leaf_id", "note"])
    frame.index = pd.Index([f"leaf {row}" for row in range(len(frame))] if names == "words" else range(1, 151))
    frame.to_csv("leaves.csv")
    guess = guess_source("leaves.csv")
    assert guess.source["ids_key"] == ""
    assert "ids: the first column, which has no name (none: data.train.ids_key=null)" in guess.notes


def test_what_pandas_calls_an_index_in_parquet_is_ids() -> None:
    leaves().drop(columns=["leaf_id", "note"]).sample(frac=0.9, random_state=0).to_parquet("leaves.parquet")
    guess = guess_source("leaves.parquet")
    assert (guess.source["labels_key"], guess.source["ids_key"]) == ("species", "__index_level_0__")


@pytest.mark.parametrize("index", ["counts", "repeats", "words"])
def test_what_pandas_calls_an_index_in_parquet_is_no_feature_beside_ids(index: str) -> None:
    frame = leaves().drop(columns=["note"]).sample(frac=0.9, random_state=0)
    if index != "counts":
        frame.index = pd.Index([row % 7 if index == "repeats" else "ab"[row % 2] for row in range(len(frame))])
    frame.to_parquet("leaves.parquet")
    guess = guess_source("leaves.parquet")
    data = read_source(as_table(Source(**guess.source), "auto"))
    assert data.columns is not None
    assert data.columns.features == ("length", "shore")
    assert "a column without a name ('__index_level_0__') is left out: give it one, if it tells something" in (
        table_concerns(data)
    )
    assert not any("__index_level_0__" in note for note in guess.notes)


def test_an_id_of_its_own_name_is_taken_before_the_index_that_pandas_wrote() -> None:
    leaves().drop(columns=["note"]).sample(frac=0.9, random_state=0).reset_index().rename(
        columns={"index": "Unnamed: 0"}
    ).to_csv("leaves.csv", index=False)
    assert guess_source("leaves.csv").source["ids_key"] == "leaf_id"
