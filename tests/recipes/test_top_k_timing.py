"""The recipe top-k-timing."""

from pathlib import Path

import pytest
import torch

from shortlist_recipes.top_k_timing import (
    OURS,
    PUBLISHED,
    RECIPE,
    TABLE_5,
    TABLES_3_AND_4,
    loss_of,
    stability_and_error,
)
from tests.recipes.smoke import SHARED, run_smoke


def test_smoke(tmp_path: Path) -> None:
    content = run_smoke("top-k-timing", tmp_path)
    sizes, _, stability = content["tables"]
    timed = {row["algorithm"]: row for row in sizes["rows"] if row["forward"]["mean"] is not None}
    assert {"cross-entropy", *OURS, *PUBLISHED} <= set(timed)
    assert all(row["forward"]["mean"] > 0 and row["ratio"]["mean"] > 0 for row in timed.values())
    assert {row["algorithm"] for row in stability["rows"]} == {"SA", "DC (AD)", "smooth-topk"}


@pytest.mark.parametrize("algorithm", [*PUBLISHED[:4], "difftopk"])
def test_rivals_compute_the_same_loss(algorithm: str) -> None:
    if algorithm == "difftopk":
        pytest.importorskip("difftopk")
    scores, target = torch.randn(16, 30), torch.randint(30, (16,))
    torch.testing.assert_close(
        loss_of(algorithm, 30, 5)(scores, target), loss_of("smooth-topk", 30, 5)(scores, target), atol=1e-4, rtol=1e-4
    )


def test_bracketing_computes_the_lml_loss() -> None:
    scores, target = torch.randn(16, 30), torch.randint(30, (16,))
    torch.testing.assert_close(
        loss_of("LML bracketing", 30, 5)(scores, target), loss_of("lml", 30, 5)(scores, target), atol=1e-4, rtol=1e-4
    )


def test_summation_overflows_where_the_paper_says_and_ours_does_not() -> None:
    options = {"double": False, "scores": None}
    assert stability_and_error("SA", tau=0.01, **options)["forward"] == 0.0  # type: ignore[arg-type]
    assert stability_and_error("SA", tau=1.0, **options)["forward"] == 1.0  # type: ignore[arg-type]
    ours = stability_and_error("smooth-topk", tau=0.0001, **options)  # type: ignore[arg-type]
    assert (ours["forward"], ours["backward"]) == (1.0, 1.0)
    assert ours["error"] < 1e-6


def test_every_published_figure_has_a_cell_at_paper_scale() -> None:
    keys = [cell.keys for cell in RECIPE.cells("paper", SHARED)]
    assert set(TABLES_3_AND_4) <= {(found["n"], found["algorithm"]) for found in keys if found["part"] == "n"}
    stable = {(k["algorithm"], k["precision"], k["tau"]) for k in keys if k["part"] == "stability"}
    assert set(TABLE_5) <= stable
