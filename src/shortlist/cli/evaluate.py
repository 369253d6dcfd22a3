"""``shortlist evaluate``: scores and sets against known labels."""

from pathlib import Path
from typing import Annotated

import typer

from shortlist.cli._arguments import (
    AllowImport,
    DataName,
    Json,
    Labels,
    Link,
    ReaderOptions,
    Rules,
    RunPath,
    Scores,
    split_overrides,
)
from shortlist.cli._output import print_json, print_results, say


def evaluate(
    run: RunPath = None,
    data: DataName = None,
    options: ReaderOptions = None,
    metric: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A metric, such as topk-accuracy@3. May be repeated.")
    ] = None,
    scores: Scores = None,
    labels: Labels = None,
    rules: Rules = None,
    link: Link = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Also write the result as JSON.")
    ] = None,
    allow_import: AllowImport = None,
    as_json: Json = False,
) -> None:
    """Measure a run, or any model's --scores, on labelled DATA: metrics of the scores, and of each fitted rule's sets.

    Metrics: topk-accuracy@k, average-k-accuracy@k, mean-average-precision, mean-average-precision-sample,
    precision@k, recall@k, ndcg@k; of scenes scene-recall@k, scene-mean-recall@k and, with any number of relations per
    pair, scene-recall-unconstrained@k and scene-mean-recall-unconstrained@k.
    """
    from shortlist.runs import evaluate as measured
    from shortlist.runs import given as inputs
    from shortlist.runs.run import write_json

    data, overrides = split_overrides(data, options)
    given = inputs.scores_for_prediction(
        run, data, overrides, scores, rules, link, tuple(allow_import or ()), labels=labels
    )
    if given.target is None:
        raise AssertionError("labels were asked for above")
    if given.scenes is not None:
        found = measured.evaluate_scenes(given.scores, given.scenes.inputs.answers(), metric or ())
    else:
        found = measured.evaluate(
            given.scores, given.target, given.link, given.fitted, truth=given.truth, metrics=metric or (), k=given.k
        )
    result = {"objective": given.objective, "data": given.name, "link": given.link, **found}
    if out is not None:
        write_json(out, result)
    if as_json:
        print_json(result)
        return
    print_results(f"{given.title} on {given.name}", result)
    if not given.fitted and given.scenes is None:
        command = (
            f"shortlist calibrate {run}" if run else "shortlist calibrate --scores ... --out DIR, then --rules DIR"
        )
        say(f"\nno sets: no rule is fitted yet ({command})")
