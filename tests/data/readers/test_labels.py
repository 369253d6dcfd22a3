"""Labels as they come: the same cells give the same target, whichever reader reads them."""

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shortlist.data import DataError, Dataset, read_features, read_image_table
from shortlist.data.column_use import as_option
from shortlist.data.readers._label_lists import written_list
from shortlist.errors import ShortlistWarning
from tests.data.readers.made_files import assert_found, image, text

Read = Callable[..., Dataset]


def csv_of(columns: dict[str, list[Any]]) -> str:
    rows = zip(*columns.values(), strict=True)
    quoted = (
        ",".join('"' + str("" if cell is None else cell).replace('"', '""') + '"' for cell in row) for row in rows
    )
    return "\n".join([",".join(columns), *quoted]) + "\n"


@pytest.fixture(params=["features", "image-table"])
def read(request: pytest.FixtureRequest, tmp_path: Path) -> Read:
    """A reader of columns beside a feature or an image, from .csv, .jsonl or .parquet."""

    def read(columns: dict[str, list[Any]], ending: str = "csv", **options: Any) -> Dataset:
        rows = len(next(iter(columns.values())))
        path = tmp_path / f"table.{ending}"
        if request.param == "features":
            columns = {"a": [0.5 * row for row in range(rows)], **columns}
            options = {"labels_key": "kind"} | options if "label_columns" not in options else options
        else:
            for row in range(rows):
                image(tmp_path / f"{row}.png", (row, 0, 0))
            columns = {"path": [f"{row}.png" for row in range(rows)], **columns}
            options = {"label_column": "kind"} | options
        if ending == "csv":
            text(path, csv_of(columns))
        elif ending == "jsonl":
            lines = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
            text(path, "\n".join(map(json.dumps, lines)))
        else:
            pq.write_table(pa.table(columns), path)
        return read_features(path, **options) if request.param == "features" else read_image_table(path, **options)

    return read


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_names_are_classes_and_blank_is_unknown(read: Read, ending: str) -> None:
    data = read({"kind": ["owl", "", "cat"]}, ending)
    assert (data.vocabulary, data.target.tolist()) == (("cat", "owl"), [1, -1, 0])


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_names_with_a_separator_are_a_label_matrix(read: Read, ending: str) -> None:
    data = read({"kind": ["joy; love", "joy", ""]}, ending, separator=";")
    assert (data.vocabulary, data.target.tolist()) == (("joy", "love"), [[1, 1], [1, 0], [0, 0]])
    data = read({"kind": ["joy; love", "joy", ""]}, ending, separator=";", rest="unknown")
    assert data.target.tolist() == [[1, 1], [1, -1], [-1, -1]]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_lists_of_names_are_a_label_matrix(read: Read, ending: str) -> None:
    data = read({"kind": [["joy", "love"], ["joy"], []]}, ending)
    assert (data.vocabulary, data.target.tolist()) == (("joy", "love"), [[1, 1], [1, 0], [0, 0]])


@pytest.mark.parametrize("cells", [['["joy", "love"]', '["joy"]', "[]", ""], ["['joy', 'love']", "['joy']", "[]", ""]])
def test_lists_written_in_a_text_as_json_or_as_pandas_does_are_a_label_matrix(read: Read, cells: list[str]) -> None:
    data = read({"kind": cells})
    assert (data.vocabulary, data.target.tolist()) == (("joy", "love"), [[1, 1], [1, 0], [0, 0], [0, 0]])


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_lists_of_class_numbers_are_a_label_matrix(read: Read, ending: str) -> None:
    cells: list[Any] = [[0, 12], [2], []]
    data = read({"kind": [json.dumps(cell) for cell in cells] if ending == "csv" else cells}, ending)
    assert (data.vocabulary, data.target.tolist()) == (("0", "2", "12"), [[1, 0, 1], [0, 1, 0], [0, 0, 0]])


