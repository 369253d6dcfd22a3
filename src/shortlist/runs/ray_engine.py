"""Prediction, calibration and evaluation by many workers: Ray Data hands out rows, and what was found is merged.

The rows of the data are cut into shards. A pool of actors holds the model; each shard is read, scored and looked at by
one of them, and becomes a small state (counts, or a file that is written). States are merged in the order of the rows,
up to eight by the worker that made them and the rest here; no scores travel. What a worker had taken when it died is
done again by another, from its start: its state was not merged, and its files have the same names.
`shortlist.runs.ray_work` has what workers do, `shortlist.runs.shards` how they get at rows.
"""

import copy
import logging
import os
import pickle
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from shortlist.data import Dataset, Images
from shortlist.data.readers.table_shards import filesystem, is_url
from shortlist.data.texts import Texts
from shortlist.errors import ShortlistError
from shortlist.files import PathLike, folder_written_whole
from shortlist.labels.counts import LabelCounts
from shortlist.optional import require
from shortlist.runs.config import PARTS
from shortlist.runs.given import Given
from shortlist.runs.judge import Judge
from shortlist.runs.ray_work import Seeing, Source, Worker, count, judge, learn
from shortlist.runs.run import Run
from shortlist.runs.shards import CutTable, Shard, cut, shards_of, together
from shortlist.sets.fitting import Fitting
from shortlist.training.learner import batch_rows

_ANSWERED = 10.0  # seconds in which somebody at an address answers
_EVERY = 0.5  # seconds between two looks at how far it is

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
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


class Passes:
    """Passes over all rows of some data, by the workers of a cluster."""

    def __init__(self, engine: Ray, source: Source, rows: int, facts: Mapping[str, Any]) -> None:
        self.engine, self.source, self.rows, self.facts = engine, source, rows, facts
        self.broken: dict[str, str] = {}

    def over(self, work: Any, what: str) -> Any:
        """The work after all rows have been seen."""
        ray = require("ray", extra="ray")
        workers = self._workers(ray)
        with self._counted(ray, what) as counter:
            merged = self._merged(self._states(self._shards(workers), workers, pickle.dumps(work), counter))
        if self.engine.progress is not None:
            self.engine.progress(what, self.rows, self.rows)
        return merged

    def _shards(self, workers: int) -> list[Shard]:
        table = self.source.data if isinstance(self.source.data, CutTable) else None
        return shards_of(self.rows, self.source.batch, workers, table)

    def _states(self, shards: Sequence[Shard], workers: int, work: bytes, counter: Any) -> Iterator[dict[str, bytes]]:
        """What workers made of the shards, in their order; a worker merges those that it takes together."""
        ray, data = require("ray", extra="ray"), require("ray.data", extra="ray")
        source = self.source
        if isinstance(source.data, Dataset):
            source = replace(source, data=ray.put(source.data))
        groups = together(shards, workers)
        states = data.from_items([{"shards": pickle.dumps(group)} for group in groups], override_num_blocks=len(groups))
        states = states.map_batches(
            Worker,
            batch_size=1,
            batch_format="numpy",
            compute=data.ActorPoolStrategy(size=min(workers, len(groups))),
            fn_constructor_args=(source, work, dict(self.facts), counter),
            num_cpus=1,
            num_gpus=self.engine.gpus_per_worker or None,
        )
        yield from states.iter_rows()

    def _merged(self, states: Iterator[dict[str, bytes]]) -> Any:
        merged: Any = None
        for found in states:
            state = pickle.loads(found["state"])
            if isinstance(state, BaseException):
                raise state
            if merged is None:
                merged = state[0]
            else:
                merged.merge(state[0])
            self.broken |= state[1]
        return merged

    @contextmanager
    def _counted(self, ray: Any, what: str) -> Iterator[Any]:
        """Within this block it is told how far the workers are; the counter that these tell is given."""
        progress = self.engine.progress
        if progress is None:
            yield None
            return
        here = require("ray.util.scheduling_strategies", extra="ray").NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=True
        )
        counter = ray.remote(_counter()).options(num_cpus=0, scheduling_strategy=here).remote()
        over = threading.Event()

        def tell() -> None:
            with suppress(Exception):  # it only counts; what is done is done
                while not over.wait(_EVERY):
                    done = ray.get(counter.rows.remote(), timeout=60)
                    if done < self.rows and not over.is_set():
                        progress(what, done, self.rows)

        teller = threading.Thread(target=tell, daemon=True)
        teller.start()
        try:
            yield counter
        finally:
            over.set()
            with suppress(Exception):
                ray.kill(counter)
            teller.join(timeout=5)

    def counts(self, ndim: int) -> LabelCounts:
        """Of the labels of all rows; class indices need none."""
        if ndim == 1:
            return LabelCounts(1)
        return self.over(Seeing(LabelCounts(ndim), count, False), "counted the labels of").state

    def judge(self, judged: Judge) -> Judge:
        return self.over(Seeing(judged, judge), "judged").state

    def fit(self, fitting: Fitting) -> None:
        """Fit rules on all rows: `shortlist.sets.fitting.Elsewhere`."""
        fitting.merge(self.over(Seeing(copy.deepcopy(fitting), learn), "learned from").state)
        fitting.finish()
        for look in fitting.looks():
            look.merge(self.over(Seeing(look, learn), "looked again at").state)

    def _workers(self, ray: Any) -> int:
        has, each = ray.cluster_resources(), self.engine.gpus_per_worker
        cards, processors = has.get("GPU", 0), has.get("CPU", 0)
        if each > cards:
            raise ShortlistError(f"--gpus-per-worker {each:g}: the cluster has {cards:g} graphics cards")
        most = max(1, int(min(cards / each, processors) if each else processors))
        if self.engine.workers is None:
            return most
        if self.engine.workers > most:
            raise ShortlistError(
                f"--workers {self.engine.workers}: the cluster has {processors:g} CPUs and {cards:g} graphics cards, "
                f"enough for {most}"
            )
        return self.engine.workers


