"""``shortlist report``: the HTML page of one or several runs, or of the scores of any other model."""

from pathlib import Path
from typing import Annotated, Any

import typer

from shortlist.cli import _arguments as given
from shortlist.cli._output import print_json, say


@given.with_options
def report(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN", help="Run directories, to be shown side by side.", show_default=False),
    ] = None,
    part: Annotated[
        str | None, typer.Option(help="The part of the runs' data to report on; test, else validation.")
    ] = None,
    rules: given.Rules = None,
    calibration: Annotated[
        Path | None, given.option("FILE", "With --scores: held-out scores that set the thresholds.")
    ] = None,
    names: Annotated[
        Path | None,
        given.option("FILE", "With --scores: a text file with the labels' names, one per line."),
    ] = None,
    k: Annotated[
        float | None, typer.Option(help="With --scores: the mean set size to start from; 5 if not given.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="The heading of the page.")] = None,
    out: Annotated[
        Path | None, given.option("DIR", "Where the report goes; RUN/report for one run.", "--out", "-o")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also show which training examples speak for the labels of some examples.")
    ] = False,
    *,
    other: given.LabelledScores,
    allow_import: given.AllowImport = None,
    as_json: given.Json = False,
) -> None:
    """Write one HTML page that opens offline, and its figures as PNG and SVG beside it.

    It shows accuracy against set size as K moves, how large the sets are and for which examples, the most ambiguous and
    the most confused examples, every label, the training curves, and how to make the runs again. Runs that differ only
    in their seed are averaged. Runs on scenes show recall against K and drawn graphs. With --scores and --labels it is
    made of any model's scores.
    """
    from shortlist.runs import report as make_report

    page: dict[str, Any] = {"part": part, "title": title, "out": out, "explain": explain}
    of_scores = {"rules": rules, "calibration": calibration, "names": names, "k": k, **vars(other)}
    made = make_report(runs or (), **page, **of_scores, allow_import=allow_import or ())
    print_json(made) if as_json else say(f"report: {made['written']}")
