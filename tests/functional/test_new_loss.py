"""A loss added in one file, as CONTRIBUTING shows: its code is run, and must keep the promises of all losses."""

import importlib.util
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor

from shortlist.objectives import OBJECTIVES, build
from tests.functional import test_loss_contract as contract
from tests.functional.harness import CASES, Case, some_scores, some_target, value_and_gradient

NAME = "squared_hinge"


def oracle(scores: Tensor, target: Tensor) -> Tensor:
    rows = []
    for row, labels in zip(scores, target.tolist(), strict=True):
        known = [(s, y) for s, y in zip(row, labels, strict=True) if y != -1]
        rows += [sum((1 - (s if y else -s)).clamp(min=0) ** 2 for s, y in known)] if known else []
    return torch.stack(rows).mean()


@pytest.fixture(scope="module")
def added(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The Python of CONTRIBUTING as a module, and its loss in the table of losses."""
    text = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
    file = tmp_path_factory.mktemp("new") / "new_loss.py"
    file.write_text(text.split("```python\n")[1].split("```")[0])
    spec = importlib.util.spec_from_file_location("new_loss", file)
    sys.modules["new_loss"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    call = module.squared_hinge_loss
    CASES[NAME] = Case(call, partial(value_and_gradient, oracle), "row", counts_known=True)
    yield module
    del CASES[NAME], OBJECTIVES["squared-hinge"], sys.modules["new_loss"]


def test_it_is_what_the_formula_says(added: ModuleType) -> None:
    contract.test_value_and_gradient_equal_the_formula(NAME, "matrix", torch.float32, "torch")
    contract.test_value_and_gradient_equal_the_formula(NAME, "matrix", torch.float64, "torch")


def test_it_reduces_weighs_and_masks_as_all_do(added: ModuleType) -> None:
    contract.test_none_sum_and_mean_are_one_loss(NAME, torch.float64, "torch")
    contract.test_a_sample_weight_counts_a_row_that_many_times(NAME, "matrix", "torch")
    contract.test_weights_can_be_learned(NAME, "torch")
    contract.test_a_mask_takes_labels_out(NAME, "matrix", torch.float64, "torch")
    contract.test_nothing_observed_costs_nothing(NAME, "matrix", 4, "torch")


def test_it_takes_what_all_take(added: ModuleType) -> None:
    contract.test_the_type_of_the_target_does_not_matter(NAME, "matrix", "torch")
    contract.test_a_matrix_holding_something_else_is_refused_with_its_first_bad_entry(NAME, "matrix", "torch")
    contract.test_half_precision_is_computed_in_float32(NAME, "matrix", torch.float16, "torch")
    contract.test_leading_dimensions_are_rows(NAME, "matrix", (2, 3), "torch")


def test_it_is_differentiated_mapped_and_compiled(added: ModuleType) -> None:
    contract.test_first_and_second_derivatives_are_right(NAME, "matrix", "torch")
    contract.test_vmap_equals_a_loop(NAME, "matrix", "torch")
    contract.test_compiles_to_one_graph(NAME, "matrix", "torch")


def test_its_module_and_objective_have_its_options(added: ModuleType) -> None:
    scores, target = some_scores(7, 6), some_target("binary", 7, 6)
    expected = added.squared_hinge_loss(scores, target, margin=2.0)
    assert torch.equal(added.SquaredHingeLoss(margin=2.0)(scores, target), expected)
    objective = build("squared-hinge", {"margin": 2.0}, in_features=4, num_labels=6)
    features = torch.randn(7, 4)
    assert torch.equal(
        objective.loss(features, target), added.squared_hinge_loss(objective(features), target, margin=2.0)
    )
