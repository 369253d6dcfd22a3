"""Prediction, calibration and evaluation by many workers: Ray Data hands out rows, and what was found is merged.

The rows of the data are cut into shards. A pool of actors holds the model; each shard is read, scored and looked at by
one of them, and becomes a small state (counts, or a file that is written). States are merged eight at a time, in the
order of the rows; no scores travel. A shard of which a worker died is done again by another, from its start: its state
was not merged, and its file has the same name.
"""

import copy
import logging
import math
import os
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from shortlist.data import Dataset, Images
from shortlist.errors import ShortlistError
from shortlist.labels import LabelSets
from shortlist.labels.label_set_files import write_parquet
from shortlist.optional import require
from shortlist.runs.config import PARTS
from shortlist.runs.find_data import find_data
from shortlist.runs.given import Given
from shortlist.runs.judge import Judge
from shortlist.runs.predictor import Predictor
from shortlist.runs.run import Run
from shortlist.sets import SetRule
from shortlist.sets.fitting import Fitting, Looking
from shortlist.sets.named import needed
from shortlist.training.learner import Learner, batch_rows
from shortlist.training.scored import pick

_MERGED = 8  # states that are merged together
_BATCHES = 16  # of a shard, at most
_SHARDS = 4  # for each worker, at least

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
}

Progress = Callable[[str, int, int], None]  # what is done, and how many examples of how many


@dataclass(frozen=True)
class Ray:
    """The engine Ray, for ``predict``, ``calibrate`` and ``evaluate`` on many machines.

    Args:
        address: of a cluster, such as ``"10.0.0.1:6379"`` or ``"auto"``; without it, one on this machine is started and
            ended again. Where ``ray.init`` was called already, that cluster is used.
        workers: how many hold the model; as many as the cluster has CPUs (or GPUs, where they use some).
        gpus_per_worker: how many graphics cards each one uses; a fraction shares one.
        progress: is told how far it is.
    """

    address: str | None = None
    workers: int | None = None
    gpus_per_worker: float = 0
    progress: Progress | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise ShortlistError(f"workers must be at least 1, got {self.workers}")
        if self.gpus_per_worker < 0:
            raise ShortlistError(f"gpus_per_worker must not be negative, got {self.gpus_per_worker}")


def engine_of(engine: Ray | str | None) -> Ray | None:
    """The engine that is asked for; None is this process alone."""
    if engine is None or isinstance(engine, Ray):
        return engine
    if engine != "ray":
        raise ShortlistError(f"engine must be 'ray', or not be given; got {engine!r}")
    return Ray()


class Batch(NamedTuple):
    """Some rows that were scored, and all that is known of them."""

    scores: Tensor
    target: Any
    truth: LabelSets | None
    ids: Sequence[str] | None
    rows: dict[str, Any]  # groups and weights
    first_row: int
    predictor: Predictor


class Work(Protocol):
    """What is done with batches. Each shard has a copy of its own, and these are merged in the order of the rows."""

    def see(self, batch: Batch) -> None: ...
    def close(self, shard: int) -> None: ...
    def merge(self, other: Any) -> None: ...


