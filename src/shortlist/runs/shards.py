"""The rows of some data, as workers get at them: a data set that each of them reads whole, or a table that is cut."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

from shortlist.data import Dataset
from shortlist.data.readers.findings import labels_are_lists
from shortlist.data.readers.table_shards import CutFile, cut_table, is_url
from shortlist.data.table_rows import TableRows
from shortlist.errors import ShortlistError
from shortlist.runs.config import PARTS
from shortlist.runs.find_data import Described, described, described_part
from shortlist.runs.run import Run

_BATCHES = 16  # that are read together, and of a shard, unless there are very many rows
_SHARDS = 4  # for each worker, at least
_TOGETHER = 8  # shards that a worker takes and merges at a time, at most
_MOST = 4096  # shards, about
_READ = 4  # times that a group of rows of a parquet file is read, about, at most
_READERS = ("features", "text-table")


@dataclass(frozen=True)
class Shard:
    """Some rows that one worker takes: ``count`` of them from the ``first`` on."""

    number: int
    first: int
    count: int


@dataclass(frozen=True)
class CutTable:
    """A table of which each worker reads the rows that it is given, and no others."""

    how: Described
    files: tuple[CutFile, ...]
    lists: bool | None = None  # whether cells of labels are lists: the first rows decide, and not each shard anew

    @property
    def firsts(self) -> list[int]:
        """The number of the first row of each file, and of all rows."""
        return [0, *accumulate(file.rows for file in self.files)]

    @property
    def rows(self) -> int:
        return self.firsts[-1]

    def sample(self, run: Run) -> Dataset:
        """The first rows of the first file that has some: they show what the others are like."""
        file = next((file for file in self.files if file.rows), self.files[0])
        return self._read(run, file, 0, min(file.rows, file.every if file.starts is not None else 1024))

    def _read(self, run: Run, file: CutFile, first: int, count: int) -> Dataset:
        with file.rows_at(first, count) as small, labels_are_lists(self.lists):
            found = self.how.read(run, at=small)
        if len(found) != count:
            raise ShortlistError(
                f"{file.path}: {len(found)} rows are read where {count} were counted, after row {first}: are there "
                f"lines with nothing but blanks? Remove them, or go without --engine"
            )
        return found

    def part(self, run: Run, first: int, count: int) -> Dataset:
        """Some rows, read as the run reads them."""
        firsts = self.firsts
        with_rows = (at for at, begin in enumerate(firsts[:-1]) if begin <= first and self.files[at].rows)
        number = max(with_rows, default=0)
        found = self._read(run, self.files[number], first - firsts[number], count)
        if isinstance(found.inputs, TableRows):
            named = found.inputs.frame.set_axis(range(first, first + count))  # errors name rows by it
            return replace(found, inputs=TableRows(named))
        return found


def cut(run: Run, data: Any, overrides: Sequence[str], labelled: bool, every: int) -> CutTable | None:
    """The table that is meant, cut; None where the data is something else, or cannot be cut."""
    if isinstance(data, Dataset) or run.task is not None:
        return None
    how = described_part(run, str(data)) if str(data) in PARTS else described(run, str(data), overrides, labelled)
    takes = how is not None and how.content["reader"] in _READERS and not run.inputs.takes_images
    files = cut_table(how.path, every, how.content, run.inputs.takes_texts) if how is not None and takes else None
    if files is None and is_url(str(data)):
        raise ShortlistError(f"{data}: what is read from a URL is tables, .parquet, .csv, .tsv, or .txt of texts")
    if files is None or how is None:
        return None
    table = CutTable(how, tuple(files))
    return replace(table, lists=_has_lists(run, table)) if how.labelled else table


def _has_lists(run: Run, table: CutTable) -> bool:
    """As the first rows say, or else as in training."""
    first = table.sample(run)
    known = not first.is_single or bool((first.target != -1).any())
    return not (first.is_single if known else run.facts["single"])


def shards_of(rows: int, batch: int, workers: int, table: CutTable | None) -> list[Shard]:
    """Whole batches, as one process would score them: the same arithmetic to the last bit. Of a parquet file whose
    groups of rows are large, a shard is no small part of a group; it ends where its file does."""
    batches = math.ceil(rows / batch)
    most = max(_BATCHES, batches // _MOST)
    if table is not None:
        most = max(most, max(max(file.groups, default=0) for file in table.files) // (_READ * batch))
    size = batch * max(1, min(most, batches // (_SHARDS * workers)))
    bounds = table.firsts if table is not None else [0, rows]
    found: list[Shard] = []
    for begin, end in pairwise(bounds):
        for first in range(begin, end, size):
            found.append(Shard(len(found), first, min(size, end - first)))
    return found or [Shard(0, 0, 0)]


def together(shards: Sequence[Shard], workers: int) -> list[list[Shard]]:
    """What a worker takes at a time: several shards, if there are enough of them for all workers."""
    size = max(1, min(_TOGETHER, len(shards) // (_SHARDS * workers)))
    return [list(shards[first : first + size]) for first in range(0, len(shards), size)]


def pieces(shard: Shard, batch: int) -> list[tuple[int, int]]:
    """What is read at a time: first row, and how many."""
    step, end = _BATCHES * batch, shard.first + shard.count
    return [(first, min(step, end - first)) for first in range(shard.first, end, step)]
