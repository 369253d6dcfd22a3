"""The processes of a run are shared by the machines that torchrun was started on."""

from typing import Any

import lightning_fabric
import pytest

from shortlist.training.loop import make_fabric
from shortlist.training.settings import TrainSettings


def test_every_machine_gets_its_share_of_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr(lightning_fabric, "Fabric", lambda **options: asked.update(options))
    monkeypatch.setenv("GROUP_WORLD_SIZE", "2")
    make_fabric(TrainSettings(devices=8))
    assert (asked["devices"], asked["num_nodes"]) == (4, 2)


def test_processes_that_machines_cannot_share_equally_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUP_WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="3 processes cannot be shared equally by 2 machines"):
        make_fabric(TrainSettings(devices=3))