class Judging:
    """A judge that sees all rows."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge

    def see(self, batch: Batch) -> None:
        self.judge.see(batch.scores, batch.target, batch.truth, batch.rows, batch.first_row)

    def close(self, shard: int) -> None: ...

    def merge(self, other: "Judging") -> None:
        self.judge.merge(other.judge)


class Learning:
    """Rules that learn from all rows, or look at them once more."""

    def __init__(self, fitting: Fitting | Looking) -> None:
        self.fitting = fitting

    def see(self, batch: Batch) -> None:
        self.fitting.see(batch.scores, batch.target, batch.rows, batch.first_row)

    def close(self, shard: int) -> None: ...

    def merge(self, other: "Learning") -> None:
        self.fitting.merge(other.fitting)  # type: ignore[arg-type]


class Writing:
    """Writes the sets of each shard to a file of its own; keeps how many there are, and the first."""

    def __init__(self, folder: Path, rule: SetRule, shown: int) -> None:
        self.folder, self.rule, self.shown = folder, rule, shown
        self.examples = self.labels = 0
        self.first: list[tuple[int, LabelSets, Sequence[str] | None, tuple[str, Any]]] = []
        self._parts: list[Any] = []

    def see(self, batch: Batch) -> None:
        sets = self.rule.predict_rows(batch.scores, batch.first_row, **needed(self.rule, batch.rows))
        sets = batch.predictor.named(sets)
        beside = batch.predictor.beside(batch.scores.numpy(), self.rule, sets)
        self._parts.append((sets, batch.ids, beside))
        if self.examples < self.shown:
            few = sets[: self.shown]
            ids = None if batch.ids is None else batch.ids[: self.shown]
            self.first.append((batch.first_row, few, ids, (beside[0], beside[1][: len(few.indices)])))
        self.examples += len(sets)
        self.labels += len(sets.indices)

    def close(self, shard: int) -> None:
        write_parquet(self.folder / f"part-{shard:06}.parquet", self._parts)
        self._parts = []

    def merge(self, other: "Writing") -> None:
        if self.examples < self.shown:
            self.first += other.first
        self.examples += other.examples
        self.labels += other.labels


@dataclass(frozen=True)
class Source:
    """Where workers find the run and its data."""

    run: str
    data: Any  # a part, a path, or an object reference of a data set
    overrides: tuple[str, ...] = ()
    labelled: bool = True
    allow_import: tuple[str, ...] = ()
    gpu: bool = False
    notes_broken: bool = False

    def open(self) -> tuple[Run, Dataset]:
        run = Run(self.run, self.allow_import)
        data = self.data if isinstance(self.data, str) else require("ray", extra="ray").get(self.data)
        broken: dict[str, str] | None = {} if self.notes_broken else None
        return run, find_data(run, data, self.overrides, self.labelled, broken=broken)[0]


class Worker:
    """An actor: it reads run and data once, and then takes shard after shard."""

    def __init__(self, source: Source, work: bytes, rows: Mapping[str, Any]) -> None:
        self.source, self.work, self.rows = source, work, rows
        self._opened: tuple[Run, Dataset] | None = None

    def __call__(self, shards: dict[str, Any]) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {"rows": [], "state": []}
        for shard, first, count in zip(shards["shard"], shards["first"], shards["count"], strict=True):
            try:
                state: Any = self._seen(int(shard), int(first), int(count))
            except ShortlistError as error:  # meant for users: it travels as it is, without the worker's traceback
                state = error
            found["rows"].append(int(count))
            found["state"].append(pickle.dumps(state))
        return found

    def _seen(self, shard: int, first: int, count: int) -> tuple[Work, dict[str, str]]:
        run, dataset = self._opened = self._opened or self.source.open()
        work: Work = pickle.loads(self.work)
        predictor = run.predictor()
        if self.source.gpu and torch.cuda.is_available():
            predictor.to("cuda")
        part = dataset.subset(slice(first, first + count))
        scored = predictor.scored(run.preprocessed(part))
        for at, scores in scored.batches():
            start = first + (at.start if isinstance(at, slice) else int(at[0]) if len(at) else 0)
            rows = {name: pick(values[first : first + count], at) for name, values in self.rows.items()}
            target, truth, ids = (pick(values, at) for values in (part.target, part.truth, part.ids))
            work.see(Batch(scores, target, truth, ids, rows, start, predictor))
        work.close(shard)
        broken = part.inputs.broken or {} if isinstance(part.inputs, Images) else {}
        return work, {path: broken[path] for path in part.inputs.source if path in broken} if broken else {}


def merge_states(found: dict[str, Any]) -> dict[str, list[Any]]:
    """The states of several shards as one; the first error stands for all."""
    states = [pickle.loads(state) for state in found["state"]]
    error = next((state for state in states if isinstance(state, ShortlistError)), None)
    if error is None:
        for work, broken in states[1:]:
            states[0][0].merge(work)
            states[0][1].update(broken)
    return {"rows": [int(np.sum(found["rows"]))], "state": [pickle.dumps(states[0] if error is None else error)]}


class Passes:
    """Passes over all rows of some data, by the workers of a cluster."""

    def __init__(self, engine: Ray, source: Source, dataset: Dataset, predictor: Predictor, rows: Mapping[str, Any]):
        self.engine, self.source, self.dataset, self.rows = engine, source, dataset, rows
        if not isinstance(predictor.model, Learner):
            raise AssertionError("the model of a run")
        self.batch = batch_rows(predictor.model, dataset, crops=predictor.crops)
        self.broken: dict[str, str] = {}

    def over(self, work: Any, what: str) -> Any:
        """The work after all rows have been seen."""
        ray, data = require("ray", extra="ray"), require("ray.data", extra="ray")
        workers = self._workers(ray)
        shards = self._shards(workers)
        source = self.source
        if isinstance(source.data, Dataset):
            source = replace(source, data=ray.put(source.data))
        states = data.from_items(shards, override_num_blocks=len(shards)).map_batches(
            Worker,
            batch_size=1,
            batch_format="numpy",
            compute=data.ActorPoolStrategy(size=min(workers, len(shards))),
            fn_constructor_args=(source, pickle.dumps(work), dict(self.rows)),
            num_cpus=1,
            num_gpus=self.engine.gpus_per_worker or None,
        )
        left = len(shards)
        while left > _MERGED:
            states = states.map_batches(merge_states, batch_size=_MERGED, batch_format="numpy", num_cpus=0.1)
            left = math.ceil(left / _MERGED)
        return self._merged(states, what)

    def _merged(self, states: Any, what: str) -> Any:
        merged, done = None, 0
        for found in states.iter_rows():
            state = pickle.loads(found["state"])
            if isinstance(state, ShortlistError):
                raise state
            if merged is None:
                merged = state[0]
            else:
                merged.merge(state[0])
            self.broken |= state[1]
            done += int(found["rows"])
            if self.engine.progress is not None:
                self.engine.progress(what, done, len(self.dataset))
        return merged

    def judge(self, judge: Judge) -> Judge:
        found: Judge = self.over(Judging(judge), "judged").judge
        return found

    def fit(self, fitting: Fitting) -> None:
        """Fit rules on all rows: `shortlist.sets.fitting.Elsewhere`."""
        fitting.merge(self.over(Learning(copy.deepcopy(fitting)), "learned from").fitting)
        fitting.finish()
        for look in fitting.looks():
            look.merge(self.over(Learning(look), "looked at again").fitting)

    def _workers(self, ray: Any) -> int:
        if self.engine.workers is not None:
            return self.engine.workers
        has, each = ray.cluster_resources(), self.engine.gpus_per_worker
        return max(1, int(has.get("GPU", 0) / each if each else has.get("CPU", 1)))

    def _shards(self, workers: int) -> list[dict[str, int]]:
        """Whole batches, as one process would score them: the same arithmetic to the last bit."""
        batches = max(1, math.ceil(len(self.dataset) / self.batch))
        size = self.batch * max(1, min(_BATCHES, batches // (_SHARDS * workers)))
        firsts = range(0, max(len(self.dataset), 1), size)
        return [
            {"shard": number, "first": first, "count": min(size, len(self.dataset) - first)}
            for number, first in enumerate(firsts)
        ]


@contextmanager
def passes_over(
    engine: Ray | None,
    given: Given,
    data: Any,
    rows: Mapping[str, Any],
    overrides: Sequence[str] = (),
    *,
    labelled: bool = True,
    notes_broken: bool = False,
) -> Iterator[Passes | None]:
    """The passes of an engine over some data of a run; None where there is no engine. At the end the data set knows
    which images turned out to be broken."""
    if engine is None:
        yield None
        return
    if given.run is None or given.dataset is None:
        raise ShortlistError("--engine goes with a run: scores in a file are looked at by one process")
    if given.task is not None:
        raise ShortlistError(f"--engine is for runs that answer with sets of labels, not for {given.dataset.kind}")
    if not isinstance(data, Dataset):  # a part of the run, or a path
        data = given.name if data is None or os.fspath(data) in PARTS else os.path.abspath(data)
    source = Source(
        os.path.abspath(given.run.path),
        data,
        tuple(overrides),
        labelled,
        given.run.allow_import,
        engine.gpus_per_worker > 0,
        notes_broken,
    )
    with connected(engine):
        passes = Passes(engine, source, given.dataset, given.predictor, rows)
        yield passes
    if isinstance(given.dataset.inputs, Images) and given.dataset.inputs.broken is not None:
        given.dataset.inputs.broken.update(passes.broken)


@contextmanager
def connected(engine: Ray) -> Iterator[None]:
    """Within this block there is a cluster to work on, and Ray keeps quiet."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    ray, data = require("ray", extra="ray"), require("ray.data", extra="ray")
    was_connected = ray.is_initialized()
    if not was_connected:
        try:
            ray.init(
                address=engine.address or "local",
                include_dashboard=None if engine.address else False,
                log_to_driver=False,
                logging_level=logging.ERROR,
                configure_logging=True,
            )
        except ConnectionError as error:
            raise ShortlistError(f"there is no Ray cluster at {engine.address}: {error}") from None
    context = data.DataContext.get_current()
    before = copy.copy(context.execution_options), context.enable_progress_bars
    level = logging.getLogger("ray.data").level
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        yield
    finally:
        context.execution_options, context.enable_progress_bars = before
        logging.getLogger("ray.data").setLevel(level)
        if not was_connected:
            ray.shutdown()
