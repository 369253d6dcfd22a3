"""``shortlist demo``: what the product is for, shown on embedded data in about a minute."""

import textwrap
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shortlist.cli._arguments import Json, Quiet, option
from shortlist.cli._output import print_json, print_table, say
from shortlist.cli._steps import Steps, make_steps
from shortlist.errors import ShortlistError

if TYPE_CHECKING:
    from shortlist.reports import ReportData
    from shortlist.runs.comparison import Row

_OBJECTIVES = ("cross-entropy", "smooth-topk", "average-k")
_BEST = "best possible"
_WIDTH = 80  # of text, as wide as the table


@dataclass(frozen=True)
class _Part:
    """One half of the demo: the data, and how long every objective is trained on it."""

    name: str
    k: int  # labels in a set
    shares: tuple[float, float, float]  # of images that can be read in 1, 2 and 4 ways
    noisy: bool  # every training label is drawn anew among five neighbours, and no validation images choose the epoch
    size: float  # training images, as a share of the demo's
    epochs: int

    @property
    def rules(self) -> dict[str, str]:
        """The file of a run -> its name in the table."""
        return {f"top-k-{self.k}": f"top-{self.k}", f"average-k-{self.k}": f"average-{self.k}"}


_NOISY = _Part("noisy", 5, (1.0, 0.0, 0.0), noisy=True, size=0.3, epochs=60)
_AMBIGUOUS = _Part("ambiguous", 2, (0.5, 0.25, 0.25), noisy=False, size=1.0, epochs=12)


