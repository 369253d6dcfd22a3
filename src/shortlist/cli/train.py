"""``shortlist train``: from a config file to a run directory."""

from pathlib import Path
from typing import Annotated

import typer

from shortlist.cli._arguments import AllowImport, Json, Overrides, Quiet, option
from shortlist.cli._errors import interruptions_told
from shortlist.cli._output import print_json, print_table, say, tell_skipped
from shortlist.cli._progress import make_progress, search_shown
from shortlist.errors import ShortlistError
from shortlist.text import command


def train(
    config: Annotated[str | None, typer.Argument(metavar="CONFIG", help="A YAML file.", show_default=False)] = None,
    overrides: Overrides = None,
    out: Annotated[Path | None, option("DIR", "The run directory; runs/NAME if not given.", "--out", "-o")] = None,
    resume: Annotated[Path | None, option("RUN", "Continue this run after its last epoch.")] = None,
    print_config: Annotated[bool, typer.Option("--print-config", help="Print the complete config and stop.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read the data, build the model, try one step; write nothing.")
    ] = False,
    allow_import: AllowImport = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a model as CONFIG says, with any KEY=VALUE changed.

    The run directory holds the complete config, the metrics of every epoch and the best and last checkpoints. A run
    that was interrupted, however rudely, continues with --resume RUN.
    """
    from shortlist import runs
    from shortlist.runs.setup import resolve

    allowed = tuple(allow_import or ())
    if resume is not None:
        if config or overrides or out or print_config or dry_run:
            raise ShortlistError(
                "--resume continues a run as it is: give no config, changes, --out, --print-config or --dry-run"
            )
    elif config is None:
        raise ShortlistError(
            "give a config file, or --resume RUN (examples of configs are in the repository's examples/)"
        )
    elif print_config:
        typer.echo(resolve(runs.load_config(config, overrides or ()), allowed).to_yaml(), nl=False)
        return
    elif dry_run:
        settings = runs.load_config(config, overrides or ())
        tried = runs.try_out(settings, allow_import=allowed)
        print_json(tried) if as_json else print_table(settings.objective.name, ["", ""], list(tried.items()))
        return
    with interruptions_told(), search_shown(quiet or as_json):
        result = runs.train(
            config,
            out,
            overrides=overrides or (),
            resume=resume,
            progress=make_progress(quiet or as_json),
            say=None if quiet or as_json else say,
            allow_import=allowed,
        )
    if not result:
        return  # one of several processes: the first one prints
    if as_json:
        print_json(result)
        tell_skipped(result, quiet=True)
        return
    rows = [(key, value) for key, value in (result["best"] or {}).items() if key != "seconds"]
    best = "best epoch" if result["metric"] else "last epoch"
    print_table(f"{result['objective']}: {best}", ["metric", "value"], rows)
    if not quiet:
        path = result["run"]
        following = ("evaluate", path, "test") if runs.Run(path).task else ("calibrate", path)
        say(f"\nrun: {path}\nnext: {command('shortlist', *following)}")
    tell_skipped(result)
