"""The modules: each is its function with the options it was made with. Their objectives have the same options."""

import copy
import dataclasses
import inspect
import pickle
import typing
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import shortlist.functional as F
import shortlist.nn as nn
from shortlist.nn.losses import Loss
from shortlist.objectives import OBJECTIVES
from tests.functional.harness import random_matrix, random_scores, random_target

SCORES, TARGET, MATRIX = random_scores(6, 9), random_target(6, 9), random_matrix(6, 9)
MASK = (random_scores(6, 9, seed=3) > -1) | (torch.nn.functional.one_hot(TARGET, 9) == 1)
WEIGHT, ROW_WEIGHT = torch.linspace(0.5, 2.0, 9), torch.linspace(0.0, 3.0, 6)
PER_BATCH = {"scores", "set_scores", "proposal_scores", "target", "mask", "sample_weight"}

# every module: its function, a target, and options that are not the defaults
CASES: dict[str, tuple[Callable[..., Tensor], Tensor, dict[str, Any]]] = {
    "LMLLoss": (F.lml_loss, TARGET, {"k": 3, "temperature": 0.5, "reduction": "sum", "weight": WEIGHT}),
    "SmoothTopKLoss": (F.smooth_topk_loss, TARGET, {"k": 3, "tau": 0.2, "alpha": 0.5, "reduction": "none"}),
    "TopKHingeLoss": (F.topk_hinge_loss, TARGET, {"k": 3, "alpha": 2.0, "weight": WEIGHT}),
    "TruncatedEntropyLoss": (F.truncated_entropy_loss, MATRIX, {"k": 3, "reduction": "none"}),
    "NoisedTopKLoss": (F.noised_topk_loss, TARGET, {"k": 3, "n_samples": 0, "scale": 2.0, "class_counts": WEIGHT}),
    "AssumeNegativeLoss": (F.assume_negative_loss, TARGET, {"weighted": False, "label_smoothing": 0.1}),
    "ExpectedPositiveLoss": (F.expected_positive_loss, TARGET, {"k": 1.5, "beta": 0.1, "normalize": True}),
    "BinaryLoss": (F.binary_loss, MATRIX, {"pos_weight": WEIGHT}),
    "PartialBinaryLoss": (F.partial_binary_loss, MATRIX, {"boost": 2.0}),
    "AsymmetricLoss": (F.asymmetric_loss, MATRIX, {"gamma_neg": 2.0, "clip": 0.0, "detach_focus": True}),
    "PartialSelectiveLoss": (F.partial_selective_loss, MATRIX, {"prior": WEIGHT / 10, "likelihood_topk": 1}),
    "TwoWayLoss": (F.two_way_loss, MATRIX, {"margin": 1.0, "way": "class"}),
    "MultilabelSoftmaxLoss": (F.multilabel_softmax_loss, MATRIX, {"reduction": "sum"}),
    "LSEPLoss": (F.lsep_loss, MATRIX, {"reduction": "none"}),
    "WARPLoss": (F.warp_loss, MATRIX, {"exact": True}),
    "RMLLoss": (F.rml_loss, MATRIX, {"ramp": -2.0, "label_weight": 0.5}),
    "AverageKLoss": (F.average_k_loss, TARGET, {"k": 2.5, "alpha": 0.5, "weight": WEIGHT}),
}
every_module = pytest.mark.parametrize("name", CASES)


def scores_of(name: str) -> tuple[Tensor, ...]:
    return (SCORES, -SCORES) if name == "AverageKLoss" else (SCORES,)


def test_every_loss_is_here() -> None:
    assert set(CASES) == {name for name in nn.__all__ if issubclass(getattr(nn, name), Loss)}
    assert {function.__name__ for function, _, _ in CASES.values()} == {
        n for n in F.__all__ if n.endswith("_loss") and n != "linear_loss"  # which takes any of them
    }


@every_module
def test_a_module_takes_the_options_of_its_function(name: str) -> None:
    """Names, order, kinds, defaults and types."""
    of_function = inspect.signature(CASES[name][0]).parameters.values()
    assert list(inspect.signature(getattr(nn, name)).parameters.values()) == [
        p for p in of_function if p.name not in PER_BATCH
    ]


@pytest.mark.parametrize("name", [name for name, objective in OBJECTIVES.items() if hasattr(objective, "function")])
def test_an_objective_takes_the_options_of_its_function(name: str) -> None:
    """Names, order, defaults and types: all that are no tensors, and that training does not decide."""
    function, own = OBJECTIVES[name].function, {"noised-topk": ["imbalanced", "normalised"]}.get(name, [])
    decided = {*PER_BATCH, "weight", "reduction", "sync", "soft", "generator", "class_counts", "prior"}
    expected = {n: p.default for n, p in inspect.signature(function).parameters.items() if n not in decided}
    fields = {field.name: field for field in dataclasses.fields(OBJECTIVES[name].Config)}
    assert list(fields) == [*expected, *own]
    hints = typing.get_type_hints(function)
    for option, default in expected.items():
        assert fields[option].default == (5 if default is inspect.Parameter.empty else default)
        kinds = set(typing.get_args(hints[option]) or (hints[option],)) - {Tensor}
        assert set(typing.get_args(fields[option].type) or (fields[option].type,)) == kinds


@every_module
def test_a_module_equals_its_function(name: str) -> None:
    function, target, options = CASES[name]
    module, per_batch = getattr(nn, name)(**options), {"mask": MASK, "sample_weight": ROW_WEIGHT}
    scores = scores_of(name)
    assert torch.equal(module(*scores, target), function(*scores, target, **options))
    ours = module(*scores, target, **per_batch)
    assert torch.equal(ours, function(*scores, target, **options, **per_batch))
    for again in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert torch.equal(again(*scores, target, **per_batch), ours)


@every_module
def test_a_module_shows_its_options_and_tensors_follow_it(name: str) -> None:
    options = CASES[name][2]
    module = getattr(nn, name)(**options)
    assert repr(module).startswith(f"{name}(")
    assert all(f"{option}={value!r}" in repr(module) for option, value in options.items())
    assert set(dict(module.named_buffers())) == {o for o, value in options.items() if isinstance(value, Tensor)}


def test_what_varies_by_batch_is_no_option_of_a_module() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'mask'"):
        nn.SmoothTopKLoss(3, mask=MASK)


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


def test_tensors_of_a_module_move_with_it() -> None:
    module = nn.SmoothTopKLoss(3, weight=WEIGHT).double()
    scores = SCORES.double()
    torch.testing.assert_close(module(scores, TARGET), F.smooth_topk_loss(scores, TARGET, 3, weight=WEIGHT.double()))


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
        losses.append(value.item())
    assert losses[-1] < 0.5 * losses[0]