def _counter() -> type:
    """An actor that counts the rows that are done; those that are done again count once. Ray sends a class that is made
    here as it is, so that its process need not import this package, which takes seconds."""

    class Counter:
        def __init__(self) -> None:
            self.seen: dict[int, int] = {}

        def add(self, first: int, count: int) -> None:
            self.seen[first] = count

        def rows(self) -> int:
            return sum(self.seen.values())

    return Counter


def batch_of(run: Run) -> int:
    """How many rows of data one process scores together."""
    reads_texts = run.facts.get("texts") is not None and not run.facts["in_shape"]
    return batch_rows(run.learner(), Texts.rows_each if reads_texts else 1, crops=run.config.crops)


def cut_for(
    engine: Ray | None, run: Run | None, data: Any, overrides: Sequence[str] = (), labelled: bool = True
) -> CutTable | None:
    """The table that an engine's workers read shard by shard; None where there is no engine, or no such table."""
    if engine is None or run is None or data is None:
        return None
    return cut(run, data if isinstance(data, Dataset) else os.fspath(data), overrides, labelled, batch_of(run))


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
    if given.table is not None:
        data = given.table
    elif not isinstance(data, Dataset):  # a part of the run, or a path
        data = given.name if data is None or os.fspath(data) in PARTS else os.path.abspath(data)
    source = Source(
        os.path.abspath(given.run.path),
        data,
        batch_of(given.run),
        tuple(overrides),
        labelled,
        given.run.allow_import,
        engine.gpus_per_worker > 0,
        notes_broken,
    )
    with connected(engine):
        passes = Passes(engine, source, given.scored.rows, rows)
        yield passes
    if isinstance(given.dataset.inputs, Images) and given.dataset.inputs.broken is not None:
        given.dataset.inputs.broken.update(passes.broken)


