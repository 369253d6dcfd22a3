"""Search the values that a config leaves open: many short trainings, judged on the validation data, on Optuna."""

import csv
import io
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from shortlist.checks import whole
from shortlist.data import Dataset
from shortlist.errors import ShortlistError
from shortlist.files import PathLike, write_text, written_whole
from shortlist.optional import require
from shortlist.reports.charts import training_charts
from shortlist.reports.drawing import picture_of
from shortlist.runs.config import RunConfig, check_config, content_of
from shortlist.runs.lock import locked
from shortlist.runs.prepare import Prepared, prepare
from shortlist.runs.search_space import Search, find_searches, with_values
from shortlist.runs.setup import read_parts, resolve
from shortlist.runs.train import Interrupted, train_prepared
from shortlist.runs.yaml_text import read_yaml
from shortlist.training import loop
from shortlist.training.history import History

SEARCH, TRIALS, TABLE, BEST = "search.yaml", "trials.journal", "trials.csv", "best.yaml"
_STUDY = "tune"
_TOLD = ("best", "epochs", "state", "seconds", "reason")  # of a trial
_FIRST = 5  # trials that run to their end before any is pruned


def tune(
    config: Mapping[str, Any] | PathLike,
    out: PathLike | None = None,
    *,
    trials: int = 20,
    overrides: Sequence[str] = (),
    parts: Mapping[str, Dataset] | None = None,
    progress: loop.Progress | None = None,
    say: Callable[[str], None] | None = None,
    allow_import: Sequence[str] = (),
) -> dict[str, Any]:
    """Search the values that a config leaves open, such as ``lr: {search: log, low: 1e-4, high: 0.1}``, by ``trials``
    trainings. It is what ``shortlist tune`` does, and prints as JSON.

    Each trial is a training in memory. It is judged by its best epoch on the validation data, by the objective's own
    metric (or ``stop.metric``), and given up where it falls behind the median of the earlier ones. ``out`` (else
    ``runs/NAME-tuned``) gets a table of all trials, a chart, and ``best.yaml``, which ``train`` takes. Called again
    with the same config and ``out``, it goes on until there are ``trials`` of them; so does one that was interrupted,
    and to the same trials as if it had not been.

    >>> import tempfile
    >>> data = {"train": {"reader": "ambiguous-numbers", "size": 200}}
    >>> config = {"data": data, "epochs": 2, "optimizer": {"lr": {"search": "log", "low": 1e-3, "high": 1.0}}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = tune(config, f"{folder}/tuned", trials=2)
    >>> len(found["trials"]), found["metric"], list(found["best"]["values"])
    (2, 'topk-accuracy@1', ['optimizer.lr'])
    """
    optuna = require("optuna", "tune")
    trials = whole(trials, "trials", 1)
    content = content_of(config, overrides)
    searches = find_searches(content)
    if not searches:
        raise ShortlistError(
            "the config leaves nothing open: write a search in place of a value, such as "
            "optimizer: {lr: {search: log, low: 1e-4, high: 0.1}}"
        )
    _check_ends(content, searches, allow_import)
    name = "run" if isinstance(config, Mapping) else Path(config).stem
    folder = Path("runs") / f"{name}-tuned" if out is None else Path(out)
    claim(folder, content)
    with locked(folder):
        study = _study(optuna, folder)
        search = _Tuning(optuna, study, folder, content, searches, parts, progress, allow_import)
        if say is not None and search.done:
            say(f"{len(search.done)} trials are done already")
        try:
            if not search.done:
                search.check_metrics()
            while len(search.done) < trials:
                row = search.run()
                if say is not None:
                    say(f"trial {row['trial']}/{trials}: {_in_words(row, search.metric)}")
        except KeyboardInterrupt:
            if search.done:
                search.write()
            raise Interrupted(
                f"interrupted after {len(search.done)} trials; the same command goes on with them: {folder}"
            ) from None
        return search.write()


def _check_ends(content: Mapping[str, Any], searches: Sequence[Search], allow_import: Sequence[str]) -> None:
    """An error, before anything is trained, where a search may come to a value that is not allowed."""
    first = {search.key: search.ends()[0] for search in searches}
    for search in searches:
        for value in search.ends():
            tried = with_values(content, {**first, search.key: value})
            resolve(check_config(tried, where=f"the search of {search.key}"), allow_import)


def claim(folder: Path, content: Mapping[str, Any]) -> None:
    """Make the folder this search's; an error where it is somebody else's."""
    file = folder / SEARCH
    if file.exists():
        if read_yaml(file.read_bytes(), str(file)) == _plain(content):
            return
        if (folder / TABLE).exists():
            raise ShortlistError(f"{folder} holds the search of another config ({SEARCH}): choose another --out")
        (folder / TRIALS).unlink(missing_ok=True)  # no trial came to its end: the config has been mended
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ShortlistError(f"{folder} exists and is no search: choose another --out")
    folder.mkdir(parents=True, exist_ok=True)
    write_text(file, yaml.safe_dump(_plain(content), sort_keys=False, allow_unicode=True))


