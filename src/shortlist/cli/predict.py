"""``shortlist predict``: the sets of labels of some data, written to a file."""

from pathlib import Path
from typing import Annotated, Any

from shortlist.cli import _arguments as given
from shortlist.cli._output import GIVEN_SCORES, print_json, print_table, say, tell_skipped


@given.with_options
def predict(
    run: given.RunPath = None,
    data: given.DataName = None,
    options: given.ReaderOptions = None,
    out: Annotated[
        str | None,  # a path or, with --engine, a URL
        given.option("FILE", "A .csv, .parquet or .jsonl; a .csv in RUN/predictions if not given.", "--out", "-o"),
    ] = None,
    rule: Annotated[str | None, given.option("NAME", "Which fitted rule, such as average-k-5.")] = None,
    draw: Annotated[Path | None, given.option("DIR", "Of scenes: also draw every predicted graph, as SVG.")] = None,
    images: Annotated[
        Path | None,
        given.option(
            "DIR", "Where the images are that a table lists. With --draw: the folder of the images to draw on."
        ),
    ] = None,
    explain: Annotated[
        Path | None,
        given.option("FILE", "A .jsonl or .parquet: the training examples that speak for each label, with weights."),
    ] = None,
    rules: given.Rules = None,
    *,
    other: given.Scores,
    by: given.Engine,
    allow_import: given.AllowImport = None,
    as_json: given.Json = False,
) -> None:
    """Write the predicted set of labels of every example, with their probabilities, by one of the rules that calibrate
    fitted.

    DATA needs no labels: a table, texts in a .txt, a folder of images, or one image will do, also for a run on features
    of images that knows what made them. Images that cannot be decoded or are not there are left out and told at the
    end, and the exit code is then 3. Where the objective only ranks, there are scores instead of probabilities. With
    --scores and --rules, sets are made of any model's scores. NAME may also be a rule that needs no fitting, such as
    top-k:k=3. Of scenes the k best relations of each image are written, as graphs (.jsonl).
    """
    from shortlist import runs

    data, overrides = given.split_overrides(data, options)
    wanted: dict[str, Any] = {"rule": rule, "out": out, "draw": draw, "images": images, "explain": explain}
    read = {"overrides": overrides, "rules": rules, "allow_import": allow_import or (), **vars(other)}
    result = runs.predict(run, data, **wanted, **read, engine=by.made())
    if as_json:
        print_json(result)
        tell_skipped(result, quiet=True)
        return
    title, written = result["objective"] or GIVEN_SCORES, " and ".join(result["written"])
    if "mean size" not in result:  # of a vertical room's task: no sets
        row = {key: value for key, value in result.items() if key not in ("written", "objective")}
        print_table(title, list(row), [list(row.values())])
        say(f"\nwritten: {written}")
        return
    print_table(title, ["rule", "examples", "mean size"], [[result["rule"], result["examples"], result["mean size"]]])
    say(f"\nsets: {written}")
    for first in result["first"]:
        numbers = first.get("probabilities", first.get("scores", []))
        found = ", ".join(f"{name} {number:.2f}" for name, number in zip(first["labels"], numbers, strict=True))
        say(f"  {first['id']}: {found or 'no label'}".replace("\n", "\\n"))
    if result["examples"] > len(result["first"]):
        say("  ...")
    for note in result["notes"]:
        say(note)
    tell_skipped(result)
