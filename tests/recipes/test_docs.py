"""The recipes' pages in the docs: made by the tool, and of the recipes as they are."""

import importlib.util
import json
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from shortlist.cli.recipe import RECIPES, summaries
from shortlist_recipes.page import protocol_text
from shortlist_recipes.results import ResultsFolder
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
    assert found == ["cells", "top-k-timing-time.svg", "top-k-timing.json", "top-k-timing.md"]
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
    assert text.endswith(f"\n{protocol_text(recipe, scale)}\n")


def test_cells_that_were_kept_are_found_again(tool: ModuleType, tmp_path: Path) -> None:
    recipe, cells = RECIPES.find("noisy-cifar100"), ("cpu", "pixels")
    for scale in cells:
        written = ResultsFolder(tmp_path / scale)
        for number, name in enumerate(names_of(recipe, scale)[:2]):
            written.add(scale, name, {"seed": number}, {"top-1": 0.1 + number}, 1.0)
        written.add(scale, "of-another-grid", {}, {}, 1.0)
        third = names_of(recipe, scale)[2]  # which another version ran
        old = {"keys": {"seed": 2}, "numbers": {}, "seconds": 1.0, "version": "0.0.1"}
        (tmp_path / scale / "cells" / f"{scale}-{third}.json").write_text(json.dumps(old))
    tool.keep_cells(tmp_path / "cpu", "cpu", "noisy-cifar100")
    tool.keep_cells(tmp_path / "pixels", "pixels", "noisy-cifar100-pixels")
    for scale, page in zip(cells, ("noisy-cifar100", "noisy-cifar100-pixels"), strict=True):
        assert tool.restore(page, tmp_path / "runs") == 2
        found = ResultsFolder(tmp_path / "runs" / f"noisy-cifar100-{scale}")
        for name in names_of(recipe, scale)[:2]:
            assert found.get(scale, name) == ResultsFolder(tmp_path / scale).get(scale, name)
        assert found.get(scale, "of-another-grid") is None


@pytest.mark.parametrize("kept", CELLS, ids=lambda path: path.name)
def test_every_cell_in_the_docs_is_one_of_the_grid_as_it_is(kept: Path) -> None:
    scale = "pixels" if kept.is_dir() else "cpu"
    recipe = RECIPES.find(kept.stem.removesuffix("-pixels"))
    if kept.is_dir():
        found = {path.stem: json.loads(path.read_text("utf-8")) for path in kept.iterdir()}
    else:
        found = {cell["cell"]: cell for cell in map(json.loads, kept.read_text("utf-8").splitlines())}
    assert set(found) <= {f"{scale}-{name}" for name in names_of(recipe, scale)}
    content = json.loads((DOCS / "recipes" / f"{kept.stem}.json").read_text("utf-8"))
    assert Counter(cell["version"] for cell in found.values()).items() <= content["run with"].items()


@pytest.mark.parametrize("name", WRITTEN)
def test_the_pages_name_no_folder_of_the_machine_they_were_made_on(name: str) -> None:
    for path in (DOCS / "recipes").glob(f"{name}*"):
        assert not any(place in path.read_text("utf-8") for place in ("/work", "/tmp", "/root", "/home"))
