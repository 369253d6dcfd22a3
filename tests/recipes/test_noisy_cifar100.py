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
    PROGRAM,
    RECIPE,
    TEXT,
    VARIED,
    accuracies_and_memory,
    accuracies_and_stuck_labels,
    config,
    rank,
    runs_of,
)
from tests.recipes.smoke import SHARED, resolves, run_smoke


def test_smoke(tmp_path: Path) -> None:
    content = run_smoke("noisy-cifar100", tmp_path)
    for table, levels in zip(content["tables"], (2, 1), strict=False):  # clean and noisy; noisy
        rows = [row for row in table["rows"] if row["top-5"]["mean"] is not None]
        assert [row["objective"] for row in rows] == levels * list(OBJECTIVES)
        assert all(row["top-5"]["seeds"] == 2 for row in rows)


def test_every_published_figure_has_a_cell_at_paper_scale() -> None:
    assert resolves(RECIPE, "paper") == (2 * len(NOISE) - 1) * (3 * 3 + 2 * 4)
    for form, table in zip((PROGRAM, TEXT), RECIPE.tables, strict=False):
        run = {(noise, objective) for _, used, noise, objective in runs_of("paper") if used == form}
        assert set(table.published) <= run


def test_pixels_begin_with_noise_and_two_losses() -> None:
    assert resolves(RECIPE, "pixels") == 12
    first = sorted((cell.keys for cell in RECIPE.cells("pixels", SHARED)), key=rank)[:8]
    assert [keys["noise"] for keys in first] == 4 * [0.8] + 4 * [0.0]
    assert {keys["objective"] for keys in first} == {"cross-entropy", "smooth-topk"}


def test_cpu_scale_trains_on_noise_and_tests_on_clean_labels() -> None:
    if not SHARED.exists():
        pytest.skip("the shared data is not here")
    from shortlist_recipes.sources import parts_of

    assert resolves(RECIPE, "cpu") == 2 * len(NOISE) * (3 * 3 + 2 * 4) + 2 * 7 * 4
    settings = ((TEXT, 0.0), (TEXT, 1.0), (TEXT, HUMAN), (PROGRAM, 1.0))
    clean, noisy, human, blocks = (parts_of(config("cpu", SHARED, *setting, "lml", 0)) for setting in settings)
    for parts in (clean, noisy, human, blocks):
        assert [len(parts[part]) for part in ("train", "validation", "test")] == [20000, 5000, 10000]
        assert parts["test"].target.equal(clean["test"].target)
    groups = clean["train"].groups
    assert groups is not None
    for part in ("train", "validation"):
        assert float((noisy[part].target != clean[part].target).float().mean()) == pytest.approx(0.8, abs=0.02)
        assert torch.equal(groups[noisy[part].target], groups[clean[part].target])
    assert torch.equal(blocks["train"].target // 5, clean["train"].target // 5)
    assert torch.equal(blocks["validation"].target, clean["validation"].target)


def test_what_was_learned_by_heart_is_the_share_of_noisy_training_labels() -> None:
    trained = train_model(config("smoke", SHARED, PROGRAM, 0.8, "cross-entropy", 0))
    target = trained.parts["train"].target
    scores = torch.nn.functional.one_hot(target, 100).float()
    numbers = accuracies_and_memory(replace(trained, _scores={**trained._scores, "train": scores}))
    assert numbers["learned"] == 1.0
    assert numbers["last validation"] <= numbers["best validation"]


def test_a_label_that_is_among_the_first_everywhere_is_counted() -> None:
    trained = train_model(config("smoke", SHARED, PROGRAM, 0.0, "cross-entropy", 0))
    scores = torch.rand(200, 100, generator=torch.Generator().manual_seed(0))
    assert accuracies_and_stuck_labels(replace(trained, _scores={"test": scores}))["stuck"] == 0.0
    scores[:, 7] = 2.0
    assert accuracies_and_stuck_labels(replace(trained, _scores={"test": scores}))["stuck"] == 1.0


@pytest.mark.parametrize("form", [PROGRAM, TEXT])
def test_what_may_make_truncated_entropy_collapse_is_varied_one_thing_at_a_time(form: str) -> None:
    grid = [cell for cell in RECIPE.cells("cpu", SHARED) if cell.keys["part"] == "collapse"]
    here = [cell for cell in grid if cell.keys["form"] == form and cell.keys["seed"] == 0]
    first, *others = (cell.work()["config"].model_dump() for cell in here)
    assert len(others) == len(VARIED) - 1
    assert [sum(first[name] != other[name] for name in first) for other in others] == [1] * len(others)
