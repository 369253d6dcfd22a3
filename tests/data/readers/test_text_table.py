"""Tables of texts: every form of labels that tables have, and what can be wrong with them."""

import gzip
import json

import pandas as pd
import pytest

from shortlist.data import Dataset, Texts, read_text_table, shared_examples
from shortlist.data.readers.text_table import read_texts
from tests.data.readers.made_files import assert_found

CONTENT = 'id,text,label\na,"so happy, today",joy|love\nb,what a mess,anger\nc,"two\nlines",joy\n'


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "jsonl", "jsonl.gz", "parquet"])
def test_every_kind_of_table_gives_the_same_texts_and_labels(kind, tmp_path):
    path = tmp_path / f"all.{kind}"
    texts, labels = ["so happy, today", "what a mess", "two\nlines"], ["joy|love", "anger", "joy"]
    frame = pd.DataFrame({"id": list("abc"), "text": texts, "label": labels})
    if kind == "parquet":
        frame.to_parquet(path)
    elif "jsonl" in kind:
        frame.to_json(path, orient="records", lines=True, compression="gzip" if "gz" in kind else None)
    else:
        frame.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    data = read_text_table(path, separator="|", ids_key="id")
    assert data.inputs.source == tuple(texts)
    assert (data.vocabulary, data.ids) == (("anger", "joy", "love"), ("a", "b", "c"))
    assert data.target.tolist() == [[0, 1, 1], [1, 0, 0], [0, 1, 0]]
    assert (data.kind, data.in_shape, data.columns.features) == ("texts", (), ("text",))


@pytest.mark.parametrize(
    ("content", "options", "vocabulary", "target"),
    [
        ("text,label\na b,owl\nc,\n", {}, ("owl",), [0, -1]),
        ("text,label\na b,2\nc,0\n", {"vocabulary": ["x", "y", "z"]}, ("x", "y", "z"), [2, 0]),
        ("text,label\na b,\"2,0\"\nc,1\n", {"vocabulary": ["x", "y", "z"], "separator": ","}, ("x", "y", "z"),
         [[1, 0, 1], [0, 1, 0]]),
        ("text,label\na b,\"['x', 'y']\"\nc,[]\n", {}, ("x", "y"), [[1, 1], [0, 0]]),
        ("text,label_x,label_y\na b,1,0\nc,,1\n", {}, ("x", "y"), [[1, 0], [-1, 1]]),
        ("text,x,y\na b,1,-1\nc,0,1\n", {"label_columns": ["x", "y"], "coding": "signed"}, ("x", "y"),
         [[1, 0], [-1, 1]]),
        ("text,label\na b,x\nc,NA\n", {"unknown_names": ["NA"]}, ("x",), [0, -1]),
        ("text,label\na b,x|y\nc,x\n", {"separator": "|", "rest": "unknown"}, ("x", "y"), [[1, 1], [1, -1]]),
    ],
)  # fmt: skip
def test_labels_are_read_as_in_every_table(content, options, vocabulary, target, tmp_path):
    (tmp_path / "all.csv").write_text(content)
    data = read_text_table(tmp_path / "all.csv", **options)
    assert (data.vocabulary, data.target.tolist()) == (vocabulary, target)


def test_a_packed_table_without_a_first_line_of_names(tmp_path):
    with gzip.open(tmp_path / "all.tsv.gz", "wt") as file:
        file.write("so happy\t1,0\tx1\nso sad\t2\tx2\n")
    data = read_text_table(
        tmp_path / "all.tsv.gz", column_names=["text", "label", "id"], ids_key="id", separator=",",
        vocabulary=["love", "joy", "grief"],
    )  # fmt: skip
    assert (data.inputs.source, data.ids) == (("so happy", "so sad"), ("x1", "x2"))
    assert data.target.tolist() == [[1, 1, 0], [0, 0, 1]]


def test_problems_of_a_table_without_names_are_told_by_their_lines(tmp_path):
    (tmp_path / "all.csv").write_text("so happy,joy\nso sad\n")
    names = ["text", "label"]
    assert_found(
        "text-table", [("all.csv", 2, "has 1 cells, but there are 2 columns")], path=tmp_path / "all.csv",
        column_names=names,
    )  # fmt: skip
    (tmp_path / "all.csv").write_text("so happy,joy\nso sad,grief\n")
    assert_found(
        "text-table", [("all.csv", 2, "label 'grief' is outside the vocabulary")], path=tmp_path / "all.csv",
        column_names=names, vocabulary=["joy"],
    )  # fmt: skip


