"""The recipe small-data."""

from pathlib import Path

import pytest

from shortlist_recipes.small_data import OBJECTIVES, PUBLISHED, RECIPE, SHARES, config
from tests.recipes.smoke import SHARED, resolves, run_smoke


def test_smoke(tmp_path: Path) -> None:
    content = run_smoke("small-data", tmp_path)
    shares, crops = content["tables"]
    assert sum(row["top-5"]["seeds"] for row in shares["rows"]) == 4
    assert [row["objective"] for row in crops["rows"]] == list(OBJECTIVES)
    assert all(row[name]["mean"] is not None for row in crops["rows"] for name in ("one crop", "softmax", "subsets"))


def test_every_published_figure_has_a_cell_at_paper_scale() -> None:
    assert resolves(RECIPE, "paper") == 2 * len(SHARES)
    run = {(cell.keys["share"], cell.keys["objective"]) for cell in RECIPE.cells("paper", SHARED)}
    assert set(PUBLISHED) == run


def test_cpu_scale_trains_on_the_shares_it_names() -> None:
    if not SHARED.exists():
        pytest.skip("the shared data is not here")
    from shortlist_recipes.sources import parts_of

    assert resolves(RECIPE, "cpu") == (len(SHARES) + 2) * 2 * 3
    sizes = [len(parts_of(config("cpu", SHARED, "features", share, "smooth-topk", 0))["train"]) for share in SHARES]
    assert sizes == [2250, 4500, 11250, 22500, 45000]
