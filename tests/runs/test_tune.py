"""Tuning: the searches of a config, trials that are judged, given up and resumed, and the best config."""

import csv
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

import shortlist as sl
from shortlist.runs.search_space import find_searches, with_values
from tests.cli.command import finish, run_here, start

DATA = {"train": {"reader": "ambiguous-numbers", "size": 120}, "validation": 30, "calibration": None}
CONFIG: dict[str, Any] = {
    "data": DATA,
    "epochs": 2,
    "batch_size": 45,
    "objective": {"name": "smooth-topk", "k": 2, "tau": {"search": "uniform", "low": 0.5, "high": 2.0}},
    "optimizer": {"name": "adamw", "lr": {"search": "log", "low": 1e-4, "high": 1e-1}},
    "seed": 1,
}


def values_of(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [row["values"] for row in found["trials"]]


# ---- what a config leaves open


def test_searches_are_found_wherever_they_stand() -> None:
    content = {
        "backbone": {"search": "choice", "choices": ["identity", {"name": "mlp", "hidden": [8]}]},
        "epochs": {"search": "integer", "low": 2, "high": 9, "step": 3},
        "rules": [{"name": "average-k", "k": {"search": "uniform", "low": 1, "high": 2}}],
    }
    backbone, epochs, k = find_searches(content)
    assert (backbone.key, epochs.key, k.key) == ("backbone", "epochs", "rules.0.k")
    assert (epochs.high, epochs.step) == (8, 3)  # 2, 5, 8
    made = with_values(content, {"backbone": {"name": "mlp"}, "epochs": 5, "rules.0.k": 1.5})
    assert made == {"backbone": {"name": "mlp"}, "epochs": 5, "rules": [{"name": "average-k", "k": 1.5}]}
    assert content["epochs"]["search"] == "integer"  # type: ignore[index]


@pytest.mark.parametrize(
    ("search", "said"),
    [
        ({"search": "unifrom"}, r"lr\.search must be one of log, .*did you mean 'uniform'\?"),
        ({"search": ["log"]}, r"lr\.search must be one of"),
        ({"search": "log", "low": 0, "high": 1}, r"lr\.low must be above 0"),
        ({"search": "uniform", "low": 2, "high": 1}, "low must be at most high, got 2 and 1"),
        ({"search": "uniform", "low": 2}, r"lr\.high must be a number, got None"),
        ({"search": "uniform", "low": True, "high": 1}, r"lr\.low must be a number, got True"),
        ({"search": "integer", "low": 0.5, "high": 1}, r"lr\.low must be a whole number"),
        ({"search": "integer", "low": 1, "high": 3, "step": 0}, r"lr\.step must be a whole number"),
        ({"search": "uniform", "low": 1, "high": 3, "step": 1}, r"lr\.step: there is no such key"),
        ({"search": "uniform", "low": -1e308, "high": 1e308}, "too far apart"),
        ({"search": "choice", "choices": []}, r"lr\.choices must be a list of values"),
    ],
)
def test_a_search_that_makes_no_sense_names_its_key(search: dict[str, Any], said: str) -> None:
    with pytest.raises(sl.ShortlistError, match=said):
        find_searches({"optimizer": {"lr": search}})


# ---- trials


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return sl.runs.tune(CONFIG, tmp_path_factory.mktemp("tuned") / "out", trials=4)


def test_all_trials_are_told_and_the_best_is_the_best(tuned: dict[str, Any]) -> None:
    assert tuned["metric"] == "topk-accuracy@2"
    assert [row["trial"] for row in tuned["trials"]] == [1, 2, 3, 4]
    assert len({str(values) for values in values_of(tuned)}) == 4
    assert all(1e-4 <= values["optimizer.lr"] <= 1e-1 for values in values_of(tuned))
    assert tuned["best"]["best"] == max(row["best"] for row in tuned["trials"])
    table = list(csv.DictReader((Path(tuned["out"]) / "trials.csv").open()))
    assert [float(row["optimizer.lr"]) for row in table] == [values["optimizer.lr"] for values in values_of(tuned)]
    assert [float(row["topk-accuracy@2"]) for row in table] == [row["best"] for row in tuned["trials"]]
    assert "best so far" in (Path(tuned["out"]) / "trials.svg").read_text()
    assert (Path(tuned["out"]) / "trials.png").read_bytes()[:4] == b"\x89PNG"


def test_the_best_config_trains_to_the_same_figure(tuned: dict[str, Any], tmp_path: Path) -> None:
    done = sl.runs.train(tuned["config"], tmp_path / "run")
    assert done["best"][tuned["metric"]] == tuned["best"]["best"]


def test_a_search_that_is_continued_finds_what_an_uninterrupted_one_does(
    tuned: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = sl.runs.tune(CONFIG, tmp_path / "out", trials=1)
    assert values_of(first) == values_of(tuned)[:1]
    trained, calls = sl.runs.tune.__globals__["train_prepared"], []

    def interrupted(*args: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return trained(*args, **options)

    monkeypatch.setitem(sl.runs.tune.__globals__, "train_prepared", interrupted)
    with pytest.raises(KeyboardInterrupt, match="interrupted after 2 trials; the same command goes on"):
        sl.runs.tune(CONFIG, tmp_path / "out", trials=4)
    assert (tmp_path / "out" / "best.yaml").exists()
    found = sl.runs.tune(CONFIG, tmp_path / "out", trials=4)
    assert values_of(found) == values_of(tuned)
    assert sl.runs.tune(CONFIG, tmp_path / "out", trials=2) == found  # nothing more to do


def test_a_trial_that_falls_behind_is_given_up(tmp_path: Path) -> None:
    """Five trials run to their end; then a learning rate that does not learn is seen through after an epoch."""
    config = CONFIG | {
        "epochs": 3,
        "objective": "cross-entropy",
        "optimizer": {"name": "adamw", "lr": {"search": "choice", "choices": [0.1, 1e-7]}},
    }
    found = sl.runs.tune(config, tmp_path / "out", trials=9)
    states = {(row["values"]["optimizer.lr"], row["state"]) for row in found["trials"]}
    assert (1e-7, "pruned") in states
    assert (0.1, "finished") in states
    given_up = next(row for row in found["trials"] if row["state"] == "pruned")
    assert given_up["epochs"] < 3
    assert found["best"]["values"] == {"optimizer.lr": 0.1}


def test_values_with_which_training_fails_are_told_and_the_search_goes_on(tmp_path: Path) -> None:
    lr = {"search": "choice", "choices": [1e38, 0.1]}
    config = CONFIG | {"objective": "cross-entropy", "optimizer": {"name": "sgd", "lr": lr}}
    found = sl.runs.tune(config, tmp_path / "out", trials=5)
    failed = [row for row in found["trials"] if row["state"] == "failed"]
    assert {row["values"]["optimizer.lr"] for row in failed} == {1e38}
    assert "the loss became" in failed[0]["reason"]
    assert found["best"]["values"] == {"optimizer.lr": 0.1}


# ---- what is refused


def test_what_cannot_be_searched_is_refused(tmp_path: Path) -> None:
    def refused(change: dict[str, Any], said: str, **options: Any) -> None:
        out = tmp_path / str(len(list(tmp_path.iterdir())))
        with pytest.raises(sl.ShortlistError, match=said):
            sl.runs.tune({**CONFIG, **change}, out, **{"trials": 1, **options})

    refused({"objective": "lml", "optimizer": "sgd"}, "leaves nothing open")
    refused({}, "trials must be a whole number of at least 1, got 0", trials=0)
    refused({"data": {**DATA, "validation": None}}, "judged on validation data: set data.validation")
    refused({"devices": 2}, "one device")
    refused({"optimizer": {"lrr": {"search": "uniform", "low": 1, "high": 2}}}, "did you mean 'lr'")
    refused({"objective": "my_module:Objective"}, "allow-import")
    inner = {"lr": {"search": "choice", "choices": [{"search": "log", "low": 1, "high": 2}]}}
    refused({"optimizer": inner}, r"optimizer\.lr is a search: .*, and not among another's choices")


@pytest.mark.parametrize(
    "objective",
    [
        {"name": "smooth-topk", "k": {"search": "choice", "choices": [2, 2, 3]}},
        {"search": "choice", "choices": ["cross-entropy", {"name": "average-k", "k": 2}]},
        {"name": {"search": "choice", "choices": ["smooth-topk", "average-k"]}, "k": 2},
    ],
)
def test_metrics_that_cannot_be_compared_are_found_before_the_first_trial(objective: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(sl.ShortlistError, match=r"cannot be compared by .*: name one with stop\.metric"):
        sl.runs.tune(CONFIG | {"objective": objective}, out, trials=1)
    assert not (out / "trials.csv").exists()
    one = {"objective": objective, "stop": {"metric": "topk-accuracy@1"}}
    assert sl.runs.tune(CONFIG | one, out, trials=1)["metric"] == "topk-accuracy@1"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"epochs": {"search": "choice", "choices": [1, 2, "many"]}}, "the search of epochs: epochs: .*'many'"),
        ({"batch_size": {"search": "integer", "low": 0, "high": 64}}, "the search of batch_size: .* got 0"),
        ({"optimizer": {"lr": {"search": "uniform", "low": -1, "high": 1}}}, r"optimizer\.lr: .*greater than 0"),
        ({"objective": {"search": "choice", "choices": ["lml", "lmm"]}}, "'lmm'"),
    ],
)
def test_values_that_are_not_allowed_are_found_before_the_first_trial(
    change: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(sl.ShortlistError, match=said):
        sl.runs.tune(CONFIG | change, tmp_path / "out", trials=1)
    assert not (tmp_path / "out").exists()


def test_a_rate_may_be_searched_down_to_a_bound_that_is_not_allowed_itself(tmp_path: Path) -> None:
    lr = {"search": "uniform", "low": 0, "high": 0.1}
    assert len(sl.runs.tune(CONFIG | {"epochs": 1, "optimizer": {"lr": lr}}, tmp_path / "out", trials=1)["trials"]) == 1


def test_a_config_with_a_search_is_not_trained(tmp_path: Path) -> None:
    with pytest.raises(sl.ShortlistError, match=r"objective\.tau is a search: only shortlist tune takes one"):
        sl.runs.train(CONFIG, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_config_that_was_mended_may_use_its_folder(tmp_path: Path) -> None:
    wrong = CONFIG | {"data": {**DATA, "validation": None}}
    with pytest.raises(sl.ShortlistError, match=r"set data\.validation"):
        sl.runs.tune(wrong, tmp_path / "out", trials=1)
    mended = CONFIG | {"epochs": 1, "seed": {"search": "integer", "low": 1, "high": 9}}
    assert len(sl.runs.tune(mended, tmp_path / "out", trials=1)["trials"]) == 1


def test_a_folder_of_something_else_is_left_alone(tuned: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(sl.ShortlistError, match="holds the search of another config"):
        sl.runs.tune(CONFIG | {"seed": 2}, tuned["out"], trials=5)
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(sl.ShortlistError, match="exists and is no search"):
        sl.runs.tune(CONFIG, tmp_path, trials=1)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_damaged_journal_is_told_by_one_line(tmp_path: Path) -> None:
    config = CONFIG | {"epochs": 1}
    sl.runs.tune(config, tmp_path / "out", trials=1)
    with open(tmp_path / "out/trials.journal", "a") as file:
        file.write("no JSON\n")
    with pytest.raises(sl.ShortlistError, match=r"trials\.journal is damaged .*: remove it"):
        sl.runs.tune(config, tmp_path / "out", trials=2)


def test_the_command_prints_a_table_and_where_to_go_on(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("leaves.yaml").write_text(yaml.safe_dump(CONFIG))
    search = "optimizer.lr={search: choice, choices: [0.01, 0.1]}"
    found = run_here(capsys, "tune", "leaves.yaml", search, "--trials", 2)
    assert found.code == 0
    assert found.out.splitlines()[1].split() == ["trial", "objective.tau", "optimizer.lr", "topk-accuracy@2", "epochs",
                                                "state"]  # fmt: skip
    assert "next: shortlist train runs/leaves-tuned/best.yaml" in found.err
    assert run_here(capsys, "train", "runs/leaves-tuned/best.yaml", "--print-config").code == 0
    again = run_here(capsys, "tune", "leaves.yaml", search, "--trials", 2, "--json")
    assert [row["state"] for row in again.json["trials"]] == ["finished", "finished"]


def test_an_interrupted_command_says_how_to_go_on_and_does(tmp_path: Path) -> None:
    (tmp_path / "slow.yaml").write_text(yaml.safe_dump(CONFIG | {"epochs": 100000}))
    process = start("tune", "slow.yaml", "--trials", 1, cwd=tmp_path)
    journal = tmp_path / "runs" / "slow-tuned" / "trials.journal"
    for _ in range(1200):
        if process.poll() is not None or (journal.exists() and "intermediate" in journal.read_text()):
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    result = finish(process)
    assert result.code == 130
    assert "interrupted after 0 trials; the same command goes on" in result.err
