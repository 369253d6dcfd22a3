"""``shortlist train``: from a config file to a run directory."""

from pathlib import Path
from typing import Annotated, Any

import typer

from shortlist.cli._arguments import AllowImport, Json, Overrides, Quiet
from shortlist.cli._output import print_json, print_table, say
from shortlist.cli._progress import make_progress
from shortlist.errors import ShortlistError

_INTERRUPTED = 130


def train(
    config: Annotated[str | None, typer.Argument(metavar="CONFIG", help="A YAML file.", show_default=False)] = None,
    overrides: Overrides = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="The run directory; runs/NAME if not given.")] = None,
    resume: Annotated[Path | None, typer.Option(metavar="RUN", help="Continue this run after its last epoch.")] = None,
    print_config: Annotated[bool, typer.Option("--print-config", help="Print the complete config and stop.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read the data, build the model, try one step; write nothing.")
    ] = False,
    allow_import: AllowImport = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a model as CONFIG says, with any KEY=VALUE changed.

    The run directory holds the complete config, the metrics of every epoch and the best and last checkpoints. A run
    that was interrupted, however rudely, continues with --resume RUN.
    """
    from shortlist.runs.config import load_config
    from shortlist.runs.run import Run
    from shortlist.runs.setup import resolve

    allowed = tuple(allow_import or ())
    if resume is not None:
        if config or overrides or out or print_config or dry_run:
            raise ShortlistError(
                "--resume continues a run as it is: give no config, changes, --out, --print-config or --dry-run"
            )
        settings = resolve(Run(resume).config, allowed)
    elif config is None:
        raise ShortlistError(
            "give a config file, or --resume RUN (examples of configs are in the repository's examples/)"
        )
    else:
        settings = resolve(load_config(config, overrides or ()), allowed)
    if print_config:
        typer.echo(settings.to_yaml(), nl=False)
        return
    _train(settings, Path(config or "run").stem, out, resume, dry_run, allowed, quiet, as_json)


def _train(
    settings: Any,
    name: str,
    out: Path | None,
    resume: Path | None,
    dry_run: bool,
    allowed: tuple[str, ...],
    quiet: bool,
    as_json: bool,
) -> None:
    from shortlist.runs import setup
    from shortlist.runs.run import Run
    from shortlist.training import loop

    if resume is None and out is not None:
        Run.check_new(out)  # before any work
    fabric = loop.make_fabric(settings)
    if not dry_run:
        fabric.launch()
    parts = setup.read_parts(settings)
    facts = setup.facts_of(parts["train"])
    learner = setup.build_learner(settings, facts, allowed, train_set=parts["train"])
    if dry_run:
        result = _tried(learner, parts, settings)
        print_json(result) if as_json else print_table(settings.objective.name, ["", ""], list(result.items()))
        return

    run = None
    if fabric.is_global_zero:
        run = Run(resume) if resume else Run.create(out or free_path(Path("runs") / name), settings, facts)
        run.clear_leftovers()
    path = fabric.broadcast(str(run.path) if run else "")
    run = Run(path)
    try:
        history = loop.train(
            learner.backbone,
            learner.objective,
            parts["train"],
            parts.get("validation"),
            settings,
            run=run,
            progress=make_progress(quiet or as_json),
            resume=resume is not None,
            fabric=fabric,
        )
    except KeyboardInterrupt:
        say(f"interrupted after epoch {run.checkpoint.get('last', 0)}; continue with: shortlist train --resume {path}")
        raise typer.Exit(_INTERRUPTED) from None
    if not fabric.is_global_zero:
        return
    result = {
        "run": path,
        "objective": settings.objective.name,
        "epochs": len(history.records),
        "metric": history.metric,
        "best": history.best,
    }
    if as_json:
        print_json(result)
        return
    rows = [(key, value) for key, value in (history.best or {}).items() if key != "seconds"]
    print_table(
        f"{settings.objective.name}: {'best epoch' if history.metric else 'last epoch'}", ["metric", "value"], rows
    )
    if not quiet:
        following = f"evaluate {path} test" if facts["scenes"] else f"calibrate {path}"
        say(f"\nrun: {path}\nnext: shortlist {following}")


def _tried(learner: Any, parts: dict[str, Any], settings: Any) -> dict[str, Any]:
    """One training step on the first batch, and what there is to say about the run."""
    import torch

    from shortlist.training.batches import batches
    from shortlist.training.learner import features_of
    from shortlist.training.loop import choose_metrics

    train_set = parts["train"]
    metric, _ = choose_metrics(learner.objective, train_set, parts.get("validation"), settings)
    steps = batches(torch.arange(len(train_set)), settings.batch_size, settings.devices)
    objective = learner.objective
    if train_set.side is not None:
        objective.see_side_labels(train_set.side)
    objective.start_epoch(settings.epochs - 1, settings.epochs)  # past any warm-up
    wanted = objective.wanted_rows(changing=False)
    if wanted is not None:
        objective.remember(features_of(learner, train_set, wanted))
    inputs, target = train_set.batch(steps[0])
    loss = learner.train()(inputs, target, steps[0])
    loss.backward()
    return {
        **{f"{part} examples": len(data) for part, data in parts.items()},
        "input shape": list(train_set.in_shape),
        "labels": train_set.num_labels,
        "weights": sum(weight.numel() for weight in learner.parameters()),
        "batches per epoch": len(steps),
        "epochs": settings.epochs,
        "chosen by": metric or "last epoch",
        "loss of the first batch": loss.item(),
    }


def free_path(path: Path) -> Path:
    """The path, or with the first number that makes it new."""
    free, number = path, 2
    while free.exists():
        free, number = path.with_name(f"{path.name}-{number}"), number + 1
    return free
