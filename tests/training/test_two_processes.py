"""Two processes that are stopped in the middle of an epoch, and go on to the same bits."""

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
import torch

from shortlist.metrics.functional import label_propensities
from shortlist.metrics.named import find_metric
from shortlist.runs.run import Run
from shortlist.training.checkpoints import Kept, Standing
from shortlist.training.learner import score
from shortlist.training.loop import make_fabric, train
from shortlist.training.settings import TrainSettings
from shortlist.training.validation import validated
from tests.processes import run_two
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
        names = ["topk-accuracy@1", "average-k-accuracy@2"] if kind == "indices" else ["mean-average-precision"]
        names += ["ndcg@2", "propensity-precision@1", f"{__name__}:own_metric"]
        metrics = [find_metric(one, allow_import=[__name__]) for one in names]
        shared = validated(fabric, model, val, val.answers, metrics, data)
        common = label_propensities(data.label_counts(), len(data))
        alone = {one.name: one(score(model, val), val.target, model.objective.link, common) for one in metrics}
        (place / f"metrics-{rank}.json").write_text(json.dumps([shared, alone]))
    torch.distributed.destroy_process_group()


def own_metric(scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """One that must be given all scores."""
    return scores.mean() + len(target)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    run_two(work, str(folder), port)
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


@pytest.mark.parametrize("name", NAMES)
def test_both_processes_find_the_metrics_of_one(name: str, trained: Path) -> None:
    (shared, alone), (other, _) = (json.loads((trained / name / f"metrics-{rank}.json").read_text()) for rank in (0, 1))
    assert shared == other
    assert shared == pytest.approx(alone, rel=1e-6)
