"""Recipes of other packages, found by their entry point."""

from pathlib import Path

import pytest

from tests.cli.command import run_here

MODULE = """
import json

RECIPES = {"ours-at-home": "What another package shows.", "two-way": "A name that is taken."}


class Recipe:
    def run(self, scale, folder, data, say):
        say(f"{scale} {data}")
        folder.mkdir(parents=True)
        (folder / "table.json").write_text(json.dumps({"findings": ["It holds."]}))
        return folder / "index.md"


def load(name):
    return Recipe()
"""


@pytest.fixture
def other_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other_recipes.py").write_text(MODULE)
    facts = tmp_path / "other_recipes-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: other-recipes\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[shortlist.recipes]\nother = other_recipes\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("other_package")
def test_a_recipe_of_another_package_is_listed_and_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    listed = run_here(capsys, "recipe", "--list").out
    assert "What another package shows." in listed
    assert "noisy-cifar100" in listed
    result = run_here(capsys, "recipe", "ours-at-home", "--scale", "smoke", "--out", tmp_path / "out")
    assert result.code == 0
    assert "- It holds." in result.out


@pytest.mark.usefixtures("other_package")
def test_two_packages_with_a_recipe_of_one_name_are_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    result = run_here(capsys, "recipe", "two-way", "--scale", "smoke")
    assert result.code == 2
    assert "other_recipes" in result.err
    assert "shortlist_recipes" in result.err


def test_without_any_package_of_recipes_the_command_says_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shortlist.cli.recipe.GROUP", "nobody's")
    result = run_here(capsys, "recipe", "--list")
    assert result.code == 2
    assert "no recipes are installed" in result.err
