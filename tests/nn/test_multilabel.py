"""The modules: each is its function with the options it was made with."""

import inspect

import pytest
import torch
from torch import Tensor

import shortlist.functional as F
from shortlist.nn import multilabel
from tests.functional.cases_multilabel import some_scores, some_target

MODULES = {name: value for name, value in vars(multilabel).items() if name.endswith("Loss") and name != "_Loss"}
PER_BATCH = {"scores", "set_scores", "proposal_scores", "target", "mask", "sample_weight"}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_takes_the_options_of_its_function_with_the_same_defaults(name: str) -> None:
    of_module = dict(inspect.signature(MODULES[name]).parameters)
    of_function = dict(inspect.signature(MODULES[name].function).parameters)
    assert [(p.name, p.default) for p in of_module.values()] == [
        (p.name, p.default) for p in of_function.values() if p.name not in PER_BATCH
    ]


@pytest.mark.parametrize(
    ("module", "options"),
    [
        ("TwoWayLoss", {"margin": 1.0, "way": "class"}),
        ("BinaryLoss", {"pos_weight": torch.arange(6.0, dtype=torch.float64)}),
        ("PartialSelectiveLoss", {"prior": torch.arange(6) / 10, "likelihood_topk": 1}),
        ("RMLLoss", {"ramp": -2.0}),
    ],
)
def test_a_module_passes_its_options_on(module: str, options: dict[str, object]) -> None:
    scores, target = some_scores(7, 6), some_target("binary", 7, 6)
    made: torch.nn.Module = MODULES[module](**options)
    expected: Tensor = MODULES[module].function(scores, target, **options)
    assert torch.equal(made(scores, target), expected)


def test_a_module_passes_mask_and_sample_weight_on() -> None:
    scores, target = some_scores(7, 6), some_target("binary", 7, 6)
    extra = {"mask": torch.arange(6) > 2, "sample_weight": torch.arange(7.0)}
    assert torch.equal(multilabel.LSEPLoss()(scores, target, **extra), F.lsep_loss(scores, target, **extra))


def test_options_that_are_tensors_follow_the_module() -> None:
    assert "prior" in dict(multilabel.PartialSelectiveLoss(prior=torch.rand(3)).named_buffers())


def test_its_print_shows_the_options() -> None:
    assert repr(multilabel.WARPLoss(exact=True)) == "WARPLoss(exact=True, generator=None, reduction='mean', sync=None)"
