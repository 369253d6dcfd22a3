"""A real training process, killed in the middle of an epoch or interrupted, and resumed."""

import json
import signal
import time
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from shortlist.runs.run import Run
from tests.cli.command import Result, finish, run_here, run_inside, start

CONFIG = """
data: {train: {reader: ambiguous-numbers, size: 2000}}
backbone: {name: mlp, hidden: [64], dropout: 0.3, batch_norm: true}
objective: {name: noised-topk, k: 3}
optimizer: {name: adamw, lr: 0.003}
schedule: {name: cosine}
batch_size: 16
epochs: 5
accelerator: cpu
"""


def wait_until_epoch(run: Path, epoch: int) -> None:
    for _ in range(6000):
        if (run / "checkpoint.json").exists() and json.loads((run / "checkpoint.json").read_text())["last"] >= epoch:
            return
        time.sleep(0.01)
    pytest.fail("the process did not train")


def results(run: Path) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor], list[dict[str, float]]]:
    found = Run(run)
    records = [{name: value for name, value in record.items() if name != "seconds"} for record in found.records()]
    return found.weights("last"), found.weights("best"), records


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs: one killed and one interrupted, which are processes at the same time, and one left alone."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "config.yaml").write_text(CONFIG)

    def train(name: str, epochs: int) -> tuple[object, ...]:
        return "train", folder / "config.yaml", f"epochs={epochs}", "--out", folder / name, "--quiet"

    killed, interrupted = start(*train("killed", 5)), start(*train("interrupted", 1000))
    wait_until_epoch(folder / "killed", 2)
    time.sleep(0.05)
    killed.kill()
    assert finish(killed).code == -signal.SIGKILL
    wait_until_epoch(folder / "interrupted", 1)
    interrupted.send_signal(signal.SIGINT)
    (folder / "interrupted.json").write_text(json.dumps(asdict(finish(interrupted))))
    left_alone = run_inside(*train("whole", 5))
    assert (left_alone.code, left_alone.err) == (0, "")
    return folder


def test_a_run_killed_in_the_middle_of_an_epoch_resumes_to_the_same_bits(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 <= Run(folder / "killed").checkpoint["last"] < 5  # or else this test shows nothing
    resumed = run_here(capsys, "train", "--resume", folder / "killed")
    assert resumed.code == 0
    assert resumed.err.startswith(("epoch 3/5", "epoch 4/5", "epoch 5/5"))
    expected, found = results(folder / "whole"), results(folder / "killed")
    for weights, same in zip(expected[:2], found[:2], strict=True):
        assert weights.keys() == same.keys()
        assert all(torch.equal(weights[name], same[name]) for name in weights)
    assert found[2] == expected[2]
    assert len(found[2]) == 5


def test_ctrl_c_ends_with_130_and_the_command_that_continues(folder: Path) -> None:
    result = Result(**json.loads((folder / "interrupted.json").read_text()))
    assert result.code == 130
    assert f"continue with: shortlist train --resume {folder / 'interrupted'}" in result.err
    assert "Traceback" not in result.err
