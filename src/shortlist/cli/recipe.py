"""``shortlist recipe``: an experiment of a paper, with its table beside the published one.

Recipes come from installed packages, ours (``shortlist_recipes``) like anyone's: see `shortlist.registry`.
"""

import ast
import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

from shortlist.cli._arguments import AllowImport, Json, Quiet, option
from shortlist.cli._errors import INTERRUPTED
from shortlist.cli._output import print_json, print_line, say
from shortlist.errors import ShortlistError
from shortlist.registry import Registry


class Recipe(Protocol):
    """What the command runs."""

    def run(
        self, scale: str, folder: Path, data: Path | None, say: Callable[[str], None], *, cells: int | None = None
    ) -> Path:
        """Run what is not finished yet in this folder, at most so many cells where a number is given; the answer is the
        page, with table.json beside it."""


def _check(name: str, found: Any) -> None:
    if not hasattr(found, "run"):
        raise ShortlistError(f"recipe {name!r} must have a method run, got {type(found).__name__}")


RECIPES: Registry[Recipe] = Registry("recipe", check=_check)


def summaries() -> dict[str, str]:
    """What every installed recipe shows: the first line of its module, which is read and not run."""
    found = {name: _first_line(entry.module) for name, entry in RECIPES.installed().items()}
    if not found:
        raise ShortlistError(
            "no recipes are installed: after an update of a clone, run make install (or pip install -e . again)"
        )
    return found


def _first_line(module: str) -> str:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return ""
    return (ast.get_docstring(ast.parse(Path(spec.origin).read_text("utf-8"))) or "").partition("\n")[0]


def recipe(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Which one.", show_default=False)] = None,
    scale: Annotated[
        str,
        typer.Option(
            help="smoke: seconds, embedded data; cpu: minutes, real data; pixels (of some): hours, a small network "
            "from random weights; paper: on GPUs, as published but for what the page's protocol names."
        ),
    ] = "cpu",
    out: Annotated[Path | None, option("DIR", "Where results go; runs/recipes/NAME-SCALE if not given.")] = None,
    data: Annotated[
        Path | None,
        option("DIR", "The data sets; $SHORTLIST_SHARED/data or ../shared/data if not given."),
    ] = None,
    cells: Annotated[
        int | None,
        option("N", "Run at most N more cells; 0 writes the page of what is finished."),
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="Say which recipes there are, and stop.")] = False,
    allow_import: AllowImport = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Reproduce an experiment of a paper: run its grid, and write a table beside the published one.

    DIR gets index.md with tables, findings and figures, table.json with every number, and a file in cells for every
    finished cell. Run the same command again to go on after an interruption.
    """
    if show:
        known = summaries()
        if as_json:
            print_json(known)
        else:
            width = max(map(len, known))
            for each, words in known.items():
                print_line(f"{each:{width}}  {words}")
        return
    if name is None:
        raise ShortlistError(f"give the name of a recipe: {', '.join(summaries())}")
    chosen = RECIPES.find(name, allow_import or ())
    folder = Path("runs") / "recipes" / f"{name.rpartition(':')[2]}-{scale}" if out is None else out
    try:
        more = {} if cells is None else {"cells": cells}  # a recipe of another package may not know it
        page = chosen.run(scale, folder, data, (lambda text: None) if quiet or as_json else say, **more)
    except KeyboardInterrupt:
        say(f"interrupted; run the same command again to go on: shortlist recipe {name} --scale {scale} --out {folder}")
        raise typer.Exit(INTERRUPTED) from None
    content = json.loads(page.with_name("table.json").read_text("utf-8"))
    if as_json:
        print_json({"page": str(page), **content})
        return
    for sentence in content["findings"]:
        typer.echo(f"- {sentence}")
    say(f"\npage: {page}")
