"""What a GPU without a kernel would do: twins that launch few kernels, take little memory and wait for nothing."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from benchmarks.twins import BEFORE, LABELS, MORE, losses, measured
from torch import Tensor

import shortlist.functional as F
from shortlist import device_flags, kernels
from shortlist.errors import ShortlistError
from tests.functional.harness import CASES, some_scores, some_target, value_and_gradient
from tests.kernels.triton.no_waiting import NoWaiting

# the most launches, as a share of those before, where a quarter is not reached, and the most memory where it is not 4
SHARES = {"warp_loss": 0.58, "warp_loss, exact": 0.45, "rml_loss": 0.5}
MEMORY = {"warp_loss": 26, "warp_loss, exact": 13, "rml_loss": 19}  # at 1,000 labels: 2^18 scores at a time


@pytest.mark.parametrize("name", BEFORE)
def test_few_launches_and_little_memory(name: str) -> None:
    launches, memory = measured(losses(LABELS)[name], LABELS)
    assert launches <= BEFORE[name] * SHARES.get(name, 0.25)
    assert memory <= MEMORY.get(name, 4.05)
    assert measured(losses(MORE)[name], MORE)[1] <= 4.05


@pytest.mark.parametrize("options", [{"reduction": "sum"}, {"sample_weight": torch.rand(256)}], ids=["sum", "weighted"])
@pytest.mark.parametrize("loss", [F.binary_loss, F.partial_binary_loss, F.partial_selective_loss, F.asymmetric_loss])
def test_sums_and_weights_take_no_more_memory(loss: Callable[..., Tensor], options: dict[str, Any]) -> None:
    target = (torch.rand(256, LABELS, generator=torch.Generator().manual_seed(0)) < 0.005).to(torch.int8)
    assert measured(lambda scores: loss(scores, target, **options), LABELS)[1] <= 4.05


@pytest.mark.parametrize("loss", [F.warp_loss, partial(F.warp_loss, exact=True), F.rml_loss])
def test_rows_that_are_taken_some_at_a_time_have_the_losses_of_all_at_once(loss: Callable[..., Tensor]) -> None:
    random = torch.Generator().manual_seed(4)
    scores = torch.randn(700, 500, generator=random, dtype=torch.float64)  # no two are tied
    target = torch.randint(-1, 2, scores.shape, generator=random, dtype=torch.int8)
    results = []
    for path in ("torch", "native"):
        torch.manual_seed(5)  # of the seeds that are drawn
        with kernels.use(path):
            results.append(value_and_gradient(loss, scores, target))
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("name", CASES)
def test_the_gradient_of_a_twin_is_that_of_its_formula(name: str) -> None:
    """In rows as long as the tests of the contract do not have, some of them masked, some weighing nothing."""
    for rows, labels in ((40, 7), (5, 300)):
        scores, target = some_scores(rows, labels, scale=3.0), some_target(name, rows, labels)
        weight = torch.rand(rows, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
        weight[-1] = 0
        with kernels.use("torch"):
            lean = value_and_gradient(CASES[name].call, scores, target, sample_weight=weight)

            def loss(s: torch.Tensor, weight: torch.Tensor = weight, target: torch.Tensor = target) -> torch.Tensor:
                return CASES[name].call(s, target, sample_weight=weight)

            gradient, value = torch.func.grad_and_value(loss)(scores)  # transformed: by the formula
        torch.testing.assert_close(lean, (value, gradient), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", BEFORE)
def test_nothing_waits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shortlist.device_flags.waits", lambda _: True)
    scores = torch.randn(256, 60, generator=torch.Generator().manual_seed(1)).requires_grad_()
    kernels.check()
    with kernels.use("torch"), NoWaiting():
        losses(60)[name](scores).backward()


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (torch.tensor([0, 1, 5]), "smooth_topk was given, in its call 1, 5, a target value that is not allowed"),
        (torch.tensor([0, -100, -7]), "smooth_topk was given, in its call 1, at flat position 2, a target value"),
        (torch.full((3, 5), 2), "binary was given, in its call 1, 2, a target value that is not allowed"),
        (torch.tensor([0, -100, -1]), None),
    ],
    ids=["too large", "beside -100", "label matrix", "right"],
)
def test_a_wrong_target_is_told_by_the_next_check(
    target: Tensor, told: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    device_flags._devices.known.clear()
    monkeypatch.setattr(device_flags, "waits", lambda _: True)
    loss = F.binary_loss if target.ndim == 2 else partial(F.smooth_topk_loss, k=2)
    scores = torch.randn(3, 5)
    with kernels.use("torch"), NoWaiting():
        device_flags.begin("binary" if target.ndim == 2 else "smooth_topk", scores.device)
        loss(scores, target)
    if told is not None:
        with pytest.raises(ShortlistError, match=told):
            kernels.check()
    kernels.check()  # told once


@pytest.mark.parametrize("place", [0, 7, 31, 40])
@pytest.mark.parametrize("mixed", [False, True])
def test_more_targets_than_there_is_room_for_are_all_looked_at_and_nothing_waits(place: int, mixed: bool) -> None:
    device_flags._devices.known.clear()
    right, wrong = torch.tensor([1, 2], dtype=torch.int8).split(1)
    indices, hidden = torch.tensor([3, -100, 0]), torch.tensor([3, -100, -7])
    with NoWaiting():
        for number in range(70):
            device_flags.note_range(wrong if number == place and not mixed else right, -1, 1)
            if mixed:
                device_flags.note_range(hidden if number == place else indices, -1, 5, -100)
    told = "a loss was given at flat position 2, a target value" if mixed else "soon after it, a target value"
    with pytest.raises(ShortlistError, match=told):
        kernels.check()
    kernels.check()  # told once