def test_class_numbers_with_a_separator_are_indices_of_the_vocabulary(read: Read) -> None:
    data = read({"kind": ["0,2", "1"]}, separator=",", vocabulary=["joy", "love", "anger"])
    assert data.target.tolist() == [[1, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ((["1", "0", "1"], ["0", "-1", ""]), [[1, 0], [0, -1], [1, -1]]),
        ((["1.0", "0.0", "-1.0"], ["", "NA", "nan"]), [[1, -1], [0, -1], [-1, -1]]),
        ((["true", "False", ""], ["TRUE", "false", "?"]), [[1, 1], [0, 0], [-1, -1]]),
        ((["yes", "no", "Yes"], ["y", "n", "N"]), [[1, 1], [0, 0], [1, 0]]),
    ],
)
def test_a_column_per_label_takes_numbers_words_and_blanks(read: Read, cells: Any, expected: list[list[int]]) -> None:
    for ending in ("csv", "jsonl", "parquet"):
        data = read({"cat": cells[0], "dog": cells[1]}, ending, label_columns=["cat", "dog"])
        assert (data.vocabulary, data.target.tolist()) == (("cat", "dog"), expected)


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_column_per_label_takes_what_json_and_parquet_know(read: Read, ending: str) -> None:
    columns = {"cat": [True, False, None], "dog": [1.0, None, -1.0]}
    assert read(columns, ending, label_columns=["cat", "dog"]).target.tolist() == [[1, 1], [0, -1], [-1, -1]]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_marks_are_present_and_blanks_absent(read: Read, ending: str) -> None:
    columns = {"cat": ["x", None, "X", "no"], "dog": [1.0, None, 0.0, -1.0], "owl": [None, "\u2713", "0", "unknown"]}
    data = read(columns, ending, label_columns=["cat", "dog", "owl"], coding="marks")
    assert data.target.tolist() == [[1, 1, 0], [0, 0, 1], [1, 0, 0], [0, -1, -1]]


def test_words_mean_the_same_in_every_coding(read: Read) -> None:
    columns = {"cat": ["yes", "no", ""], "dog": ["1", "-1", "0"]}
    assert read(columns, label_columns=["cat", "dog"], coding="signed").target.tolist() == [[1, 1], [0, 0], [-1, -1]]


@pytest.mark.parametrize(("uncertain", "becomes"), [("unknown", -1), ("present", 1), ("absent", 0)])
def test_chexpert_has_uncertain_labels_and_a_policy_for_them(read: Read, uncertain: str, becomes: int) -> None:
    columns = {"Edema": ["1.0", "-1.0", ""], "Fracture": ["0.0", "1.0", "-1.0"]}
    options = {"label_columns": ["Edema", "Fracture"], "coding": "chexpert"}
    data = read(columns, **options, uncertain=uncertain)
    assert data.target.tolist() == [[1, 0], [becomes, 1], [-1, becomes]]
    mixed = read(columns, **options, uncertain={"Edema": uncertain})
    assert mixed.target.tolist() == [[1, 0], [becomes, 1], [-1, -1]]


def test_the_labels_of_a_chexpert_table_are_found(tmp_path: Path) -> None:
    image(tmp_path / "a.png")
    content = "Path,Sex,Age,Frontal/Lateral,AP/PA,Edema,Fracture\na.png,M,50,Frontal,AP,1,\n"
    table = text(tmp_path / "train.csv", content)
    data = read_image_table(table, path_column="Path", coding="chexpert")
    assert (data.vocabulary, data.target.tolist()) == (("Edema", "Fracture"), [[1, -1]])
    assert data.columns is not None
    assert data.columns.lines() == [
        "labels (2): Edema, Fracture",
        "others (1): Path (the images' paths)",
        "ignored (4): Sex (it is neither the images' path nor a label), Age (it is neither the images' path nor a "
        "label), Frontal/Lateral (it is neither the images' path nor a label), AP/PA (it is neither the images' path "
        "nor a label)",
    ]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_whole_numbers_need_no_number_of_labels_and_it_is_said_which_classes_occur(read: Read, ending: str) -> None:
    data = read({"kind": [3, 10, 1, -1]}, ending)
    assert (data.vocabulary, data.target.tolist()) == (("1", "3", "10"), [1, 2, 0, -1])
    assert data.notes == (
        "the labels are whole numbers: 3 classes occur, 1, 3, 10; give num_labels if there are more",
        "1 of 4 examples has no known label",
    )
    again = read({"kind": [10, 1]}, ending, vocabulary=data.vocabulary)
    assert (again.target.tolist(), again.notes) == ([2, 0], ())
    assert read({"kind": [3, 10, 1, -1]}, ending, num_labels=11).target.tolist() == [3, 10, 1, -1]


