"""The published protocols: that configs of paper scale do what their pages say they do."""

from typing import Any

import pytest
import torch

from shortlist.cli.recipe import RECIPES, summaries
from shortlist.models import build_backbone
from shortlist.runs.config import RunConfig
from shortlist_recipes.cells import Cell
from shortlist_recipes.page import protocol_text
from shortlist_recipes.protocol import Field, Protocol
from tests.recipes.smoke import SHARED, configs_of

FIELDS = [
    pytest.param(name, protocol, field, id=f"{name}: {protocol.title}: {field.name}")
    for name in summaries()
    for protocol in RECIPES.find(name).protocols
    for field in protocol.fields
]


def cells_of(name: str, protocol: Protocol, field: Field) -> list[Cell]:
    wanted = {**protocol.where, **field.where}.items()
    grid = RECIPES.find(name).cells("paper", SHARED)
    return [cell for cell in grid if all(cell.keys.get(key) == value for key, value in wanted)]


def contents(cell: Cell) -> Any:
    """What decides a cell: the config of its training, or else the options of its function."""
    configs = configs_of(cell)
    return configs[0].model_dump() if configs else cell.work()["options"]


def at(found: Any, path: str) -> Any:
    """The value at a path with dots; numbers are places in a list."""
    for part in path.split("."):
        found = found[int(part)] if part.isdigit() else found[part]
    return tuple(found) if isinstance(found, list) else found


def parameters(config: RunConfig) -> int:
    with torch.device("meta"):
        backbone = build_backbone(config.backbone.name, in_shape=(3, 32, 32), **config.backbone.options)
    return sum(p.numel() for p in backbone.parameters()) + 100 * (int(backbone.out_features) + 1)


@pytest.mark.parametrize("name", summaries())
def test_every_recipe_states_its_protocol_and_where_it_is_published(name: str) -> None:
    protocols = RECIPES.find(name).protocols
    assert protocols
    assert all(protocol.source for protocol in protocols)
    assert all(field.published for protocol in protocols for field in protocol.fields)


@pytest.mark.parametrize(("name", "protocol", "field"), FIELDS)
def test_configs_of_paper_scale_are_as_published_or_say_how_they_differ(
    name: str, protocol: Protocol, field: Field
) -> None:
    assert set(field.ours) <= set(RECIPES.find(name).scales)
    if "paper" not in field.ours:
        assert field.config, "what is said to be as published stands in a config"
    cells = cells_of(name, protocol, field)
    assert cells
    for path, value in field.config.items():
        if path == "seeds":
            assert len({cell.keys["seed"] for cell in cells}) == value
        elif path == "parameters":
            assert parameters(configs_of(cells[0])[0]) == value
        else:
            assert {at(contents(cell), path) for cell in cells} == {value}


def test_a_page_has_no_protocol_of_an_experiment_that_its_scale_does_not_run() -> None:
    recipe = RECIPES.find("average-k")
    assert "**Pl@ntNet-300K**" not in protocol_text(recipe, "pixels")
    assert "**Pl@ntNet-300K**" in protocol_text(recipe, "cpu")
