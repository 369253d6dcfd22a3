"""fit: which columns of a table are its labels, and how they are coded."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import shortlist as sl
from shortlist import ShortlistError, runs
from shortlist.runs.guess import guess_source
from shortlist.runs.plan import Plan
from tests.runs.fit.made_tables import leaves, write


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("a,label\n1,x\n2,y\n3,x\n", {"labels_key": "label"}),
        ("Class,a\nx,1\ny,2\nx,3\n", {"labels_key": "Class"}),
        ("a,y_cat,y_dog\n1,1,0\n2,0,1\n", {"labels_key": "y"}),
        ("a,mood\n1,joy|love\n2,joy\n3,love\n", {"labels_key": "mood", "separator": "|"}),
        ("a,label\n1,bus|old\n2,cat|new\n3,dog|new\n", {"labels_key": "label", "separator": "|"}),
        ('a,tags\n1,"joy, love"\n2,joy\n3,love\n', {"labels_key": "tags", "separator": ","}),
        ('a,land\n1,China\n2,"Macao, China"\n3,"Korea, Rep."\n4,China\n', {"labels_key": "land"}),
        (
            "a,mood\n1,joy / love\n2,joy / fear\n3,love / fear\n4,joy/love/fear\n5,joy\n",
            {"labels_key": "mood", "separator": "/"},
        ),
        ("a,kind\n1,n/a\n2,he/him\n3,n/a\n4,she/her\n5,he/him\n", {"labels_key": "kind"}),
        ("a;mood\n1,5;joy\n2,5;love\n0,1;joy\n", {"labels_key": "mood", "delimiter": ";", "decimal": ","}),
        ("a,stars\n1,5\n2,3\n3,5\n", {"labels_key": "stars"}),
        ("id,a,kind\n1,1,x\n2,2,y\n3,3,x\n", {"labels_key": "kind", "ids_key": "id"}),
        ("id,a,kind\n1,1,x\n1,2,y\n3,3,x\n", {"labels_key": "kind"}),
        (
            "a,flag,has_rust,has_dent\n1,yes,yes,\n2,no,no,yes\n3,no,,no\n",
            {"label_columns": ["has_rust", "has_dent"]},
        ),
        ("a,new,sold\n1,1,0\n2,0,1\n3,1,1\n", {"labels_key": "sold"}),
        (
            "a;hat_Rost;hat_Delle\n1.234,5;ja;nein\n2,5;nein;\n1,0;ja;ja\n",
            {"delimiter": ";", "decimal": ",", "label_columns": ["hat_Rost", "hat_Delle"]},
        ),
        ("kind,a,b\nx,1,0.5\ny,2,0.25\nx,3,1.5\n", {"labels_key": "kind"}),
        ("note;kind\nfirst, second;x\nthird;y\nfourth;x\n", {"delimiter": ";", "labels_key": "kind"}),
        ("a\tkind\n1\tx\n2\ty\n3\tx\n", {"delimiter": "\t", "labels_key": "kind"}),
        (
            "PassengerId,Survived,a,Embarked\n1,0,2,S\n2,1,3,C\n3,0,4,S\n",
            {"labels_key": "Survived", "ids_key": "PassengerId"},
        ),
        (
            "Finding Labels,age,view\nMass|Edema,3,PA\nMass,4,AP\nEdema,5,PA\n",
            {"labels_key": "Finding Labels", "separator": "|"},
        ),
        ("x_min,y_min,y_max,species\n1,0.5,2,oak\n2,1.5,3,elm\n3,2.5,4,oak\n", {"labels_key": "species"}),
        ("a,mood\n1,joy;#love\n2,joy\n3,love\n", {"labels_key": "mood", "separator": ";#"}),
        ("a,tags\n1,joy\n2,sad\n3,joy sad\n4,sad joy\n", {"labels_key": "tags", "separator": " "}),
        ("a,kind\n1,New York\n2,New Jersey\n3,New York\n4,New Jersey\n", {"labels_key": "kind"}),
        ("genres,a,b\n\"['x', 'y']\",1,0.5\n['x'],2,1.5\n['y'],3,2.5\n", {"labels_key": "genres"}),
        ('a,b,mood\n1,0.5,"{x,y}"\n2,1.5,{x}\n3,2.5,{y}\n', {"labels_key": "mood"}),
        ("a,b,mood\n1,0.5,\"('x', 'y')\"\n2,1.5,\"('x',)\"\n3,2.5,\"('y',)\"\n", {"labels_key": "mood"}),
        ("Unnamed: 0,a,kind\n7,1,x\n5,2,y\n2,3,x\n", {"labels_key": "kind", "ids_key": "Unnamed: 0"}),
        ("unnamed: 0,a,kind\n7,1,x\n5,2,y\n2,3,x\n", {"labels_key": "kind", "ids_key": "unnamed: 0"}),
        ("a,Unnamed: 1,kind,Unnamed: 3\n1,0.5,x,p\n3,3.5,y,q\n2,2.5,x,q\n", {"labels_key": "kind"}),
        ("a,labels\n1,0\n2,2\n3,0 2\n4,2 0\n", {"labels_key": "labels", "separator": " "}),
        ("label_id,b,a\n1,0.5,5\n0,1.5,6\n1,2.5,7\n", {"labels_key": "label_id"}),
        (
            "label1,label2,a,n\ncat,dog,1,0\ndog,,2,1\ncat,owl,3,1\nowl,cat,3,1\n",
            {"label_columns": ["label1", "label2"]},
        ),
        (
            "a,label_1,label_2,label_3\n1,cat,wet,\n2,dog,,\n3,cat,wet,\n4,dog,,\n5,owl,,\n6,owl,wet,\n",
            {"label_columns": ["label_1", "label_2", "label_3"]},
        ),
        (
            "type1,type2,a,rater 1,rater 2\nu,x,1,cat,dog\nv,y,2,owl,\nu,x,3,dog,dog\nv,y,4,cat,dog\n",
            {"label_columns": ["rater 1", "rater 2"]},
        ),
        ("a,visit1,visit2\n1,home,shop\n2,shop,shop\n3,home,home\n", {"labels_key": "visit2"}),
        (
            "a,Q1_Part_1,Q1_Part_2,Q1_Part_3\n1,R,SQL,\n2,,SQL,C\n3,R,,C\n",
            {"label_columns": ["Q1_Part_1", "Q1_Part_2", "Q1_Part_3"]},
        ),
        (
            "a,red,blue\n1,x,\n2,,X\n3,x,x\n4,,\n",
            {"label_columns": ["red", "blue"], "coding": "marks"},
        ),
        ("a,colour1,size2\n1,red,S\n2,blue,M\n3,red,S\n", {"labels_key": "size2"}),
        (
            "X_place,depth,kind\n1,5,u\n2,6,v\n3,7,u\n",
            {"labels_key": "kind", "input_columns": ["X_place", "depth"]},
        ),
    ],
)
def test_columns_are_guessed(content: str, options: dict[str, Any]) -> None:
    Path("t.csv").write_text(content)
    assert guess_source("t.csv").source == {"reader": "features", "path": "t.csv", **options}
    assert guess_source("t.csv").notes
    assert len(sl.data.read(**guess_source("t.csv").source, as_table=True)) > 1


def test_numbered_labels_that_are_features_are_told() -> None:
    Path("t.csv").write_text("a,label_1,label_2\n" + "1,cat,wet\n2,dog,dry\n3,cat,dry\n" * 3)
    guess = guess_source("t.csv")
    assert guess.source["labels_key"] == "label_2"
    assert "features: 'label_1'; if they are labels, name all: --labels label_1,label_2" in guess.notes


def numbers_with(first: str, cells: list[str], last: list[Any]) -> None:
    rows = [
        f"{cell},{place % 7},{place % 5},{value}" for place, (cell, value) in enumerate(zip(cells, last, strict=True))
    ]
    Path("t.csv").write_text("\n".join([f"{first},x-box,y-box,yegvx", *rows]))


def test_the_first_column_is_the_label_where_it_alone_holds_names_and_the_last_is_a_number_like_the_others() -> None:
    numbers_with("lettr", list("TIDN") * 10, [place % 6 for place in range(40)])
    guess = guess_source("t.csv")
    assert guess.source == {"reader": "features", "path": "t.csv", "labels_key": "lettr"}
    assert guess.notes == [
        "labels: the first column, 'lettr', as only it holds names, and the last, 'yegvx', is a number like the others "
        "(another one: --labels COLUMN)"
    ]


@pytest.mark.parametrize(
    ("cells", "last"),
    [
        (list("MFMF") * 10, [place % 2 for place in range(40)]),  # bought or not, of men and women
        (list("MFMF") * 10, [place % 3 for place in range(40)]),  # a grade: it has fewer values than others
        ([f"n{place}" for place in range(40)], [place % 6 for place in range(40)]),  # names that differ
        (["3", "4"] * 20, [place % 6 for place in range(40)]),
    ],
)
def test_the_last_column_stays_the_label_where_it_looks_like_one(cells: list[str], last: list[int]) -> None:
    numbers_with("sex", cells, last)
    assert guess_source("t.csv").source["labels_key"] == "yegvx"


def test_columns_of_yes_or_no_that_become_features_beside_the_label_are_told() -> None:
    Path("t.csv").write_text("a,new,sold\n1,1,0\n2,0,1\n3,1,1\n")
    note = "yes or no as well, and features: 'new'; if they are labels, name all: --labels new,sold"
    assert note in guess_source("t.csv").notes


def test_the_last_columns_of_yes_or_no_are_labels_where_they_are_numbered_as_labels_are() -> None:
    rows = "".join(f"{row},{row % 2},{row % 3 % 2},{row % 5 % 2}\n" for row in range(40))
    Path("yeast.csv").write_text(f"Att1,Att2,Class1,Class2\n{rows}")
    assert guess_source("yeast.csv").source["label_columns"] == ["Class1", "Class2"]
    Path("bits.csv").write_text(f"Att1,bit1,bit2,bit3\n{rows}")  # which may be features
    assert guess_source("bits.csv").source["labels_key"] == "bit3"


def test_lists_of_measures_are_not_taken_for_labels() -> None:
    places = [{"mag": row % 3, "kind": "ab"[row % 2], "at": [row / 7, 2.5]} for row in range(40)]
    Path("quakes.json").write_text(json.dumps(places))
    assert guess_source("quakes.json").source["labels_key"] == "kind"


@pytest.mark.parametrize("unsure", ["-1.0", "unknown", "uncertain"])
def test_the_last_columns_are_labels_where_each_leaves_rows_open_as_those_of_chexpert_do(unsure: str) -> None:
    cells = ["1.0", "0.0", "", unsure]
    rows = "".join(f"{40 + row},{row % 2},{cells[row % 4]},{cells[row % 3]}\n" for row in range(40))
    Path("chest.csv").write_text(f"Age,Frontal,Edema,Fracture\n{rows}")
    guess = guess_source("chest.csv")
    assert guess.source["label_columns"] == ["Edema", "Fracture"]
    assert any("'Edema', 'Fracture'; blanks and -1 are unknown (others: " in note for note in guess.notes)
    found = sl.data.read_features("chest.csv", label_columns=guess.source["label_columns"]).target
    assert found[:4].tolist() == [[1, 1], [0, 0], [-1, -1], [-1, 1]]


def test_it_is_told_that_blanks_among_several_labels_are_examples_without_labels_and_how_they_become_unknown() -> None:
    Path("t.csv").write_text("a,tags\n1,new;sold\n2,\n3,sold\n4,new\n")
    note = "1 of 4 cells of 'tags' are blank: examples without labels (unknown ones: data.train.unknown_names='[\"\"]')"
    assert note in guess_source("t.csv").notes
    plan = Plan.of("t.csv", None, (), ['data.train.unknown_names=[""]'], ())
    assert plan.reading().data.train.options["unknown_names"] == [""]


def test_columns_of_yes_no_and_unknown_are_labels_of_which_some_are_unknown() -> None:
    answers = ["yes", "no", "unknown", "n/a", ""]
    rows = "".join(f"{row % 7},{answers[row % 5]},{answers[row % 4]}\n" for row in range(40))
    Path("visits.csv").write_text(f"age,Dx: flu,Dx: cold\n{rows}")
    guess = guess_source("visits.csv")
    assert guess.source["label_columns"] == ["Dx: flu", "Dx: cold"]
    found = sl.data.read_features("visits.csv", label_columns=guess.source["label_columns"]).target
    assert found[:5].tolist() == [[1, 1], [0, 0], [-1, -1], [-1, -1], [-1, 1]]


def test_the_columns_of_yes_or_no_in_a_table_of_images_are_its_labels() -> None:
    Image.new("RGB", (8, 8)).save("1.png")
    Path("t.csv").write_text("file,circle,square,seen_by\n1.png,1,,ann\n2.png,,0,bob\n3.png,0,1,ann\n")
    assert guess_source("t.csv").source["label_columns"] == ["circle", "square"]


@pytest.mark.parametrize("name", ["scene.arff", "scene-train.arff"])
@pytest.mark.parametrize("relation", ["scene", "'scene: -C -1'"])
def test_the_labels_of_mulans_arff_are_those_of_the_xml_beside_it(name: str, relation: str) -> None:
    Path("scene.xml").write_text('<labels xmlns="http://mulan.sourceforge.net/labels"><label name="sea"/></labels>')
    Path(name).write_text(f"@relation {relation}\n@attribute sea {{0,1}}\n@attribute a numeric\n@data\n0,1.5\n1,2.5\n")
    guess = guess_source(name)
    assert guess.source == {"reader": "features", "path": name, "labels": "scene.xml"}
    assert ("the file's own -C says 'a'" in guess.notes[0]) == ("-C" in relation)


def test_paths_of_images_that_a_table_without_images_lists_are_ids() -> None:
    frame = leaves()
    frame.insert(0, "Path", [f"leaves-v1.0/train/gathered in {row // 2:05d}/view{row % 2}.jpg" for row in range(150)])
    write("t.csv", frame[["Path", "length", "species"]])
    assert guess_source("t.csv", reader="features").source["ids_key"] == "Path"


def test_two_columns_of_names_are_fitted_and_judged_on_rows_that_have_few_of_them() -> None:
    draw = random.Random(0)
    rows = [(row % 3, draw.uniform(0, 0.2)) for row in range(90)]
    lines = [f"{kind + noise:.3f},{'abc'[kind]}1,{'c2' if kind == 2 else ''}" for kind, noise in rows]
    Path("t.csv").write_text("\n".join(["a,first,second", *lines]))
    done = runs.fit("t.csv", labels=["first,second"], out="run")
    assert done["notes"][0] == "labels: the names that a row has in any of the columns 'first', 'second'"
    assert done["labels"] == 4
    Path("new.csv").write_text("a,first,second\n2.1,c1,c2\n2.05,c1,c2\n")
    assert runs.evaluate("run", "new.csv", metrics=["precision@2"])["metrics"] == {"precision@2": 1.0}
    Path("other.csv").write_text("a,first,second\n2.1,1,0\n2.05,0,1\n")
    with pytest.raises(ShortlistError, match="it has 2 labels, the training data has 4"):
        runs.evaluate("run", "other.csv")


def test_a_column_of_parts_and_one_called_an_id_are_no_labels() -> None:
    frame = leaves().drop(columns="note").assign(split=["train", "test", "train"] * 50, tree_id=[1, 2, 3] * 50)
    frame.to_csv("t.csv", index=False)
    guess = guess_source("t.csv")
    assert (guess.source["labels_key"], guess.source["other_columns"]) == ("species", ["split"])
    assert any(note.startswith("left out: 'split', which names parts of the data") for note in guess.notes)
    assert guess_source("t.csv", labels=["split"]).source["labels_key"] == "split"


def test_of_texts_and_one_more_column_of_many_names_that_is_the_labels() -> None:
    rows = "".join(f"a text on thing {row // 2} number {row},C{row // 2:03}\n" for row in range(140))
    Path("t.csv").write_text("said,kind\n" + rows)
    guess = guess_source("t.csv")
    assert guess.source["labels_key"] == "kind"
    assert guess.notes[0].startswith("labels: the only column of names, 'kind'")


@pytest.mark.parametrize(
    ("table", "label"),
    [
        ("x,y,z,material\n1,5,2,sand\n2,6,1,clay\n3,5,9,sand\n", "material"),  # a place
        ("a,y,kind\n1,0.5,u\n2,0.7,v\n3,0.5,u\n", "kind"),  # a measure
        ("a,y,colour\n1,0,u\n2,1,v\n3,0,u\n", "y"),
        ("x,y\n1.5,0\n2.5,1\n3.5,0\n", "y"),
    ],
)
def test_a_column_y_is_the_label_unless_it_is_a_place_or_a_measure(table: str, label: str) -> None:
    Path("t.csv").write_text(table)
    assert guess_source("t.csv").source["labels_key"] == label


def comments(rows: int = 60) -> pd.DataFrame:
    words = ["so kind", "you fool", "what a day", "I will find you"]
    texts = [f"{words[row % 4]} number {row}" for row in range(rows)]
    answers = {name: [int(row % 4 == place) for row in range(rows)] for place, name in ((1, "insult"), (3, "threat"))}
    return pd.DataFrame({"id": [f"c{row}" for row in range(rows)], "comment_text": texts, **answers})


def test_columns_of_yes_or_no_beside_texts_alone_are_labels() -> None:
    comments().to_csv("t.csv", index=False)
    assert guess_source("t.csv").source["label_columns"] == ["insult", "threat"]
    comments().assign(age=range(60)).to_csv("t.csv", index=False)  # which may be features of something else
    assert "label_columns" not in guess_source("t.csv", labels=["threat"]).source


def test_one_column_of_labels_may_be_a_text() -> None:
    leaves(60).to_csv("t.csv", index=False)
    runs.fit("t.csv", "run", labels="shore", overrides=["epochs=1"])
    assert runs.Run("run").facts["vocabulary"] == ["north", "south"]


def test_columns_of_marks_are_found_where_they_are_named_too() -> None:
    Path("t.csv").write_text("a,red,blue,n\n1,x,,5\n2,,X,6\n3,x,x,7\n4,,,8\n")
    found = guess_source("t.csv", labels=["red", "blue"])
    assert found.source["coding"] == "marks"
    assert found.notes[0].startswith("labels: the columns that hold 'x' or nothing, 'red', 'blue'; blanks are absent")


def test_labels_of_many_classes_are_known_by_their_name_or_as_the_only_names(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for column, ending in (("species", "plant {}"), ("what", "plant{}")):
        rows = [f"{a:.3f},{b:.3f},{ending.format(kind % 80)}" for kind, (a, b) in enumerate(rng.normal(size=(240, 2)))]
        (tmp_path / "t.csv").write_text(f"wide,high,{column}\n" + "\n".join(rows))
        assert guess_source(tmp_path / "t.csv").source["labels_key"] == column
