"""Features and labels from .csv and .tsv files."""

from pathlib import Path
from typing import Any

import pytest

from shortlist.data import DataError, read_features
from shortlist.data.preprocessing import Preprocessor
from shortlist.data.readers.features import read_inputs
from tests.data.readers.made_files import assert_found, text

TABLE = """\
id,width,colour,height,cat,dog
007,1.5,red,2,1,0
008,3,blue,-4e1,,1
"""


@pytest.fixture
def csv(tmp_path):
    return lambda content: text(tmp_path / "table.csv", content)


def test_named_columns_are_labels_and_all_other_numbers_features(csv):
    data = read_features(csv(TABLE), label_columns=["cat", "dog"], ids_key="id")
    assert data.inputs.tolist() == [[1.5, 2], [3, -40]]
    assert (data.target.tolist(), data.vocabulary) == ([[1, 0], [-1, 1]], ("cat", "dog"))
    assert (data.ids, data.name) == (("007", "008"), "table")


def test_a_column_of_names_gives_class_indices_and_blank_is_unknown(csv):
    data = read_features(csv("kind,a,b\nowl,1,2\n,3,4\ncat,5,6\n"), labels_key="kind")
    assert (data.inputs.tolist(), data.target.tolist()) == ([[1, 2], [3, 4], [5, 6]], [1, -1, 0])
    assert data.vocabulary == ("cat", "owl")


def test_a_column_of_indices_gives_class_indices_and_blank_is_unknown(csv):
    assert read_features(csv("a,y\n1,2\n3,\n"), num_labels=3).target.tolist() == [2, -1]


def test_columns_that_begin_with_a_key_go_together(csv):
    data = read_features(csv("X_0,X_1,other,y_cat,y_dog\n1,2,9,1,\n3,4,9,-1,0\n"))
    assert (data.inputs.tolist(), data.target.tolist()) == ([[1, 2], [3, 4]], [[1, -1], [-1, 0]])
    assert data.vocabulary == ("cat", "dog")


def test_only_the_named_columns_are_features(csv):
    path = csv("X,Y,year,cat\n1,2,1999,0\n")
    assert read_features(path, label_columns=["cat"]).inputs.tolist() == [[1, 2, 1999]]
    assert read_features(path, label_columns=["cat"], input_columns=["Y", "X"]).inputs.tolist() == [[2, 1]]


def test_a_column_without_a_name_is_no_feature(csv):
    assert read_features(csv(",a,cat\n0,1.5,0\n1,2.5,1\n"), label_columns=["cat"]).inputs.tolist() == [[1.5], [2.5]]


def test_tabs_and_a_file_of_labels_apart(tmp_path):
    labels = text(tmp_path / "labels.tsv", "cat\tdog\n1\t\n0\t1\n")
    features = text(tmp_path / "features.csv", "a,b\n1,2\n3,4\n")
    data = read_features(features, labels=labels, label_columns=["cat", "dog"])
    assert (data.inputs.tolist(), data.target.tolist()) == ([[1, 2], [3, 4]], [[1, -1], [0, 1]])


def test_side_labels_and_the_truth_are_columns(csv):
    path = csv("a,kind,right,cat,dog\n1,wild,cat|dog,1,\n2,,,0,0\n3,tame,dog,,1\n")
    data = read_features(path, label_columns=["cat", "dog"], side_key="kind", truth_key="right")
    assert (data.in_shape, data.side.tolist(), data.truth.to_lists()) == ((1,), [1, -1, 0], [[0, 1], [], [1]])
    assert data.describe()["side_classes"] == 2


def test_every_problem_is_found_with_its_line_and_column(csv):
    path = csv(
        "id,a,b,cat,dog\n"
        "x,1,2,1,0\n"
        "y,1,,1,0\n"
        "z,1,two,1,0\n"
        "\n"
        "x,inf,2,1,maybe\n"
        "w,1,2\n"
        "v,1,2,1,7\n"
    )  # fmt: skip
    options = {"path": path, "label_columns": ["cat", "dog"], "ids_key": "id"}
    unreadable = [
        ("table.csv", 4, "the column 'b' is 'two', not a number"),
        ("table.csv", 6, "the column 'dog' is 'maybe': allowed are 1 (present), 0 (absent)"),
        ("table.csv", 7, "has 3 cells, but there are 5 columns"),
    ]
    assert_found("features", unreadable, **options)
    csv("id,a,b,cat,dog\nx,1,2,1,0\n\ny,1,,1,0\nx,inf,2,1,1\nv,1,2,1,7\n")
    wrong = [
        ("table.csv", 4, "the column 'b' is blank or not finite"),
        ("table.csv", 5, "the column 'a' is blank or not finite"),
        ("table.csv", 5, "the id 'x' is a duplicate, seen before in line 2"),
        ("table.csv", 6, "label dog is 7.0: allowed are 1 (present), 0 (absent)"),
    ]
    assert_found("features", wrong, **options)


def test_a_name_outside_the_vocabulary_is_reported_once_with_the_name_that_was_meant(csv):
    path = csv("a,kind\n1,plum\n2,blue plum\n3,plum\n4,blue plum\n5,kiwi\n")
    expected = [
        ("table.csv", 3, "label 'blue plum' is outside the vocabulary, here and in 1 more row; did you mean 'blue-"),
        ("table.csv", 6, "label 'kiwi' is outside the vocabulary"),
    ]
    assert_found("features", expected, path=path, labels_key="kind", vocabulary=["plum", "blue-plum"])


