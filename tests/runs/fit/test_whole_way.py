"""From files as users have them to a judged run, by one call, and what is chosen and told on the way."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import shortlist as sl
from shortlist import ShortlistError, ShortlistWarning, runs
from shortlist.data.readers import tables
from shortlist.runs.plan import Plan
from shortlist.runs.prepare import prepare
from shortlist.runs.setup import read_parts
from tests.cli.command import run_here
from tests.runs.fit.made_tables import leaves, write


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


def test_conformal_sets_need_labels_that_are_known() -> None:
    frame = leaves(600)
    frame.loc[frame.index % 20 != 0, "species"] = None
    write("leaves.csv", frame)
    done = runs.fit("leaves.csv", "run", overrides=["epochs=1"])
    assert "conformal-0.1" not in done["evaluation"]["rules"]


def test_options_of_the_objective_that_fit_chooses_may_be_given() -> None:
    write("leaves.csv", leaves())
    with pytest.raises(ShortlistError, match=r"objective\.k: there is no such key; allowed here: label_smoothing"):
        runs.fit("leaves.csv", "run", overrides=["objective.k=2"])
    runs.fit("leaves.csv", "run", overrides=["objective.label_smoothing=0.1", "epochs=1"])
    assert "label_smoothing: 0.1" in Path("run/config.yaml").read_text()



def test_a_table_is_read_to_guess_what_it_is_and_once_more_for_all_else(monkeypatch: pytest.MonkeyPatch) -> None:
    write("leaves.csv", leaves())
    times, read = [], tables.csv_table
    monkeypatch.setattr(tables, "csv_table", lambda *given: times.append(given) or read(*given))
    done = runs.fit("leaves.csv", "run", overrides=["seed=1"])
    assert len(times) == 2
    assert done["evaluation"] == runs.evaluate("run", "test")  # of parts that are read anew