"""``shortlist calibrate``: fit set rules on held-out scores, of a run or of any other model."""

from pathlib import Path
from typing import Annotated

import typer

from shortlist.cli import _arguments as given
from shortlist.cli._output import GIVEN_SCORES, print_json, print_results, say, tell_skipped
from shortlist.text import command


@given.with_options
def calibrate(
    run: given.RunPath = None,
    rule: Annotated[
        list[str] | None,
        given.option("NAME[:KEY=VALUE,...]", "A rule to fit, such as average-k:k=3. May be repeated."),
    ] = None,
    part: Annotated[
        str | None, typer.Option(help="The part of the run's data to fit on; calibration, else validation.")
    ] = None,
    out: Annotated[
        Path | None, given.option("DIR", "Where the rules go; RUN/rules if not given.", "--out", "-o")
    ] = None,
    *,
    other: given.LabelledScores,
    by: given.Engine,
    allow_import: given.AllowImport = None,
    as_json: given.Json = False,
) -> None:
    """Fit set rules (how many labels to answer with, and which) on data that the model was not trained on.

    Rules: top-k, average-k, conformal, online-conformal, risk-control, threshold, pointwise-error, penalized. Without
    --rule: those of the run's config, or else top-k, average-k and conformal. With --scores, of any model's scores;
    conformal:labels=votes is fitted on the votes in --truth.
    """
    from shortlist import runs

    allowed, engine = allow_import or (), by.made()
    result = runs.calibrate(
        run, rules=rule or (), data=part, out=out, allow_import=allowed, engine=engine, **vars(other)
    )
    if as_json:
        print_json(result)
    else:
        print_results(f"{result['objective'] or GIVEN_SCORES} on the calibration data", result)
        following = f"\nnext: {command('shortlist', 'evaluate', run, 'test')}" if run else ""
        say(f"\nrules: {result['written']}{following}")
    tell_skipped(result, quiet=as_json)
