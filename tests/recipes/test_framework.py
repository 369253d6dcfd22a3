"""The frame of recipes: running, resuming, tables, pages, messages."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shortlist.cli.recipe import RECIPES, summaries
from shortlist.metrics.seed_interval import half_width
from shortlist.runs.config import RunConfig
from shortlist.runs.run import Run
from shortlist_recipes.cells import Cell, FunctionCell, TrainCell, train_model
from shortlist_recipes.layout import Texts
from shortlist_recipes.measures import top_accuracies
from shortlist_recipes.page import write_page
from shortlist_recipes.recipe import Recipe
from shortlist_recipes.results import Record, Results, ResultsFolder
from shortlist_recipes.run import names_of, run_recipe
from shortlist_recipes.tables import Table, Value, rows_of
from tests.cli.command import run_here

VALUE = Value("top-5", "top-5, %")
called: list[float] = []


def recorded(x: float) -> dict[str, Any]:
    called.append(x)
    return {"top-5": x / 10, "curve": [x, float("nan")]}


def stops(x: float) -> dict[str, Any]:
    raise KeyboardInterrupt


def grid(*xs: float, broken: float | None = None) -> Callable[[Any, Any], list[Cell]]:
    def cells(scale: Any, data: Any) -> list[Cell]:
        return [FunctionCell({"x": x}, stops if x == broken else recorded, {"x": x}) for x in xs]

    return cells


def made(cells: Callable[[Any, Any], list[Cell]], **more: Any) -> Recipe:
    table = Table("A table", "table 1", ("x",), (VALUE,), {(1,): {"top-5": 12.5}})
    return Recipe(
        "made", "Made", "A paper.", "A claim.", cells, (table,), lambda r: [f"{len(r.records)} cells."], **more
    )


def run(recipe: Recipe, folder: Path, said: list[str] | None = None) -> dict[str, Any]:
    lines = [] if said is None else said
    run_recipe(recipe, "smoke", folder, Path("nowhere"), lines.append)
    content: dict[str, Any] = json.loads((folder / "table.json").read_text())
    return content


@pytest.fixture(autouse=True)
def nothing_called() -> None:
    called.clear()


# ---- running and resuming


def test_cells_run_in_order_and_say_how_it_goes(tmp_path: Path) -> None:
    said: list[str] = []
    run(made(grid(2, 1)), tmp_path, said)
    assert called == [2, 1]
    assert [line.split(":")[0] for line in said] == ["[1/2] x=2", "[2/2] x=1"]
    assert all(line.endswith("left)") for line in said)


def test_what_matters_most_is_run_first_and_shown_in_its_place(tmp_path: Path) -> None:
    content = run(made(grid(1, 2, 3), rank=lambda keys: keys["x"] != 2), tmp_path)
    assert called == [2, 1, 3]
    assert [row["x"] for row in content["tables"][0]["rows"]] == [1, 2, 3]


def test_an_interrupted_recipe_goes_on_after_the_last_finished_cell(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(made(grid(1, 2, 3, broken=2)), tmp_path)
    assert called == [1]
    said: list[str] = []
    run(made(grid(1, 2, 3)), tmp_path, said)
    assert called == [1, 2, 3]
    assert said[0] == "1 of 3 cells are finished already"


def test_an_interrupted_training_grid_ends_with_the_same_numbers(tmp_path: Path) -> None:
    def training(scale: Any, data: Any) -> list[Cell]:
        return [TrainCell({"seed": seed}, small(seed), top_accuracies) for seed in range(3)]

    def interrupted(scale: Any, data: Any) -> list[Cell]:
        return [*training(scale, data)[:1], FunctionCell({"seed": 1}, stops, {"x": 1})]

    with pytest.raises(KeyboardInterrupt):
        run(made(interrupted), tmp_path / "resumed")
    run(made(training), tmp_path / "resumed")
    run(made(training), tmp_path / "whole")
    assert numbers(tmp_path / "resumed") == numbers(tmp_path / "whole")
    assert len(numbers(tmp_path / "whole")) == 3


def numbers(folder: Path) -> list[Any]:
    found = [json.loads(path.read_text()) for path in (folder / "cells").iterdir()]
    return [content["numbers"] for content in sorted(found, key=lambda content: str(content["keys"]))]


def small(seed: int = 0, epochs: int = 2) -> RunConfig:
    train = {"reader": "ambiguous-numbers", "size": 300}
    return RunConfig.model_validate({"data": {"train": train, "test": 50}, "epochs": epochs, "seed": seed})


def test_a_finished_recipe_runs_nothing_again(tmp_path: Path) -> None:
    first = run(made(grid(1, 2)), tmp_path)
    assert run(made(grid(1, 2)), tmp_path) == first
    assert called == [1, 2]


def test_a_changed_option_is_run_again_and_the_others_are_not(tmp_path: Path) -> None:
    def changed(scale: Any, data: Any) -> list[Cell]:
        return [FunctionCell({"x": 1}, recorded, {"x": 5}), *grid(2)(scale, data)]

    run(made(grid(1, 2)), tmp_path)
    content = run(made(changed), tmp_path)
    assert called == [1, 2, 5]
    assert [row["top-5"]["values"] for row in content["tables"][0]["rows"]] == [[50.0], [20.0]]


def test_a_changed_config_has_another_fingerprint() -> None:
    first = TrainCell({"seed": 0}, small(), top_accuracies).fingerprint
    assert first == TrainCell({"seed": 0}, small(), top_accuracies).fingerprint
    assert first != TrainCell({"seed": 0}, small(epochs=3), top_accuracies).fingerprint
    assert first != TrainCell({"seed": 0}, small(), recorded).fingerprint  # type: ignore[arg-type]


def test_results_of_another_scale_do_not_count_and_stay(tmp_path: Path) -> None:
    (name,) = names_of(made(grid(1)), "cpu")
    ResultsFolder(tmp_path).add("cpu", name, {"x": 1}, {"top-5": 1.0}, 0.1)
    run(made(grid(1)), tmp_path)
    assert called == [1]
    found = ResultsFolder(tmp_path).get("cpu", name)
    assert found is not None
    assert found.numbers == {"top-5": 1.0}


def test_a_file_that_is_no_result_is_named(tmp_path: Path) -> None:
    run(made(grid(1)), tmp_path)
    (path,) = (tmp_path / "cells").iterdir()
    path.write_text("{}")
    with pytest.raises(ValueError, match=rf"{path.name} is not a result of a recipe: remove the file"):
        run(made(grid(1)), tmp_path)


def test_results_count_wherever_the_data_is(tmp_path: Path) -> None:
    def reads(path: Path) -> dict[str, Any]:
        called.append(1)
        return {"top-5": 1.0}

    recipe = made(lambda scale, data: [FunctionCell({"x": 1}, reads, {"path": data / "a.npz"})])
    for data in ("here", "there"):
        run_recipe(recipe, "smoke", tmp_path, Path(data), lambda text: None)
    assert called == [1]


def test_the_page_says_which_versions_its_cells_were_run_with(tmp_path: Path) -> None:
    said = run_recipe(made(grid(1, 2)), "smoke", tmp_path, tmp_path, lambda text: None).read_text()
    assert "Cells were run" not in said
    path = next((tmp_path / "cells").iterdir())
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": "0.0.1"}))
    said = run_recipe(made(grid(1, 2)), "smoke", tmp_path, tmp_path, lambda text: None).read_text()
    assert "Cells were run 1 with version 0.0.1, 1 with version " in said


def test_so_many_cells_are_run_and_the_page_says_how_many_there_will_be(tmp_path: Path) -> None:
    recipe = made(grid(1, 2, 3))
    with pytest.raises(ValueError, match="none of the 3 cells of made is finished"):
        recipe.run("smoke", tmp_path, None, lambda text: None, cells=0)
    for cells, done in ((2, [1, 2]), (0, [1, 2])):
        page = recipe.run("smoke", tmp_path, None, lambda text: None, cells=cells)
        assert called == done
        assert "2 of 3 cells are done" in page.read_text()
        assert "What is not run yet is missing from the tables." in page.read_text()
    page = recipe.run("smoke", tmp_path, None, lambda text: None)
    assert called == [1, 2, 3]
    assert "3 of 3 cells are done" in page.read_text()
    assert "not run yet" not in page.read_text()


def test_two_cells_with_the_same_keys_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the same keys: x=1"):
        run(made(grid(1, 1)), tmp_path)


def test_training_in_a_run_directory_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = train_model(small(epochs=3), tmp_path / "whole")
    save = Run.save_epoch

    def save_and_stop(run: Run, *state: Any) -> None:
        save(run, *state)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Run, "save_epoch", save_and_stop)
        with pytest.raises(KeyboardInterrupt):
            train_model(small(epochs=3), tmp_path / "stopped")
    again = train_model(small(epochs=3), tmp_path / "stopped")
    assert again.scores("test").equal(whole.scores("test"))
    assert again.history.best_epoch == whole.history.best_epoch


def test_scales_of_long_cells_keep_run_directories(tmp_path: Path) -> None:
    folders: list[Path | None] = []

    def with_folder(folder: Path | None) -> dict[str, Any]:
        folders.append(folder)
        return {"top-5": 1.0}

    recipe = made(lambda scale, data: [FunctionCell({"x": 1}, with_folder, resumable=True)])
    for scale in ("smoke", "cpu", "pixels", "paper"):
        run_recipe(recipe, scale, tmp_path, tmp_path, lambda text: None)  # type: ignore[arg-type]
    assert folders[:2] == [None, None]
    assert [folder and folder.parent for folder in folders[2:]] == 2 * [tmp_path / "runs"]


# ---- tables


def results_of(*values: float | None) -> Results:
    return Results([Record({"x": 1, "seed": seed}, {"top-5": value}, 1.0) for seed, value in enumerate(values)])


def table(**published: float) -> Table:
    return Table("T", "table 1", ("x",), (VALUE,), {(1,): published} if published else {})


def test_mean_interval_and_difference_are_numpys_and_students() -> None:
    values = np.random.default_rng(0).random(7)
    entry = rows_of(table(**{"top-5": 40.0}), results_of(*values))[0].entries["top-5"]
    assert entry.mean == pytest.approx(100 * np.mean(values))
    assert entry.interval == pytest.approx(100 * 2.447 * np.std(values, ddof=1) / np.sqrt(7))  # t of 6 degrees
    assert entry.difference == pytest.approx(100 * np.mean(values) - 40.0)
    assert len(entry.ours) == 7


def test_one_seed_has_no_interval_and_no_number_no_mean() -> None:
    assert rows_of(table(), results_of(0.5))[0].entries["top-5"].interval is None
    entry = rows_of(table(**{"top-5": 40.0}), results_of(None))[0].entries["top-5"]
    assert (entry.mean, entry.interval, entry.difference) == (None, None, None)


@pytest.mark.parametrize("seeds", [2, 3, 5, 11, 12, 20, 60])
def test_intervals_hold_the_mean_as_often_as_students_t_says(seeds: int) -> None:
    from scipy.stats import t

    values = list(np.random.default_rng(0).normal(size=seeds))
    exact = t.ppf(0.975, seeds - 1) * np.std(values, ddof=1) / np.sqrt(seeds)
    assert half_width(values) == pytest.approx(exact, rel=1e-3)


def test_a_table_looks_only_where_it_is_told() -> None:
    both = Results([Record({"x": x, "k": k}, {"top-5": k / 10}, 1.0) for x in (1, 2) for k in (1, 5)])
    rows = rows_of(replace(table(), where={"k": 5}), both)
    assert [row.entries["top-5"].ours for row in rows] == [(50.0,), (50.0,)]


def test_gains_are_between_the_same_seeds_where_both_have_a_number() -> None:
    records = [
        Record({"loss": loss, "seed": seed}, {"top-5": value}, 1.0)
        for loss, values in (("a", (0.5, 0.7, 0.9)), ("b", (0.4, 0.8, None)))
        for seed, value in enumerate(values)
    ]
    assert Results(records).gains("top-5", {"loss": "a"}, {"loss": "b"}) == pytest.approx([10.0, -10.0])


def test_numbers_that_are_not_finite_are_missing(tmp_path: Path) -> None:
    run(made(grid(1)), tmp_path)
    assert numbers(tmp_path) == [{"top-5": 0.1, "curve": [1.0, None]}]


# ---- page, data, command line


def test_the_page_has_claim_findings_table_command_and_figure(tmp_path: Path) -> None:
    from shortlist_recipes.figures import Drawing, draw_line, new_axes

    def draw(results: Results) -> list[Drawing]:
        figure, [[axes]] = new_axes(1, 1, width=3, height=2)
        draw_line(axes, results, "x", "top-5", label="a", color="#0b62c4")
        return [Drawing("line", "A line.", figure)]

    overview = [Texts(["a"], [["b"]], caption="An overview")]
    recipe = made(grid(), figures=draw, overview=lambda r: overview, differences={"smoke": "Much smaller."})
    text = write_page(recipe, "smoke", results_of(0.5, 0.6), tmp_path).read_text()
    for part in (
        "A claim.",
        "- 2 cells.",
        "```bash\nshortlist recipe made --scale smoke\n```",
        "**An overview**\n\n| a |",
        "over 2 seeds.",
        "Much smaller.",
        "| 1 | 12.50 | 55.00",
    ):
        assert part in text
    assert "![A line.](made-line.svg)" in text
    assert (tmp_path / "made-line.svg").read_text().startswith("<?xml")


def test_missing_data_is_named_with_what_it_is_and_where_it_was_looked_for(tmp_path: Path) -> None:
    recipe = made(grid(1), needs={"smoke": {"voc/labels.npz": "the labels", "voc": "a folder"}})
    (tmp_path / "voc").mkdir()
    with pytest.raises(ValueError, match=r"labels\.npz: the labels") as caught:
        run_recipe(recipe, "smoke", tmp_path / "out", tmp_path, lambda text: None)
    assert str(tmp_path) in str(caught.value)
    assert "a folder" not in str(caught.value)
    assert "--data DIR" in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_the_command_lists_the_recipes(capsys: pytest.CaptureFixture[str]) -> None:
    result = run_here(capsys, "recipe", "--list")
    assert result.code == 0
    assert all(name in result.out for name in summaries())


def test_every_listed_recipe_has_its_name_and_its_file() -> None:
    for name in summaries():
        assert RECIPES.find(name).name == name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nosy-cifar100"], "did you mean 'noisy-cifar100'?"),
        (["noisy-cifar100", "--scale", "huge"], "is one of smoke, cpu, pixels, paper, got 'huge'"),
        (["two-way", "--scale", "pixels"], "the scale of two-way is one of smoke, cpu, paper, got 'pixels'"),
        (["noisy-cifar100", "--cells", "-1"], "cells must be 0 or more, got -1"),
        ([], "give the name of a recipe: noisy-cifar100"),
        (["noisy-cifar100", "--data", "nowhere"], "needs data that is not in nowhere"),
    ],
)
def test_wrong_commands_are_explained(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    result = run_here(capsys, "recipe", *arguments)
    assert (result.code, result.out) == (2, "")
    assert message in result.err


def test_ctrl_c_says_how_to_go_on(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RECIPES, "noisy-cifar100", made(grid(1, 2, broken=2)))
    result = run_here(capsys, "recipe", "noisy-cifar100", "--scale", "smoke", "--out", tmp_path)
    assert result.code == 130
    assert f"shortlist recipe noisy-cifar100 --scale smoke --out {tmp_path}" in result.err
    assert len(numbers(tmp_path)) == 1
