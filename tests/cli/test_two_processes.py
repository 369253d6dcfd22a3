"""Two processes that share every batch train what one process trains."""

from pathlib import Path

import pytest
import torch

from shortlist.runs.run import Run
from tests.cli.command import finish, run_here, start

CONFIG = """
objective: {name: average-k, k: 2}
data: {train: {reader: ambiguous-numbers, size: 1000}}
backbone: {name: mlp, hidden: [32]}
epochs: 3
batch_size: 50
accelerator: cpu
"""


def test_two_processes_train_what_one_trains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By a loss that couples all rows of a batch, whichever process has them."""
    (tmp_path / "config.yaml").write_text(CONFIG)
    shared = finish(start("train", tmp_path / "config.yaml", "devices=2", "--out", tmp_path / "two", "--json"))
    assert shared.code == 0, shared.err
    assert shared.json["run"] == str(tmp_path / "two")  # one of the two processes tells the result
    assert run_here(capsys, "train", tmp_path / "config.yaml", "--out", tmp_path / "one", "-q").code == 0
    one, two = Run(tmp_path / "one"), Run(tmp_path / "two")
    for weights, found in zip(one.weights("last").items(), two.weights("last").items(), strict=True):
        assert weights[0] == found[0]
        torch.testing.assert_close(found[1], weights[1], rtol=0, atol=1e-5)
    for first, second in zip(one.records(), two.records(), strict=True):
        assert second["loss"] == pytest.approx(first["loss"], abs=1e-5)
        assert second["topk-accuracy@1"] == pytest.approx(first["topk-accuracy@1"], abs=0.02)
