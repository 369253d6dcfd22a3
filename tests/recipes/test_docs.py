"""The recipes' pages in the docs: made by the tool, and of the recipes as they are."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from shortlist.cli.recipe import RECIPES, summaries
from shortlist_recipes.run import names_of
from shortlist_recipes.sources import data_folder
from tests.recipes.smoke import run_smoke

DOCS = Path(__file__).parents[2] / "docs"
WRITTEN = sorted(path.stem for path in (DOCS / "recipes").glob("*.json"))
CELLS = sorted((DOCS / "recipes" / "cells").glob("*"))


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("recipes_tool", DOCS / "tools" / "recipes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "PAGES", tmp_path / "pages")
    (tmp_path / "pages").mkdir()
    return module


def test_a_finished_recipe_becomes_a_page_with_its_figures(tool: ModuleType, tmp_path: Path) -> None:
    run_smoke("top-k-timing", tmp_path / "run")
    (tmp_path / "pages" / "top-k-timing-old.svg").touch()
    assert tool.put(tmp_path / "run") == "top-k-timing"
    found = sorted(path.name for path in (tmp_path / "pages").iterdir())
    assert found == ["top-k-timing-time.svg", "top-k-timing.json", "top-k-timing.md"]
    overview = tool.overview()
    assert "[`top-k-timing`](top-k-timing.md)" in overview
    assert all(name in overview for name in summaries())


@pytest.mark.parametrize("name", WRITTEN)
def test_the_page_in_the_docs_is_of_the_recipe_as_it_is(name: str) -> None:
    content = json.loads((DOCS / "recipes" / f"{name}.json").read_text("utf-8"))
    recipe, scale = RECIPES.find(content["recipe"]), content["scale"]
    assert scale == ("pixels" if name.endswith("-pixels") else "cpu")
    assert [table["title"] for table in content["tables"]] == [table.title for table in recipe.tables]
    if name == "top-k-timing":  # it has more cells where there are peers to measure
        pytest.importorskip("difftopk")
        pytest.importorskip("pytopk")
    assert content.get("planned", content["cells"]) == len(recipe.cells(scale, data_folder()))
    text = (DOCS / "recipes" / f"{name}.md").read_text("utf-8")
    assert all(sentence in text for sentence in content["findings"])
    assert content["cells"] == content.get("planned", content["cells"]) or "What is not run yet is missing" in text


@pytest.mark.parametrize("folder", CELLS, ids=lambda path: path.name)
def test_every_cell_in_the_docs_is_one_of_the_grid_as_it_is(folder: Path) -> None:
    recipe = RECIPES.find(folder.name.removesuffix("-pixels"))
    names = {f"pixels-{name}.json" for name in names_of(recipe, "pixels")}
    found = {path.name for path in folder.iterdir()}
    assert found <= names
    content = json.loads((DOCS / "recipes" / f"{folder.name}.json").read_text("utf-8"))
    assert content["cells"] == len(found)


@pytest.mark.parametrize("name", WRITTEN)
def test_the_pages_name_no_folder_of_the_machine_they_were_made_on(name: str) -> None:
    for path in (DOCS / "recipes").glob(f"{name}*"):
        assert not any(place in path.read_text("utf-8") for place in ("/work", "/tmp", "/root", "/home"))