def test_columns_that_are_not_there_are_reported_with_those_that_are(csv):
    path = csv("a,cat\n1,0\n")
    asked = "there is no column 'y' and no column 'y_*': give labels_key or label_columns; the columns are 'a', 'cat'"
    assert_found("features", [("table.csv", None, asked)], path=path)
    expected = [("table.csv", None, "there is no column 'dog': the columns are 'a', 'cat'")]
    assert_found("features", expected, path=path, label_columns=["cat", "dog"])
    assert_found("features", [("table.csv", None, "2 columns are called 'a'")], path=csv("a,a,y\n1,2,c\n"))
    with pytest.raises(DataError, match=r"no column is left to be a feature: .*; the columns are 'y'"):
        read_features(csv("y\ncat\n"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("\n \n", "the file is empty"),
        (",\n,\n", "the first line must name the columns, and is blank"),
        ("a;y\n1;cat\n", "cells are separated by ';'"),
        ("a\ty\n1\tcat\n", "cells are separated by '\\t'"),
        ("a,y\n", "no rows: the file only names the columns 'a', 'y'"),
    ],
)
def test_a_file_without_columns_or_rows_is_a_problem(csv, content, message):
    path = csv(content)
    assert_found("features", [("table.csv", None, message)], path=path)
    assert_found("image-table", [("table.csv", None, message)], path=path, labels="name")


def test_inputs_alone_are_read_from_files_with_and_without_labels(csv):
    options = {"path": "train.csv", "label_columns": ["cat", "dog"], "ids_key": "id", "num_labels": None}
    inputs, ids, _ = read_inputs(csv(TABLE), options)
    assert (inputs.tolist(), ids) == ([[1.5, 2], [3, -40]], ("007", "008"))
    inputs, ids, _ = read_inputs(csv("width,height\n1.5,2\n"), options)
    assert (inputs.tolist(), ids) == ([[1.5, 2]], None)
    assert read_inputs(csv("a,b,y_cat\n1,2,0\n"), {})[0].tolist() == [[1, 2]]
    named = {"input_columns": ["height", "width"]}
    assert read_inputs(csv("width,height,age\n1,2,3\n"), named)[0].tolist() == [[2, 1]]
    with pytest.raises(DataError, match="line 3: the column 'height' is blank or not finite"):
        read_inputs(csv("width,height\n1,2\n3,\n"), options)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(("code", "options"), [("01001", {}), ("11001", {"name_columns": ["zip"]})])
def test_codes_are_names(tmp_path: Path, ending: str, code: str, options: dict[str, Any]) -> None:
    import pandas as pd

    frame = pd.DataFrame({"zip": [code, "94105"] * 3, "size": ["1", "2"] * 3, "y": list("abcabc")})
    file = tmp_path / f"table.{ending}"
    if ending == "csv":
        frame.to_csv(file, index=False)
    elif ending == "jsonl":
        frame.to_json(file, orient="records", lines=True)
    else:
        frame.to_parquet(file)
    prepared = Preprocessor.fit(read_features(file, as_table=True, **options).inputs.frame)
    assert prepared.name_columns == ("zip",)
    assert prepared.categories[0].names == (code, "94105")


def test_whole_numbers_of_parquet_are_names_where_that_is_said_or_a_dictionary_says_it(tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame({"code": [1, None, 7] * 3, "kind": pd.Categorical([5, 6, 6] * 3), "y": list("abc") * 3})
    frame["town"] = pd.Categorical(["10001", "60601", "10001"] * 3)
    frame.to_parquet(tmp_path / "table.parquet")
    rows = read_features(tmp_path / "table.parquet", as_table=True, name_columns=["code", "kind"]).inputs
    prepared = Preprocessor.fit(rows.frame)
    assert [one.names for one in prepared.categories] == [("(missing)", "1", "7"), ("5", "6"), ("10001", "60601")]


def test_name_columns_must_be_features_of_a_table_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text("zip,y\n1,a\n2,b\n")
    with pytest.raises(ValueError, match="name_columns: there is no feature 'zap': the features are 'zip'"):
        read_features(file, as_table=True, name_columns=["zap"])
    with pytest.raises(ValueError, match="name_columns goes with as_table"):
        read_features(file, name_columns=["zip"])


def test_the_fields_of_an_object_are_columns(tmp_path: Path) -> None:
    file = text(tmp_path / "t.jsonl", '{"y": "a", "box": {"w": 1.5, "in": {"h": 2}}}\n{"y": "b", "box": null}\n')
    rows = read_features(file, as_table=True).inputs.frame
    assert rows.to_dict("list")["box.w"][0] == 1.5
    assert (list(rows), int(rows["box.in.h"].isna().sum())) == (["box.w", "box.in.h"], 1)
    assert read_features(file, as_table=True, other_columns=["box.w"]).columns.features == ("box.in.h",)
    twice = text(tmp_path / "twice.jsonl", '{"y": "a", "box": {"w": 1.5}, "box.w": 2}\n')
    with pytest.raises(DataError, match=r"several columns are called 'box\.w'"):
        read_features(twice)
