"""Running recipes in tests."""

import json
from pathlib import Path
from typing import Any

from shortlist.cli.recipe import RECIPES
from shortlist.runs.config import RunConfig
from shortlist_recipes.cells import Cell
from shortlist_recipes.recipe import Recipe, Scale
from shortlist_recipes.results import Results, ResultsFolder
from shortlist_recipes.run import names_of, run_recipe
from shortlist_recipes.sources import data_folder

SHARED = data_folder() if data_folder().exists() else Path(__file__).parents[3] / "shared" / "data"


def run_smoke(name: str, folder: Path) -> dict[str, Any]:
    """Run a recipe at smoke scale; its table.json, after checking that everything was written."""
    return run(RECIPES.find(name), "smoke", folder)


def run(recipe: Recipe, scale: Scale, folder: Path, data: Path = SHARED) -> dict[str, Any]:
    page = run_recipe(recipe, scale, folder, data, lambda text: None)
    text = page.read_text("utf-8")
    content: dict[str, Any] = json.loads((folder / "table.json").read_text("utf-8"))
    for table in content["tables"]:  # those without a row are of another scale, and have no heading
        assert (f"## {table['title']}\n" in text) == bool(table["rows"])
    assert content["findings"], "a recipe says what it finds"
    for drawing in folder.glob("*.svg"):
        assert drawing.name in text
    _check_unfinished(recipe, scale, folder)
    return content


def _check_unfinished(recipe: Recipe, scale: Scale, folder: Path) -> None:
    """The page of some of the cells can be made, too: of the first alone, and of half of them."""
    finished = ResultsFolder(folder)
    records = [record for name in names_of(recipe, scale) if (record := finished.get(scale, name)) is not None]
    for count in {1, len(records) // 2}:
        some = Results(records[:count])
        assert recipe.findings(some) is not None
        assert recipe.overview(some) is not None
        assert recipe.figures(some) is not None


def resolves(recipe: Recipe, scale: Scale, data: Path = SHARED) -> int:
    """Check every config of the grid, without running it; how many there were."""
    from shortlist.runs.setup import resolve

    configs = [config for cell in recipe.cells(scale, data) for config in configs_of(cell)]
    for config in configs:
        resolve(config)
    return len(configs)


def configs_of(cell: Cell) -> list[RunConfig]:
    """What a cell trains."""
    values = [*cell.work().values(), *cell.work().get("options", {}).values()]
    values += [item for value in values if isinstance(value, list) for item in value]
    return [value for value in values if isinstance(value, RunConfig)]
