"""Image paths and labels from a table."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from shortlist.data import DataError, read_image_table
from shortlist.errors import ShortlistWarning
from tests.data.readers.made_files import assert_found, image, text, truncated


@pytest.fixture
def folder(tmp_path):
    for name in ("a.png", "b.jpg", "c.webp"):
        image(tmp_path / name)
    return tmp_path


def csv(folder, content):
    return text(folder / "table.csv", content)


def test_a_column_of_indices_gives_class_indices_and_blank_is_unknown(folder):
    data = read_image_table(csv(folder, "path,label\na.png,2\nb.jpg,\nc.webp,-1\n"), labels="index", num_labels=3)
    assert data.target.tolist() == [2, -1, -1]
    assert data.vocabulary == ("0", "1", "2")
    assert data.ids == ("a.png", "b.jpg", "c.webp")


def test_a_column_of_names_gives_class_indices_in_the_order_of_the_vocabulary(folder):
    table = csv(folder, "path,label\na.png,owl\nb.jpg,cat\nc.webp,\n")
    assert read_image_table(table, labels="name").target.tolist() == [1, 0, -1]
    data = read_image_table(table, labels="name", vocabulary=["owl", "cat"])
    assert (data.target.tolist(), data.vocabulary) == ([0, 1, -1], ("owl", "cat"))


def test_a_column_per_label_gives_a_label_matrix_in_which_blank_is_unknown(folder):
    data = read_image_table(csv(folder, "path,cat,dog\na.png,1,0\nb.jpg,,1.0\nc.webp,0,\n"), labels="columns")
    assert data.target.tolist() == [[1, 0], [-1, 1], [0, -1]]
    assert data.target.dtype == torch.int8


def test_only_the_named_columns_are_labels(folder):
    table = csv(folder, "path,sex,dog\na.png,m,0\n")
    data = read_image_table(table, labels="columns", label_columns=["dog"])
    assert (data.vocabulary, data.target.tolist()) == (("dog",), [[0]])


@pytest.mark.parametrize(("rest", "other"), [("absent", 0), ("unknown", -1)])
def test_a_list_of_names_gives_a_label_matrix_and_the_rest_is_what_was_asked(folder, rest, other):
    table = csv(folder, "path,label\na.png,dog|cat\nb.jpg, dog \nc.webp,\n")
    data = read_image_table(table, labels="list", rest=rest)
    assert data.target.tolist() == [[1, 1], [other, 1], [other, other]]


def test_parquet_gives_the_same_as_csv(folder):
    columns = {"path": ["a.png", "b.jpg"], "cat": [1, None], "dog": [True, False]}
    pq.write_table(pa.table(columns), folder / "table.parquet")
    data = read_image_table(folder / "table.parquet", labels="columns")
    assert data.target.tolist() == [[1, 1], [-1, 0]]
    lists = pa.table({"path": ["a.png"], "label": [["dog", "cat"]]})
    pq.write_table(lists, folder / "lists.parquet")
    assert read_image_table(folder / "lists.parquet", labels="list").target.tolist() == [[1, 1]]


def test_paths_start_from_root(folder):
    table = text(folder / "elsewhere" / "table.csv", "path,label\na.png,0\n")
    data = read_image_table(table, labels="index", num_labels=1, root=folder, size=4)
    assert data.batch(torch.tensor([0]))[0].shape == (1, 3, 4, 4)


def test_every_problem_is_found_in_one_pass(folder):
    truncated(folder / "half.png")
    image(folder / "same.png", (1, 2, 3))
    image(folder / "copy.png", (1, 2, 3))
    table = csv(
        folder,
        "path,label\n"
        "a.png,cat\n"
        "nowhere.png,cat\n"
        "a.png,dog\n"
        "half.png,dog\n"
        "b.jpg,wolf\n"
        "c.webp\n"
        "same.png,dog|dog\n"
        "copy.png,cat|\n"
        ",cat\n",
    )
    assert_found(
        "image-table",
        [
            ("table.csv", 3, "no such image"),
            ("table.csv", 4, "table.csv, line 2: delete it, or give each image one row"),
            ("table.csv", 5, "cannot decode the image"),
            ("table.csv", 6, "label 'wolf' is outside the vocabulary"),
            ("table.csv", 7, "has 1 cells, but there are 2 columns"),
            ("table.csv", 9, "the content of"),
            ("table.csv", 10, "the column 'path' is blank"),
        ],
        path=table,
        labels="list",
        vocabulary=["cat", "dog"],
    )


def test_an_image_that_is_listed_again_with_the_same_labels_is_taken_once(folder):
    table = csv(folder, "path,label\na.png,cat|dog\nb.jpg,cat\na.png,cat|dog\n")
    with pytest.warns(ShortlistWarning, match="table.csv: 1 row lists an image again, with the same labels: 'a.png'"):
        data = read_image_table(table, labels="list")
    assert (data.ids, data.target.tolist()) == (("a.png", "b.jpg"), [[1, 1], [1, 0]])
    with pytest.raises(DataError, match=r"line 4: the image .*a.png is a duplicate, seen before at .*, line 2: delete"):
        read_image_table(csv(folder, "path,label\na.png,cat\nb.jpg,cat\na.png,dog\n"))


def test_reading_names_the_first_problem_and_counts_the_others(folder):
    table = csv(folder, "path,label\na.png,0\nb.jpg,7\nc.webp,x\n")
    with pytest.raises(DataError, match=r"line 4: label 'x' is no class index: allowed are 0, 1, ..., .*\(and 1 more"):
        read_image_table(table, labels="index", num_labels=3)
    expected = [("table.csv", 3, "label 7 is outside the vocabulary: allowed are 0..2"), ("table.csv", 4, "'x'")]
    assert_found("image-table", expected, path=table, labels="index", num_labels=3)


def test_a_cell_that_is_no_label_is_reported_with_its_column(folder):
    table = csv(folder, "path,cat,dog\na.png,1,maybe\nb.jpg,-1,0\n")
    expected = [("table.csv", 2, "column 'dog' is 'maybe': allowed are 1 (present)")]
    assert_found("image-table", expected, path=table, labels="columns")


def test_a_missing_table_or_column_is_reported(folder):
    assert_found("image-table", [("no.csv", None, "no such file")], path=folder / "no.csv", labels="list")
    table = csv(folder, "file,label\na.png,cat\n")
    assert_found("image-table", [("table.csv", None, "there is no column 'path'")], path=table, labels="list")
    (folder / "bad.parquet").write_bytes(b"PAR1 not really")
    assert_found("image-table", [("bad.parquet", None, "cannot be read")], path=folder / "bad.parquet", labels="list")


def test_the_form_must_be_known(folder):
    table = csv(folder, "path,label\na.png,0\n")
    with pytest.raises(ValueError, match="labels must be one of 'auto', 'index'"):
        read_image_table(table, labels="guess")


def test_a_name_that_no_file_can_have_is_one_that_is_not_there(tmp_path):
    image(tmp_path / "a.png")
    rows = "".join(f"{name},cat\n" for name in ["a.png", f"{'x' * 300}.png"])
    (tmp_path / "all.csv").write_text(f"path,label\n{rows}")
    assert_found("image-table", [("all.csv", 3, "no such image")], path=tmp_path / "all.csv")