def demo(
    out: Annotated[
        Path | None,
        option("DIR", "Where runs and report go; runs/demo if not given.", "--out", "-o"),
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
    size: Annotated[int, typer.Option(hidden=True, min=100, help="Training images.")] = 5_000,
    seeds: Annotated[int, typer.Option(hidden=True, min=1, help="Runs of each objective.")] = 2,
) -> None:
    """Train three objectives where the loss matters and where it does not, and compare their sets.

    First on images of numbers whose training labels are drawn among neighbours, to
    the last epoch; then on images that can be read in 1, 2 or 4 ways, with clean
    labels. Every objective gets the same network, data and epochs. TopK answers with k
    labels every time, AverageK with k on average. Takes about a minute, needs no
    download.
    """
    from shortlist.runs.train import free_path

    folder = free_path(Path("runs") / "demo") if out is None else out
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ShortlistError(f"{folder} exists and is not an empty directory: choose another --out")
    with make_steps(2 * len(_OBJECTIVES) * seeds + 3, quiet or as_json) as steps:
        noisy = _trained(folder, _NOISY, size, seeds, steps)
        data = _trained(folder, _AMBIGUOUS, size, seeds, steps)
        steps.begin("writing the report")
        from shortlist.reports import write
        from shortlist.runs.comparison import best_possible, compare

        page = write(data, folder / "report")
        noisy_rows = compare(noisy, list(_NOISY.rules))
        rows = compare(data, list(_AMBIGUOUS.rules))
        best = replace(data, runs=[best_possible(data, _AMBIGUOUS.k, _BEST)])
        rows += compare(best, list(_AMBIGUOUS.rules))
    if as_json:
        facts = {"report": str(page), "k": _AMBIGUOUS.k, "seeds": seeds, "examples": data.shape[0]}
        noisy_facts = {"k": _NOISY.k, "results": _as_json(_NOISY, noisy_rows)}
        print_json({**facts, "results": _as_json(_AMBIGUOUS, rows), "noisy": noisy_facts})
        return
    _print_noisy(noisy_rows, noisy, seeds)
    typer.echo()
    _print_ambiguous(rows, data, seeds)
    say(f"\nreport: {page}\nruns:   {folder} (shortlist evaluate, predict and report take any of them)")


def _as_json(part: _Part, rows: "list[Row]") -> list[dict[str, Any]]:
    return [{"objective": row.name, "rule": part.rules[row.rule], **row.mean, "spread": row.spread} for row in rows]


def _trained(folder: Path, part: _Part, size: int, seeds: int, steps: Steps) -> "ReportData":
    """The runs' scores on the test images, with the images beside them."""
    steps.begin(f"making {part.name} images")
    from shortlist.runs import Run, calibrate, train
    from shortlist.runs.report_data import from_runs
    from shortlist.runs.setup import read_parts

    parts, runs = read_parts(_config(part, "cross-entropy", size, 0)), []
    for seed in range(seeds):
        for objective in _OBJECTIVES:
            steps.begin(f"training {objective} on {part.name} images, seed {seed}")
            config, out = _config(part, objective, size, seed), folder / f"{part.name}-{objective}-seed-{seed}"
            runs.append(Run(train(config, out, parts=parts, progress=steps)["run"]))
            calibrate(runs[-1], data=parts["calibration"])
    return from_runs(runs, "test", "Numbers that can be read in more than one way")


def _config(part: _Part, objective: str, size: int, seed: int) -> Any:
    """The same for every objective, but for its name and k."""
    from shortlist.runs.config import RunConfig

    def images(which: str, count: int, draw: int = 0) -> dict[str, Any]:
        return {"reader": "ambiguous-numbers", "part": which, "size": count, "seed": draw, "shares": list(part.shares)}

    noise = [{"name": "noise-within-groups", "p": 1.0, "block": 5, "parts": ["train"]}] if part.noisy else []
    return RunConfig.model_validate(
        {
            "data": {
                "train": images("train", int(part.size * size)),
                "validation": None if part.noisy else images("val", size // 5),
                "calibration": images("val", size // 5, draw=1),
                "test": images("test", min(2000, 2 * size // 5)),
                "corruptions": noise,
            },
            "backbone": {"name": "mlp", "hidden": [512], "dropout": 0.0 if part.noisy else 0.2},
            "objective": {"name": objective} | ({} if objective == "cross-entropy" else {"k": part.k}),
            "optimizer": {"name": "adamw", "lr": 3e-3 if part.noisy else 2e-3, "weight_decay": 0.01},
            "schedule": {"name": "constant" if part.noisy else "cosine"},
            "epochs": part.epochs,
            "batch_size": 64,
            "rules": [{"name": "top-k", "k": part.k}, {"name": "average-k", "k": part.k}],
            "seed": seed,
        }
    )


# ---- what is printed


def _print_noisy(rows: "list[Row]", data: "ReportData", seeds: int) -> None:
    """Where the loss matters."""
    part, averaged = _NOISY, f", mean of {seeds} seeds" if seeds > 1 else ""
    header = ["objective", "sets", "top-1", "accuracy", "size", "sec."]
    shown = [_cells(row, part) for row in rows]
    title = f"1. Vague labels, trained to the end: {data.shape[0]:,} test images{averaged}"
    print_table(title, header, [[*cells[:5], cells[-1]] for cells in shown])
    text = (
        f"How to read it: every training label was drawn among five neighbouring numbers (20 to 24, say), one of which "
        f"is right; nobody held out clean labels, and training went on until a network can know its labels by heart. "
        f"Test labels are right. top-{part.k} answers with {part.k} labels always, average-{part.k} with {part.k} on "
        f"average. {_leaders(rows, part)}"
    )
    typer.echo(textwrap.fill(text, _WIDTH, break_on_hyphens=False))


def _leaders(rows: "list[Row]", part: _Part) -> str:
    """As measured, whoever wins: the best objective for each kind of sets, and how far cross-entropy is from it."""
    said = []
    for rule, name in part.rules.items():
        here = {row.name: 100 * row.mean["accuracy"] for row in rows if row.rule == rule and row.name != _BEST}
        best = max(here, key=here.__getitem__)
        behind = here[best] - here["cross-entropy"]
        more = f", {behind:.1f} points above cross-entropy" if best != "cross-entropy" else ""
        said.append(f"{name} sets hold the label most often after {best}{more}")
    return f"{'; '.join(said)}."


def _print_ambiguous(rows: "list[Row]", data: "ReportData", seeds: int) -> None:
    """Where the sets matter, and the loss does not."""
    part, averaged = _AMBIGUOUS, f", mean of {seeds} seeds" if seeds > 1 else ""
    header = ["objective", "sets", "top-1", "accuracy", "size", "covers", "exact", "sec."]  # fits 80 columns
    title = f"2. Several readings, clean labels: {data.shape[0]:,} test images{averaged}"
    print_table(title, header, [_cells(row, part) for row in rows])
    typer.echo(_how_to_read(rows))
    fixed = [row for row in rows if part.rules[row.rule] == f"top-{part.k}"]
    average = [row for row in rows if part.rules[row.rule] == f"average-{part.k}"]
    sizes = [["any objective", f"top-{part.k}", *_sizes(fixed[0])]]
    sizes += [[row.name, f"average-{part.k}", *_sizes(row)] for row in average]
    typer.echo()
    print_table("Set size by the number of possible readings", ["objective", "sets", "1", "2", "4"], sizes)
    typer.echo(_what_follows([row for row in average if row.name != _BEST]))


def _cells(row: "Row", part: _Part) -> list[str]:
    mean = row.mean
    percents = [f"{100 * mean[key]:.1f}%" for key in ("top1", "accuracy", "covers", "exact")]
    seconds = "" if row.name == _BEST else f"{mean['seconds']:.1f}"
    return [row.name, part.rules[row.rule], *percents[:2], f"{mean['size']:.2f}", *percents[2:], seconds]


def _sizes(row: "Row") -> list[str]:
    return [f"{size:.2f}" for size in row.mean["sizes"]]


def _how_to_read(rows: "list[Row]") -> str:
    k = _AMBIGUOUS.k
    text = (
        f"How to read it: half of the images can be read in one way, a quarter in two and a quarter in four, and one "
        f"of the readings is recorded. top-{k} answers with {k} labels always, average-{k} with {k} on average "
        f"(over the drawings it was calibrated on; these are others). accuracy: the set holds the recorded reading; "
        f"covers: it holds every possible one; exact: and nothing else. {_BEST}: someone who sees every "
        f"reading but cannot know which one was recorded. sec.: of training. {_leaders(rows, _AMBIGUOUS)}"
    )
    keys = ("top1", "accuracy", "covers", "exact")
    deviations = [row.spread[key] for row in rows for key in keys if key in row.spread]
    if deviations:
        text += f" Standard deviation over seeds: at most {100 * max(deviations):.1f} points."
    return textwrap.fill(text, _WIDTH, break_on_hyphens=False)


def _what_follows(average: "list[Row]") -> str:
    """As measured, whoever wins."""
    k = _AMBIGUOUS.k
    follow = [row.name for row in average if row.mean["sizes"] == sorted(set(row.mean["sizes"]))]
    others = [row.name for row in average if row.name not in follow]
    said = []
    if follow:
        said.append(f"With average-{k} sets the size follows the ambiguity after training with {_listed(follow)}.")
    if others:
        said.append(f"After training with {_listed(others)} it does not follow it, on this data with this budget.")
    return textwrap.fill(" ".join(said), _WIDTH, break_on_hyphens=False)


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
