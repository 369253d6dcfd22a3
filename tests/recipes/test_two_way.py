"""The recipe two-way."""

from pathlib import Path

import pytest
import torch

from shortlist_recipes.cells import train_model
from shortlist_recipes.two_way import LOSSES, RECIPE, config, precisions_and_shares
from tests.recipes.smoke import SHARED, resolves, run_smoke


def test_smoke(tmp_path: Path) -> None:
    content = run_smoke("two-way", tmp_path)
    measured = [row for row in content["tables"][0]["rows"] if row["mAP@class"]["mean"] is not None]
    assert [row["loss"] for row in measured] == list(LOSSES)
    assert len(list(tmp_path.glob("*.svg"))) == 2


def test_every_published_figure_has_a_cell_at_paper_scale() -> None:
    assert resolves(RECIPE, "paper") == len(RECIPE.cells("paper", SHARED))
    run = {(cell.keys["data"], cell.keys.get("loss")) for cell in RECIPE.cells("paper", SHARED)}
    assert set(RECIPE.tables[0].published) <= run


def test_the_largest_share_is_that_of_the_loss_itself() -> None:
    """The gradient of the sample-wise loss on present labels, by autograd, against the formula of the supplement."""
    from shortlist.functional import two_way_loss

    options = {"name": "two-way", "positive_temperature": 3.0, "way": "sample"}
    trained = train_model(config("smoke", SHARED, "numbers", "two-way", options, 0))
    scores, target = trained.scores("test").double().requires_grad_(), trained.parts["test"].target
    two_way_loss(scores, target, positive_temperature=3.0, way="sample", reduction="sum").backward()
    several = (target == 1).sum(1) > 1
    assert scores.grad is not None
    pull = torch.where(target == 1, -scores.grad, 0.0)[several]
    expected = (pull.amax(1) / pull.sum(1)).mean()
    assert precisions_and_shares(trained)["largest share"] == pytest.approx(float(expected), rel=1e-5)


def test_cpu_scale_reads_all_its_data() -> None:
    if not SHARED.exists():
        pytest.skip("the shared data is not here")
    from shortlist_recipes.sources import parts_of

    assert resolves(RECIPE, "cpu") == 3 * (3 * 8 + 2 * 7)
    for name, labels, tested in (("voc2012", 20, 5823), ("corel5k", 374, 500), ("bibtex", 159, 2515)):
        parts = parts_of(config("cpu", SHARED, name, "rml", LOSSES["rml"], 0))
        assert (parts["train"].num_labels, len(parts["test"])) == (labels, tested)
        assert 0.1 < len(parts["validation"]) / len(parts["train"]) < 0.2
