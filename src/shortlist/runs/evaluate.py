"""Scores and sets against known labels."""

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

from shortlist.data import Dataset
from shortlist.data.readers.table_shards import is_url
from shortlist.files import PathLike, write_json
from shortlist.metrics.functional.set_summary import Estimate
from shortlist.reports.advice import Use, advise, cautions
from shortlist.reports.commonest import said_of_first
from shortlist.runs.config import PARTS
from shortlist.runs.given import ScoreFiles, scores_for_prediction
from shortlist.runs.ray_engine import Ray, cut_for, engine_of, passes_over
from shortlist.runs.results import skipped_images
from shortlist.runs.run import Run
from shortlist.runs.scores import read_rows
from shortlist.runs.used_for import file_used_for, used_for


def evaluate(
    run: Run | PathLike | None = None,
    data: Dataset | PathLike | None = None,
    *,
    metrics: Sequence[str] = (),
    overrides: Sequence[str] = (),
    scores: PathLike | None = None,
    labels: PathLike | None = None,
    truth: PathLike | None = None,
    rules: PathLike | None = None,
    link: str | None = None,
    out: PathLike | None = None,
    groups: PathLike | None = None,
    weights: PathLike | None = None,
    allow_import: Sequence[str] = (),
    engine: Ray | str | None = None,
) -> dict[str, Any]:
    """Measure a run, or any other model's ``scores`` and ``labels`` (files), on labelled data: metrics of the scores,
    and of each fitted rule's sets with 95 % intervals; of the rule of ``predict`` also precision, recall and F1 of
    each label (``by_label``); which rule serves which wish (``advice``), and what keeps the figures from being those of
    new data (``warnings``). It is what ``shortlist evaluate`` does, and prints as JSON;
    ``out``: also write it.

    ``data`` is a part of the run (``"test"``), a file or folder, or a data set; ``overrides`` change the options of its
    reader. Images that cannot be decoded are left out and listed as ``skipped``. ``metrics`` are names such as
    ``"topk-accuracy@3"``; the usual ones if none are given. ``truth`` is a file that says more than the ``labels``
    beside ``scores``: all right labels (a matrix of 0 and 1), or votes for every label (other numbers), whose share in
    the sets is ``truth-coverage``. ``groups``, ``weights`` and ``engine`` as for ``calibrate``.

    >>> import tempfile, shortlist as sl
    >>> config = {"data": {"train": {"reader": "ambiguous-numbers", "size": 200}, "test": 20}, "epochs": 1}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sl.runs.train(config, f"{folder}/first")["run"]
    ...     found = evaluate(run, "test", metrics=["topk-accuracy@100"])
    >>> found["examples"], found["metrics"]
    (20, {'topk-accuracy@100': 1.0})
    """
    workers = engine_of(engine)
    files = ScoreFiles(scores, labels, truth, link)
    given = scores_for_prediction(run, data, overrides, files, rules, allow_import, partial(cut_for, workers))
    if given.task is not None and given.dataset is not None and given.run is not None:
        facts = given.run.facts[given.dataset.kind]
        found = given.task.results(given.dataset, given.scored.whole(), metrics, facts, allow_import)
    else:
        assert given.target is not None, "labels were asked for above"
        rows = read_rows(groups, weights, given.scored.rows)
        with passes_over(workers, given, data, rows, overrides, notes_broken=True) as passes:
            counted = passes is not None and given.table is not None and not metrics
            target = passes.counts(given.target.ndim) if passes is not None and counted else given.target
            more: dict[str, Any] = {"metrics": metrics, "allow_import": allow_import, "rows": rows}
            more["by_label"] = given.predictor.usual_rule
            found = given.results(target, given.fitted, passes, **more)
        worth = {
            rule: {key: Estimate(value, *found["intervals"][rule][key]) for key, value in values.items()}
            for rule, values in found["rules"].items()
        }
        uses = [] if given.run is None else _uses(given.run, data, overrides)
        judged, absent = found["judged"]["rows"], found["judged"]["absent"] > 0
        found["advice"] = [wish._asdict() for wish in advise(given.fitted, worth, judged, absent)]
        found["warnings"] = cautions(judged, given.fitted, uses, given.name, found["empty"], absent)
        tried = () if given.run is None else (given.run.config.imbalance, given.run.config.backbone.name)
        found["warnings"] += said_of_first(found, *tried)
    result = {"objective": given.objective, "data": given.name, "link": given.link, **found}
    result["skipped"] = skipped_images(given.skipped)
    if out is not None:
        write_json(out, result)
    return result


def _uses(run: Run, data: Dataset | PathLike | None, overrides: Sequence[str]) -> list[Use]:
    """What the data was used for before, as far as its name tells; options of the reader may choose other rows."""
    if data is None or isinstance(data, Dataset) or overrides or is_url(data):
        return []
    part = os.fspath(data)
    return used_for(run, part) if part in PARTS else file_used_for(run, part)
