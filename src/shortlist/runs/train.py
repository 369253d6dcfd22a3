"""From a config to a run directory."""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from shortlist.data import Dataset, TextEncoder
from shortlist.errors import ShortlistError, ShortlistWarning
from shortlist.files import PathLike, read_json
from shortlist.models.huggingface import TextNetwork
from shortlist.runs.backbone_choice import TRIED, in_words
from shortlist.runs.config import CONFIG, RunConfig, Source, as_config
from shortlist.runs.environment import environment
from shortlist.runs.lock import locked
from shortlist.runs.machines import check_shared, machines
from shortlist.runs.prepare import Prepared, prepare
from shortlist.runs.results import skipped_images
from shortlist.runs.run import ENVIRONMENT, Run, open_run
from shortlist.runs.setup import repeated, resolve
from shortlist.text import command
from shortlist.training import loop
from shortlist.training.auto_settings import steps_per_epoch
from shortlist.training.concerns import concerns
from shortlist.training.history import History


class Interrupted(KeyboardInterrupt):
    """Training was interrupted; the message says how to go on."""


def train(
    config: RunConfig | Mapping[str, Any] | PathLike | None = None,
    out: PathLike | None = None,
    *,
    overrides: Sequence[str] = (),
    resume: Run | PathLike | None = None,
    parts: Mapping[str, Dataset] | None = None,
    progress: loop.Progress | None = None,
    say: Callable[[str], None] | None = None,
    allow_import: Sequence[str] = (),
) -> dict[str, Any]:
    """Train as a config says; with ``key=value`` overrides. It is what ``shortlist train`` does, and prints as JSON.

    ``config`` is a config, a mapping of its keys or the path of a YAML file; ``out`` is the run directory,
    ``runs/NAME`` if not given. ``resume`` continues a run after its last epoch instead. ``parts`` is the data, where it
    is read already. ``say`` is told which batch size and epochs were chosen, where the config leaves that open; what is
    unlikely to work is a `ShortlistWarning`. Where several processes share the training, all but
    the first return an empty result.

    >>> import tempfile
    >>> config = {"data": {"train": {"reader": "ambiguous-numbers", "size": 200}}, "epochs": 2}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = train(config, f"{folder}/first")
    >>> done["epochs"], done["metric"], done["objective"]
    (2, 'topk-accuracy@1', 'cross-entropy')
    """
    return train_run(
        config, out, overrides=overrides, resume=resume, parts=parts, progress=progress, say=say,
        allow_import=allow_import,
    )[1]  # fmt: skip


def train_run(
    config: RunConfig | Mapping[str, Any] | PathLike | None,
    out: PathLike | None,
    *,
    overrides: Sequence[str] = (),
    resume: Run | PathLike | None = None,
    parts: Mapping[str, Dataset] | None = None,
    read: Callable[[Source, str], Dataset] | None = None,
    progress: loop.Progress | None = None,
    say: Callable[[str], None] | None = None,
    allow_import: Sequence[str] = (),
) -> tuple[Run | None, dict[str, Any]]:
    """As `train`: the run, which has its data ready, and the result. ``read``: as of `read_parts`."""
    fitted, broken = None, None
    if resume is not None:
        if config is not None or out is not None or overrides:
            raise ShortlistError("resume continues a run as it is: give no config, overrides or out")
        old = open_run(resume, allow_import)
        old.check_resumable()
        settings, place, fitted = resolve(old.config, old.allow_import), old.path, old.preprocessor
        broken = old.broken_images
    elif config is None:
        raise ShortlistError("give a config, or a run to resume")
    else:
        settings = resolve(as_config(config, overrides), allow_import)
        name = "run" if isinstance(config, RunConfig | Mapping) else Path(config).stem
        place = free_path(Path("runs") / name) if out is None else Path(out)
        if out is not None and is_restart_of(out):
            return train_run(None, None, resume=out, parts=parts, progress=progress, say=say, allow_import=allow_import)
        if out is not None:
            Run.check_new(out)  # before any work
    fabric = loop.make_fabric(settings, place)
    fabric.launch()
    if machines() > 1:
        check_shared(fabric, place)
        if say is not None and fabric.is_global_zero:
            say(f"{fabric.world_size} processes on {machines()} machines, which all see the place of {place}")
    ready = prepare(settings, parts=parts, read=read, preprocessor=fitted, broken=broken, allow_import=allow_import)
    if fabric.is_global_zero:
        examples, chosen = len(ready.parts["train"]), ready.config
        if say is not None and (settings.epochs, settings.batch_size) != (chosen.epochs, chosen.batch_size):
            steps = f"{chosen.epochs} epochs of {steps_per_epoch(chosen, examples)} steps"
            how = "all at once" if chosen.optimizer.name == "lbfgs" else f"batches of {chosen.batch_size}, {steps}"
            say(f"{examples} training examples: {how}")
        train_set = ready.parts["train"]
        if say is not None:
            used = () if train_set.columns is None else train_set.columns.lines()
            prepared = ready.preprocessor.describe(left_out=False).splitlines() if ready.preprocessor else ()
            chosen_by = ready.facts[TRIED]
            backbone = () if chosen_by is None else (f"backbone: {in_words(chosen.backbone, chosen_by)}",)
            for line in (*used, *prepared, *train_set.notes, *backbone):
                say(line)
        twice: Sequence[str] = ()
        if parts is None and resume is None:
            twice = repeated(chosen, ready.parts) if ready.repeats is None else ready.repeats
        for concern in (*ready.remarks, *concerns(chosen, ready.parts["train"]), *twice):
            warnings.warn(concern, ShortlistWarning, stacklevel=3)
    run, history = train_prepared(ready, place, resume=resume is not None, progress=progress, fabric=fabric)
    if run is not None and parts is None:
        run.keep(ready.parts)
    if run is None or not fabric.is_global_zero:
        return run, {}
    return run, {
        "run": str(run.path),
        "objective": settings.objective.name,
        "epochs": len(history.records),
        "metric": history.metric,
        "best": history.best,
        "skipped": skipped_images(*(data.skipped for data in ready.parts.values())),
    }


