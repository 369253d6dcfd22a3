"""Two gloo processes under DDP and one process on the whole batch: the same loss, the same parameter gradients."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import shortlist.functional as F
from shortlist.distributed import world_size
from shortlist.labels import SparseLabels
from shortlist.memories import ROLELoss
from shortlist.nn.average_k_head import AverageKHead
from shortlist.objectives.loss_functions import cross_entropy_loss
from tests.functional.harness import CASES, some_scores, some_target
from tests.processes import run_two

ROWS, SPLIT, FEATURES, LABELS = 9, 6, 5, 7  # unequal shards
REDUCTIONS = ("mean", "sum")

Loss = Callable[..., Tensor]
TOP_K: dict[str, Loss] = {
    "smooth_topk": partial(F.smooth_topk_loss, k=2),
    "topk_hinge": partial(F.topk_hinge_loss, k=2),
    "truncated_entropy": partial(F.truncated_entropy_loss, k=2),
    "lml": partial(F.lml_loss, k=2),
    "noised_topk": partial(F.noised_topk_loss, k=2, n_samples=0),
    "cross_entropy": lambda scores, target, reduction, **o: cross_entropy_loss(scores, target, **o),
}


def losses() -> dict[str, tuple[type[nn.Module], Loss, Tensor | SparseLabels]]:
    """name -> (model, loss(model output, target, rows, **options), target of the whole batch)."""
    table: dict[str, tuple[type[nn.Module], Loss, Any]] = {}
    for name, case in CASES.items():
        for reduction in REDUCTIONS if not case.topk else ():

            def plain(scores: Tensor, target: Tensor, *, call: Loss = case.call, reduction: str = reduction, **o: bool):
                return call(scores, target, reduction=reduction, **o)

            table[f"{name}-{reduction}"] = (nn.Linear, plain, some_target(name, ROWS, LABELS))

    indices = some_target("average_k", ROWS, LABELS)
    unknown = indices.clone()
    unknown[[0, 2, 3, 7]] = -1  # three of the first six rows, one of the other three
    matrix = some_target("binary", ROWS, LABELS)
    matrix[[1, 2, 4]] = torch.where(matrix[[1, 2, 4]] == 1, -1, matrix[[1, 2, 4]])
    for name, loss in TOP_K.items():
        for reduction in REDUCTIONS if name != "cross_entropy" else ("mean",):
            for form, target in {"indices": unknown, "matrix": matrix}.items():
                if form == "indices" or name in ("lml", "truncated_entropy"):
                    table[f"{name}-{reduction}-{form}"] = (nn.Linear, partial(loss, reduction=reduction), target)

    for name in ("binary-mean", "two_way-mean", "rml-sum", "lml-mean-matrix"):  # what is stored of the same matrix
        kind, sparse_loss, target = table[name]
        table[f"{name}-sparse"] = (kind, sparse_loss, SparseLabels.of(csr_array(target.numpy())))

    def weighted(scores: Tensor, target: Tensor, **options: bool) -> Tensor:
        weight = torch.arange(1.0, LABELS + 1, dtype=scores.dtype)
        return F.smooth_topk_loss(scores, target, 2, weight=weight, **options)

    table["smooth_topk-weighted"] = (nn.Linear, weighted, unknown)

    def two_heads(heads: tuple[Tensor, Tensor], target: Tensor, **options: bool) -> Tensor:
        return F.average_k_loss(*heads, target, 2.6, alpha=0.7, **options)

    def tied_proposals(heads: tuple[Tensor, Tensor], target: Tensor, **options: bool) -> Tensor:
        return F.average_k_loss(heads[0], heads[1] * 0.0, target, 2.6, **options)

    table["average_k-two_heads"] = (AverageKHead, two_heads, indices)
    table["average_k-tied_proposals"] = (AverageKHead, tied_proposals, indices)
    one_sided = torch.full((ROWS, LABELS), -1)
    one_sided[0, 0], one_sided[1, 1] = 1, 0
    table["two_way-one_shard_observed"] = (nn.Linear, lambda s, t, **o: F.two_way_loss(s, t, **o), one_sided)
    return table


def gradient_error(kind: type[nn.Module], loss: Loss, target: Tensor | SparseLabels, mine: slice) -> dict[str, float]:
    features = some_scores(ROWS, FEATURES, seed=11)
    torch.manual_seed(0)
    model = kind(FEATURES, LABELS).double()
    alone = loss(model(features), target, sync=False)
    expected = torch.autograd.grad(alone, list(model.parameters()), materialize_grads=True)
    parallel = DistributedDataParallel(model, find_unused_parameters=True)
    value = loss(parallel(features[mine]), target[mine])
    value.backward()
    mean_value = value.detach() / 2
    dist.all_reduce(mean_value)
    pairs = zip(model.parameters(), expected, strict=True)
    return {
        "gradient": max((p.grad - e).abs().max().item() for p, e in pairs),
        "size": max(e.abs().max().item() for e in expected),
        "value": (mean_value - alone.detach()).abs().item(),
    }


def role_error(mine: slice) -> dict[str, float]:
    """Gradients of two steps, and the table after them, against one process."""
    target, index = some_target("average_k", ROWS, LABELS), torch.arange(ROWS) * 2
    features = some_scores(ROWS, FEATURES, seed=11)
    alone, shared = (ROLELoss(2 * ROWS, LABELS, 2, dtype=torch.bfloat16, sync=sync) for sync in (False, None))
    torch.manual_seed(0)
    model = nn.Linear(FEATURES, LABELS).double()
    parallel = DistributedDataParallel(model)
    for _ in range(2):
        (expected,) = torch.autograd.grad(alone(model(features), target, index), model.weight)
        alone.step(0.3)
        model.zero_grad()
        shared(parallel(features[mine]), target[mine], index[mine]).backward()
        shared.step(0.3)
    return {
        "gradient": (model.weight.grad - expected).abs().max().item(),
        "size": expected.abs().max().item(),
        "value": (alone.table.double() - shared.table.double()).abs().max().item(),
    }


def run(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    mine = slice(0, SPLIT) if rank == 0 else slice(SPLIT, ROWS)
    errors = {name: gradient_error(*case, mine) for name, case in losses().items()}
    errors["role"] = role_error(mine)
    Path(folder, f"errors{rank}.json").write_text(json.dumps(errors))
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, dict[str, float]]]:
    folder = tmp_path_factory.mktemp("processes")
    run_two(run, str(folder))
    return [json.loads((folder / f"errors{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.parametrize("name", [*losses(), "role"])
def test_two_processes_train_like_one(name: str, errors: list[dict[str, dict[str, float]]]) -> None:
    for error in (of_rank[name] for of_rank in errors):
        assert error["size"] > 0 or name == "two_way-one_shard_observed"
        assert error["gradient"] <= 1e-12 * max(1.0, error["size"])
        assert error["value"] <= 1e-12 * max(1.0, error["size"])


def test_one_process_needs_no_group_and_cannot_be_told_to_share() -> None:
    assert world_size(None) == world_size(False) == 1
    with pytest.raises(ValueError, match=r"sync=True needs torch\.distributed\.init_process_group"):
        F.binary_loss(torch.zeros(1, 2), torch.zeros(1, 2), sync=True)
