"""The data that a command names, where it is a table: its columns are found by name."""

import json
import os
import random
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from shortlist import ShortlistError, ShortlistWarning, runs
from shortlist.runs.find_data import find_data


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> runs.Run:
    """Of a table whose column ``a`` tells the kinds apart, and whose columns ``b`` and ``c`` do not."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(0)
    rows = [(side, draw.uniform(-1, 1), draw.uniform(-1, 1)) for side in (-1, 1) for _ in range(30)]
    lines = [f"{a},{b},{c},{'left' if a < 0 else 'right'}" for a, b, c in rows]
    Path("table.csv").write_text("\n".join(["a,b,c,kind", *lines]))
    config = {
        "data": {"train": {"reader": "features", "path": "table.csv", "labels_key": "kind"}, "test": 10},
        "epochs": 20,
    }
    return runs.Run(runs.train(config, "run")["run"])


def test_columns_in_another_order_are_found_by_name(run: runs.Run) -> None:
    Path("swapped.csv").write_text("c,b,a,kind\n0.5,0,-1,left\n-0.5,0,1,right\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for labelled in (True, False):
            data, _ = find_data(run, "swapped.csv", labelled=labelled)
            assert run.scores(data).argmax(1).tolist() == [0, 1]
    assert runs.evaluate(run, "swapped.csv", metrics=["topk-accuracy@1"])["metrics"] == {"topk-accuracy@1": 1.0}


@pytest.mark.parametrize("labelled", [True, False])
def test_missing_columns_are_refused_by_name(run: runs.Run, labelled: bool) -> None:
    Path("short.csv").write_text("b,kind\n0,left\n")
    with pytest.raises(ShortlistError, match=r"short\.csv: there is no column 'a', 'c': the columns are 'b', 'kind'"):
        find_data(run, "short.csv", labelled=labelled)
    Path("written.csv").write_text("b, A ,C,kind\n0,1,2,left\n")
    with pytest.raises(ShortlistError, match=r"there is no column 'a', 'c': .*; rename 'A' to 'a', 'C' to 'c'"):
        find_data(run, "written.csv", labelled=labelled)


@pytest.mark.parametrize("labelled", [True, False])
def test_further_columns_are_ignored_and_mentioned(run: runs.Run, labelled: bool) -> None:
    Path("more.csv").write_text("note,b,a,kind,weight,c\nold,0,-1,left,,0.5\n")
    with pytest.warns(ShortlistWarning, match="were not there in training are ignored: 'note', 'weight'"):
        data, _ = find_data(run, "more.csv", labelled=labelled)
    assert run.scores(data).argmax(1).tolist() == [0]


def test_a_table_in_which_not_every_label_occurs_can_be_evaluated(run: runs.Run) -> None:
    Path("left.csv").write_text("a,b,c,kind\n-1,0,0,left\n")
    assert runs.evaluate(run, "left.csv", metrics=["topk-accuracy@1"])["metrics"] == {"topk-accuracy@1": 1.0}
    Path("lift.csv").write_text("a,b,c,kind\n-1,0,0,lift\n")
    with pytest.raises(ShortlistError, match="line 2: label 'lift' is outside the vocabulary; did you mean 'left'"):
        runs.evaluate(run, "lift.csv")


def test_evaluating_on_the_file_of_the_training_data_is_a_warning(run: runs.Run) -> None:
    Path("test.csv").write_text(Path("table.csv").read_text())  # whatever a file is called, it is no part of the run
    warned = {name: " ".join(runs.evaluate(run, name)["warnings"]) for name in ("./table.csv", "test.csv")}
    assert {name: "was trained on the examples" in text for name, text in warned.items()} == {
        "./table.csv": True,
        "test.csv": False,
    }


def test_the_runs_own_parts_keep_its_columns_when_the_table_is_rewritten(run: runs.Run) -> None:
    before, _ = find_data(run, "test")
    lines = Path("table.csv").read_text().splitlines()
    Path("table.csv").write_text("\n".join(",".join(reversed(line.split(","))) for line in lines))
    after, _ = find_data(run, "test")
    assert torch.equal(run.scores(after), run.scores(before))


def test_a_part_with_a_table_of_its_own_has_the_columns_of_the_training_data(run: runs.Run) -> None:
    Path("apart.csv").write_text("c,b,a,kind\n0.5,0,-1,left\n-0.5,0,1,right\n")
    source = {"reader": "features", "labels_key": "kind"}
    config = {"data": {"train": {**source, "path": "table.csv"}, "test": {**source, "path": "apart.csv"}}, "epochs": 20}
    apart = runs.Run(runs.train(config, "other")["run"])
    assert runs.evaluate(apart, "test", metrics=["topk-accuracy@1"])["metrics"] == {"topk-accuracy@1": 1.0}


def test_a_run_of_before_columns_were_kept_takes_them_in_the_files_order(run: runs.Run) -> None:
    facts = json.loads((run.path / "facts.json").read_text())
    assert facts.pop("columns") == ["a", "b", "c"]
    (run.path / "facts.json").write_text(json.dumps(facts))
    Path("new.csv").write_text("a,b,c\n-1,0,0.5\n1,0,-0.5\n")
    old = runs.Run(run.path)
    data, _ = find_data(old, "new.csv", labelled=False)
    assert old.scores(data).argmax(1).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("train", "other", "options"),
    [
        ("a,y\n1,joy|love\n2,anger\n3,joy\n", "a,y\n1,love\n2,\n", {"separator": "|"}),
        ("a,y_anger,y_joy,y_love\n1,0,1,1\n2,1,0,0\n3,0,1,0\n", "a,y_love,y_anger,y_joy\n1,1,0,0\n2,0,0,0\n", {}),
    ],
)
def test_labels_that_do_not_occur_or_stand_in_another_order_are_found_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, train: str, other: str, options: dict[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.csv").write_text(train)
    Path("other.csv").write_text(other)
    source = {"reader": "features", "path": "train.csv", **options}
    config = {"data": {"train": source, "validation": None, "calibration": None}, "objective": "two-way", "epochs": 1}
    runs.train(config, out="run")
    data, _ = find_data(runs.Run("run"), "other.csv")
    assert (data.vocabulary, data.target.tolist()) == (("anger", "joy", "love"), [[0, 0, 1], [0, 0, 0]])


def test_numbers_are_no_places_among_names_that_only_the_training_data_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [(place % 7, place % 2) for place in range(40)]
    Path("train.csv").write_text("a,y\n" + "".join(f"{a},{('ok', 'fraud')[y]}\n" for a, y in rows))
    Path("new.csv").write_text("a,y\n" + "".join(f"{a},{y}\n" for a, y in rows))
    train = {"reader": "features", "path": "train.csv"}
    config = {"data": {"train": train, "validation": None, "calibration": None}, "epochs": 1}
    runs.train(config, out="run")
    with pytest.raises(ShortlistError, match="numbers, 0, 1, and those of the training data are names, 'fraud', 'ok'"):
        find_data(runs.Run("run"), "new.csv")
    data, _ = find_data(runs.Run("run"), "new.csv", ["vocabulary=[fraud, ok]"])
    assert (data.vocabulary, data.target.tolist()) == (("fraud", "ok"), [y for _, y in rows])
    test = {**config["data"], "test": {**train, "path": "new.csv"}}
    with pytest.raises(ShortlistError, match="write the names"):
        runs.train({**config, "data": test}, out="again")


@pytest.mark.parametrize(
    ("trained", "new"),
    [
        ("a,b,kind", "a;b;kind"),
        ("a;b;kind", "a;b;kind"),
        ("a;b;kind", "a,b,kind"),
        ("a;b;kind", "sep=|\na|b|kind"),
        ("a^b^kind", "a^b^kind"),
    ],
)
@pytest.mark.parametrize("commas", [(False, False), (False, True), (True, False), (True, True)])
def test_new_tables_are_read_as_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained: str, new: str, commas: tuple[bool, bool]
) -> None:
    monkeypatch.chdir(tmp_path)

    def write(path: str, header: str, has_commas: bool) -> str:
        mark = header.partition("a")[2][0]
        rows = [(0.125 * row, -1.5, "left" if row < 20 else "right") for row in range(40)]
        decimal = "," if has_commas and mark != "," else "."
        lines = [mark.join([str(a).replace(".", decimal), str(b).replace(".", decimal), y]) for a, b, y in rows]
        Path(path).write_text("\n".join([header, *lines]))
        return decimal

    decimal = write("train.csv", trained, commas[0])
    source = {"reader": "features", "path": "train.csv", "labels_key": "kind", "delimiter": trained[1]}
    config = {"data": {"train": {**source, "decimal": decimal}, "validation": None, "calibration": None}, "epochs": 1}
    run = runs.Run(runs.train(config, "run")["run"])
    write("new.csv", new, commas[1])
    for data in (find_data(run, "new.csv")[0], find_data(run, "new.csv", labelled=False)[0]):
        assert data.inputs.frame["a"].tolist() == [0.125 * row for row in range(40)]
    assert find_data(run, "new.csv")[0].vocabulary == ("left", "right")
    assert len(run.predictor().predict("new.csv")) == 40


def test_options_that_are_given_say_how_a_new_table_is_written(run: runs.Run) -> None:
    Path("new.csv").write_text("a;b;c;kind\n-1,5;0;0;left\n")
    data, _ = find_data(run, "new.csv", ["decimal=."], labelled=False)
    assert data.inputs.frame["a"].tolist() == ["-1,5"]


def test_a_pipe_is_told_as_one(run: runs.Run) -> None:
    os.mkfifo("new.csv")
    with pytest.raises(ShortlistError, match="is a pipe or a device"):
        find_data(run, "new.csv")


def test_units_that_are_not_those_of_training_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{5 * i}%,${1000 + i},{i}kg,{'left' if i < 10 else 'right'}" for i in range(20)]
    Path("table.csv").write_text("share,price,weight,kind\n" + "\n".join([*rows, "7%,$1,500,left"]) + "\n")
    config = {"data": {"train": {"reader": "features", "path": "table.csv", "labels_key": "kind"}}, "epochs": 1}
    with pytest.warns(ShortlistWarning, match=r"'kg' stands beside most numbers of 'weight', .* \(1 of 21, as '500'\)"):
        run = runs.Run(runs.train(config, "run")["run"])
    Path("new.csv").write_text("share,price,weight\n.05,1000,3kg\n.5,1010,4kg\n")
    with pytest.warns(ShortlistWarning, match="units beside .*: 'share' .in training %, now none.: write them as in"):
        run.predictor().scores("new.csv")
    pq.write_table(pa.table({"share": [0.05], "price": [1000.0], "weight": [3.0]}), "new.parquet")
    with pytest.warns(ShortlistWarning, match="'share' .in training %, now none.*'weight' .in training kg, now none"):
        run.predictor().scores("new.parquet")
    Path("same.csv").write_text("share,price,weight\n5%,$1000,3kg\n50%,$1010,4kg\n7%,1010,4kg\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.predictor().scores("same.csv")
