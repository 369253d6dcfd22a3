"""The recipe partial-labels."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from shortlist import ShortlistError
from shortlist_recipes import partial_labels_search
from shortlist_recipes._partial_labels_choice import BEGINS_WITH, OPTIMIZERS, OWN_OPTIONS, Setting
from shortlist_recipes._partial_labels_page import COCO_TABLE_2, gains, group_gains_by_seed, overview
from shortlist_recipes.partial_labels import MAP, MISSING, OBJECTIVES, RECIPE, config, grid_of
from shortlist_recipes.results import Record, Results
from tests.recipes.smoke import SHARED, resolves, run_smoke


def test_smoke(tmp_path: Path) -> None:
    content = run_smoke("partial-labels", tmp_path)
    rows = [row for row in content["tables"][0]["rows"] if row["mAP"]["mean"] is not None]
    assert [row["objective"] for row in rows] == 2 * list(OBJECTIVES)
    assert any("imcl against logistic regression" in finding for finding in content["findings"])


def test_every_published_figure_has_a_cell_at_paper_scale() -> None:
    run = {(cell.keys["data"], cell.keys["missing"], cell.keys["objective"]) for cell in RECIPE.cells("paper", SHARED)}
    assert set(RECIPE.tables[0].published) <= run
    assert resolves(RECIPE, "paper") == len(run)


def test_both_readings_of_latent_noise_and_both_weights_of_side_labels_are_run() -> None:
    both = [OBJECTIVES[f"latent-noise {reading}"]["evaluate"] for reading in ("visual", "relevant")]
    assert both == ["visual", "relevant"]
    weights = [config("paper", SHARED, "cub", 0.9, name, 0).objective.options["side_weight"] for name in ("imcl a=10",)]
    assert weights == [10.0]


def test_cpu_scale_hides_the_same_training_labels_from_every_objective_and_none_of_the_others() -> None:
    if not SHARED.exists():
        pytest.skip("the shared data is not here")
    from shortlist_recipes.sources import parts_of

    assert {missing for data, missing, _ in grid_of("cpu") if data == "voc2012"} == set(MISSING)
    whole = parts_of(config("cpu", SHARED, "voc2012", 0.0, "binary", 1))
    hidden = {name: parts_of(config("cpu", SHARED, "voc2012", 0.9, name, 1)) for name in ("binary", "imcl")}
    assert torch.equal(hidden["binary"]["train"].target, hidden["imcl"]["train"].target)
    assert float((hidden["imcl"]["train"].target == -1).float().mean()) == pytest.approx(0.9, abs=0.01)
    for part in ("validation", "test"):
        assert torch.equal(hidden["imcl"][part].target, whole[part].target)


def test_gains_are_taken_seed_by_seed() -> None:
    records = [
        Record({"data": "d", "missing": 0.9, "objective": name, "seed": seed}, {"mAP": value}, 1.0)
        for name, values in (("binary", (0.5, 0.6)), ("imcl", (0.6, 0.55)))
        for seed, value in enumerate(values)
    ]
    assert gains(Results(records), "imcl") == pytest.approx([10.0, -5.0])


def test_the_overview_sets_every_gain_beside_both_published_tables() -> None:
    assert set(COCO_TABLE_2) <= set(OBJECTIVES)
    records = [
        Record({"data": "d", "missing": missing, "objective": name, "seed": 0}, {"mAP": value}, 1.0)
        for missing in (0.9, 0.4)
        for name, value in (("binary", 0.5), ("imcl", 0.5 + missing / 10), ("two-way", 0.49))
    ]
    _, table = overview(Results(records))
    assert table.header == ["objective", "d, 90 % missing", "published: CUB, 90 % missing", "published: MS-COCO"]
    assert table.rows == [["imcl", "+9.00", "+1.5", "+1.9"], ["two-way", "-1.00", "", ""]]


def test_the_gain_of_a_group_of_labels_counts_every_seed_once() -> None:
    records = [
        Record({"data": "d", "missing": missing, "objective": name, "seed": seed}, {"groups": groups}, 1.0)
        for missing, seed, name, groups in (
            (0.9, 0, "binary", [0.5, 0.5]), (0.9, 0, "imcl", [0.6, None]),
            (0.4, 0, "binary", [0.5, 0.5]), (0.4, 0, "imcl", [0.8, 0.6]),
            (0.9, 1, "binary", [0.5, 0.5]), (0.9, 1, "imcl", [0.5, 0.4]),
        )
    ]  # fmt: skip
    first, second = group_gains_by_seed(Results(records), "d")
    assert first == pytest.approx([20.0, 0.0])
    assert second == pytest.approx([10.0, -10.0])


def test_a_config_at_paper_scale_leaves_later_ones_as_they_are() -> None:
    before = config("cpu", SHARED, "bibtex", 0.6, "imcl", seed=0)
    config("paper", SHARED, "cub", 0.6, "imcl", seed=0)
    assert config("cpu", SHARED, "bibtex", 0.6, "imcl", seed=0) == before


def test_imcl_at_paper_scale_is_the_published_program() -> None:
    names = ("cub", "mscoco", "open-images")
    cub, coco, open_images = (config("paper", SHARED, name, 0.0, "imcl", 0) for name in names)
    assert {run.objective.options["dictionary"] for run in (cub, coco, open_images)} == {"encoded"}
    assert [run.backbone.name for run in (cub, coco, open_images)] == ["resnet101", "vgg16", "resnet101"]
    assert [run.objective.options["graph"] for run in (cub, coco, open_images)] == ["none", "vectors", "vectors"]
    assert cub.objective.options["per_label"] is None  # the whole of CUB is its dictionary
    assert open_images.objective.options["search"] == "approximate"
    assert coco.data.train.reader == "coco-words"
    optimizer = cub.optimizer
    assert (optimizer.name, optimizer.lr, optimizer.momentum, optimizer.decay, optimizer.eps) == (
        "rmsprop", 0.01, 0.9, 0.9, 1.0,
    )  # fmt: skip


TRIED = OPTIMIZERS["voc2012"]


@pytest.mark.parametrize(
    ("best", "chosen"),
    [
        (None, (TRIED[2], {"boost": 1.0})),
        (
            OWN_OPTIONS["curriculum"][2],
            (TRIED[2], {"boost": 1.0, **OWN_OPTIONS["curriculum"][2]}),
        ),
    ],
)
def test_the_search_tries_own_options_with_the_best_optimizer(
    best: dict[str, object] | None, chosen: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Validation results are made up: the third optimizer is best, and with it one of the options, or none."""
    tried: list[Setting] = []

    def trained(run: Setting) -> SimpleNamespace:
        tried.append(run)
        value = 0.5 * (run[0] == TRIED[2]) + 0.1 * (best is not None and best.items() <= run[1].items())
        own = run[1] != BEGINS_WITH["voc2012"]["curriculum"]
        record = {MAP: value - 0.2 * (own and value == 0.5)}
        return SimpleNamespace(history=SimpleNamespace(records=[{MAP: 0.0}, record]))

    monkeypatch.setattr(partial_labels_search, "config", lambda *args: args[-1])
    monkeypatch.setattr(partial_labels_search, "train_model", trained)
    value, found = partial_labels_search.best_setting("voc2012", 0.9, "curriculum")
    assert (value, found) == (pytest.approx(0.5 if best is None else 0.6), chosen)
    assert len(tried) == len(TRIED) + len(OWN_OPTIONS["curriculum"])


def test_the_search_goes_on_where_a_training_diverges(monkeypatch: pytest.MonkeyPatch) -> None:
    def trained(run: Setting) -> SimpleNamespace:
        if run[0] != TRIED[1]:
            raise ShortlistError("the loss became nan in epoch 2")
        return SimpleNamespace(history=SimpleNamespace(records=[{MAP: 0.5}]))

    monkeypatch.setattr(partial_labels_search, "config", lambda *args: args[-1])
    monkeypatch.setattr(partial_labels_search, "train_model", trained)
    assert partial_labels_search.best_setting("voc2012", 0.9, "lsep") == (0.5, (TRIED[1], {}))
