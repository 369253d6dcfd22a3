"""The sets of labels of some data, written to a file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shortlist.data import Dataset
from shortlist.errors import ShortlistError
from shortlist.files import PathLike
from shortlist.runs.given import scores_for_prediction
from shortlist.runs.run import Run
from shortlist.runs.scenes import write_predictions


def predict(
    run: Run | PathLike | None = None,
    data: Dataset | PathLike | None = None,
    *,
    rule: str | None = None,
    out: PathLike | None = None,
    overrides: Sequence[str] = (),
    draw: PathLike | None = None,
    images: PathLike | None = None,
    scores: PathLike | None = None,
    rules: PathLike | None = None,
    link: str | None = None,
    allow_import: Sequence[str] = (),
) -> dict[str, Any]:
    """Write the predicted set of labels of every example. It is what ``shortlist predict`` does, and prints as JSON.

    ``data`` is a part of the run (``"test"``), a file or folder, which needs no labels, or a data set; ``overrides``
    change the options of its reader. ``rule`` is one that was fitted, or one that needs no fitting, such as
    ``"top-k:k=3"``. ``out`` ends in .parquet or .jsonl; it is in ``RUN/predictions`` if not given. ``scores`` and
    ``rules`` are files of any other model. Of scenes the k best relations of each image are written, and with ``draw``
    drawn into that folder, on the ``images`` of another.

    >>> import tempfile, shortlist as sl
    >>> config = {"data": {"train": {"reader": "ambiguous-numbers", "size": 200}, "test": 20}, "epochs": 1}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sl.runs.train(config, f"{folder}/first")["run"]
    ...     done = predict(run, "test", rule="top-k:k=3")
    ...     sets = sl.LabelSets.from_parquet(done["written"][0])
    >>> done["rule"], done["examples"], done["mean size"], len(sets)
    ('top-k-3', 20, 3.0, 20)
    """
    if images is not None and draw is None:
        raise ShortlistError("--images goes with --draw DIR: it is what the graphs are drawn on")
    given = scores_for_prediction(run, data, overrides, scores, rules, link, allow_import, labelled=False)
    place = None if out is None else Path(out)
    if given.scenes is not None and given.run is not None:
        folders = [None if folder is None else Path(folder) for folder in (draw, images)]
        return write_predictions(given, given.scenes, given.run, place, rule, *folders)
    if draw is not None:
        raise ShortlistError("--draw is for scenes: other data has no graphs to draw")
    name, chosen = given.predictor.rule(rule)
    if place is None:
        if given.run is None:
            raise ShortlistError("with --scores say where the sets go: -o sets.parquet")
        place = given.run.path / "predictions" / f"{given.name}-{name}.parquet"
        place.parent.mkdir(exist_ok=True)
    sets = chosen.predict(given.scores)
    sets = sets if given.run is None else given.predictor.named(sets)
    if place.suffix == ".jsonl":
        sets.to_jsonl(place, ids=given.ids)
    elif place.suffix == ".parquet":
        sets.to_parquet(place, ids=given.ids)
    else:
        raise ShortlistError(f"-o {place}: sets are written as .parquet or .jsonl")
    place.with_suffix(".ids.json").unlink(missing_ok=True)  # where ids stood before, now of other sets
    return {
        "written": [str(place)],
        "objective": given.objective,
        "rule": name,
        "examples": len(sets),
        "mean size": float(sets.sizes.mean()) if len(sets) else 0.0,
    }
