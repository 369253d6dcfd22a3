"""``shortlist evaluate``: scores and sets against known labels."""

from pathlib import Path
from typing import Annotated

from shortlist.cli import _arguments as given
from shortlist.cli._output import GIVEN_SCORES, print_json, print_results, say, tell_skipped
from shortlist.text import command


@given.with_options
def evaluate(
    run: given.RunPath = None,
    data: given.DataName = None,
    options: given.ReaderOptions = None,
    metric: Annotated[
        list[str] | None, given.option("NAME", "A metric, such as topk-accuracy@3. May be repeated.")
    ] = None,
    rules: given.Rules = None,
    out: Annotated[Path | None, given.option("FILE", "Also write the result as JSON.", "--out", "-o")] = None,
    *,
    other: given.LabelledScores,
    by: given.Engine,
    allow_import: given.AllowImport = None,
    as_json: given.Json = False,
) -> None:
    """Measure a run, or any model's --scores, on labelled DATA: metrics of the scores, and of each fitted rule's sets.

    Metrics: topk-accuracy@k, average-k-accuracy@k, mean-average-precision, mean-average-precision-sample,
    precision@k, recall@k, ndcg@k. Of scenes: scene-recall@k, scene-mean-recall@k, scene-zero-shot-recall@k, and
    scene-recall-public@k and scene-mean-recall-public@k, which count as the public evaluators do; with -unconstrained
    before @k, any number of relations per pair. Images that cannot be decoded or are not there are left out and told
    at the end, and the exit code is then 3.
    """
    from shortlist import runs

    data, overrides = given.split_overrides(data, options)
    allowed = allow_import or ()
    opened = None if run is None else runs.Run(run, allowed)
    read = {"overrides": overrides, "rules": rules, "allow_import": allowed, **vars(other)}
    result = runs.evaluate(opened, data, metrics=metric or (), out=out, engine=by.made(), **read)
    if as_json:
        print_json(result)
    else:
        print_results(f"{result['objective'] or GIVEN_SCORES} on {result['data']}", result)
        if not result["rules"] and not (opened and opened.task):
            of_files = "shortlist calibrate --scores ... --out DIR, then --rules DIR"
            say(f"\nno sets: no rule is fitted yet ({command('shortlist', 'calibrate', run) if run else of_files})")
    tell_skipped(result, quiet=as_json)
