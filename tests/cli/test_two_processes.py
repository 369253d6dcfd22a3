"""Two processes that share every batch train what one process trains."""

from pathlib import Path

import pytest
import torch

from shortlist.runs.run import Run
from tests.cli.command import finish, run_here, start

CONFIG = """
data: {train: {reader: ambiguous-numbers, size: 1000}}
backbone: {name: mlp, hidden: [32]}
epochs: 3
batch_size: 50
accelerator: cpu
"""


OBJECTIVES = {"average-k": "objective={name: average-k, k: 2}", "cross-entropy": "objective={name: cross-entropy}"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both objectives at the same time, for starting a process takes long."""
    folder = tmp_path_factory.mktemp("shared")
    (folder / "config.yaml").write_text(CONFIG)
    processes = {
        name: start("train", folder / "config.yaml", objective, "devices=2", "--out", folder / name, "--json")
        for name, objective in OBJECTIVES.items()
    }
    for name, process in processes.items():
        result = finish(process)
        assert result.code == 0, result.err
        assert result.json["run"] == str(folder / name)  # one of the two processes tells the result
    return folder


@pytest.mark.parametrize("name", OBJECTIVES)
def test_two_processes_train_what_one_trains(name: str, shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alone = run_here(capsys, "train", shared / "config.yaml", OBJECTIVES[name], "--out", shared / f"{name}-1", "-q")
    assert alone.code == 0
    one, two = Run(shared / f"{name}-1"), Run(shared / name)
    for weights, found in zip(one.weights("last").items(), two.weights("last").items(), strict=True):
        assert weights[0] == found[0]
        torch.testing.assert_close(found[1], weights[1], rtol=0, atol=1e-5)
    for first, second in zip(one.records(), two.records(), strict=True):
        assert second["loss"] == pytest.approx(first["loss"], abs=1e-5)
        assert second["topk-accuracy@1"] == pytest.approx(first["topk-accuracy@1"], abs=0.02)
