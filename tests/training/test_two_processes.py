"""Two processes that are stopped in the middle of an epoch, and go on to the same bits."""

import os
import socket
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.multiprocessing as mp

from shortlist.runs.run import Run
from shortlist.training.checkpoints import Kept, Standing
from shortlist.training.loop import make_fabric, train
from shortlist.training.settings import TrainSettings
from tests.training.test_loggers import expected_of, in_csv, in_tensorboard
from tests.training.test_loop import CONFIG, chance, deep_model, same, some_data, without_seconds

# each with something of its own to go wrong: drawn noise, a table by example, features of the backbone
NAMES = {"noised-topk": "indices", "role": "indices", "imcl": "label-matrix"}
# of 30 steps in an epoch; processes look at the clock in steps 1 and 17


class Stopped(Exception):
    pass


def work(rank: int, folder: str, port: int) -> None:
    torch.set_num_threads(1)
    said = {"RANK": rank, "LOCAL_RANK": rank, "GROUP_RANK": 0, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2}
    said |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": "test"}  # as torchrun does
    os.environ.update({name: str(value) for name, value in said.items()})
    save_part = Kept.save_part

    def save_and_stop(self: Kept, epoch: int, standing: Standing) -> None:
        save_part(self, epoch, standing)
        if (epoch, standing.step) == (1, 17):
            raise Stopped

    for name, kind in NAMES.items():
        data, place = some_data(kind), Path(folder) / name
        for attempt in ("whole", "stopped", "resumed"):
            often = {} if attempt == "whole" else {"checkpoint_minutes": 1e-9}
            settings = TrainSettings(
                epochs=2, batch_size=4, accelerator="cpu", devices=2, ema=0.9, schedule="cosine",
                optimizer={"name": "adamw", "lr": 0.01}, loggers=["csv", "tensorboard"], **often,
            )  # fmt: skip
            run = place / ("whole" if attempt == "whole" else "parted")
            fabric = make_fabric(settings, run)
            fabric.launch()
            if rank == 0 and attempt != "resumed":
                Run.create(run, CONFIG, {})
            fabric.barrier()
            model, val = deep_model(name, data), chance() if kind == "indices" else data
            task: dict[str, Any] = {"run": Run(run), "fabric": fabric, "resume": attempt == "resumed"}
            Kept.save_part = save_and_stop if attempt == "stopped" else save_part  # type: ignore[method-assign]
            try:
                train(model.backbone, model.objective, data, val, settings, **task)
            except Stopped:
                assert attempt == "stopped"
            fabric.barrier()
    torch.distributed.destroy_process_group()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(work, (str(folder), port), nprocs=2)
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_stopped_in_the_middle_of_an_epoch_two_processes_resume_to_the_same_bits(name: str, trained: Path) -> None:
    whole, parted = Run(trained / name / "whole"), Run(trained / name / "parted")
    assert without_seconds(parted.records()) == without_seconds(whole.records())
    for which in ("best", "last"):
        assert same(whole.weights(which), parted.weights(which))


def test_only_the_first_process_writes_logs(trained: Path) -> None:
    run = trained / "role" / "parted"
    assert len(in_csv(run)) == 2
    assert in_csv(run) == expected_of(run)
    assert in_tensorboard(run) == [pytest.approx(row, rel=1e-6) for row in expected_of(run)]
