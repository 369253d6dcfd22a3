"""``shortlist demo``: what the product is for, shown on embedded data in about a minute."""

import textwrap
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shortlist.cli._arguments import Json, Quiet
from shortlist.cli._output import print_json, print_table, say
from shortlist.cli._steps import Steps, make_steps
from shortlist.errors import ShortlistError

if TYPE_CHECKING:
    from shortlist.reports import ReportData
    from shortlist.runs.comparison import Row

_K = 2  # the mean number of readings of an image
_OBJECTIVES = ("cross-entropy", "smooth-topk", "average-k")
_RULES = {f"top-k-{_K}": f"top-{_K}", f"average-k-{_K}": f"average-{_K}"}  # file of a run -> name in the table
_BEST = "best possible"
_WIDTH = 80  # of text, as wide as the table


def demo(
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where runs and report go; runs/demo if not given."),
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
    size: Annotated[int, typer.Option(hidden=True, min=100, help="Training images.")] = 10_000,
    seeds: Annotated[int, typer.Option(hidden=True, min=1, help="Runs of each objective.")] = 3,
) -> None:
    """Train three objectives on images of numbers that can be read in 1, 2 or 4 ways, and compare their sets.

    Every objective gets the same network, data and epochs. TopK answers with 2
    labels every time, AverageK with 2 on average: the table shows what that is
    worth, the report shows all of it. Takes about a minute, needs no download.
    """
    from shortlist.runs.train import free_path

    folder = free_path(Path("runs") / "demo") if out is None else out
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ShortlistError(f"{folder} exists and is not an empty directory: choose another --out")
    with make_steps(len(_OBJECTIVES) * seeds + 2, quiet or as_json) as steps:
        data = _trained(folder, size, seeds, steps)
        steps.begin("writing the report")
        from shortlist.reports import write
        from shortlist.runs.comparison import best_possible, compare

        page = write(data, folder / "report")
        rows = compare(data, list(_RULES))
        best = replace(data, runs=[best_possible(data, _K, _BEST)])
        rows += compare(best, list(_RULES))
    if as_json:
        results = [{"objective": row.name, "rule": _RULES[row.rule], **row.mean, "spread": row.spread} for row in rows]
        print_json({"report": str(page), "k": _K, "seeds": seeds, "examples": data.shape[0], "results": results})
        return
    _print_results(rows, data, seeds)
    say(f"\nreport: {page}\nruns:   {folder} (shortlist evaluate, predict and report take any of them)")


def _trained(folder: Path, size: int, seeds: int, steps: Steps) -> "ReportData":
    """The runs' scores on the test images, with the images beside them."""
    steps.begin("making images and starting up")
    from shortlist.runs import Run, calibrate, train
    from shortlist.runs.report_data import from_runs
    from shortlist.runs.setup import read_parts

    parts, runs = read_parts(_config("cross-entropy", size, 0)), []
    for seed in range(seeds):
        for objective in _OBJECTIVES:
            steps.begin(f"training {objective}, seed {seed}")
            config, out = _config(objective, size, seed), folder / f"{objective}-seed-{seed}"
            runs.append(Run(train(config, out, parts=parts, progress=steps)["run"]))
            calibrate(runs[-1], data=parts["calibration"])
    return from_runs(runs, "test", "Numbers that can be read in more than one way")


def _config(objective: str, size: int, seed: int) -> Any:
    """The same for every objective, but for its name and k."""
    from shortlist.runs.config import RunConfig

    def images(part: str, count: int, draw: int = 0) -> dict[str, Any]:
        return {"reader": "ambiguous-numbers", "part": part, "size": count, "seed": draw}

    return RunConfig.model_validate(
        {
            "data": {
                "train": images("train", size),
                "validation": images("val", size // 5),
                "calibration": images("val", size // 5, draw=1),
                "test": images("test", size // 5),
            },
            "backbone": {"name": "mlp", "hidden": [512], "dropout": 0.2},
            "objective": {"name": objective} | ({} if objective == "cross-entropy" else {"k": _K}),
            "optimizer": {"name": "adamw", "lr": 2e-3, "weight_decay": 0.01},
            "schedule": {"name": "cosine"},
            "epochs": 12,
            "batch_size": 64,
            "rules": [{"name": "top-k", "k": _K}, {"name": "average-k", "k": _K}],
            "seed": seed,
        }
    )


# ---- what is printed


def _print_results(rows: "list[Row]", data: "ReportData", seeds: int) -> None:
    averaged = f", mean of {seeds} seeds" if seeds > 1 else ""
    header = ["objective", "sets", "top-1", "accuracy", "size", "covers", "exact", "sec."]  # fits 80 columns
    print_table(f"{data.shape[0]:,} test images{averaged}", header, [_cells(row) for row in rows])
    typer.echo(_how_to_read(rows))
    fixed = [row for row in rows if _RULES[row.rule] == f"top-{_K}"]
    average = [row for row in rows if _RULES[row.rule] == f"average-{_K}"]
    sizes = [["any objective", f"top-{_K}", *_sizes(fixed[0])]]
    sizes += [[row.name, f"average-{_K}", *_sizes(row)] for row in average]
    typer.echo()
    print_table("Set size by the number of possible readings", ["objective", "sets", "1", "2", "4"], sizes)
    typer.echo(_what_follows([row for row in average if row.name != _BEST]))


def _cells(row: "Row") -> list[str]:
    mean = row.mean
    percents = [f"{100 * mean[key]:.1f}%" for key in ("top1", "accuracy", "covers", "exact")]
    seconds = "" if row.name == _BEST else f"{mean['seconds']:.1f}"
    return [row.name, _RULES[row.rule], *percents[:2], f"{mean['size']:.2f}", *percents[2:], seconds]


def _sizes(row: "Row") -> list[str]:
    return [f"{size:.2f}" for size in row.mean["sizes"]]


def _how_to_read(rows: "list[Row]") -> str:
    text = (
        f"How to read it: half of the images can be read in one way, a quarter in two and a quarter in four, and one "
        f"of the readings is recorded. top-{_K} answers with {_K} labels always, average-{_K} with {_K} on average "
        f"(over the drawings it was calibrated on; these are others). accuracy: the set holds the recorded reading; "
        f"covers: it holds every possible one; exact: and nothing else. {_BEST}: someone who sees every "
        f"reading but cannot know which one was recorded. sec.: of training."
    )
    keys = ("top1", "accuracy", "covers", "exact")
    deviations = [row.spread[key] for row in rows for key in keys if key in row.spread]
    if deviations:
        text += f" Standard deviation over seeds: at most {100 * max(deviations):.1f} points."
    return textwrap.fill(text, _WIDTH, break_on_hyphens=False)


def _what_follows(average: "list[Row]") -> str:
    """As measured, whoever wins."""
    follow = [row.name for row in average if row.mean["sizes"] == sorted(set(row.mean["sizes"]))]
    others = [row.name for row in average if row.name not in follow]
    said = []
    if follow:
        said.append(f"With average-{_K} sets the size follows the ambiguity after training with {_listed(follow)}.")
    if others:
        said.append(f"After training with {_listed(others)} it does not follow it, on this data with this budget.")
    return textwrap.fill(" ".join(said), _WIDTH, break_on_hyphens=False)


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
