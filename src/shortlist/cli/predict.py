"""``shortlist predict``: the sets of labels of some data, written to a file."""

from pathlib import Path
from typing import Annotated

import typer

from shortlist.cli._arguments import (
    AllowImport,
    DataName,
    Json,
    Link,
    ReaderOptions,
    Rules,
    RunPath,
    Scores,
    split_overrides,
)
from shortlist.cli._output import print_json, print_table, say
from shortlist.errors import ShortlistError


def predict(
    run: RunPath = None,
    data: DataName = None,
    options: ReaderOptions = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="sets.parquet or sets.jsonl; in RUN/predictions if not given."
        ),
    ] = None,
    rule: Annotated[str | None, typer.Option(metavar="NAME", help="Which fitted rule, such as average-k-5.")] = None,
    draw: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Of scenes: also draw every predicted graph, as SVG.")
    ] = None,
    images: Annotated[
        Path | None, typer.Option(metavar="DIR", help="With --draw: the folder of the images to draw them on.")
    ] = None,
    scores: Scores = None,
    rules: Rules = None,
    link: Link = None,
    allow_import: AllowImport = None,
    as_json: Json = False,
) -> None:
    """Write the predicted set of labels of every example, by one of the rules that calibrate fitted.

    DATA needs no labels: a file of features or a folder of images will do. With --scores and --rules, sets are made of
    any model's scores. NAME may also be a rule that needs no fitting, such as top-k:k=3. Of scenes the k best relations
    of each image are written, as graphs (.jsonl).
    """
    from shortlist.runs import given as inputs
    from shortlist.runs.run import write_json

    if images is not None and draw is None:
        raise ShortlistError("--images goes with --draw DIR: it is what the graphs are drawn on")
    data, overrides = split_overrides(data, options)
    given = inputs.scores_for_prediction(
        run, data, overrides, scores, rules, link, tuple(allow_import or ()), labelled=False
    )
    if given.scenes is not None and run is not None:
        from shortlist.cli._scenes import write_predictions

        write_predictions(given, run, out, rule, draw, images, as_json)
        return
    if draw is not None:
        raise ShortlistError("--draw is for scenes: other data has no graphs to draw")
    name, chosen = inputs.choose_rule(given, rule)
    if out is None:
        if run is None:
            raise ShortlistError("with --scores say where the sets go: -o sets.parquet")
        out = run / "predictions" / f"{given.name}-{name}.parquet"
        out.parent.mkdir(exist_ok=True)
    sets = inputs.named_sets(chosen.predict(given.scores), given.vocabulary)
    if out.suffix == ".jsonl":
        sets.to_jsonl(out)
    elif out.suffix == ".parquet":
        sets.to_parquet(out)
    else:
        raise ShortlistError(f"-o {out}: sets are written as .parquet or .jsonl")
    written = [str(out)]
    if given.ids is not None:
        beside = out.with_suffix(".ids.json")
        write_json(beside, list(given.ids))
        written.append(str(beside))
    result = {
        "written": written,
        "rule": name,
        "examples": len(sets),
        "mean size": float(sets.sizes.mean()) if len(sets) else 0.0,
    }
    if as_json:
        print_json(result)
        return
    print_table(given.title, ["rule", "examples", "mean size"], [[name, len(sets), result["mean size"]]])
    say(f"\nsets: {' and '.join(written)}")
