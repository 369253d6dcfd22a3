"""Which weights are decayed, and what each optimizer takes."""

from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from shortlist.models import build_backbone
from shortlist.objectives import build
from shortlist.training.optimizers import make_optimizer, parameter_groups
from shortlist.training.settings import OptimizerSettings

NAMES = ("sgd", "sgd-nesterov", "adam", "adamw", "adamw-rows", "rmsprop")


def decayed_names(backbone: nn.Module, objective: nn.Module) -> set[str]:
    settings = OptimizerSettings(weight_decay=0.1)
    groups = parameter_groups(backbone, objective, settings)
    decayed = {id(weight) for part in groups if part["weight_decay"] for weight in part["params"]}
    everything = nn.ModuleDict({"backbone": backbone, "objective": objective})
    assert sum(len(part["params"]) for part in groups) == len(list(everything.parameters()))
    return {name for name, weight in everything.named_parameters() if id(weight) in decayed}


def test_biases_norm_layers_and_the_label_graph_are_not_decayed() -> None:
    backbone = build_backbone("mlp", in_shape=(6,), hidden=(8,), batch_norm=True)
    target = torch.tensor([[1, 1, 0], [0, 1, 1], [1, 0, 1]])
    objective = build("imcl", in_features=8, num_labels=3, train_target=target)
    weights = {name for name, weight in backbone.named_parameters() if weight.ndim == 2}
    assert decayed_names(backbone, objective) == {f"backbone.{name}" for name in weights} | {"objective.head.weight"}


def test_tables_of_which_rows_are_looked_up_are_not_decayed() -> None:
    backbone = build_backbone("relations", in_shape=(4, 3, 0, 0))
    decayed = decayed_names(backbone, build("scene-softmax", in_features=256, num_labels=3))
    assert not decayed & {"backbone.embedding.weight", "backbone.frequency"}
    assert {"backbone.ends.weight", "backbone.context.lstm.weight_ih_l0", "objective.head.weight"} <= decayed


@pytest.mark.parametrize("name", NAMES)
def test_without_a_gradient_only_the_decayed_weights_move(name: str) -> None:
    body, head = nn.Linear(3, 2), nn.LayerNorm(2)
    before = [weight.detach().clone() for weight in (*body.parameters(), *head.parameters())]
    optimizer = make_optimizer(body, head, OptimizerSettings(name=name, lr=0.1, weight_decay=0.5))
    for weight in (*body.parameters(), *head.parameters()):
        weight.grad = torch.zeros_like(weight)
    optimizer.step()
    after = [weight.detach() for weight in (*body.parameters(), *head.parameters())]
    assert bool(((after[0] - before[0]) * before[0] < 0).all())
    assert all(torch.equal(new, old) for new, old in zip(after[1:], before[1:], strict=True))


def test_rowwise_steps_follow_the_gradient_within_a_row_and_are_as_long_in_all_rows() -> None:
    head, nothing = nn.Linear(2, 2, bias=False), nn.Module()
    optimizer = make_optimizer(nothing, head, OptimizerSettings(name="adamw-rows", lr=0.1))
    before = head.weight.detach().clone()
    head.weight.grad = torch.tensor([[3.0, 4.0], [3e-3, -4e-3]])
    optimizer.step()
    step = (before - head.weight.detach()) / 0.1
    torch.testing.assert_close(step, torch.tensor([[3.0, 4.0], [3.0, -4.0]]) / 12.5**0.5, rtol=1e-4, atol=1e-4)


def test_adamw_draws_weights_to_zero_by_rate_times_decay() -> None:
    body, head = nn.Linear(3, 2), nn.Linear(2, 2)
    before = body.weight.detach().clone()
    optimizer = make_optimizer(body, head, OptimizerSettings(name="adamw", lr=0.1, weight_decay=0.5))
    for weight in (*body.parameters(), *head.parameters()):
        weight.grad = torch.zeros_like(weight)
    optimizer.step()
    torch.testing.assert_close(body.weight.detach(), 0.95 * before)


@pytest.mark.parametrize(("name", "rate"), [("sgd", 0.1), ("sgd-nesterov", 0.1), *((x, 1e-3) for x in NAMES[2:])])
def test_every_optimizer_has_its_own_rate_which_the_settings_show(name: str, rate: float) -> None:
    for said in ({"name": name}, {"name": name, "lr": None}):
        assert OptimizerSettings.model_validate(said).model_dump()["lr"] == rate


@pytest.mark.parametrize("name", NAMES)
def test_settings_written_out_are_read_back(name: str) -> None:
    settings = OptimizerSettings(name=name)
    assert OptimizerSettings.model_validate(settings.model_dump(mode="json")) == settings


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"name": "adamw", "momentum": 0.9}, "momentum belongs to sgd and sgd-nesterov and rmsprop, not to adamw"),
        ({"betas": (0.9, 0.99)}, "betas belongs to adam and adamw and adamw-rows, not to sgd-nesterov"),
        ({"name": "sgd-nesterov", "momentum": 0.0}, "sgd-nesterov needs a momentum above 0"),
        ({"name": "lion"}, "Input should be 'sgd'"),
    ],
)
def test_options_of_another_optimizer_are_refused_by_name(said: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        OptimizerSettings.model_validate(said)


def test_rmsprop_takes_its_decay_and_epsilon():
    settings = OptimizerSettings(name="rmsprop", decay=0.9, momentum=0.9, eps=1.0)
    (group,) = make_optimizer(nn.Linear(3, 2, bias=False), nn.Identity(), settings).param_groups
    assert (group["alpha"], group["momentum"], group["eps"]) == (0.9, 0.9, 1.0)
    with pytest.raises(ValueError, match="eps belongs to rmsprop, not to adam"):
        OptimizerSettings(name="adam", eps=1.0)