def test_numbers_with_leading_zeros_are_names(read: Read) -> None:
    assert read({"kind": ["007", "010"]}).vocabulary == ("007", "010")


def test_one_and_minus_one_alone_are_refused_and_the_advice_works(read: Read) -> None:
    with pytest.raises(ValueError, match="name its column in label_columns and give coding='signed'"):
        read({"kind": [1, -1, 1]})
    assert read({"kind": [1, -1, 1]}, label_columns=["kind"], coding="signed").target.tolist() == [[1], [0], [1]]


def test_a_list_among_names_and_a_name_among_lists_are_told_apart(read: Read) -> None:
    with pytest.raises(ValueError, match=r"table.csv, line 4: the label is 'joy': most others are lists"):
        read({"kind": ['["joy"]', '["joy", "love"]', "joy"]})
    assert read({"kind": ["[other]", "joy", "[misc]"]}).vocabulary == ("[misc]", "[other]", "joy")


def test_fractions_are_no_labels(read: Read) -> None:
    with pytest.raises(ValueError, match=r"line 3: the label is no whole number in 1 row, 1.5: allowed are"):
        read({"kind": ["1", "1.5"]})


def test_negative_numbers_are_one_problem_with_a_count_and_three_of_them(read: Read) -> None:
    with pytest.raises(DataError) as raised:
        read({"kind": [3, -2, -2, -7, 5, -4, -9]})
    (problem,) = raised.value.problems
    assert (problem.row, problem.unit) == (3, "line")
    assert problem.message.startswith("the label is negative in 5 rows, -2, -7 (line 5), -4 (line 7), ...: allowed are")
    with pytest.raises(DataError, match=r"in 50 rows, .*; of a quantity, make classes first") as raised:
        read({"kind": list(range(-51, -1))})
    assert len(raised.value.problems) == 1


def test_options_that_would_be_ignored_are_refused(read: Read) -> None:
    with pytest.raises(ValueError, match="uncertain says what -1 means in coding='chexpert'"):
        read({"kind": ["a", "b"]}, uncertain="present")
    with pytest.raises(ValueError, match="coding must be one of 'label-matrix', 'signed', 'nan', 'marks', 'chexpert'"):
        read({"kind": ["a", "b"]}, coding="chexprt")


def test_nan_in_a_label_matrix_names_what_reads_it(tmp_path: Path) -> None:
    np.savez(tmp_path / "all.npz", X=np.eye(2), y=[[1, 0], [np.nan, 1]])
    message = "-1 (unknown); coding='nan' takes NaN as unknown (labels.from_nan)"
    assert_found("features", [("all.npz", 1, message)], path=tmp_path / "all.npz")
    data = read_features(tmp_path / "all.npz", coding="nan")
    assert data.target.tolist() == [[1, 0], [-1, 1]]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_long_numbers_that_differ_stay_different_labels(read: Read, ending: str) -> None:
    codes = [9007199254740993, 9007199254740992, 9007199254740993]
    data = read({"kind": codes}, ending)
    assert [data.vocabulary[label] for label in data.target.tolist()] == list(map(str, codes))
    if ending != "csv":
        data = read({"kind": [*codes, None]}, ending)
        assert [data.vocabulary[label] for label in data.target.tolist()[:3]] == list(map(str, codes))
        assert data.target[3] == -1


def test_true_and_false_with_blanks_are_names(read: Read) -> None:
    data = read({"kind": [True, None, False]}, "jsonl")
    assert (data.vocabulary, data.target.tolist()) == (("false", "true"), [1, -1, 0])


def test_labels_of_another_kind_are_a_problem(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1.0, 2.0], "y": [b"x", b"z"]}), tmp_path / "all.parquet")
    assert_found("features", [("all.parquet", None, "names or lists, got b'x'")], path=tmp_path / "all.parquet")


