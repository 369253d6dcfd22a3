"""The modules say what their functions say, and show their options."""

from typing import Any

import pytest
import torch

import shortlist.functional as F
import shortlist.nn as nn
from tests.functional.harness import random_matrix, random_scores, random_target

SCORES, TARGET, MATRIX = random_scores(6, 9), random_target(6, 9), random_matrix(6, 9)
MASK = (random_scores(6, 9, seed=3) > -1) | (torch.nn.functional.one_hot(TARGET, 9) == 1)
WEIGHT, ROW_WEIGHT = torch.linspace(0.5, 2.0, 9), torch.linspace(0.0, 3.0, 6)

PAIRS: list[tuple[type[torch.nn.Module], Any, dict[str, Any]]] = [
    (nn.LMLLoss, F.lml_loss, {}),
    (nn.LMLLoss, F.lml_loss, {"temperature": 0.5, "reduction": "sum"}),
    (nn.SmoothTopKLoss, F.smooth_topk_loss, {}),
    (nn.SmoothTopKLoss, F.smooth_topk_loss, {"tau": 0.2, "alpha": 0.5, "reduction": "none"}),
    (nn.TopKHingeLoss, F.topk_hinge_loss, {}),
    (nn.TopKHingeLoss, F.topk_hinge_loss, {"alpha": 2.0, "reduction": "sum"}),
    (nn.TruncatedEntropyLoss, F.truncated_entropy_loss, {}),
    (nn.TruncatedEntropyLoss, F.truncated_entropy_loss, {"reduction": "none"}),
]


@pytest.mark.parametrize(("module", "function", "options"), PAIRS)
def test_a_loss_module_equals_its_function(
    module: type[torch.nn.Module], function: Any, options: dict[str, Any]
) -> None:
    assert torch.equal(module(3, **options)(SCORES, TARGET), function(SCORES, TARGET, 3, **options))


@pytest.mark.parametrize(("module", "function", "options"), PAIRS)
def test_a_loss_module_passes_masks_and_weights_on(
    module: type[torch.nn.Module], function: Any, options: dict[str, Any]
) -> None:
    ours = module(3, weight=WEIGHT, **options)(SCORES, TARGET, mask=MASK, sample_weight=ROW_WEIGHT)
    expected = function(SCORES, TARGET, 3, weight=WEIGHT, mask=MASK, sample_weight=ROW_WEIGHT, **options)
    assert torch.equal(ours, expected)


@pytest.mark.parametrize(
    ("module", "function"), [(nn.LMLLoss, F.lml_loss), (nn.TruncatedEntropyLoss, F.truncated_entropy_loss)]
)
def test_a_loss_module_takes_a_label_matrix(module: type[torch.nn.Module], function: Any) -> None:
    assert torch.equal(module(3)(SCORES, MATRIX), function(SCORES, MATRIX, 3))


def test_the_lml_layer_equals_its_function() -> None:
    assert torch.equal(nn.LML(3)(SCORES), F.lml(SCORES, 3))
    assert torch.equal(nn.LML(3, temperature=0.5)(SCORES, mask=MASK), F.lml(SCORES, 3, temperature=0.5, mask=MASK))
    assert torch.equal(nn.LML(3, dim=0)(SCORES), F.lml(SCORES, 3, dim=0))


def test_the_noised_loss_draws_noise_in_training_only() -> None:
    module = nn.NoisedTopKLoss(3, epsilon=0.5, n_samples=4)
    torch.manual_seed(0)
    ours = module(SCORES, TARGET)
    torch.manual_seed(0)
    assert torch.equal(ours, F.noised_topk_loss(SCORES, TARGET, 3, epsilon=0.5, n_samples=4))
    module.eval()
    quiet = module(SCORES, TARGET)
    assert torch.equal(quiet, module(SCORES, TARGET))
    assert torch.equal(quiet, F.noised_topk_loss(SCORES, TARGET, 3, epsilon=0.0))


def test_the_noised_loss_knows_its_class_counts() -> None:
    counts = torch.tensor([100, 10, 1, 50, 20, 5, 7, 1000, 3])
    module = nn.NoisedTopKLoss(3, class_counts=counts, max_margin=0.4, scale=10.0).eval()
    expected = F.noised_topk_loss(SCORES, TARGET, 3, epsilon=0.0, class_counts=counts, max_margin=0.4, scale=10.0)
    assert torch.equal(module(SCORES, TARGET), expected)


def test_tensors_of_a_module_move_with_it() -> None:
    module = nn.SmoothTopKLoss(3, weight=WEIGHT).double()
    scores = SCORES.double()
    torch.testing.assert_close(module(scores, TARGET), F.smooth_topk_loss(scores, TARGET, 3, weight=WEIGHT.double()))


@pytest.mark.parametrize(
    "module",
    [
        nn.LML(3, temperature=0.5),
        nn.LMLLoss(3, temperature=0.5),
        nn.SmoothTopKLoss(3, tau=0.5),
        nn.TopKHingeLoss(3, alpha=0.5),
        nn.TruncatedEntropyLoss(3),
        nn.NoisedTopKLoss(3, epsilon=0.5),
    ],
    ids=lambda m: type(m).__name__,
)
def test_a_module_shows_its_options(module: torch.nn.Module) -> None:
    shown = repr(module)
    assert shown.startswith(f"{type(module).__name__}(")
    assert "k=3" in shown
    if "Truncated" not in shown:
        assert "0.5" in shown


def test_a_module_trains_a_linear_layer() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(64, 12), torch.arange(64) % 9
    layer, loss = torch.nn.Linear(12, 9), nn.SmoothTopKLoss(3, tau=0.5)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.05)
    losses = []
    for _ in range(100):
        optimizer.zero_grad()
        value = loss(layer(x), y)
        value.backward()
        optimizer.step()
        losses.append(float(value))
    assert losses[-1] < 0.5 * losses[0]
