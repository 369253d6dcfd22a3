"""Objectives whose scores would be large compute their loss by blocks: the same loss, the same gradients."""

from typing import Any

import pytest
import torch
from torch import Tensor

import shortlist.objectives.average_k as average_k
import shortlist.objectives.loss_functions as loss_functions
from shortlist.data import Dataset
from shortlist.objectives import OBJECTIVES, build
from shortlist.objectives.loss_functions import LossFunctionObjective
from shortlist.runs.prepare import prepare

NAMES = [name for name in OBJECTIVES if issubclass(OBJECTIVES[name], LossFunctionObjective) or name == "average-k"]
ROWS, SIZE, LABELS = 7, 4, 9


@pytest.mark.parametrize("balance", ["none", "class-weights", "logit-adjustment"])
@pytest.mark.parametrize("name", NAMES)
def test_the_loss_by_blocks_is_the_loss(name: str, balance: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    single = "indices" in OBJECTIVES[name].accepts
    target = torch.randint(LABELS, (ROWS,)) if single else torch.randint(-1, 2, (ROWS, LABELS))
    options = {"k": 2} if "k" in OBJECTIVES[name].Config.__dataclass_fields__ else {}
    objective = build(name, options, in_features=SIZE, num_labels=LABELS, train_target=target).double()
    if balance not in ("none", *objective.balances_of(target)):
        pytest.skip(f"{balance} has no meaning for {name}")
    objective.balance(balance, target)
    features = torch.randn(ROWS, SIZE, dtype=torch.float64)
    found = []
    for large in (2**26, 1):
        for module in (average_k, loss_functions):
            monkeypatch.setattr(module, "LARGE_SCORES", large)
        assert objective.by_blocks(ROWS) is (large == 1)
        torch.manual_seed(1)
        loss = objective.loss(features, target)
        found.append([loss.detach(), *torch.autograd.grad(loss, list(objective.head.parameters()))])
    for whole, blocks in zip(*found, strict=True):
        torch.testing.assert_close(blocks, whole, rtol=1e-10, atol=1e-12)


def test_the_facts_of_a_run_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    data = Dataset(torch.randn(40, 3), torch.arange(40) % 4, [f"label {i}" for i in range(4)])
    parts = {"train": data, "validation": data, "calibration": data}
    config = {"data": {"train": {"reader": "ambiguous-numbers", "size": 40}}, "batch_size": 8}
    assert prepare(config, parts=parts).facts["scores_by_blocks"] is False
    monkeypatch.setattr(loss_functions, "LARGE_SCORES", 16)
    assert prepare(config, parts=parts).facts["scores_by_blocks"] is True


def test_a_function_that_does_not_know_of_other_processes_has_whole_scores() -> None:
    def squares(scores: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
        return (scores.square() * (target == 1)).sum(-1).mean()

    class Squares(LossFunctionObjective):
        name, function, accepts = "squares", staticmethod(squares), ("label-matrix",)

    objective = Squares(SIZE, 2**22)
    assert not objective.by_blocks(ROWS)
