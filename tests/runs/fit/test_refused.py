"""fit: what is no data, no label or no option is refused before anything is written."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from shortlist import ShortlistError, ShortlistWarning, runs
from shortlist.runs.guess import guess_source
from tests.runs.fit.made_tables import leaves, write


def test_too_few_labels_are_refused_before_anything_is_written() -> None:
    write("leaves.csv", leaves(19))
    with pytest.raises(ShortlistError, match="19 examples have a known label: at least 20 are needed"):
        runs.fit("leaves.csv", "run")
    assert not Path("run").exists()


def test_one_class_alone_is_refused() -> None:
    write("t.csv", leaves().assign(species="oak"))
    with pytest.raises(ShortlistError, match="all labels that are known are 'oak': there is nothing to tell apart"):
        runs.fit("t.csv", "run", labels=["species"])
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("nowhere.csv", {}, "there is no file or folder nowhere.csv"),
        ("t.csv", {"labels": ["knid"]}, "there is no column 'knid'; did you mean 'kind'"),
        ("t.csv", {"images": "."}, "no column names images"),
        ("open.csv", {}, "which columns are labels\\? Name them with --labels; the columns are 'a', 'b'"),
        ("empty", {}, "there are no images: sort them"),
        ("texts", {}, "there are no images: .*; texts are read from a table, too"),
        ("loose", {}, "there are 1 images that are in no label's folder"),
        ("loose", {"labels": ["x"]}, "the folders are the labels"),
        ("t.doc", {}, "is not told by its ending. Give a folder of images, a table .*csv.* or arrays"),
        ("nameless.csv", {}, "the first line must name the columns, and holds only numbers"),
        ("t.xlsx", {}, "workbooks are not read: in Excel or LibreOffice, save the sheet as CSV UTF-8"),
        ("t.csv.zip", {}, "it is packed: unpack it, and give what is in it"),
        ("t.json", {}, r"t\.json: cannot be read: a \.json must hold a list of objects"),
        ("bars.txt", {}, r"if it is a table, rename it, so that its name ends in \.csv"),
        ("two.csv", {}, r"Name them with --labels, such as --labels shape; the columns are 'kind', 'shape', 'a'"),
    ],
)
def test_what_cannot_be_guessed_is_an_error_that_says_what_to_give(source: str, options: dict, message: str) -> None:
    Path("t.csv").write_text("a,kind\n1,x\n2,y\n3,x\n")
    Path("t.doc").write_text("text")
    Path("nameless.csv").write_text("1.5,2,0\n1,3,1\n2,4,0\n")
    Path("t.xlsx").write_text("text")
    Path("t.csv.zip").write_text("text")
    Path("t.json").write_text('["a", "kind"]')
    Path("bars.txt").write_text("a|kind\n1|x\n")
    Path("two.csv").write_text("kind,shape,a\nx,o,0.1\ny,u,0.2\nx,o,0.3\n")
    Path("open.csv").write_text("a,b\n1,0.1\n2,0.2\n3,0.3\n")
    Path("empty").mkdir()
    Path("texts/pos").mkdir(parents=True)
    Path("texts/pos/1.txt").write_text("good")
    Path("loose").mkdir()
    Image.new("RGB", (8, 8)).save("loose/1.png")
    with pytest.raises(ShortlistError, match=message):
        guess_source(source, **options)


def test_one_column_alone_is_told() -> None:
    Path("t.csv").write_text("a b kind\n1 2 x\n3 4 y\n")
    with pytest.raises(ShortlistError, match=r"one column alone, 'a b kind', .* give delimiter"):
        guess_source("t.csv")
    Path("t.csv").write_text("a    b kind\n1   22 x\n3    4 y\n")
    with pytest.raises(ShortlistError, match=r"if blanks stand between its cells, write commas: pandas\.read_csv"):
        guess_source("t.csv")


@pytest.mark.parametrize("name", ["leaves.csv.gz", "leaves.npz"])
@pytest.mark.parametrize(
    "content",
    [b"junk", b"PK\x03\x04junk", gzip.compress(b"a,y\n" * 99, mtime=0)[:20], b"\x1f\x8b\x08" + b"\0" * 40],
    ids=["junk", "zip", "gzip that ends", "gzip of zeros"],
)
def test_damaged_files_are_named(name: str, content: bytes) -> None:
    Path(name).write_bytes(content)
    with pytest.raises(ShortlistError, match=name):
        runs.fit(name)


def test_without_calibration_nothing_is_trained() -> None:
    write("leaves.csv", leaves())
    with pytest.raises(ShortlistError, match=r"data\.calibration is null"):
        runs.fit("leaves.csv", "run", overrides=["data.calibration=null"])
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("key", "meant"),
    [("epoch", "epochs"), ("lr", "optimizer.lr"), ("test", "data.test"), ("encoder", "data.encoder")],
)
def test_a_key_that_is_another_sections_or_misspelt_is_told_as_that(key: str, meant: str) -> None:
    write("leaves.csv", leaves())
    with pytest.raises(ShortlistError, match=f"{key}: there is no such key; did you mean '{meant}'"):
        runs.fit("leaves.csv", "run", overrides=[f"{key}=3"])


def test_a_quantity_is_told_as_that() -> None:
    frame = pd.DataFrame({"zone": ["a", "b", "c"] * 40, "area": range(120), "price": np.arange(120) * 7 % 113 + 1000})
    frame.to_csv("t.csv", index=False)
    quantity = "the last one, 'price', is a quantity: to predict it, make classes of it first (low, high)"
    assert any(quantity in note for note in guess_source("t.csv").notes)
    frame.drop(columns="zone").assign(price=np.arange(120) / 7).to_csv("u.csv", index=False)
    with pytest.raises(ShortlistError, match="'price', is a quantity"):
        guess_source("u.csv")
    with pytest.warns(ShortlistWarning, match="113 different whole numbers, .* is 'price' a quantity[?] Then make"):
        runs.fit("t.csv", "run", labels="price", overrides=["epochs=1"])


def test_one_label_alone_is_told_of_the_last_column() -> None:
    leaves().assign(kind="oak").drop(columns=["species", "shore"]).to_csv("t.csv", index=False)
    with pytest.raises(ShortlistError, match="the last one, 'kind', always holds 'oak': there is nothing to tell"):
        guess_source("t.csv")


def test_units_below_the_names_are_refused_with_their_line() -> None:
    frame = leaves().drop(columns=["leaf_id", "note"]).astype(object)
    frame = pd.concat([pd.DataFrame([{"length": "cm"}]), frame])
    write("leaves.csv", frame[["length", "shore", "species"]])
    with pytest.raises(ShortlistError, match=r"leaves.csv, line 2: this is no example, .*'length' \(cm\): delete it"):
        runs.fit("leaves.csv")