def test_blank_texts_are_empty_and_counted_and_numbers_are_texts(tmp_path):
    (tmp_path / "all.csv").write_text('text,label\n12,x\n"",y\n3.5,x\n')
    data = read_text_table(tmp_path / "all.csv")
    assert data.inputs.source == ("12", "", "3.5")
    assert data.notes == ("1 of 3 texts is blank",)


def test_a_missing_column_is_told_with_those_there_are(tmp_path):
    (tmp_path / "all.csv").write_text(CONTENT)
    assert_found("text-table", [("all.csv", None, "there is no column 'comment'")], path=tmp_path / "all.csv",
                 text_column="comment")  # fmt: skip
    (tmp_path / "all.xls").write_text(CONTENT)
    wrong = [("all.xls", None, "a table of texts must be one of .csv")]
    assert_found("text-table", wrong, path=tmp_path / "all.xls")


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz"])
def test_json_lines_that_are_not_utf_8_are_told_by_one_line(ending, tmp_path):
    path, content = tmp_path / f"all.{ending}", '{"text": "caf\xe9", "label": "joy"}\n'.encode("latin-1")
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    assert_found("text-table", [(f"all.{ending}", None, "JSON lines must be text in UTF-8")], path=path)


@pytest.mark.parametrize("options", [{"labels_key": "text"}, {"label_columns": ["x", "text"]}])
def test_one_column_is_not_the_text_and_the_label(options, tmp_path):
    (tmp_path / "all.csv").write_text("text,x\n1,0\n0,1\n")
    wrong = [("all.csv", None, "the column 'text' cannot be the text and a label")]
    assert_found("text-table", wrong, path=tmp_path / "all.csv", **options)


def test_texts_alone_need_no_labels_and_one_column_needs_no_name(tmp_path):
    (tmp_path / "new.csv").write_text("id,text\nq,so so\n")
    texts, ids, use = read_texts(tmp_path / "new.csv", {"ids_key": "id", "labels_key": "mood"})
    assert (texts.source, ids, use.ignored) == (("so so",), ("q",), {})
    (tmp_path / "one.jsonl").write_text(json.dumps({"said": "hello"}))
    assert read_texts(tmp_path / "one.jsonl", {})[0].source == ("hello",)
    (tmp_path / "lines.txt").write_text("hello\n\nyou there\n")
    assert read_texts(tmp_path / "lines.txt", {})[0].source == ("hello", "you there")


def test_texts_that_are_in_two_parts_are_found():
    one, two = (Dataset(Texts(texts), [0, 0], ("x",)) for texts in (("a b", "c"), ("d", "a b")))
    assert str(shared_examples({"train": one, "test": two})[0]) == (
        "1 of the examples in test are in train too (row 1 = row 0)"
    )


def test_a_subset_keeps_its_texts_and_texts_are_no_numbers_yet():
    data = Dataset(Texts(("a", "b", "c")), [0, 1, 0], ("x", "y"))
    assert data.subset([2, 0]).texts.source == ("c", "a")
    with pytest.raises(ValueError, match=r"texts are no numbers yet: data\.encoder=tf-idf"):
        data.batch([0])
    with pytest.raises(ValueError, match="text 1 must be a text, got int"):
        Texts(("a", 3))


def test_texts_in_arff_are_read_as_in_other_tables(tmp_path):
    head = "@relation news\n@attribute Text string\n@attribute class {0,1}\n@data\n"
    (tmp_path / "news.arff").write_text(f"{head}'corn prices, up 3 %',1\n'he said \\'no\\'',0\n")
    data = read_text_table(tmp_path / "news.arff", text_column="Text", labels_key="class")
    assert (data.inputs.source, data.target.tolist()) == (("corn prices, up 3 %", "he said 'no'"), [1, 0])
    assert read_texts(tmp_path / "news.arff", {"text_column": "Text"})[0].source == data.inputs.source
