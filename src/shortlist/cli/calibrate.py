"""``shortlist calibrate``: fit set rules on held-out scores, of a run or of any other model."""

from pathlib import Path
from typing import Annotated

import typer

from shortlist.cli import _arguments as given
from shortlist.cli._output import GIVEN_SCORES, print_json, print_results, say, tell_skipped
from shortlist.text import command


def calibrate(
    run: given.RunPath = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[:KEY=VALUE,...]", help="A rule to fit, such as average-k:k=3. May be repeated."),
    ] = None,
    part: Annotated[
        str | None, typer.Option(help="The part of the run's data to fit on; calibration, else validation.")
    ] = None,
    scores: given.Scores = None,
    labels: given.Labels = None,
    truth: given.Truth = None,
    link: given.Link = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Where the rules go; RUN/rules if not given.")
    ] = None,
    groups: given.Groups = None,
    weights: given.Weights = None,
    engine: given.EngineName = None,
    address: given.Address = None,
    workers: given.Workers = None,
    gpus_per_worker: given.GpusPerWorker = 0,
    allow_import: given.AllowImport = None,
    as_json: given.Json = False,
) -> None:
    """Fit set rules (how many labels to answer with, and which) on data that the model was not trained on.

    Rules: top-k, average-k, conformal, online-conformal, risk-control, threshold, pointwise-error, penalized. Without
    --rule: those of the run's config, or else top-k, average-k and conformal. With --scores, of any model's scores;
    conformal:labels=votes is fitted on the votes in --truth.
    """
    from shortlist import runs

    result = runs.calibrate(
        run,
        rules=rule or (),
        data=part,
        scores=scores,
        labels=labels,
        truth=truth,
        link=link,
        out=out,
        groups=groups,
        weights=weights,
        allow_import=allow_import or (),
        engine=given.engine_from(engine, address, workers, gpus_per_worker),
    )
    if as_json:
        print_json(result)
        tell_skipped(result, quiet=True)
        return
    print_results(f"{result['objective'] or GIVEN_SCORES} on the calibration data", result)
    say(f"\nrules: {result['written']}" + (f"\nnext: {command('shortlist', 'evaluate', run, 'test')}" if run else ""))
    tell_skipped(result)