@pytest.mark.parametrize("separator", [None, "|"])
def test_numbers_are_names_where_the_vocabulary_has_them_among_others(read: Read, separator: str | None) -> None:
    data = read({"kind": [1, 5, 1]}, vocabulary=["5", "A", "1"], separator=separator)
    present = data.target if data.is_single else data.target.argmax(1)
    assert [data.vocabulary[label] for label in present.tolist()] == ["1", "5", "1"]


@pytest.mark.parametrize(
    ("cells", "options"),
    [
        (["joy;love", "NA", "", "joy;NA"], {"separator": ";"}),
        (['["joy","love"]', "NA", "[]", '["joy","NA"]'], {}),
    ],
)
def test_an_unknown_name_says_that_the_labels_that_are_not_beside_it_are_unknown(
    read: Read, cells: list[str], options: dict[str, Any]
) -> None:
    found = read({"kind": cells}, unknown_names=["NA"], **options)
    assert found.vocabulary == ("joy", "love")
    assert found.target.tolist() == [[1, 1], [-1, -1], [0, 0], [1, -1]]


def test_blank_lists_are_unknown_if_a_blank_is_an_unknown_name(read: Read) -> None:
    found = read({"kind": ["joy;love", "", "love"]}, separator=";", unknown_names=[""])
    assert found.target.tolist() == [[1, 1], [-1, -1], [0, 1]]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("numbers", [[-1, 0, 1], [-2, 0, 2], [-1, 1]])
def test_negative_numbers_are_refused_and_the_advice_makes_classes_of_them(
    read: Read, ending: str, numbers: list[int]
) -> None:
    names = tuple(map(str, numbers))
    with pytest.raises(ValueError, match="give vocabulary=" + re.escape(as_option(list(names)))):
        read({"kind": [*numbers, *numbers]}, ending)
    data = read({"kind": [*numbers, None]}, ending, vocabulary=names)
    assert (data.vocabulary, data.target.tolist()) == (names, [*range(len(numbers)), -1])
    assert data.notes == (f"1 of {len(numbers) + 1} examples has no known label",)


def test_minus_one_is_unknown_beside_0_and_1_where_the_number_of_labels_says_so(read: Read) -> None:
    with pytest.raises(ValueError, match="give num_labels=2 if -1 means unknown"):
        read({"kind": [-1, 0, 1]})
    assert read({"kind": [-1, 0, 1]}, num_labels=2).target.tolist() == [-1, 0, 1]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_blank_beside_0_and_1_is_unknown(read: Read, ending: str) -> None:
    data = read({"kind": [None, 1.0, 0.0, 1.0]}, ending)
    assert (data.vocabulary, data.target.tolist()) == (("0", "1"), [-1, 1, 0, 1])
    assert "1 of 4 examples has no known label" in data.notes
    with pytest.raises(ValueError, match=r'the labels are -1, 0 and 1: give vocabulary=.*"-1", "0", "1"'):
        read({"kind": [None, 1.0, 0.0, -1.0]}, ending)
    with pytest.raises(ValueError, match=r'give vocabulary=.*"-2", "3"'):  # and no -1
        read({"kind": [None, -2.0, 3.0]}, ending)
    assert read({"kind": [None, 1.0, 2.0]}, ending, separator="|").target.tolist() == [[0, 0], [1, 0], [0, 1]]


