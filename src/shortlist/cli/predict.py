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
from shortlist.cli._output import GIVEN_SCORES, print_json, print_table, say


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
    from shortlist import runs

    data, overrides = split_overrides(data, options)
    result = runs.predict(
        run,
        data,
        rule=rule,
        out=out,
        overrides=overrides,
        draw=draw,
        images=images,
        scores=scores,
        rules=rules,
        link=link,
        allow_import=allow_import or (),
    )
    if as_json:
        print_json(result)
        return
    title, written = result["objective"] or GIVEN_SCORES, " and ".join(result["written"])
    if "constrained" in result:  # scenes
        row = [result["rule"], result["constrained"], result["examples"]]
        print_table(title, ["rule", "constrained", "images"], [row])
        say(f"\ngraphs: {written}")
        return
    print_table(title, ["rule", "examples", "mean size"], [[result["rule"], result["examples"], result["mean size"]]])
    say(f"\nsets: {written}")
