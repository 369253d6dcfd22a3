"""One process of full precision on the CPU trains without Fabric, to the same bits as with it."""

import subprocess
import sys
from typing import Any

import pytest
import torch

from shortlist.data import Dataset
from shortlist.models import build_backbone
from shortlist.objectives import build
from shortlist.training.loop import make_fabric, train
from shortlist.training.one_process import OneProcess
from shortlist.training.settings import TrainSettings

STEPS = {"optimizer": {"name": "adamw", "lr": 0.05, "clip": 0.1}, "accumulate": 2, "ema": 0.9, "epochs": 3}


@pytest.mark.parametrize("options", [STEPS, {"optimizer": {"name": "lbfgs"}}])
def test_the_weights_are_those_that_fabric_trains(options: dict[str, Any]) -> None:
    from lightning_fabric import Fabric

    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(60, 4, generator=generator)
    data = Dataset(inputs, inputs.argmax(1), tuple("abcd"))
    settings = TrainSettings(accelerator="cpu", **options)
    weights = []
    for fabric in (make_fabric(settings), Fabric(accelerator="cpu", devices=1)):
        torch.manual_seed(0)
        objective = build("cross-entropy", in_features=4, num_labels=4)
        history = train(build_backbone("identity", in_shape=(4,)), objective, data, data, settings, fabric=fabric)
        weights.append([*objective.state_dict().values(), torch.tensor(history.records[-1]["loss"])])
    assert isinstance(make_fabric(settings), OneProcess)
    assert all(torch.equal(a, b) for a, b in zip(*weights, strict=True))


def test_fitting_a_table_does_not_wait_for_fabric() -> None:
    code = (
        "import sys, numpy as np; from shortlist import SetClassifier; X = np.eye(4).repeat(9, 0);"
        "SetClassifier().fit(X, X.argmax(1)); SetClassifier(epochs=1, lr=0.1).fit(X, X.argmax(1));"
        "print('lightning_fabric' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