def _plain(content: Mapping[str, Any]) -> Any:
    """As a file has it: lists for tuples, text for what is neither number nor text."""
    return json.loads(json.dumps(content, default=str))


def _study(optuna: Any, folder: Path) -> Any:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    backend = optuna.storages.journal.JournalFileBackend(str(folder / TRIALS))
    try:
        study = optuna.create_study(
            study_name=_STUDY,
            storage=optuna.storages.JournalStorage(backend),
            direction="maximize",
            pruner=optuna.pruners.MedianPruner(n_startup_trials=_FIRST),
            load_if_exists=True,
        )
    except (ValueError, LookupError, TypeError) as error:  # a line that is no JSON, or not what Optuna writes
        raise ShortlistError(
            f"{folder / TRIALS} is damaged ({type(error).__name__}): remove it, and the trials are made again"
        ) from error
    for left in study.get_trials(states=[optuna.trial.TrialState.RUNNING]):  # by a process that was killed
        study.tell(left.number, state=optuna.trial.TrialState.FAIL)
    return study


@dataclass
class _Tuning:
    """A search that goes on: each trial depends on the config and the trials before it alone."""

    optuna: Any
    study: Any
    folder: Path
    content: Mapping[str, Any]
    searches: list[Search]
    parts: Mapping[str, Dataset] | None
    progress: loop.Progress | None
    allow_import: Sequence[str]

    def __post_init__(self) -> None:
        self.reads_once = not any(search.key.startswith("data.") for search in self.searches)
        self.metric: str | None = self.study.user_attrs.get("metric")

    @property
    def done(self) -> list[Any]:
        """The trials that came to an end: finished, given up, or failed in training. Interrupted ones do not count."""
        return [trial for trial in self.study.get_trials(deepcopy=False) if "state" in trial.user_attrs]

    def check_metrics(self) -> None:
        """An error, before anything is trained, where trials would be judged by metrics that cannot be compared."""
        first = {search.key: search.ends()[0] for search in self.searches}
        for search in self.searches:
            if search.key in ("objective", "objective.name", "objective.k"):
                for value in search.ends():
                    self._prepared(check_config(with_values(self.content, {**first, search.key: value})))

    def run(self) -> dict[str, Any]:
        """One trial; what became of it."""
        done = len(self.done)
        given = self.content.get("seed")
        seed = given if isinstance(given, int) and not isinstance(given, bool) else 0
        self.study.sampler = self.optuna.samplers.TPESampler(seed=(1000 * seed + done) % 2**32)
        trial = self.study.ask()
        states = self.optuna.trial.TrialState
        try:
            values = {search.key: search.suggest(trial) for search in self.searches}
            config = check_config(with_values(self.content, values), where=f"trial {done + 1}")
            state, reason, history, seconds = self._trained(trial, config)
        except BaseException:
            self.study.tell(trial, state=states.FAIL)
            raise
        best = None if history is None else max(history.values(), default=None)
        for key, value in (("reason", reason), ("seconds", round(seconds, 3)), ("state", state), ("best", best)):
            trial.set_user_attr(key, value)
        trial.set_user_attr("epochs", 0 if history is None else len(history.records))
        if state == "finished":
            self.study.tell(trial, best)
        else:  # the sampler learns that it was no good
            self.study.tell(trial, state=states.PRUNED)
        write_text(self.folder / TABLE, self._table())
        return self._rows()[-1]

    def _prepared(self, config: RunConfig) -> tuple[Prepared, str]:
        """A training that can start, and the metric that judges it."""
        checked = resolve(config, self.allow_import)
        if checked.devices != 1:
            raise ShortlistError(f"devices: every trial trains on one device, the config asks for {config.devices}")
        if checked.data.validation is None:
            raise ShortlistError("trials are judged on validation data: set data.validation")
        parts = self.parts or read_parts(checked, allow_import=self.allow_import)
        if self.reads_once:
            self.parts = parts
        ready = prepare(checked, parts=parts, allow_import=self.allow_import)
        train_set, val_set = ready.parts["train"], ready.parts["validation"]
        metric, _ = loop.choose_metrics(ready.learner.objective, train_set, val_set, ready.config, self.allow_import)
        assert metric is not None
        self._judge_by(metric)
        return ready, metric

    def _trained(self, trial: Any, config: RunConfig) -> tuple[str, str, History | None, float]:
        ready, metric = self._prepared(config)
        watch = _Watch(trial, History(metric), self.progress, self.optuna.TrialPruned)
        begin, reason = time.perf_counter(), ""
        try:
            train_prepared(ready, None, progress=watch)
        except self.optuna.TrialPruned:
            return "pruned", "behind the median of earlier trials", watch.history, time.perf_counter() - begin
        except ShortlistError as error:  # the loss became infinite, say: these values are no good
            reason = str(error)
        seconds, best = time.perf_counter() - begin, watch.history.best
        if not reason and (best is None or math.isnan(best[metric])):
            reason = f"{metric} is not a number: nothing in the validation data could be judged"
        return ("failed", reason, None, seconds) if reason else ("finished", "", watch.history, seconds)

    def _judge_by(self, metric: str) -> None:
        """All trials are judged by one metric."""
        if self.metric is None:
            self.metric = metric
            self.study.set_user_attr("metric", metric)
        elif metric != self.metric:
            raise ShortlistError(
                f"trials cannot be compared by {self.metric} and {metric}: name one with stop.metric, such as "
                f"stop: {{metric: {self.metric}}}"
            )

    # ---- what is told and written

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        for number, trial in enumerate(self.done, 1):
            values = {search.key: search.chosen(trial.params[search.key]) for search in self.searches}
            rows.append({"trial": number, "values": values, **{key: trial.user_attrs[key] for key in _TOLD}})
        return rows

    def _table(self) -> str:
        text = io.StringIO()
        keys = [search.key for search in self.searches]
        writer = csv.writer(text)
        writer.writerow(["trial", *keys, self.metric or "best", *_TOLD[1:]])
        for row in self._rows():
            values = [row["values"][key] for key in keys]
            written = [json.dumps(value) if isinstance(value, dict | list) else value for value in values]
            writer.writerow([row["trial"], *written, *(row[key] for key in _TOLD)])
        return text.getvalue()

    def write(self) -> dict[str, Any]:
        """The table, the chart and the best config; what the command prints."""
        rows = self._rows()
        write_text(self.folder / TABLE, self._table())
        judged = [row for row in rows if row["state"] == "finished"]
        if not judged:
            raise ShortlistError(f"none of {len(rows)} trials came to its end; the last one: {rows[-1]['reason']}")
        best = max(judged, key=lambda row: row["best"])
        config = resolve(check_config(with_values(self.content, best["values"])), self.allow_import)
        write_text(self.folder / BEST, config.to_yaml())
        chart = _chart(rows, self.metric or "")
        for ending, data in ((".svg", chart.to_svg().encode()), (".png", chart.to_png())):
            with written_whole(self.folder / f"trials{ending}") as file:
                file.write(data)
        return {
            "out": str(self.folder),
            "objective": config.objective.name,
            "metric": self.metric,
            "best": best,
            "config": str(self.folder / BEST),
            "trials": rows,
        }


