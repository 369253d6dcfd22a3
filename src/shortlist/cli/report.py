"""``shortlist report``: the HTML page of one or several runs, or of the scores of any other model."""

from pathlib import Path
from typing import Annotated

import typer

from shortlist.cli._arguments import AllowImport, Json, Labels, Link, Rules, Scores
from shortlist.cli._output import print_json, say
from shortlist.errors import ShortlistError


def report(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN", help="Run directories, to be shown side by side.", show_default=False),
    ] = None,
    part: Annotated[
        str | None, typer.Option(help="The part of the runs' data to report on; test, else validation.")
    ] = None,
    scores: Scores = None,
    labels: Labels = None,
    link: Link = None,
    rules: Rules = None,
    calibration: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --scores: held-out scores that set the thresholds.")
    ] = None,
    names: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --scores: a text file with the labels' names, one per line."),
    ] = None,
    k: Annotated[
        float | None, typer.Option(help="With --scores: the mean set size to start from; 5 if not given.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="The heading of the page.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Where the report goes; RUN/report for one run.")
    ] = None,
    allow_import: AllowImport = None,
    as_json: Json = False,
) -> None:
    """Write one HTML page that opens offline, and its figures as PNG and SVG beside it.

    It shows accuracy against set size as K moves, how large the sets are and for which examples, the most ambiguous and
    the most confused examples, every label, the training curves, and how to make the runs again. Runs that differ only
    in their seed are averaged. Runs on scenes show recall against K and drawn graphs. With --scores and --labels it is
    made of any model's scores.
    """
    from shortlist.cli import _scenes
    from shortlist.reports import write
    from shortlist.runs import report_data

    if bool(runs) == (scores is not None):
        raise ShortlistError("give one or more run directories, or --scores FILE and --labels FILE of another model")
    if runs:
        for option, value in (
            ("labels", labels),
            ("link", link),
            ("rules", rules),
            ("calibration", calibration),
            ("names", names),
            ("k", k),
        ):
            if value is not None:
                raise ShortlistError(f"--{option} goes with --scores: a run has its own")
        if out is None and len(runs) > 1:
            raise ShortlistError("for several runs say where the report goes: --out DIR")
        folder = out or runs[0] / "report"
        if _scenes.are_scenes(runs):
            made = _scenes.scene_report(runs, part, title, tuple(allow_import or ()), folder)
            print_json(made) if as_json else say(f"report: {made['written']}")
            return
        data = report_data.from_runs(runs, part, title, tuple(allow_import or ()))
    else:
        if scores is None or labels is None:
            raise ShortlistError("--scores are reported on with their --labels: give both")
        if out is None:
            raise ShortlistError("with --scores say where the report goes: --out DIR")
        if part is not None:
            raise ShortlistError("--part is a part of a run's data: it does not go with --scores")
        data = report_data.from_files(scores, labels, link, rules, calibration, names, k, title)
        folder = out
    page = write(data, folder)
    if as_json:
        print_json({"written": str(page), "runs": [run.name for run in data.runs], "examples": data.shape[0]})
    else:
        say(f"report: {page}")
