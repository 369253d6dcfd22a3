"""What workers do with the rows that they are given: a shard becomes a small state, and states are merged."""

import pickle
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch

from shortlist.data import Dataset, Images
from shortlist.data.readers.table_shards import filesystem, is_url
from shortlist.errors import ShortlistError
from shortlist.labels import LabelSets
from shortlist.labels.counts import LabelCounts
from shortlist.labels.label_set_files import write_parquet
from shortlist.optional import require
from shortlist.runs.find_data import find_data
from shortlist.runs.judge import Judge
from shortlist.runs.predictor import Predictor
from shortlist.runs.run import Run
from shortlist.runs.shards import CutTable, Shard, pieces
from shortlist.runs.told import Told
from shortlist.sets import SetRule
from shortlist.sets.fitting import Fitting, Looking
from shortlist.sets.named import needed
from shortlist.training.scored import pick

Rows = Callable[[int, int], Dataset]  # some rows: the first one, and how many
_TOLD = (ShortlistError, OSError)  # errors that say all there is to say: they travel without the worker's traceback


class Batch(NamedTuple):
    """Some rows, and all that is known of them; their scores, where the work needs them."""

    scores: Any
    target: Any
    truth: LabelSets | None
    ids: Sequence[str] | None
    rows: dict[str, Any]  # groups and weights
    first_row: int
    predictor: Predictor | None  # where the work needs scores


class Work(Protocol):
    """What is done with batches. Each shard has a copy of its own, and these are merged in the order of the rows."""

    needs_scores: bool

    def see(self, batch: Batch) -> None: ...
    def close(self, shard: int) -> None: ...
    def merge(self, other: Any) -> None: ...


@dataclass
class Seeing:
    """Something that sees all rows, in its own way, and merges: counts, a judge, or rules that learn."""

    state: Any
    tell: Callable[[Any, Batch], None]
    needs_scores: bool = True

    def see(self, batch: Batch) -> None:
        self.tell(self.state, batch)

    def close(self, shard: int) -> None: ...

    def merge(self, other: "Seeing") -> None:
        self.state.merge(other.state)


def count(counts: LabelCounts, batch: Batch) -> None:
    counts.see(batch.target)


def judge(judge: Judge, batch: Batch) -> None:
    judge.see(batch.scores, batch.target, batch.truth, batch.rows, batch.first_row)


def learn(fitting: Fitting | Looking, batch: Batch) -> None:
    fitting.see(batch.scores, batch.target, batch.rows, batch.first_row)


class Writing:
    """Writes the sets of each shard to a file of its own; keeps what is told of them."""

    needs_scores = True

    def __init__(self, folder: str, rule: SetRule) -> None:
        self.folder, self.rule, self.told = folder, rule, Told()
        self._parts: list[Any] = []

    def see(self, batch: Batch) -> None:
        assert batch.predictor is not None
        sets = self.rule.predict_rows(batch.scores, batch.first_row, **needed(self.rule, batch.rows))
        sets = batch.predictor.named(sets)
        beside = batch.predictor.beside(batch.scores.numpy(), self.rule, sets)
        numbers = range(batch.first_row, batch.first_row + len(sets))
        self._parts.append((sets, numbers if batch.ids is None else batch.ids, beside))
        self.told.see(sets, batch.ids, beside, batch.first_row)

    def close(self, shard: int) -> None:
        name = f"part-{shard:06}.parquet"
        if not is_url(self.folder):
            write_parquet(Path(self.folder) / name, self._parts)
        else:
            files, inside = filesystem(self.folder)
            with tempfile.TemporaryDirectory(prefix="shortlist-") as here:
                write_parquet(Path(here) / name, self._parts)
                files.put_file(str(Path(here) / name), f"{inside.rstrip('/')}/{name}")
        self._parts = []

    def merge(self, other: "Writing") -> None:
        self.told.merge(other.told)


@dataclass(frozen=True)
class Source:
    """Where workers find the run and its data."""

    run: str
    data: Any  # a table that is cut, a part, a path, a data set, or an object reference of one
    batch: int  # rows that are scored together
    overrides: tuple[str, ...] = ()
    labelled: bool = True
    allow_import: tuple[str, ...] = ()
    gpu: bool = False
    notes_broken: bool = False

    def open(self) -> tuple[Run, Rows]:
        run = Run(self.run, self.allow_import)
        if isinstance(self.data, CutTable):
            return run, partial(self.data.part, run)
        held = isinstance(self.data, str | Dataset)
        data = self.data if held else require("ray", extra="ray").get(self.data)
        broken: dict[str, str] | None = {} if self.notes_broken else None
        whole = find_data(run, data, self.overrides, self.labelled, broken=broken)[0]
        return run, lambda first, count: whole.subset(slice(first, first + count))


class Worker:
    """An actor: it reads run, model (if it needs scores) and data (where that cannot be cut) once, and then takes shard
    after shard.

    ``counter``: another one, who is told what is done.
    """

    def __init__(self, source: Source, work: bytes, rows: Mapping[str, Any], counter: Any = None) -> None:
        self.source, self.work, self.rows, self.counter = source, work, rows, counter
        self._opened: tuple[Run, Rows] | None = None
        self._model: Predictor | None = None

    def __call__(self, taken: dict[str, Any]) -> dict[str, list[bytes]]:
        states: list[Any] = []
        try:
            for shard in pickle.loads(taken["shards"][0]):
                states.append(self._seen(shard))
        except _TOLD as error:
            states = [error]
        return {"state": [pickle.dumps(merge_states(states))]}

    def _seen(self, shard: Shard) -> tuple[Work, dict[str, str]]:
        run, rows = self._opened = self._opened or self.source.open()
        work: Work = pickle.loads(self.work)
        predictor = self._predictor(run) if work.needs_scores else None
        broken: dict[str, str] = {}
        for first, count in pieces(shard, self.source.batch) or [(shard.first, 0)]:
            part = rows(first, count)
            for batch in self._batches(run, predictor, part, first):
                work.see(batch)
            noted = part.inputs.broken or {} if isinstance(part.inputs, Images) else {}
            broken |= {path: noted[path] for path in part.inputs.source if path in noted} if noted else {}
            if self.counter is not None:
                self.counter.add.remote(first, count)
        work.close(shard.number)
        return work, broken

    def _predictor(self, run: Run) -> Predictor:
        if self._model is None:
            self._model = run.predictor()
            if self.source.gpu and torch.cuda.is_available():
                self._model.to("cuda")
        return self._model

    def _batches(self, run: Run, predictor: Predictor | None, part: Dataset, first: int) -> Any:
        if predictor is None:
            yield Batch(None, part.target, part.truth, part.ids, {}, first, None)
            return
        for at, found in predictor.scored(run.preprocessed(part)).batches():
            start = first + (at.start if isinstance(at, slice) else int(at[0]) if len(at) else 0)
            rows = {name: pick(values[first : first + len(part)], at) for name, values in self.rows.items()}
            target, truth, ids = (pick(values, at) for values in (part.target, part.truth, part.ids))
            yield Batch(found, target, truth, ids, rows, start, predictor)


def merge_states(states: Sequence[Any]) -> Any:
    """The states of several shards as one; the first error stands for all."""
    error = next((state for state in states if isinstance(state, _TOLD)), None)
    if error is not None:
        return error
    first, *others = states
    for work, broken in others:
        first[0].merge(work)
        first[1].update(broken)
    return first
