"""The sets of labels of some data, written to a file."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.data import Dataset
from shortlist.data.readers.table_shards import is_url
from shortlist.errors import ShortlistError
from shortlist.files import PathLike
from shortlist.labels import LabelSets
from shortlist.labels.label_set_files import write_csv, write_jsonl, write_parquet
from shortlist.runs.config import PARTS
from shortlist.runs.explain import check_has_labels, check_place, write_explanations
from shortlist.runs.find_data import is_of_coco
from shortlist.runs.given import Given, ScoreFiles, scores_for_prediction
from shortlist.runs.ray_engine import Ray, cut_for, engine_of, folder_of_parts, passes_over
from shortlist.runs.ray_work import Writing
from shortlist.runs.results import skipped_images
from shortlist.runs.run import Run, open_run
from shortlist.runs.scores import read_rows
from shortlist.runs.told import Told
from shortlist.runs.yaml_text import parse_named
from shortlist.sets import SetRule
from shortlist.sets.named import needed
from shortlist.tasks import Predictions
from shortlist.training.scored import pick
from shortlist.training.similar_examples import SimilarExamples

ENDINGS = (".csv", ".parquet", ".jsonl")
Answer = tuple[LabelSets, Sequence[str] | None, tuple[str, NDArray[Any]]]


def predict(
    run: Run | PathLike | None = None,
    data: Dataset | PathLike | None = None,
    *,
    rule: str | None = None,
    out: PathLike | None = None,
    overrides: Sequence[str] = (),
    draw: PathLike | None = None,
    images: PathLike | None = None,
    explain: PathLike | None = None,
    scores: PathLike | None = None,
    rules: PathLike | None = None,
    link: str | None = None,
    groups: PathLike | None = None,
    weights: PathLike | None = None,
    allow_import: Sequence[str] = (),
    engine: Ray | str | None = None,
) -> dict[str, Any]:
    """Write the predicted set of labels of every example, with their probabilities; scores, where the objective only
    ranks. It is what ``shortlist predict`` does, and prints as JSON.

    ``data`` is a part of the run (``"test"``), a file or folder, which needs no labels, or a data set; ``overrides``
    change the options of its reader. A run on features of images takes the images themselves, where it knows what made
    the features. Images that cannot be decoded are left out and listed as ``skipped``. ``rule`` is one that was fitted,
    or one that needs no fitting, such as ``"top-k:k=3"``. ``out`` ends in .csv, .parquet or .jsonl; it is a .csv in
    ``RUN/predictions`` if not given, named after the data and the rule. ``scores`` and ``rules`` are files of any other
    model. ``images`` is the folder that the paths in a table of images start from; if not given, the table's own, or
    that of the training data where none of them is beside the table (of COCO's annotations, that of the training data).
    Of scenes the k best relations of each image are written, and with ``draw`` drawn into that folder, on the
    ``images`` of another.
    ``explain`` is a .jsonl or .parquet file: for every label of the sets, the training examples that speak for it and
    their weights (of the part ``"train"``, for those labels that were unknown).
    ``groups``, ``weights`` and ``engine`` as for ``calibrate``; an engine writes a folder of .parquet files, which
    `LabelSets.from_parquet` reads.

    >>> import tempfile, shortlist as sl
    >>> config = {"data": {"train": {"reader": "ambiguous-numbers", "size": 200}, "test": 20}, "epochs": 1}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sl.runs.train(config, f"{folder}/first")["run"]
    ...     done = predict(run, "test", rule="top-k:k=3", out=f"{folder}/sets.parquet")
    ...     sets = sl.LabelSets.from_parquet(done["written"][0])
    >>> done["rule"], done["examples"], done["mean size"], len(sets)
    ('top-k-3', 20, 3.0, 20)
    """
    if explain is not None:
        check_place(Path(explain), None if out is None or is_url(out) else Path(out))
        if run is None:
            raise ShortlistError("--explain is for runs: scores of another model say nothing of similar examples")
        run = open_run(run, allow_import)
        check_has_labels(run)
        train_set = run.parts()["train"]
        run.learner(train_set)  # with what its objective keeps of the training data
    if images is not None and draw is None:
        run = None if run is None else open_run(run, allow_import)
        if run is None or run.task is not None or not run.inputs.takes_images:
            raise ShortlistError("--images goes with a table of images, or with --draw DIR: this run takes neither")
        of_coco = isinstance(data, str | os.PathLike) and is_of_coco(run, Path(data))
        overrides = [*overrides, f"{'images' if of_coco else 'root'}={json.dumps(os.fspath(images))}"]
    place, url = None if out is None else Path(out), None if out is None or not is_url(out) else os.fspath(out)
    if place is not None and place.suffix not in ENDINGS:
        raise ShortlistError(f"-o {place}: sets are written as {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    workers = engine_of(engine)
    if workers is None and url is not None:
        raise ShortlistError(f"-o {url}: only --engine writes to a URL; name a file")
    if workers is not None and place is not None and place.suffix != ".parquet":
        raise ShortlistError(f"-o {place}: --engine writes a folder of files: -o {place.with_suffix('.parquet')}")
    if workers is not None and explain is not None:
        raise ShortlistError("--explain looks at the training data in one process: predict without --engine")
    taken = Path(data) if isinstance(data, str | os.PathLike) else None  # or a part of the run: test
    if place is not None and taken is not None and place.exists() and taken.exists() and place.samefile(taken):
        raise ShortlistError(f"-o {place}: that is the data itself; write the sets to another file")
    cut, files = partial(cut_for, workers), ScoreFiles(scores, link=link)
    given = scores_for_prediction(run, data, overrides, files, rules, allow_import, cut, labelled=False)
    if given.task is not None and given.run is not None and given.dataset is not None:
        folders = [None if folder is None else Path(folder) for folder in (draw, images)]
        chosen_rule = None if rule is None else parse_named(rule)
        called = _called(data, given.name)
        wanted = Predictions(given.run.path / "predictions", called, place, chosen_rule, given.k, *folders)
        done = given.task.write_predictions(given.dataset, given.scored.whole(), wanted)
        return {"objective": given.objective, **done}
    if draw is not None:
        raise ShortlistError("--draw is for scenes: other data has no graphs to draw")
    similar = None
    if explain is not None and given.run is not None:
        similar = SimilarExamples(given.run.learner(), train_set)
    name, chosen = given.predictor.rule(rule)
    if place is None:
        if given.run is None:
            raise ShortlistError("with --scores say where the sets go: -o sets.csv")
        ending = ".csv" if workers is None else ".parquet"
        place = given.run.path / "predictions" / f"{_called(data, given.name)}-{name}{ending}"
        place.parent.mkdir(exist_ok=True)
    rows = read_rows(groups, weights, given.scored.rows)
    written = [url or str(place)]
    if workers is not None:
        found = _by_workers(workers, given, data, overrides, chosen, url or place, rows)
    else:
        told = Told()
        kept: list[LabelSets] | None = [] if explain is not None else None  # where all are needed once more
        parts = _seen(answers(given, chosen, rows), told, kept)
        if place.suffix == ".jsonl":
            write_jsonl(place, parts, None)
        else:
            {".csv": write_csv, ".parquet": write_parquet}[place.suffix](place, parts)
        data_used = given.readable()
        if explain is not None and similar is not None and kept is not None and data_used is not None:
            prepared = given.predictor.prepared(data_used)
            sets = LabelSets.concatenate(kept)
            write_explanations(Path(explain), similar, prepared, sets, of_training=data == "train")
            written.append(str(explain))
        found = told.in_numbers()
    skipped = skipped_images(given.skipped)
    notes = [said for said in [chosen.about_empty(found["empty"])] if said]
    notes += ["the data has no rows: there is nothing to predict"] if not found["examples"] else []
    return {"written": written, "objective": given.objective, "rule": name, **found, "notes": notes, "skipped": skipped}


def _called(data: Dataset | PathLike | None, name: str) -> str:
    """What the file of the sets begins with: a folder, a file and a part of the run that have one name have files of
    their own.

    >>> _called("test", "test"), _called("new/test.csv", "test"), _called("leaves.csv.gz", "leaves")
    ('test', 'test-csv', 'leaves-csv-gz')
    """
    if not isinstance(data, str | os.PathLike) or os.fspath(data) in PARTS:
        return name
    path = Path(data).resolve()
    if is_url(data):
        return f"{name}{path.name.removeprefix(name).replace('.', '-')}"
    return f"{path.name}-folder" if path.is_dir() else f"{name}{path.name.removeprefix(name).replace('.', '-')}"


def _by_workers(
    engine: Ray,
    given: Given,
    data: Dataset | PathLike | None,
    overrides: Sequence[str],
    rule: SetRule,
    place: PathLike,
    rows: Mapping[str, Any],
) -> dict[str, Any]:
    """The sets written by the workers of an engine, a file for each shard; what is told of them."""
    with (
        passes_over(engine, given, data, rows, overrides, labelled=False, notes_broken=True) as passes,
        folder_of_parts(place) as folder,
    ):
        assert passes is not None, "there is an engine"
        done: Writing = passes.over(Writing(folder, rule), "predicted")
        if not done.told.examples and passes.broken:
            reason = next(iter(passes.broken.values()))
            raise ShortlistError(f"{given.name}: none of the {passes.rows} images can be decoded: {reason}")
    return done.told.in_numbers()


def _seen(parts: Iterable[Answer], told: Told, kept: list[LabelSets] | None) -> Iterator[Answer]:
    for sets, ids, beside in parts:
        told.see(sets, ids, beside, told.examples)
        if kept is not None:
            kept.append(sets)
        yield sets, ids, beside


def answers(given: Given, rule: SetRule, rows: Mapping[str, Any]) -> Iterator[Answer]:
    """The sets of all rows, batch by batch, with the ids and what stands beside the labels."""
    first_row = 0
    for at, scores in given.scored.batches():
        facts = {name: pick(values, at) for name, values in rows.items()}
        sets = rule.predict_rows(scores, first_row, **needed(rule, facts))
        sets = sets if given.run is None else given.predictor.named(sets)
        yield sets, pick(given.ids, at), given.predictor.beside(scores.numpy(), rule, sets)
        first_row += len(scores)
    if not first_row:
        given.readable()  # where no image can be decoded, it says so
        none = given.predictor.named(LabelSets.from_lists([], len(given.predictor.label_names)))
        yield none, (), given.predictor.beside(np.zeros((0, none.num_labels), np.float32), rule, none)
