"""Fit set rules on held-out scores, of a run or of any other model."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from shortlist.data import Dataset
from shortlist.errors import ShortlistError
from shortlist.files import PathLike
from shortlist.metrics.functional.set_summary import truth_summary
from shortlist.named import Named
from shortlist.runs.given import Given, ScoreFiles, scores_for_calibration
from shortlist.runs.ray_engine import Ray, cut_for, engine_of, passes_over
from shortlist.runs.results import skipped_images
from shortlist.runs.run import Run
from shortlist.runs.scores import read_rows
from shortlist.runs.yaml_text import parse_named
from shortlist.sets.named import Batch, Batches, fit_rules, needed, usual_rules
from shortlist.sets.rule_files import save_rules
from shortlist.training.scored import pick


def calibrate(
    run: Run | PathLike | None = None,
    *,
    rules: Sequence[str | Named | Mapping[str, Any]] = (),
    data: Dataset | str | None = None,
    scores: PathLike | None = None,
    labels: PathLike | None = None,
    truth: PathLike | None = None,
    link: str | None = None,
    out: PathLike | None = None,
    groups: PathLike | None = None,
    weights: PathLike | None = None,
    allow_import: Sequence[str] = (),
    engine: Ray | str | None = None,
) -> dict[str, Any]:
    """Fit set rules on data that the model was not trained on. It is what ``shortlist calibrate`` does, and prints as
    JSON: the metrics and each rule's sets on this data.

    ``rules`` are such as ``"average-k:k=3"``; without any, those of the run's config, or the usual ones. ``data`` is a
    part of the run (its calibration data, else its validation data, if not given) or a data set. ``scores`` and
    ``labels`` are files of any other model, ``out`` is where the rules go: ``RUN/rules`` for a run. ``truth`` is a file
    of all right labels (0 and 1) or of votes (other numbers) beside ``scores``, which rules such as
    ``"conformal:labels=votes"`` are fitted on. ``groups`` and ``weights`` are files with one value for each row, for
    rules such as ``"conformal:by_group=true"``. ``engine="ray"`` (or a `shortlist.runs.Ray`) lets the workers of a Ray
    cluster do it.

    >>> import tempfile, shortlist as sl
    >>> config = {"data": {"train": {"reader": "ambiguous-numbers", "size": 200}}, "epochs": 1}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sl.runs.train(config, f"{folder}/first")["run"]
    ...     list(calibrate(run)["rules"]), list(calibrate(run, rules=["average-k:k=3"])["rules"])
    (['top-k-5', 'average-k-5', 'conformal-0.1'], ['average-k-3'])
    """
    wanted, workers = [parse_named(rule) for rule in rules], engine_of(engine)
    files = ScoreFiles(scores, labels, truth, link)
    given = scores_for_calibration(run, data, files, allow_import, partial(cut_for, workers))
    wanted = wanted or given.rules
    if not wanted and given.target is None:
        raise ShortlistError("without --labels say which rule to fit, such as --rule average-k:k=5")
    rows = read_rows(groups, weights, given.scored.rows)
    if out is None and given.run is None:
        raise ShortlistError("with --scores say where the rules go: --out DIR")
    folder = given.run.path / "rules" if out is None and given.run is not None else Path(out or "")
    with passes_over(workers, given, data, rows) as passes:
        target = given.target if passes is None or given.table is None else passes.counts(given.target.ndim)
        wanted = wanted or usual_rules(target, given.scored.num_labels, given.k, given.link)
        scores_of = _fitting(given, rows) if passes is None else passes
        fitted = fit_rules(wanted, scores_of, target, given.link, given.name, allow_import, rows, truth=given.truth)
        save_rules(folder, fitted)
        found = {} if given.target is None else given.results(target, fitted, passes, rows=rows)
    if given.target is None:
        whole = given.scored.whole()
        sets = {name: rule.predict(whole, **needed(rule, rows)) for name, rule in fitted.items()}
        sizes = {name: {"size": float(answered.sizes.mean())} for name, answered in sets.items()}
        if given.truth is not None:
            for name, answered in sets.items():
                of_truth = truth_summary(answered, given.truth)
                sizes[name] |= {f"truth-{key}": estimate.value for key, estimate in of_truth.items()}
        promises = {name: rule.promise for name, rule in fitted.items() if rule.promise}
        found = {"rules": sizes, "metrics": {}, "examples": len(whole), "promises": promises}
    skipped = skipped_images(given.skipped)
    return {"written": str(folder), "objective": given.objective, "link": given.link, **found, "skipped": skipped}


def _fitting(given: Given, rows: Mapping[str, Any]) -> Tensor | Batches:
    """The scores that rules are fitted on: whole where they are small, else a function that gives batches."""
    if given.scored.is_small:
        return given.scored.whole()

    def batches() -> Iterator[Batch]:
        for at, scores in given.scored.batches():
            yield scores, pick(given.target, at), {name: pick(values, at) for name, values in rows.items()}

    return batches
