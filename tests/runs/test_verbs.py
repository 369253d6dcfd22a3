"""What the commands do, from Python, and how often they read the run for it."""

import io
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from shortlist import LabelSets, ShortlistError, runs
from shortlist.data import ambiguous_numbers
from shortlist.runs import run as run_room
from tests.cli.command import run_here

CONFIG = {
    "data": {"train": {"reader": "ambiguous-numbers", "size": 200}, "test": 40},
    "objective": {"name": "smooth-topk", "k": 3},
    "epochs": 1,
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    done = runs.train(CONFIG, tmp_path_factory.mktemp("runs") / "first")
    runs.calibrate(done["run"])
    return Path(done["run"])


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the run's files are opened for reading, and its model is built."""
    counts: Counter[str] = Counter()
    really_open, really_build = open, run_room.build_learner

    def counting_open(file: Any, *arguments: Any, **options: Any) -> Any:
        counts[Path(file).name if isinstance(file, str | Path) else "?"] += 1
        return really_open(file, *arguments, **options)

    def counting_build(*arguments: Any, **options: Any) -> Any:
        counts["model"] += 1
        return really_build(*arguments, **options)

    monkeypatch.setattr(io, "open", counting_open)
    monkeypatch.setattr("builtins.open", counting_open)
    monkeypatch.setattr(run_room, "build_learner", counting_build)
    return counts


@pytest.mark.parametrize(
    "command",
    [
        ("predict", "RUN", "test"),
        ("predict", "RUN", "test", "--json"),
        ("calibrate", "RUN"),
        ("evaluate", "RUN", "test"),
        ("report", "RUN"),
    ],
    ids=" ".join,
)
def test_a_command_reads_config_and_facts_and_builds_the_model_once(command, path, counted, capsys):
    done = run_here(capsys, *(path if word == "RUN" else word for word in command))
    assert done.code == 0, done.err
    assert (counted["config.yaml"], counted["facts.json"], counted["model"]) == (1, 1, 1)


def test_a_report_that_explains_imcl_builds_the_model_once(tmp_path, counted):
    data = {"train": {"reader": "ambiguous-numbers", "size": 200, "labels": "all"}, "test": 40}
    data["corruptions"] = [{"name": "missing-labels", "rate": 0.5}]
    config = {"data": data, "objective": {"name": "imcl", "warm_up": 0.0}, "epochs": 1}
    done = runs.train(config, tmp_path / "imcl")
    counted.clear()
    runs.report(done["run"])
    assert (counted["config.yaml"], counted["model"]) == (1, 1)


def test_an_open_run_is_read_once_by_everything_that_is_done_with_it(path, counted, tmp_path):
    run = runs.Run(path)
    runs.calibrate(run, out=tmp_path / "rules")
    runs.evaluate(run, "test")
    runs.predict(run, "test", out=tmp_path / "sets.parquet")
    assert (counted["config.yaml"], counted["facts.json"], counted["model"]) == (1, 1, 1)


def test_a_function_returns_what_its_command_prints(path, tmp_path, capsys):
    for ours, command in [
        (runs.calibrate(path), ("calibrate", path)),
        (runs.evaluate(path, "test"), ("evaluate", path, "test")),
        (runs.predict(path, "test"), ("predict", path, "test")),
        (runs.report(path), ("report", path)),
    ]:
        assert run_here(capsys, *command, "--json").json == ours


def test_a_config_is_a_mapping_a_file_or_a_config(tmp_path):
    config = runs.RunConfig.model_validate(CONFIG)
    file = tmp_path / "config.yaml"
    file.write_text(config.to_yaml())
    results = [
        runs.train(given, tmp_path / f"{number}", overrides=["seed=3"])
        for number, given in enumerate([CONFIG, config, file, str(file)])
    ]
    assert len({result["best"]["loss"] for result in results}) == 1
    assert CONFIG.get("seed") is None


def test_data_may_be_a_data_set(path, tmp_path):
    numbers = ambiguous_numbers(30, seed=5)
    done = runs.predict(path, numbers, rule="top-k:k=2", out=tmp_path / "sets.parquet")
    assert LabelSets.from_parquet(done["written"][0]).sizes.tolist() == [2] * 30
    with pytest.raises(ShortlistError, match="read already"):
        runs.predict(path, numbers, overrides=["size=3"])


def test_a_run_that_is_resumed_takes_no_other_config(path):
    with pytest.raises(ShortlistError, match="as it is"):
        runs.train(CONFIG, resume=path)


@pytest.mark.parametrize(
    "wrong",
    [
        ["augment.flip=true"],
        ["data.validation=null", "stop.patience=1"],
        ["stop.metric=topk-accuracy@1000"],
        ["objective.k=1000"],
        ["optimizer.lr=1e38", "objective=cross-entropy", "batch_size=8"],  # the loss becomes NaN
    ],
    ids=lambda wrong: wrong[0],
)
def test_an_error_before_the_first_epoch_is_saved_leaves_no_directory(wrong, tmp_path):
    with pytest.raises(ShortlistError):
        runs.train(CONFIG, tmp_path / "run", overrides=wrong)
    assert not (tmp_path / "run").exists()


def test_a_defect_of_the_model_leaves_no_directory(tmp_path, monkeypatch):
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("shapes do not fit")

    monkeypatch.setattr(torch.optim.SGD, "step", broken)
    with pytest.raises(RuntimeError, match="shapes"):
        runs.train(CONFIG, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_failure_after_a_saved_epoch_keeps_the_run(tmp_path, monkeypatch):
    class Stops:
        def start(self, *_: Any) -> None: ...
        def step(self, *_: Any) -> None: ...
        def epoch(self, record: Any) -> None:
            raise RuntimeError("the terminal is gone")

        def end(self) -> None: ...

    with pytest.raises(RuntimeError, match="terminal"):
        runs.train(CONFIG, tmp_path / "run", progress=Stops())
    assert runs.Run(tmp_path / "run").checkpoint["last"] == 1
