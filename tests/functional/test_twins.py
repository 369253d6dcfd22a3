"""What a GPU without a kernel would do: twins that launch few kernels, take little memory and wait for nothing."""

import pytest
import torch
from benchmarks.twins import BEFORE, LABELS, MORE, losses, measured

from shortlist import kernels
from tests.functional.harness import CASES, some_scores, some_target, value_and_gradient
from tests.kernels.triton.no_waiting import NoWaiting

# the most launches, as a share of those before, where a quarter is not reached, and the most memory where it is not 4
SHARES = {
    "topk_hinge_loss, k=20": 0.6, "lml, k=20": 0.37, "lml_loss, k=20": 0.28, "truncated_entropy_loss, k=20": 0.57,
    "binary_loss": 0.52, "partial_binary_loss": 0.57, "asymmetric_loss": 0.51, "partial_selective_loss": 0.68,
    "two_way_loss": 0.43, "lsep_loss": 0.46, "multilabel_softmax_loss": 0.5, "assume_negative_loss": 0.61,
    "expected_positive_loss": 0.71,
}  # fmt: skip
MEMORY = {"smooth_topk_loss, k=50": 5.6, "subset_marginals, k=5": 4.6, "lml, k=20": 4.1}  # at 1,000 labels
STILL_DIFFERENTIATED = ("noised_topk_loss, k=20", "average_k_loss", "warp_loss", "warp_loss, exact", "rml_loss")
LEAN = [name for name in BEFORE if name not in STILL_DIFFERENTIATED]


@pytest.mark.parametrize("name", LEAN)
def test_few_launches_and_little_memory(name: str) -> None:
    launches, memory = measured(losses(LABELS)[name], LABELS)
    assert launches <= BEFORE[name] * SHARES.get(name, 0.25)
    assert memory <= MEMORY.get(name, 4)
    assert measured(losses(MORE)[name], MORE)[1] <= 4.05


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("noised_topk", "warp_exact", "rml")])
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


@pytest.mark.parametrize("name", LEAN)
def test_nothing_waits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shortlist.device_flags.waits", lambda _: True)
    scores = torch.randn(256, 60, generator=torch.Generator().manual_seed(1)).requires_grad_()
    with kernels.use("torch"), NoWaiting():
        losses(60)[name](scores).backward()
