"""``shortlist recipe``: an experiment of a paper, with its table beside the published one."""

from pathlib import Path
from typing import Annotated

import typer

from shortlist.cli._arguments import Json, Quiet
from shortlist.cli._output import print_json, print_table, say
from shortlist.errors import ShortlistError

_INTERRUPTED = 130


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
    from shortlist.recipes import RECIPES, load

    if show:
        print_json(RECIPES) if as_json else print_table("", ["recipe", "what it shows"], list(RECIPES.items()))
        return
    if name is None:
        raise ShortlistError(f"give the name of a recipe: {', '.join(RECIPES)}")
    chosen = load(name)

    from shortlist.recipes.recipe import SCALES
    from shortlist.recipes.run import run_recipe
    from shortlist.recipes.sources import data_folder
    from shortlist.training.run import read_json

    found = next((known for known in SCALES if known == scale), None)
    if found is None:
        raise ShortlistError(f"--scale is one of {', '.join(SCALES)}, got {scale!r}")
    folder = Path("runs") / "recipes" / f"{name}-{scale}" if out is None else out
    try:
        page = run_recipe(chosen, found, folder, data_folder(data), _hush if quiet or as_json else say)
    except KeyboardInterrupt:
        say(f"interrupted; run the same command again to go on: shortlist recipe {name} --scale {scale} --out {folder}")
        raise typer.Exit(_INTERRUPTED) from None
    content = read_json(page.with_name("table.json"))
    if as_json:
        print_json({"page": str(page), **content})
        return
    for sentence in content["findings"]:
        typer.echo(f"- {sentence}")
    say(f"\npage: {page}")


def _hush(text: str) -> None: ...
