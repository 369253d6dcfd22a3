"""The recipe noisy-cifar100."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from shortlist_recipes.cells import train_model
from shortlist_recipes.noisy_cifar100 import (
    HUMAN,
    NOISE,
    OBJECTIVES,
    RECIPE,
    accuracies_and_stuck_labels,
    config,
)
from tests.recipes.smoke import SHARED, resolves, run_smoke


def test_smoke(tmp_path: Path) -> None:
    content = run_smoke("noisy-cifar100", tmp_path)
    rows = [row for row in content["tables"][0]["rows"] if row["top-5"]["mean"] is not None]
    assert [row["objective"] for row in rows] == 2 * list(OBJECTIVES)
    assert all(row["top-5"]["seeds"] == 2 for row in rows)


def test_every_published_figure_has_a_cell_at_paper_scale() -> None:
    assert resolves(RECIPE, "paper") == len(NOISE) * len(OBJECTIVES) * 3
    run = {(cell.keys["noise"], cell.keys["objective"]) for cell in RECIPE.cells("paper", SHARED)}
    assert set(RECIPE.tables[0].published) <= run


def test_cpu_scale_trains_on_noise_and_tests_on_clean_labels() -> None:
    if not SHARED.exists():
        pytest.skip("the shared data is not here")
    from shortlist_recipes.sources import parts_of

    assert resolves(RECIPE, "cpu") == (len(NOISE) + 1) * len(OBJECTIVES) * 3
    clean, noisy, human = (parts_of(config("cpu", SHARED, noise, "lml", 0)) for noise in (0.0, 1.0, HUMAN))
    for parts in (clean, noisy, human):
        assert [len(parts[part]) for part in ("train", "validation", "test")] == [20000, 5000, 10000]
        assert parts["test"].target.equal(clean["test"].target)
    for part in ("train", "validation"):
        assert float((noisy[part].target != clean[part].target).float().mean()) == pytest.approx(0.8, abs=0.02)


def test_a_label_that_is_among_the_first_everywhere_is_counted() -> None:
    trained = train_model(config("smoke", SHARED, 0.0, "cross-entropy", 0))
    scores = torch.rand(200, 100, generator=torch.Generator().manual_seed(0))
    assert accuracies_and_stuck_labels(replace(trained, _scores={"test": scores}))["stuck"] == 0.0
    scores[:, 7] = 2.0
    assert accuracies_and_stuck_labels(replace(trained, _scores={"test": scores}))["stuck"] == 1.0
