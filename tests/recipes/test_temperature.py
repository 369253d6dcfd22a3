"""The recipe temperature."""

from pathlib import Path

import pytest
import torch

from shortlist_recipes.cells import train_model
from shortlist_recipes.temperature import (
    RECIPE,
    TABLE_6,
    TABLES_7_AND_8,
    TEMPERATURES,
    first_gradients,
    objective,
    temperature_config,
)
from tests.recipes.smoke import SHARED, resolves, run_smoke


def test_smoke(tmp_path: Path) -> None:
    content = run_smoke("temperature", tmp_path)
    temperatures, margins = content["tables"]
    assert sum(row["train"]["mean"] is not None for row in temperatures["rows"]) == 3
    assert all(row["top-k"]["mean"] is not None for row in margins["rows"])


def test_without_margin_k_1_and_tau_1_is_cross_entropy() -> None:
    from shortlist.objectives import build

    options = objective(1, 1.0, 0.0)
    smooth = build(options.pop("name"), options, in_features=4, num_labels=6)
    scores, target = torch.randn(8, 6), torch.randint(6, (8,))
    expected = torch.nn.functional.cross_entropy(scores, target)
    torch.testing.assert_close(smooth.score_loss(scores, target), expected)


def test_the_hinge_has_two_derivatives_and_the_smooth_loss_all() -> None:
    shares = []
    for tau in (0.0, 1.0):
        config = temperature_config("smoke", SHARED, objective(5, tau, 1.0), 0)
        shares.append(first_gradients(train_model(config))["not zero"])
    assert shares == [pytest.approx(2 / 100), 1.0]


def test_every_published_figure_has_a_cell_at_paper_scale() -> None:
    assert resolves(RECIPE, "paper") == len(TEMPERATURES) + 4
    keys = [cell.keys for cell in RECIPE.cells("paper", SHARED)]
    assert set(TABLE_6) == {(found["tau"],) for found in keys if "tau" in found}
    assert set(TABLES_7_AND_8) == {(found["k"], found["margin"]) for found in keys if "margin" in found}


def test_cpu_scale_resolves() -> None:
    assert resolves(RECIPE, "cpu") == 3 * (len(TEMPERATURES) + 4)
