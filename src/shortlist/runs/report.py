"""The HTML page of one or several runs, or of the scores of any other model."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shortlist.errors import ShortlistError, ShortlistWarning
from shortlist.files import PathLike
from shortlist.reports import write
from shortlist.runs.explain import check_has_labels
from shortlist.runs.report_data import commands_of, described, each_shown, from_files, from_runs, heading_of
from shortlist.runs.run import Run, open_run
from shortlist.tasks import ScoredRun, Task, kind_of_facts


def report(
    runs: Run | PathLike | Sequence[Run | PathLike] = (),
    *,
    part: str | None = None,
    title: str | None = None,
    out: PathLike | None = None,
    scores: PathLike | None = None,
    labels: PathLike | None = None,
    truth: PathLike | None = None,
    link: str | None = None,
    rules: PathLike | None = None,
    calibration: PathLike | None = None,
    names: PathLike | None = None,
    k: float | None = None,
    explain: bool = False,
    groups: PathLike | None = None,
    weights: PathLike | None = None,
    allow_import: Sequence[str] = (),
) -> dict[str, Any]:
    """Write one HTML page that opens offline, and its figures beside it. It is what ``shortlist report`` does, and
    prints as JSON: the page's path, the names of the runs, the number of examples.

    ``runs`` is one run or several, shown side by side on the ``part`` of their data: test, else validation, if not
    given. ``out`` is the folder: ``RUN/report`` for one run. ``explain`` shows for some examples the training examples
    that speak for their labels; of imcl it is always shown. The other options are for files of another model's
    ``scores`` and ``labels``: all right labels (``truth``, a matrix of 0 and 1), held-out scores that set the
    thresholds, the labels' names, the mean set size to start from. ``groups`` and ``weights`` as for ``calibrate``, of
    the examples that are shown; coverage is told by group.

    >>> import tempfile, shortlist as sl
    >>> config = {"data": {"train": {"reader": "ambiguous-numbers", "size": 200}, "test": 20}, "epochs": 1}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sl.runs.train(config, f"{folder}/first")["run"]
    ...     report(run)
    {'written': '.../first/report/index.html', 'runs': ['cross-entropy'], 'examples': 20}
    """
    given = [runs] if isinstance(runs, Run) or not isinstance(runs, Sequence) or isinstance(runs, str) else list(runs)
    if bool(given) == (scores is not None):
        raise ShortlistError("give one or more run directories, or --scores FILE and --labels FILE of another model")
    if given:
        of_scores = {"labels": labels, "truth": truth, "link": link, "rules": rules, "names": names, "k": k}
        of_scores["calibration"] = calibration
        for option, value in of_scores.items():
            if value is not None:
                raise ShortlistError(f"--{option} goes with --scores: a run has its own")
        if out is None and len(given) > 1:
            raise ShortlistError("for several runs say where the report goes: --out DIR")
        opened = [open_run(run, allow_import) for run in given]
        folder = opened[0].path / "report" if out is None else Path(out)
        task = _only_task(opened)
        if task is not None:
            if explain:
                check_has_labels(opened[0])
            return _write_task_report(task, opened, part, title, folder)
        data = from_runs(opened, part, title, explain, groups, weights)
    else:
        if scores is None or labels is None:
            raise ShortlistError("--scores are reported on with their --labels: give both")
        if out is None:
            raise ShortlistError("with --scores say where the report goes: --out DIR")
        if explain:
            raise ShortlistError("--explain is for runs: scores of another model say nothing of similar examples")
        if part is not None:
            raise ShortlistError("--part is a part of a run's data: it does not go with --scores")
        data = from_files(
            scores, labels, link, rules, calibration, names, k, title, allow_import, groups, weights, truth
        )
        folder = Path(out)
    for run in data.runs:
        for rule, why in run.left_out.items():
            warnings.warn(f"the report has no sets by {rule}: {why}", ShortlistWarning, stacklevel=2)
    page = write(data, folder)
    return {"written": str(page), "runs": [run.name for run in data.runs], "examples": data.shape[0]}


def _only_task(runs: Sequence[Run]) -> Task | None:
    """The task of all runs, None where they answer with sets of labels; runs of two tasks do not go together."""
    kinds = {kind_of_facts(run.facts) for run in runs}
    if len(kinds) > 1:
        special = " and ".join(sorted(filter(None, kinds)))
        raise ShortlistError(f"runs on {special} and runs on other data cannot be shown side by side")
    return runs[0].task


def _write_task_report(
    task: Task, runs: Sequence[Run], part: str | None, title: str | None, folder: Path
) -> dict[str, Any]:
    """Runs of a vertical room's task, which brings the page, side by side on the same examples."""
    shown, first = [], None
    for run, name, parts, chosen in each_shown(runs, part):
        if first is None:
            first, about, heading = parts[chosen], described(run, parts, chosen), heading_of(run, parts)
        elif parts[chosen].ids != first.ids:
            raise ShortlistError(f"{run.path}: its {chosen} images are not those of {runs[0].path}")
        content = run.config.model_dump(mode="json")
        scores = run.scores(parts[chosen])
        shown.append(ScoredRun(name, scores, run.records(), content, commands_of(run), run.config.seed))
    assert first is not None, "there is a run"
    names = list(dict.fromkeys(run.name for run in shown))
    page = task.write_report(title or f"{heading}: {', '.join(names)}", shown, first, folder, about)
    return {"written": str(page), "runs": [run.name for run in shown], "examples": len(first)}
