"""Other programs read the same numbers as metrics.jsonl holds, each epoch once."""

import csv
import sys
from pathlib import Path
from typing import Any

import pytest

from shortlist.errors import MissingPackageError
from shortlist.runs.run import Run
from shortlist.runs.train import Interrupted, train
from shortlist.training.loop import Quiet, make_fabric
from shortlist.training.settings import TrainSettings

CONFIG: dict[str, Any] = {
    "data": {"train": {"reader": "ambiguous-numbers", "size": 100}},
    "epochs": 4, "batch_size": 25, "accelerator": "cpu", "loggers": ["tensorboard", "csv"],
}  # fmt: skip


def in_csv(folder: Path) -> list[dict[str, float]]:
    with open(folder / "csv" / "metrics.csv", newline="") as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def in_tensorboard(folder: Path) -> list[dict[str, float]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder / "tensorboard")).Reload()
    rows: dict[int, dict[str, float]] = {}
    for name in found.Tags()["scalars"]:
        for event in found.Scalars(name):
            row = rows.setdefault(event.step, {"step": event.step})
            assert name not in row  # once each
            row[name] = event.value
    return [rows[step] for step in sorted(rows)]


def expected_of(folder: Path) -> list[dict[str, float]]:
    records = Run(folder).records()
    return [{"step" if name == "epoch" else name: value for name, value in row.items()} for row in records]


class StopsIn(Quiet):
    """Progress that is interrupted within an epoch."""

    def __init__(self, number: int) -> None:
        self.number = number

    def step(self, epoch: int, step: int, steps: int, loss: Any) -> None:
        if epoch + 1 == self.number:
            raise KeyboardInterrupt


@pytest.mark.filterwarnings("ignore:only 16 optimizer steps")
def test_each_logger_has_every_epoch_once_also_after_an_interruption(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises(Interrupted):
        train(CONFIG, run, progress=StopsIn(3))
    assert in_csv(run) == expected_of(run)
    assert len(in_csv(run)) == 2
    lines = (run / "csv" / "metrics.csv").read_text().splitlines(keepends=True)
    (run / "csv" / "metrics.csv").write_text("".join([*lines, lines[-1], lines[-1][:5]]))  # as a crash may leave it
    train(resume=run)
    assert len(expected_of(run)) == 4
    assert in_csv(run) == expected_of(run)
    assert in_tensorboard(run) == [pytest.approx(row, rel=1e-6) for row in expected_of(run)]  # it keeps float32


@pytest.mark.filterwarnings("ignore:only 16 optimizer steps")
def test_a_logger_that_is_added_on_resume_has_the_epochs_before(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises(Interrupted):
        train({**CONFIG, "loggers": []}, run, progress=StopsIn(3))
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("loggers: []", "loggers: csv"))
    train(resume=run)
    assert in_csv(run) == expected_of(run)
    assert not (run / "tensorboard").exists()


def test_a_missing_package_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(MissingPackageError, match=r"needs tensorboard, .*'shortlist\[tensorboard\]'"):
        train(CONFIG, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_loggers_without_a_run_directory_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"loggers write into a run directory, there is none: remove loggers \(csv\)"):
        make_fabric(TrainSettings(loggers="csv", accelerator="cpu"))