def test_a_blank_beside_1_alone_is_refused_and_the_advice_works(read: Read) -> None:
    with pytest.raises(ValueError, match=r"the labels are 1 and blank, .* give coding='marks'"):
        read({"kind": [1.0, None, 1.0]})
    assert read({"kind": [1.0, None, 1.0]}, label_columns=["kind"], coding="marks").target.tolist() == [[1], [0], [1]]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_blank_lists_are_counted_and_may_be_unknown(read: Read, ending: str) -> None:
    lists = [["joy"], None, ["love"], ["joy", "love"], None]
    data = read({"kind": lists}, ending)
    assert data.target.tolist() == [[1, 0], [0, 0], [0, 1], [1, 1], [0, 0]]
    said = "2 of 5 lists are blank: examples without labels; give unknown_names='[\"\"]' if these are unknown"
    assert data.notes == (said,)
    data = read({"kind": [*lists[:4], []]}, ending, unknown_names=[""])
    assert (data.target.tolist(), data.notes) == ([[1, 0], [-1, -1], [0, 1], [1, 1], [0, 0]], ())


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_several_columns_of_names_are_the_names_of_a_row_in_any_of_them(read: Read, ending: str) -> None:
    columns = {"first": ["art", "bio", "art", None], "second": ["bio", None, "chem", "none"]}
    data = read(columns, ending, label_columns=["first", "second"])
    assert data.vocabulary == ("art", "bio", "chem")
    assert data.target.tolist() == [[1, 1, 0], [0, 1, 0], [1, 0, 1], [0, 0, 0]]
    assert data.notes[0].startswith("1 of 4 lists is blank")


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_one_of_several_columns_of_names_may_be_blank(read: Read, ending: str) -> None:
    blank = [None] * 3 if ending != "parquet" else pa.array([None] * 3, pa.float64())  # as pandas writes it
    columns = {"first": ["art", "bio", "art"], "second": ["bio", None, "chem"], "third": blank}
    data = read(columns, ending, label_columns=[*columns])
    assert (data.vocabulary, data.target.tolist()) == (("art", "bio", "chem"), [[1, 1, 0], [0, 1, 0], [1, 0, 1]])


@pytest.mark.parametrize("mark", ["x", "positive"])
def test_columns_of_one_mark_or_two_words_are_no_names(read: Read, mark: str) -> None:
    columns = {"first": [mark, None, "negative"], "second": [None, mark, "Negative"]}
    with pytest.raises(ValueError, match=f"the column 'first' is '{mark}': allowed are 1"):
        read(columns, label_columns=["first", "second"])
    known = read(columns, label_columns=["first", "second"], vocabulary=["Negative", "negative", mark])
    assert known.target.tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(("yes", "no", "refused"), [("yes", "no", "refused"), (1, 0, 99), ("x", None, "?!")])
def test_cells_of_label_columns_that_are_named_say_that_nothing_is_known(
    read: Read, ending: str, yes: Any, no: Any, refused: Any
) -> None:
    columns = {"joy": [yes, no, refused, yes], "love": [no, yes, yes, "don't know" if yes == "yes" else no]}
    options = {"label_columns": ["joy", "love"], "coding": "label-matrix" if no is not None else "marks"}
    data = read(columns, ending, **options, unknown_names=[str(refused)])
    assert data.target.tolist() == [[1, 0], [0, 1], [-1, 1], [1, -1 if yes == "yes" else 0]]
    if no is not None:
        with pytest.raises(ValueError, match=rf"give unknown_names='\[\"{refused}\"\]' if that means that nothing is"):
            read(columns, ending, **options)


def test_yes_and_no_that_are_1_and_2_are_refused_with_what_mends_it(read: Read) -> None:
    with pytest.raises(ValueError, match=r"label joy is 2.*where 1 is yes and 2 no, or .*, write 1 for yes and 0 for"):
        read({"joy": [1, 2, 9], "love": [0, 1, 0]}, label_columns=["joy", "love"])


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_true_and_false_are_spelt_alike_whichever_file_they_are_in(read: Read, ending: str) -> None:
    assert read({"kind": [True, False, True]}, ending).vocabulary == ("false", "true")
    assert read({"kind": [True, False, True]}, ending, vocabulary=["True", "False"]).target.tolist() == [0, 1, 0]
    assert read({"kind": ["TRUE", "False", "true"]}, ending).target.tolist() == [1, 0, 1]
    assert read({"kind": ["True", "true", "maybe"]}, ending).vocabulary == ("True", "maybe", "true")


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
@pytest.mark.parametrize(
    "cells",
    [
        ["<joy><c#>", "<joy>", None],  # as Stack Overflow writes tags
        ["['joy' 'c#']", "['joy']", None],  # as numpy writes arrays
        ['[{"id": 7, "name": "joy"}, {"id": 8, "name": "c#"}]', "[{'id': 7, 'name': 'joy'}]", None],
        ["[np.str_('joy'), 'c#']", "[np.str_('joy')]", None],  # as NumPy 2 writes lists of its texts
        ["{joy,c#}", '{"joy",NULL}', "{}"],  # as PostgreSQL writes arrays
        ["[joy, c#]", "[joy]", "[]"],
        ["{'joy', 'c#'}", "{'joy'}", None],  # sets of Python's
        ["('joy', 'c#')", "('joy',)", "()"],
        ['{"choices": ["joy", "c#"]}', '{"choices": ["joy"]}', '{"choices": []}'],  # as Label Studio writes choices
        ['{"choices": ["joy", "c#"]}', "joy", None],  # and one alone
    ],
)
def test_lists_are_read_as_people_and_tools_write_them(read: Read, cells: list[Any], ending: str) -> None:
    data = read({"kind": cells}, ending)
    assert (data.vocabulary, data.target.tolist()) == (("c#", "joy"), [[1, 1], [0, 1], [0, 0]])


