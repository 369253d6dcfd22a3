"""ARFF, as Mulan and MEKA write it, beside the XML that names the labels."""

from pathlib import Path

import numpy as np
import pytest

from shortlist.data import read_features
from shortlist.data.readers.features import read_inputs
from shortlist.errors import ShortlistError
from tests.data.readers.made_files import assert_found, text

XML = """<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="amazed-suprised"></label>
<label name="happy"><label name="relaxing calm"></label></label>
</labels>
"""
DENSE = """% comes with Mulan
@relation 'music'

@attribute Mean_Acc numeric
@attribute "key 'n' mode" {major,minor}
@ATTRIBUTE beats REAL
@attribute amazed-suprised {0,1}
@attribute happy {0,1}
@attribute 'relaxing calm' {0,1}

@data
0.03,major,1,0,1,1
% between the rows
?,'minor',2e2,1,0,?
"""
SPARSE = """@relation bib
@attribute 'word a' {0,1}
@attribute count numeric
@attribute place {north,south,east}
@attribute cat {0,1}
@attribute dog {0,1}
@data
{0 1,3 1}
{1 2.5,2 south , 4 1}
{}
{2 east}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    text(tmp_path / "music.xml", XML)
    text(tmp_path / "music.arff", DENSE)
    text(tmp_path / "bib.arff", SPARSE)
    return tmp_path


def test_a_dense_file_is_a_table_whose_labels_the_xml_names(folder: Path) -> None:
    data = read_features(folder / "music.arff", labels=folder / "music.xml", as_table=True)
    assert data.vocabulary == ("amazed-suprised", "happy", "relaxing calm")
    assert data.target.tolist() == [[0, 1, 1], [1, 0, -1]]
    frame = data.inputs.frame
    assert list(frame.columns) == ["Mean_Acc", "key 'n' mode", "beats"]
    assert (frame["key 'n' mode"].tolist(), frame["beats"].tolist()) == (["major", "minor"], [1.0, 200.0])
    assert np.isnan(frame["Mean_Acc"][1])


def test_a_sparse_file_stays_sparse_and_names_are_columns_of_their_own(folder: Path) -> None:
    data = read_features(folder / "bib.arff", label_columns=["cat", "dog"])
    assert data.columns is not None
    assert data.columns.features == ("word a", "count", "place=south", "place=east")
    assert hasattr(data.inputs, "tocsr")
    assert data.inputs.toarray().tolist() == [[1, 0, 0, 0], [0, 2.5, 1, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
    assert data.target.tolist() == [[1, 0], [0, 1], [0, 0], [0, 0]]


@pytest.mark.parametrize(("count", "labels"), [("2", ["word a", "count"]), ("-2", ["cat", "dog"])])
def test_meka_says_in_the_relation_which_attributes_are_labels(folder: Path, count: str, labels: list[str]) -> None:
    content = SPARSE.replace("relation bib", f"relation 'bib: -C {count}'").replace("{1 2.5,", "{1 1,")
    data = read_features(text(folder / "meka.arff", content))
    assert list(data.vocabulary) == labels


def test_inputs_alone_are_read_without_the_labels(folder: Path) -> None:
    inputs, _, use = read_inputs(folder / "bib.arff", {"label_columns": ["cat", "dog"]})
    assert inputs.shape == (4, 4)
    options = {"labels": folder / "music.xml", "input_columns": ["beats"]}
    assert read_inputs(folder / "music.arff", options)[0].tolist() == [[1.0], [200.0]]
    assert use is not None
    assert use.labels == ("cat", "dog")


def test_without_the_names_of_the_labels_the_xml_is_asked_for(folder: Path) -> None:
    asked = "give labels_key or label_columns, or labels=NAME.xml, the file beside Mulan's .arff"
    assert_found("features", [("bib.arff", None, asked)], path=folder / "bib.arff")
    with pytest.raises(ValueError, match=r"no.xml: no such file"):
        read_features(folder / "bib.arff", labels=folder / "no.xml")
    with pytest.raises(ValueError, match=r"bib.arff: .*no column .*'happy'"):
        read_features(folder / "bib.arff", labels=folder / "music.xml")


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("0.03,major", "x,major", 12, "the attribute 'Mean_Acc' is 'x', not a number"),
        ("0.03,major", "0.03,flat", 12, "is 'flat': allowed are major, minor"),
        ("0.03,major,", "0.03,", 12, "has 5 values, but there are 6 attributes"),
        ("@ATTRIBUTE beats REAL", "beats REAL", 6, "expected @attribute NAME KIND or @data"),
        ("@ATTRIBUTE beats", "@attribute happy", None, "2 attributes are called 'happy'"),
    ],
)
def test_what_is_wrong_is_found_with_its_line(folder: Path, old: str, new: str, line: int | None, message: str) -> None:
    path = text(folder / "music.arff", DENSE.replace(old, new))
    assert_found("features", [("music.arff", line, message)], path=path, labels=folder / "music.xml")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{9 1}", "place 9 is outside: allowed are 0..4"),
        ("{2 west}", "the attribute 'place' is 'west': allowed are north, south, east"),
        ("{1 2.5 south}", "the attribute 'count' is '2.5 south', not a number"),
        ("{1 2, 1 2}", "place 1 has several values"),
        ("{" + "9" * 5000 + " 1}", "a sparse row is {place value, ...}, got"),
        ("{x}", "a sparse row is {place value, ...}, got '{x}'"),
    ],
)
def test_what_is_wrong_in_a_sparse_row_is_found_with_its_line(folder: Path, row: str, message: str) -> None:
    path = text(folder / "bib.arff", SPARSE.replace("{}", row))
    assert_found("features", [("bib.arff", 10, message)], path=path, label_columns=["cat", "dog"])


@pytest.mark.parametrize("encoding", ["unheard-of", "utf-7"])
def test_an_xml_in_an_encoding_that_cannot_be_read_is_a_message(folder: Path, encoding: str) -> None:
    labels = text(folder / "music.xml", XML.replace("utf-8", encoding))
    with pytest.raises(ShortlistError, match=r"music.xml: is not XML: .*encoding"):
        read_features(folder / "music.arff", labels=labels)


def test_signs_that_only_unicode_takes_for_line_ends_stay_in_their_cell(folder: Path) -> None:
    path = text(folder / "music.arff", DENSE.replace("major", "'ma\u2028jor'"))
    table = read_features(path, labels=folder / "music.xml", as_table=True)
    assert table.inputs.frame["key 'n' mode"][0] == "ma\u2028jor"


def test_a_comment_may_follow_the_values_of_an_attribute(tmp_path: Path) -> None:
    head = "@relation shop\n@attribute a numeric % of cans\n@attribute total {low, '}% high'} % low < 100\n@data\n"
    (tmp_path / "t.arff").write_text(f"{head}1,low\n2,'}}% high'\n")
    assert read_features(tmp_path / "t.arff", labels_key="total").vocabulary == ("low", "}% high")