def train_prepared(
    ready: Prepared,
    out: PathLike | None,
    *,
    resume: bool = False,
    progress: loop.Progress | None = None,
    fabric: Any = None,
) -> tuple[Run | None, History]:
    """Train what is prepared: in memory, or in a run directory, which ``resume`` continues. Afterwards the model holds
    the best epoch's weights. ``fabric`` is what `shortlist.training.loop.make_fabric` made, launched.

    A new run that fails before its first epoch is saved leaves no directory.
    """
    fabric = loop.make_fabric(ready.config, out) if fabric is None else fabric
    run, held = None, ExitStack()
    if out is not None:
        if fabric.is_global_zero:
            run = (
                Run(out)
                if resume
                else Run.create(out, ready.config, ready.facts, ready.preprocessor, _network_files(ready))
            )
            held.enter_context(locked(run.path))
            run.clear_leftovers()
        path = fabric.broadcast(str(run.path) if run else "")
        run = run or Run(path)
    try:
        history = loop.train(
            ready.learner.backbone,
            ready.learner.objective,
            ready.parts["train"],
            ready.parts.get("validation"),
            ready.config,
            run=run,
            progress=progress,
            resume=resume,
            fabric=fabric,
            choice=ready.choice,
            allow_import=ready.allow_import,
        )
    except KeyboardInterrupt:
        if run is None:
            raise
        done = run.checkpoint.get("last", 0)
        raise Interrupted(
            f"interrupted after epoch {done}; continue with: " + command("shortlist", "train", "--resume", run.path)
        ) from None
    except Exception:
        if run is not None and not resume and fabric.is_global_zero:
            run.discard()
        raise
    finally:
        held.close()
    return run, history


def _network_files(ready: Prepared) -> Mapping[str, str]:
    """What a run keeps of a network of Hugging Face's that reads its texts: of the encoder, or of the backbone."""
    train_set, backbone = ready.parts["train"], ready.learner.backbone
    if isinstance(train_set.encoder, TextEncoder):
        return train_set.encoder.files
    return backbone.files() if isinstance(backbone, TextNetwork) else {}


def is_restart_of(out: PathLike) -> bool:
    """Whether torchrun restarts the very command that began the run in ``out``: then it goes on with that run."""
    if int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) == 0 or not (Path(out) / CONFIG).is_file():
        return False
    began, now = read_json(Path(out) / ENVIRONMENT), environment()
    return all(began.get(key) == now[key] for key in ("command", "torchrun"))


def free_path(path: Path) -> Path:
    """The path, or with the first number that makes it new."""
    free, number = path, 2
    while free.exists():
        free, number = path.with_name(f"{path.name}-{number}"), number + 1
    return free
