"""``shortlist evaluate``: scores and sets against known labels."""

from pathlib import Path
from typing import Annotated

import typer

from shortlist.cli._arguments import (
    Address,
    AllowImport,
    DataName,
    EngineName,
    GpusPerWorker,
    Groups,
    Json,
    Labels,
    Link,
    ReaderOptions,
    Rules,
    RunPath,
    Scores,
    Truth,
    Weights,
    Workers,
    engine_from,
    split_overrides,
)
from shortlist.cli._output import GIVEN_SCORES, print_json, print_results, say, tell_skipped
from shortlist.text import command


def evaluate(
    run: RunPath = None,
    data: DataName = None,
    options: ReaderOptions = None,
    metric: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A metric, such as topk-accuracy@3. May be repeated.")
    ] = None,
    scores: Scores = None,
    labels: Labels = None,
    truth: Truth = None,
    rules: Rules = None,
    link: Link = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Also write the result as JSON.")
    ] = None,
    groups: Groups = None,
    weights: Weights = None,
    engine: EngineName = None,
    address: Address = None,
    workers: Workers = None,
    gpus_per_worker: GpusPerWorker = 0,
    allow_import: AllowImport = None,
    as_json: Json = False,
) -> None:
    """Measure a run, or any model's --scores, on labelled DATA: metrics of the scores, and of each fitted rule's sets.

    Metrics: topk-accuracy@k, average-k-accuracy@k, mean-average-precision, mean-average-precision-sample,
    precision@k, recall@k, ndcg@k. Of scenes: scene-recall@k, scene-mean-recall@k, scene-zero-shot-recall@k, and
    scene-recall-public@k and scene-mean-recall-public@k, which count as the public evaluators do; with -unconstrained
    before @k, any number of relations per pair. Images that cannot be decoded are left out and listed at the end, and
    the exit code is then 3.
    """
    from shortlist import runs

    data, overrides = split_overrides(data, options)
    opened = None if run is None else runs.Run(run, allow_import or ())
    result = runs.evaluate(
        opened,
        data,
        metrics=metric or (),
        overrides=overrides,
        scores=scores,
        labels=labels,
        truth=truth,
        rules=rules,
        link=link,
        out=out,
        groups=groups,
        weights=weights,
        allow_import=allow_import or (),
        engine=engine_from(engine, address, workers, gpus_per_worker),
    )
    if as_json:
        print_json(result)
        tell_skipped(result, quiet=True)
        return
    print_results(f"{result['objective'] or GIVEN_SCORES} on {result['data']}", result)
    if not result["rules"] and not (opened and opened.task):
        of_files = "shortlist calibrate --scores ... --out DIR, then --rules DIR"
        say(f"\nno sets: no rule is fitted yet ({command('shortlist', 'calibrate', run) if run else of_files})")
    tell_skipped(result)
