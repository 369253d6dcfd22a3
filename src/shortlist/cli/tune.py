"""``shortlist tune``: search the values that a config leaves open."""

from pathlib import Path
from typing import Annotated

import typer

from shortlist.cli._arguments import AllowImport, Json, Overrides, Quiet, option
from shortlist.cli._errors import interruptions_told
from shortlist.cli._output import print_json, print_table, say


def tune(
    config: Annotated[str, typer.Argument(metavar="CONFIG", help="A YAML file.", show_default=False)],
    overrides: Overrides = None,
    trials: Annotated[int, option("N", "How many trainings to try, with those done before.")] = 20,
    out: Annotated[Path | None, option("DIR", "Where it goes; runs/NAME-tuned if not given.", "--out", "-o")] = None,
    allow_import: AllowImport = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Try values for what CONFIG leaves open, such as lr: {search: log, low: 1e-4, high: 0.1}, and keep the best.

    A search is log or uniform (low, high), integer (low, high, step) or choice (choices). Trials are judged by the
    objective's metric on the validation data; one that falls behind the others is given up. The folder gets
    trials.csv, a chart of the trials and best.yaml, a config for shortlist train. The same command goes on where it was
    interrupted, and with a larger N it adds trials. It needs the extra tune.
    """
    from shortlist import runs
    from shortlist.runs.tune import short

    with interruptions_told():
        found = runs.tune(
            config,
            out,
            trials=trials,
            overrides=overrides or (),
            say=None if quiet or as_json else say,
            allow_import=allow_import or (),
        )
    if as_json:
        print_json(found)
        return
    keys, metric = list(found["best"]["values"]), found["metric"]
    rows = [
        [
            f"{row['trial']}{' *' if row['trial'] == found['best']['trial'] else ''}",
            *(short(row["values"][key]) for key in keys),
            "" if row["best"] is None else row["best"],
            row["epochs"],
            row["state"],
        ]
        for row in found["trials"]
    ]
    print_table(f"{found['objective']}: * is the best", ["trial", *keys, metric, "epochs", "state"], rows)
    if not quiet:
        say(f"\nall of it: {found['out']}\nnext: shortlist train {found['config']}")
