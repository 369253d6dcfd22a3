"""Two gloo processes must compute what one process computes on all the data."""

from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torchmetrics import Metric

from shortlist.labels import LabelSets
from shortlist.metrics import (
    AverageKAccuracy,
    ExactMatch,
    MeanAveragePrecision,
    NDCGAtK,
    PrecisionAtK,
    RecallAtK,
    SetCoverage,
    SetFScore,
    SetSize,
    ShotGroups,
    TopKAccuracy,
)
from tests.processes import run_two

# which rows each of the two processes sees: unequal shares, and nothing at all for the second
SPLITS = {"uneven": (slice(0, 31), slice(31, 50)), "one process idle": (slice(0, 50), None)}


def _data() -> tuple[torch.Tensor, torch.Tensor, LabelSets]:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(50, 6, generator=generator, dtype=torch.float64)
    return scores, torch.randint(-1, 6, (50,), generator=generator), LabelSets.from_dense(scores > 0.3)


def _metrics(scores: torch.Tensor, sets: LabelSets) -> dict[str, tuple[Metric, Any]]:
    counts = torch.tensor([5, 500, 50, 10, 19, 101])
    return {
        "top-k": (TopKAccuracy(2), scores),
        "average-k": (AverageKAccuracy(2.5), scores),
        "average-k, calibrated": (AverageKAccuracy(2, calibration=scores[:20]), scores),
        "precision": (PrecisionAtK(2), scores),
        "recall": (RecallAtK(2), scores),
        "ndcg": (NDCGAtK(2), scores),
        "map class": (MeanAveragePrecision(), scores),
        "map binned": (MeanAveragePrecision(bins=16, link="sigmoid"), scores),
        "map sample": (MeanAveragePrecision("sample"), scores),
        "size": (SetSize(groups=torch.tensor([0, 0, 1, 1, 2, 2])), sets),
        "coverage": (SetCoverage(), sets),
        "f-score": (SetFScore(average="class"), sets),
        "f-score of samples": (SetFScore(), sets),
        "exact match": (ExactMatch(), sets),
        "shots": (ShotGroups(TopKAccuracy(2), counts), scores),
        "shots of ap": (ShotGroups(MeanAveragePrecision(), counts), scores),
    }


def _results(rows: slice | None) -> dict[str, Any]:
    scores, labels, sets = _data()
    results: dict[str, Any] = {}
    for name, (metric, predictions) in _metrics(scores, sets).items():
        if rows is not None:
            middle = (rows.start + rows.stop) // 2
            for part in (slice(rows.start, middle), slice(middle, rows.stop)):
                metric.update(predictions[part], labels[part])
        results[name] = metric.compute()
        for extra in ("per_class", "histogram", "by_group", "group_histogram"):
            if hasattr(metric, extra) and name != "map sample":
                results[f"{name}, {extra}"] = getattr(metric, extra)()
        results[f"{name}, again"] = metric.compute()  # the states are this process's own again after a sync
    return results


def _worker(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    results = {name: _results(rows[rank]) for name, rows in SPLITS.items()}
    torch.save(results, f"{folder}/{rank}.pt")
    dist.destroy_process_group()


def test_two_processes_agree_with_one(tmp_path: Path) -> None:
    run_two(_worker, str(tmp_path))
    expected = _results(slice(0, 50))
    for rank in (0, 1):
        for split, results in torch.load(tmp_path / f"{rank}.pt", weights_only=True).items():
            assert results.keys() == expected.keys()
            for name, value in expected.items():
                say = f"{name} ({split}, process {rank})"
                torch.testing.assert_close(results[name], value, atol=1e-12, rtol=0, equal_nan=True, msg=say)
