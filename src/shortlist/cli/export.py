"""``shortlist export``: a run as one ONNX file."""

from pathlib import Path
from typing import Annotated, Any

import typer

from shortlist.cli._arguments import AllowImport, Json, option
from shortlist.cli._output import print_json, print_line, say


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run directory.")],
    out: Annotated[Path, option("FILE", "The file to write, such as model.onnx.", "--out", "-o")],
    rule: Annotated[str | None, option("NAME", "Which rule makes the sets, such as average-k-5 or top-k:k=3.")] = None,
    allow_import: AllowImport = None,
    as_json: Json = False,
) -> None:
    """Write a run as one ONNX graph, from what it takes to scores, probabilities and sets of labels.

    The columns of a table go in as they are written, images as pixels. The number of rows is left open. The file says
    in its metadata what labels and inputs are called, by which rule sets are made, and what it promises. It is compared
    with the run before it is written.
    """
    from shortlist import runs

    result = runs.export(run, out=out, rule=rule, allow_import=allow_import or ())
    if as_json:
        print_json(result)
        return
    print_line(f"inputs: {'; '.join(_input(one) for one in result['inputs'])}")
    print_line(f"outputs: {', '.join(result['outputs'])}")
    print_line(f"rule: {result['rule']}" + (f" ({result['promise']})" if result["promise"] else ""))
    checked = result["checked"]
    say(
        f"checked with onnxruntime on {checked['rows']} made-up rows: scores differ by at most "
        f"{checked['largest difference of scores']:.1g}, sets in {checked['rows whose sets differ']} rows"
    )
    if result["breaks ties by hash"]:
        say(f"the rule breaks ties by a hash: the file needs a runtime that knows opset {result['opset']}")
    say(f"written: {result['written']}")


def _input(one: dict[str, Any]) -> str:
    if "shape" in one:
        return f"{one['name']} ({one['type']} {one['shape']})"
    columns = [str(name) for name in one["columns"]]
    return f"{one['name']} ({one['type']}: {', '.join(columns[:8])}{', ...' if len(columns) > 8 else ''})"
