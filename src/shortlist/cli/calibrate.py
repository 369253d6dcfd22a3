"""``shortlist calibrate``: fit set rules on held-out scores, of a run or of any other model."""

from pathlib import Path
from typing import Annotated, Any

import typer

from shortlist.cli._arguments import AllowImport, Json, Labels, Link, RunPath, Scores
from shortlist.cli._output import print_json, print_results, say
from shortlist.errors import ShortlistError


def calibrate(
    run: RunPath = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[:KEY=VALUE,...]", help="A rule to fit, such as average-k:k=3. May be repeated."),
    ] = None,
    part: Annotated[
        str | None, typer.Option(help="The part of the run's data to fit on; calibration, else validation.")
    ] = None,
    scores: Scores = None,
    labels: Labels = None,
    link: Link = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Where the rules go; RUN/rules if not given.")
    ] = None,
    allow_import: AllowImport = None,
    as_json: Json = False,
) -> None:
    """Fit set rules (how many labels to answer with, and which) on data that the model was not trained on.

    Rules: top-k, average-k, conformal, threshold, pointwise-error, penalized. Without --rule: those of the run's
    config, or else top-k, average-k and conformal. With --scores, of any model's scores.
    """
    from shortlist.runs import given as inputs
    from shortlist.runs.evaluate import evaluate
    from shortlist.runs.run import save_rules
    from shortlist.sets.named import fit_rules, usual_rules

    wanted = [inputs.parse_rule(text) for text in rule or ()]
    given = inputs.scores_for_calibration(run, part, scores, labels, link, tuple(allow_import or ()))
    if not wanted:
        wanted = given.rules
    if not wanted:
        if given.target is None:
            raise ShortlistError("without --labels say which rule to fit, such as --rule average-k:k=5")
        wanted = usual_rules(given.target, given.scores.shape[1], given.k, given.link)
    fitted = fit_rules(wanted, given.scores, given.target, given.link)
    folder = out or (run / "rules" if run else None)
    if folder is None:
        raise ShortlistError("with --scores say where the rules go: --out DIR")
    save_rules(folder, fitted)
    result: dict[str, Any] = {"rules": {}, "metrics": {}, "examples": len(given.scores)}
    if given.target is not None:
        result = evaluate(given.scores, given.target, given.link, fitted, truth=given.truth, k=given.k)
    else:
        result["rules"] = {
            name: {"size": float(made.predict(given.scores).sizes.mean())} for name, made in fitted.items()
        }
    result = {"written": str(folder), "link": given.link, **result}
    if as_json:
        print_json(result)
        return
    print_results(f"{given.title} on the calibration data", result)
    say(f"\nrules: {folder}" + (f"\nnext: shortlist evaluate {run} test" if run else ""))
