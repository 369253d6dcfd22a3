"""The scene-graphs recipe at smoke scale, its configs at the others, and what it would say."""

from pathlib import Path

import pytest

from shortlist_recipes.results import Record, Results
from shortlist_recipes.scene_graphs import (
    AT_CPU_SCALE,
    FREQUENCY,
    KINDS,
    KS,
    METHODS,
    PARTS,
    RECIPE,
    VARIANTS,
    findings,
    overview,
)
from tests.recipes.smoke import resolves, run_smoke


def test_it_runs_at_smoke_scale_with_every_method_in_every_table(tmp_path: Path) -> None:
    content = run_smoke("scene-graphs", tmp_path)
    for table in content["tables"]:
        own = {FREQUENCY, *METHODS, *VARIANTS} - {"Ent_tr-50", "Ent_tr-100"}  # these at the scale of the paper
        assert {row["method"] for row in table["rows"]} >= own
    assert len(list(tmp_path.glob("*.svg"))) == 2


def test_the_configs_of_the_other_scales_resolve() -> None:
    assert resolves(RECIPE, "cpu") == 1 + 3 * len(AT_CPU_SCALE)
    assert resolves(RECIPE, "paper") == 1 + 3 * len(METHODS)


def made_up(train: float, test: float) -> Results:
    """Every recall is 0.5, and that of all methods but vanilla more by these amounts."""
    records = []
    for method in (FREQUENCY, *METHODS, *VARIANTS):
        more = {"train": train, "test": test, "validation": 0.0}
        gain = {part: 0.0 if method.startswith(("vanilla", FREQUENCY)) else more[part] for part in PARTS}
        numbers = {f"{part} {kind} R@{k}": 0.5 + gain[part] for part in PARTS for kind in KINDS for k in KS}
        records += [Record({"method": method, "seed": seed}, numbers, 1.0) for seed in range(3)]
    return Results(records)


@pytest.mark.parametrize(
    ("train", "test", "said"),
    [
        (0.07, 0.005, ["training recall over vanilla is there for LML-20", "changes little, as published, for LML-20"]),
        (0.02, -0.01, ["is less, or not there at every K, for LML-20", "changes little, as published, for LML-20"]),
        (
            -0.01,
            -0.05,
            ["is not there for LML-20", "more than 2 points, unlike what is published, for LML-20 (-5.0 ± 0.0)"],
        ),
    ],
)
def test_the_findings_say_whether_the_claim_holds(train: float, test: float, said: list[str]) -> None:
    first, second, *_ = findings(made_up(train, test))
    assert said[0] in first
    assert said[1] in second


def test_the_findings_set_the_unconstrained_test_recall_beside_what_is_published() -> None:
    """In the paper's table 2 it falls, that of truncated entropy by 12.6 points: it does not change little."""
    said = findings(made_up(0.0, -0.05))
    for method, published in (("LML-20", "-2.4, -1.7, -0.6"), ("Ent_tr-20", "-5.8, -10.4, -12.6")):
        expected = (
            f"The unconstrained test recall of {method} against vanilla: below everywhere (published: {published})."
        )
        assert expected in said


def test_a_gain_within_the_interval_is_not_decided() -> None:
    records = []
    for record in made_up(0.0, 0.0).records:
        more = 0.05 * record.keys["seed"] if record.keys["method"] == "LML-20" else 0.0  # 0, 5 and 10 points
        records.append(Record(record.keys, {name: value + more for name, value in record.numbers.items()}, 1.0))
    said = findings(Results(records))
    assert any("not decided (5 points lie within" in sentence and "for LML-20." in sentence for sentence in said)
    change = "The constrained test recall may change by 2 points or more, which is not decided (they lie within"
    assert f"{change} the 95 % interval over seeds), for LML-20 (+5.0 ± 12.4); in brackets" in " ".join(said)


def test_a_method_with_one_seed_is_said_to_have_one() -> None:
    few = Results([record for record in made_up(0.0, 0.05).records if record.keys["seed"] == 0])
    raised, changed = findings(few)[:2]
    assert "LML-20 (one seed); LML-50 (one seed)" in raised
    assert "LML-20 (+5.0, one seed)" in changed


def test_the_overview_has_the_differences_from_vanilla() -> None:
    (table,) = overview(made_up(0.07, -0.01))
    ours, published = ([*3 * ["+7.0 ± 0.0"], *3 * ["-1.0 ± 0.0"]], {"constrained": ["+0.0", "+0.8", "+0.8"]})
    published["unconstrained"] = ["-2.4", "-1.7", "-0.6"]
    assert [list(row) for row in table.rows[:4]] == [
        row
        for kind in ("constrained", "unconstrained")
        for row in (["LML-20", kind, *ours], ["LML-20, published", kind, *3 * [""], *published[kind]])
    ]


def test_a_method_with_one_seed_is_compared_with_vanilla_of_that_seed() -> None:
    records = []
    for record in made_up(0.02, 0.0).records:
        rising = {name: value + record.keys["seed"] / 10 for name, value in record.numbers.items()}
        if record.keys["seed"] == 0 or record.keys["method"] in ("vanilla", "LML-20"):
            records.append(Record(record.keys, rising, 1.0))
    (table,) = overview(Results(records))
    shown = {row[0]: row[2] for row in table.rows}
    assert (shown["LML-20"], shown["LML-50"]) == ("+2.0 ± 0.0", "+2.0")