@contextmanager
def folder_of_parts(place: PathLike) -> Iterator[str]:
    """A folder for files that workers write: here it appears whole or not at all; behind a URL, where nothing can be
    renamed, it must be new, and is removed if anything fails."""
    if not is_url(place):
        _check_only_parts(os.fspath(place))
        with folder_written_whole(place) as folder:
            yield str(folder.absolute())
        return
    url = os.fspath(place)
    files, inside = filesystem(url)
    try:
        if files.exists(inside):
            raise ShortlistError(f"-o {url} is there already: name another place")
        files.makedirs(inside, exist_ok=True)
    except (OSError, NotImplementedError) as error:  # the latter: of file systems that cannot be written to
        raise ShortlistError(f"-o {url}: cannot write there: {error or type(error).__name__}") from None
    try:
        yield url
    except BaseException:
        with suppress(Exception):
            files.rm(inside, recursive=True)
        raise


def _check_only_parts(folder: str) -> None:
    """A folder that is replaced holds what an engine wrote, and nothing of the user's own."""
    other = [name for name in os.listdir(folder) if not name.startswith("part-")] if os.path.isdir(folder) else []
    if other:
        raise ShortlistError(f"-o {folder}: the folder holds {other[0]!r}, which is no part of sets: name another one")


@contextmanager
def _python_alone_writes_errors() -> Iterator[None]:
    """Within this block, what C++ code writes to the standard error is dropped: Ray's libraries write lines there that
    no setting turns off. What Python writes is shown as always."""
    try:
        is_usual = sys.stderr.fileno() == 2
    except (AttributeError, OSError, ValueError):  # captured, or closed
        is_usual = False
    if not is_usual:
        yield
        return
    before = sys.stderr
    as_before: dict[str, Any] = {"buffering": 1, "encoding": before.encoding, "errors": before.errors}
    with open(os.dup(2), "w", **as_before) as kept, open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
        sys.stderr = kept
        try:
            yield
        finally:
            sys.stderr = before
            os.dup2(kept.fileno(), 2)


@contextmanager
def connected(engine: Ray) -> Iterator[None]:
    """Within this block there is a cluster to work on, and Ray keeps quiet."""
    with _python_alone_writes_errors(), _warnings_of_ray_dropped():
        yield from _connected(engine)


@contextmanager
def _warnings_of_ray_dropped() -> Iterator[None]:
    """Within this block, what Ray's own processes warn of (how many of them there are, say) is not printed: it would be
    among our results in the standard output, and Ray has no setting for it."""
    worker = require("ray._private.worker", extra="ray")
    before = getattr(worker, "print_to_stdstream", None)
    worker.print_to_stdstream = lambda *_, **__: None
    try:
        yield
    finally:
        worker.print_to_stdstream = before


def _connected(engine: Ray) -> Iterator[None]:
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    ray, data = require("ray", extra="ray"), require("ray.data", extra="ray")
    was_connected = ray.is_initialized()
    if not was_connected:
        _connect(ray, engine)
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


def _check_answered(address: str) -> None:
    """Raise a ShortlistError where nobody answers at HOST:PORT: Ray itself would go on asking for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return  # "auto", say, which Ray finds out about
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWERED).close()
    except (OSError, OverflowError) as error:
        raise ShortlistError(f"there is no Ray cluster at {address}: {error}") from None


def _connect(ray: Any, engine: Ray) -> None:
    if engine.address is not None:
        _check_answered(engine.address)
    processors = max(os.cpu_count() or 1, engine.workers or 1)
    here: dict[str, Any] = {} if engine.address else {"include_dashboard": False, "num_cpus": processors}
    try:
        ray.init(
            address=engine.address or "local",
            log_to_driver=False,
            logging_level=logging.CRITICAL,
            configure_logging=True,
            **here,
        )
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        ray.shutdown()
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        where = "on this machine" if engine.address is None else f"at {engine.address}"
        raise ShortlistError(f"there is no Ray cluster {where}: {reason}") from None