class _Watch:
    """Hears how a trial goes, and gives it up where it falls behind."""

    def __init__(
        self, trial: Any, history: History, progress: loop.Progress | None, pruned: type[Exception]
    ) -> None:
        self.trial, self.history, self.pruned = trial, history, pruned
        self.shown: loop.Progress = loop.Quiet() if progress is None else progress

    def start(self, first_epoch: int, epochs: int, metric: str | None) -> None:
        self.shown.start(first_epoch, epochs, metric)

    def step(self, epoch: int, step: int, steps: int, loss: Any) -> None:
        self.shown.step(epoch, step, steps, loss)

    def epoch(self, record: dict[str, Any]) -> None:
        self.history.add(record)
        self.shown.epoch(record)
        self.trial.report(self.history.values()[-1], record["epoch"])
        if self.trial.should_prune():
            raise self.pruned

    def end(self) -> None:
        self.shown.end()


def _chart(rows: Sequence[Mapping[str, Any]], metric: str) -> Any:
    """Every trial's figure, and the best so far."""
    judged = [(float(row["trial"]), float(row["best"])) for row in rows if row["state"] == "finished"]
    reached, so_far = -math.inf, []
    for number, value in judged:
        reached = max(reached, value)
        so_far.append([number, reached])
    lines = [{"model": 0, "points": [list(one) for one in judged]}, {"model": 1, "points": so_far}]
    names = ["each trial", "best so far"]
    charts = training_charts([{"name": metric, "lines": lines}], names, across="trial")
    return picture_of(charts, [(name, place, "") for place, name in enumerate(names)])


def _in_words(row: Mapping[str, Any], metric: str | None) -> str:
    values = ", ".join(f"{key} {short(value)}" for key, value in row["values"].items())
    if row["state"] == "failed":
        return f"{values}: failed: {row['reason']}"
    given_up = f", given up after {row['epochs']} epochs" if row["state"] == "pruned" else ""
    return f"{values}: {metric} {row['best']:.4f}{given_up}"


def short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
