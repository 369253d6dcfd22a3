"""Cells with several choices: one feature for each choice, and what is left alone."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from shortlist.data import read_features
from shortlist.data.choices import Choices, fit_choices, mark_between
from shortlist.data.preprocessing import Preprocessor
from shortlist.data.table_concerns import table_concerns
from shortlist.errors import ShortlistError, ShortlistWarning

SKILLS = ["Python;R;SQL", "R", "SQL;R", "Python", "", "SQL;Python", "R;Python", "SQL", "R; SQL", "Perl;R"]


def frame(cells: list[str]) -> pd.DataFrame:
    return pd.DataFrame({"skills": cells, "years": range(len(cells))})


def test_each_choice_of_a_cell_is_a_feature_and_rare_ones_share_one() -> None:
    fitted = Preprocessor.fit(frame(SKILLS))
    assert "several choices in a cell (1): skills (Python, R, SQL and rare or unseen ones, with ';' between)" in (
        fitted.describe()
    )
    found = fitted.transform(frame(["SQL;R", "Perl", "", "R ;Cobol;R"]))
    assert found[:, 1:].tolist() == [[0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 1, 0, 1]]


def test_what_was_learnt_of_choices_goes_through_json() -> None:
    fitted = Preprocessor.fit(frame(SKILLS))
    facts = json.loads(json.dumps(fitted.to_json()))
    again = Preprocessor.from_json(facts)
    assert again == fitted
    np.testing.assert_array_equal(again.transform(frame(SKILLS)), fitted.transform(frame(SKILLS)))
    facts["categories"][0]["separator"] = 5
    with pytest.raises(ShortlistError, match="names must be texts"):
        Preprocessor.from_json(facts)


def test_new_cells_without_any_choice_that_was_learnt_are_told() -> None:
    fitted = Preprocessor.fit(frame(SKILLS * 5))
    assert fitted.unseen(frame(["Python;Cobol", "R"])) == {"skills": ["Cobol"]}
    with pytest.warns(ShortlistWarning, match="columns that say nothing: no value of 'skills'"):
        fitted.transform(frame(["Ada;Cobol"] * 30))


@pytest.mark.parametrize("mark", ["|", ";", ",", ", "])
def test_the_mark_between_choices_is_found(mark: str) -> None:
    assert mark_between(np.array([cell.replace(";", mark) for cell in SKILLS], dtype=object)) == mark.strip()


@pytest.mark.parametrize(
    "cells",
    [
        ["Paris, France", "Lyon, France", "Rome, Italy", "Turin, Italy", "Oslo"],  # most parts are in one cell alone
        ["red, big", "red, small", "blue, big", "blue, small", "grey, big", "grey, small"],  # always two
        ["Smith, Anna", "Doe, John", "Roe, Jane", "Poe, Edgar", "Poe"],
        ["1,5", "2,5", "1,2", "5,2", "1"],  # numbers
        ["a", "b", "c", "a;b", "d"],  # few cells have several
        ["oak", "elm", "ash"],
        ["so sad, really", "what a day, I was glad", "no, never", "yes, why not", "never"],
    ],
)
def test_names_that_hold_a_comma_stay_names(cells: list[str]) -> None:
    assert mark_between(np.array(cells * 3, dtype=object)) is None


def test_cells_of_categories_are_one_name_each() -> None:
    table = frame(SKILLS)
    table["skills"] = table["skills"].astype("category")
    assert "several choices" not in Preprocessor.fit(table.loc[table.index.repeat(2)]).describe()


def test_choices_that_are_written_as_lists_are_those_of_a_text() -> None:
    choices = [["R"], ["R", "SQL"], ["SQL", "C"], ["C", "R"], ["C", "R", "SQL"], ["SQL", "R"]] * 4
    lists, texts = (np.array([form(names) for names in choices], object) for form in (str, ",".join))
    ours, theirs = fit_choices(lists, 0), fit_choices(texts, 0)
    assert ours is not None
    assert ours == theirs
    np.testing.assert_array_equal(ours.transform(lists), ours.transform(texts))


def test_lists_are_choices_of_what_was_learnt_from_texts() -> None:
    learnt = Choices(0, ("C, or C++", "R", "SQL"), True, separator=";")
    cells = np.array(["['R', 'C, or C++']", "['SQL']", '["R", "Perl\'s"]'], object)
    assert learnt.transform(cells).tolist() == [[1, 1, 0, 0], [0, 0, 1, 0], [0, 1, 0, 1]]


LISTS = [["R", "SQL"], ["R"], ["SQL", "C, or C++"], [], ["R", "SQL"], None, ["Ada"]]


@pytest.mark.parametrize("of", [list, np.array], ids=["lists", "arrays"])
def test_lists_of_names_in_a_frame_are_choices(of: Any) -> None:
    cells = [None if cell is None else of(cell) for cell in LISTS]
    fitted = Preprocessor.fit(pd.DataFrame({"skills": cells, "years": range(len(cells))}))
    [found] = fitted.categories
    assert (found.names, found.width) == (("(missing)", "R", "SQL"), 4)
    new = pd.DataFrame({"skills": [of(["SQL", "Cobol"]), of([])], "years": [1, 2]})
    assert fitted.transform(new)[:, 1:].tolist() == [[0, 0, 1, 1], [1, 0, 0, 0]]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_lists_of_names_in_a_file_are_the_choices_that_they_are_in_a_frame(tmp_path: Path, ending: str) -> None:
    table = pd.DataFrame({"skills": LISTS, "years": range(len(LISTS)), "y": list("ababaab")})
    path = tmp_path / f"people.{ending}"
    table.to_parquet(path) if ending == "parquet" else table.to_json(path, orient="records", lines=True)
    data = read_features(path, as_table=True)
    assert data.columns.lines() == ["features (2): skills, years", "labels (1): y"]
    of_frame = Preprocessor.fit(table[["skills", "years"]])
    assert Preprocessor.fit(data.inputs.frame).categories == of_frame.categories


def test_only_lists_of_numbers_are_said_to_be_features_by_inputs_key(tmp_path: Path) -> None:
    table = pd.DataFrame({
        "a": [1.5, 2, 3], "at": [[1.5, 2]] * 3, "ids": [[1], [2, 3], []], "of": [[{"id": 1}]] * 3, "y": list("aba"),
    })  # fmt: skip
    table.to_json(tmp_path / "t.json", orient="records")
    found = read_features(tmp_path / "t.json", as_table=True)
    assert [concern for concern in table_concerns(found) if "left out" in concern] == [
        "1 column is left out, because it holds lists of numbers: 'at': give inputs_key=at if all features are in its "
        "lists, or name it in other_columns",
        "2 columns are left out, because they hold lists of objects, or of different lengths: 'ids', 'of': name them "
        "in other_columns",
    ]
