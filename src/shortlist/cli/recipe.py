"""``shortlist recipe``: an experiment of a paper, with its table beside the published one.

Recipes come from installed packages, ours (``shortlist_recipes``) like anyone's: a package lists, under the entry point
group ``shortlist.recipes``, a module with `RECIPES`, name -> what it shows, and ``load(name)``, which gives an object
with ``run(scale, folder, data, say)``.
"""

import json
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

from shortlist.cli._arguments import Json, Quiet
from shortlist.cli._output import print_json, print_table, say
from shortlist.errors import ShortlistError, nearest

GROUP = "shortlist.recipes"
_INTERRUPTED = 130


class Shelf(Protocol):
    """What a package of recipes offers; listing them should not import them."""

    __name__: str
    RECIPES: Mapping[str, str]

    def load(self, name: str) -> Any: ...


def installed() -> dict[str, list[Shelf]]:
    """Every recipe of every installed package, and the modules that have one of that name: a good name has one."""
    found: dict[str, list[Shelf]] = {}
    for entry in entry_points(group=GROUP):
        module = entry.load()
        for name in module.RECIPES:
            found.setdefault(name, []).append(module)
    if not found:
        raise ShortlistError(
            "no recipes are installed: after an update of a clone, run make install (or pip install -e . again)"
        )
    return found


def recipe(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Which one.", show_default=False)] = None,
    scale: Annotated[
        str,
        typer.Option(help="smoke: seconds, embedded data; cpu: minutes, real data; paper: as published, on GPUs."),
    ] = "cpu",
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where results go; runs/recipes/NAME-SCALE if not given.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The data sets; $SHORTLIST_SHARED/data or ../shared/data if not given."),
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="Say which recipes there are, and stop.")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Reproduce an experiment of a paper: run its grid, and write a table beside the published one.

    DIR gets index.md with tables, findings and figures, table.json with every number, and results.jsonl with one line
    per finished cell. Run the same command again to go on after an interruption.
    """
    known = installed()
    if show:
        summaries = {name: modules[0].RECIPES[name] for name, modules in known.items()}
        print_json(summaries) if as_json else print_table("", ["recipe", "what it shows"], list(summaries.items()))
        return
    if name is None:
        raise ShortlistError(f"give the name of a recipe: {', '.join(known)}")
    if name not in known:
        raise ShortlistError(f"there is no recipe {name!r}{nearest(name, known)}; there are {', '.join(known)}")
    if len(known[name]) > 1:
        places = " and ".join(module.__name__ for module in known[name])
        raise ShortlistError(f"the recipe {name!r} is in {places}: uninstall one of them, or rename it there")
    chosen = known[name][0].load(name)
    folder = Path("runs") / "recipes" / f"{name}-{scale}" if out is None else out
    try:
        page = chosen.run(scale, folder, data, _hush if quiet or as_json else say)
    except KeyboardInterrupt:
        say(f"interrupted; run the same command again to go on: shortlist recipe {name} --scale {scale} --out {folder}")
        raise typer.Exit(_INTERRUPTED) from None
    content = json.loads(page.with_name("table.json").read_text("utf-8"))
    if as_json:
        print_json({"page": str(page), **content})
        return
    for sentence in content["findings"]:
        typer.echo(f"- {sentence}")
    say(f"\npage: {page}")


def _hush(text: str) -> None: ...
