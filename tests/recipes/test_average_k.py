"""The recipe average-k."""

from pathlib import Path

import numpy as np
import pytest

from shortlist.objectives import OBJECTIVES
from shortlist.sets import AverageK
from shortlist_recipes._average_k_page import BALANCED, LONG_TAILED, ONE_RATE, TUNED, findings, overview
from shortlist_recipes._average_k_sets import GROUPS, set_accuracies, weights_of_test
from shortlist_recipes.average_k import CHOSEN, PAPER, RECIPE, best_on_validation, config, with_alpha
from shortlist_recipes.cells import train_model
from shortlist_recipes.results import Record, Results
from tests.recipes.smoke import SHARED, resolves, run_smoke


def test_smoke(tmp_path: Path) -> None:
    content = run_smoke("average-k", tmp_path)
    measured = [row for row in content["tables"][0]["rows"] if row["accuracy"]["mean"] is not None]
    ways = [(row["way"], row["k"], row["objective"]) for row in measured]
    assert ways == [(way, 5, o) for way in (ONE_RATE, TUNED) for o in PAPER[BALANCED]]
    assert len(list(tmp_path.glob("*.svg"))) == 2


def test_every_published_figure_has_a_cell_at_paper_scale() -> None:
    resolves(RECIPE, "paper")
    run = {
        (cell.keys["data"], cell.keys["way"], cell.keys["k"], cell.keys["objective"])
        for cell in RECIPE.cells("paper", SHARED)
        if cell.keys["part"] == "losses"
    }
    for which, table in zip((BALANCED, LONG_TAILED), RECIPE.tables, strict=False):
        assert {(which, *keys) for keys in table.published} == {keys for keys in run if keys[0] == which}


def test_the_threshold_comes_from_validation_data() -> None:
    trained = train_model(config("smoke", SHARED, BALANCED, ONE_RATE, "average-k", 2, 0))
    numbers = set_accuracies(trained)
    threshold = AverageK(2, link="softmax").fit(trained.scores("validation")).threshold
    chances, target = trained.scores("test").softmax(1), trained.parts["test"].target
    inside = (chances >= threshold)[range(len(target)), target]
    assert numbers["accuracy"] == pytest.approx(float(inside.float().mean()))
    assert numbers["mean size"] == pytest.approx(float((chances >= threshold).sum(1).float().mean()))
    assert sum(numbers["sizes"]) == pytest.approx(1)


def test_validation_data_chooses_alpha() -> None:
    tried = [with_alpha(config("smoke", SHARED, BALANCED, ONE_RATE, "average-k", 5, 0), alpha) for alpha in (0.1, 3.0)]
    each = [set_accuracies(train_model(one)) for one in tried]
    best = max(range(2), key=lambda place: each[place]["validation"])
    found = best_on_validation(tried)
    assert (found["alpha"], found["accuracy"]) == ((0.1, 3.0)[best], each[best]["accuracy"])


def test_cpu_and_pixels_resolve() -> None:
    assert resolves(RECIPE, "cpu") == 3 * (10 * (5 + 4) + 7 + 8)  # 4 alphas are tried in each of 10 settings
    assert resolves(RECIPE, "pixels") == 4


def test_long_tailed_accuracy_is_the_mean_over_classes_by_training_frequency() -> None:
    trained = train_model(config("smoke", SHARED, LONG_TAILED, TUNED, "cross-entropy", 5, 0))
    target = trained.parts["test"].target.numpy()
    counts = trained.parts["train"].label_counts().numpy()
    weight = weights_of_test(trained)
    assert weight.sum() == pytest.approx(1)
    tested = np.unique(target)
    share = [weight[target == label].sum() for label in tested]
    np.testing.assert_allclose(share, counts[tested] / counts[tested].sum())


def test_cpu_scale_has_all_groups_of_shots() -> None:
    if not SHARED.exists():
        pytest.skip("the shared data is not here")
    from shortlist.metrics.functional import shot_group_of
    from shortlist_recipes.sources import parts_of

    parts = parts_of(config("cpu", SHARED, LONG_TAILED, ONE_RATE, "average-k", 5, 0))
    groups = shot_group_of(parts["train"].label_counts()).bincount(minlength=len(GROUPS))
    assert groups.min() >= 30
    assert len(parts["test"]) == 10_000
    assert parts["validation"].label_counts()[0] > 20 * parts["validation"].label_counts()[99]


@pytest.mark.parametrize("name", CHOSEN[BALANCED])
def test_every_objective_compares_rows_by_softmax_as_the_papers_algorithm_does(name: str) -> None:
    assert OBJECTIVES.find(name).link == "softmax"


def test_average_k_is_compared_with_every_loss_seed_by_seed() -> None:
    keys = {"part": "losses", "data": LONG_TAILED, "way": ONE_RATE, "k": 5}
    sizes = {"cross-entropy": [0.0, 0.4], "average-k": [0.0, 0.3], "role": [0.0, 0.2]}
    alphas = {"average-k": [{"alpha": 0.1}, {"alpha": 0.1}, {"alpha": 1.0}]}
    alphas |= {objective: 3 * [{}] for objective in ("cross-entropy", "role")}
    records = [
        Record(
            {**keys, "objective": objective, "seed": seed},
            {"accuracy": accuracy + 0.1 * seed, "few": few, "sizes": sizes[objective], **alphas[objective][seed]},
            1.0,
        )
        for seed in (0, 1, 2)
        for objective, accuracy, few in (("cross-entropy", 0.5, 0.2), ("average-k", 0.6, 0.1), ("role", 0.7, 0.1))
    ]
    first, second = overview(Results(records))
    where = [LONG_TAILED, ONE_RATE, "5"]
    assert [list(row) for row in first.rows] == [[*where, "role, 80.00 %", "+10.00 ± 0.00", "-10.00 ± 0.00"]]
    assert list(second.header) == ["data", "way", "K", "role"]
    assert [list(row) for row in second.rows] == [[*where, "-10.00 ± 0.00"]]
    said = findings(Results(records))
    assert any("40.0 % of the sets of cross-entropy and 30.0 % of those of average-k have one label" in s for s in said)
    assert any("-10.00 ± 0.00 points (fewer in the paper)" in sentence for sentence in said)
    assert any("nothing was tried, in some runs: 0.1 in 2 of 3." in sentence for sentence in said)