@pytest.mark.parametrize(
    "cell",
    ['{"a": 1}', "{a:1,b:2}", "{6F9619FF-8B86-D011-B42D-00C04FC964FF}", "(1, 2)", "(joy)", "{a}}", "{a,}"],
)
def test_objects_ids_and_other_brackets_are_no_lists(cell: str) -> None:
    assert written_list(cell) is None


def test_names_in_arrays_may_be_quoted() -> None:
    assert written_list(r'{"true \"love\"","a,b", joy ,"NULL",01}') == ['true "love"', "a,b", "joy", "NULL", "01"]


def test_names_in_brackets_are_no_lists_where_none_holds_a_comma(read: Read) -> None:
    assert read({"kind": ["[joy]", "[love]", "[joy]"]}).vocabulary == ("[joy]", "[love]")


@pytest.mark.parametrize("cells", [["[0, 1, 0]", "[1, 0, 0]"], ["[0,1]", "[1,1]"], ["[0.0, 1.0, 1.0]", "[]"]])
def test_lists_of_0_and_1_for_each_label_are_refused(read: Read, cells: list[str]) -> None:
    with pytest.raises(ValueError, match=r"lists name the labels that are present.*write a column for each"):
        read({"kind": cells})


def test_lists_of_class_numbers_are_read(read: Read) -> None:
    assert read({"kind": ["[0, 1]", "[1]", "[0]"]}).target.tolist() == [[1, 1], [0, 1], [1, 0]]


@pytest.mark.parametrize("name", ["Total", "grand total", "SUMME:"])
@pytest.mark.parametrize("separator", [None, "|"])
def test_a_row_of_totals_is_a_warning(read: Read, name: str, separator: str | None) -> None:
    with pytest.warns(ShortlistWarning, match=rf"table.csv, line 4: .* label '{name}': delete it if it holds totals"):
        read({"kind": ["joy", "love", name, None]}, separator=separator)


@pytest.mark.parametrize("cells", [["Total", "joy", "love"], ["Total", "joy", "Total"], ["joy", "love", "total war"]])
def test_labels_called_total_elsewhere_are_no_totals(read: Read, cells: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ShortlistWarning)
        read({"kind": cells})


def test_objects_in_lists_are_called_by_their_names(read: Read) -> None:
    lists = [[{"id": 7, "name": "joy"}], [{"id": 7, "name": "joy"}, {"id": 8, "name": "love"}]]
    data = read({"kind": lists}, "parquet")
    assert (data.vocabulary, data.target.tolist()) == (("joy", "love"), [[1, 0], [1, 1]])


def test_classes_may_be_a_matrix_of_one_column(tmp_path: Path) -> None:
    np.savez(tmp_path / "all.npz", X=np.eye(3), y=[[2], [0], [1]])
    assert read_features(tmp_path / "all.npz").target.tolist() == [2, 0, 1]
    np.savez(tmp_path / "one.npz", X=np.eye(3), y=[[1], [0], [-1]])
    assert read_features(tmp_path / "one.npz").target.tolist() == [[1], [0], [-1]]


def test_columns_found_by_their_key_are_told_once(tmp_path: Path) -> None:
    text(tmp_path / "t.csv", "a,y_cat,y_dog\n1,1,0\n2,0,1\n")
    assert read_features(tmp_path / "t.csv").columns.labels == ("y_cat", "y_dog")
