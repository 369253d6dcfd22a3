"""Named metrics over batches of scores, in memory that does not grow with rows x labels, on one process or many.

Each is what the function of its name gives for all rows together. A stream is fed with ``update``; streams of other
rows are merged; ``look_again`` then gives what has to see every row once more, or None where ``value`` is exact.
"""

from collections.abc import Callable, Iterable, Mapping
from math import floor
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shortlist.device_arrays import as_array, beside, on_host
from shortlist.links import link_tensor
from shortlist.metrics._truth import scores_and_truth
from shortlist.metrics.functional.average_k import Cut, checked_average, inside
from shortlist.metrics.functional.average_precision import average_precision, linked_and_matrix
from shortlist.metrics.functional.ranking import top_k_counts
from shortlist.score_counts import Place, ScoreCounts, from_key, to_keys

_BLOCK = 1 << 20  # scores that are looked up at a time


class Stream:
    """A metric of scores, fed batch by batch."""

    def update(self, scores: Tensor, target: Any) -> None:
        raise NotImplementedError

    def merge(self, other: Self) -> None:
        """Take in what another has seen."""
        raise NotImplementedError

    def look_again(self) -> "Stream | None":
        """What must see all rows again before there is a value; None where this has it."""
        return None

    def value(self) -> float:
        raise NotImplementedError


def values_of(
    streams: Mapping[str, Stream],
    batches: Callable[[], Iterable[tuple[Tensor, Any]]],
    merged: Callable[[dict[str, Stream]], dict[str, Stream]] = lambda streams: streams,
) -> dict[str, float]:
    """The values of streams on batches of scores and targets, which are passed over once or twice. ``merged`` is given
    the streams after each pass, to merge them with those of other processes.

    >>> batches = [(torch.eye(3), torch.tensor([0, 1, 1])), (torch.eye(3), torch.tensor([0, 1, 2]))]
    >>> top_1 = Ratio(lambda scores, target: top_k_sums(scores, target, 1))
    >>> values_of({"top-1": top_1, "mAP": AveragePrecision()}, lambda: batches)
    {'top-1': 0.8333333134651184, 'mAP': 0.7777777910232544}
    """
    found: dict[str, float] = {}
    waiting = dict(streams)
    while waiting:
        for scores, target in batches():
            for stream in waiting.values():
                stream.update(scores, target)
        values, waiting = after_a_pass(merged(waiting))
        found |= values
    return {name: found[name] for name in streams}


def after_a_pass(streams: Mapping[str, Stream]) -> tuple[dict[str, float], dict[str, Stream]]:
    """The values of the streams that have seen enough; and for the others what must see everything again."""
    looks = {name: (stream, stream.look_again()) for name, stream in streams.items()}
    values = {name: stream.value() for name, (stream, again) in looks.items() if again is None}
    return values, {name: again for name, (_, again) in looks.items() if again is not None}


class Ratio(Stream):
    """The ratio of two sums over rows; ``sums`` gives those of a batch, (2,)."""

    def __init__(self, sums: Callable[[Tensor, Any], Tensor]) -> None:
        self.of_batch, self.sums = sums, torch.zeros(2, dtype=torch.int64)

    def update(self, scores: Tensor, target: Any) -> None:
        self.sums = self.sums + self.of_batch(scores, target).cpu()

    def merge(self, other: "Ratio") -> None:
        self.sums = self.sums + other.sums

    def value(self) -> float:
        return float((self.sums[0] / self.sums[1]).float())


def top_k_sums(scores: Tensor, target: Any, k: int) -> Tensor:
    """Rows that are right, and all that have a label."""
    return torch.stack([counts.sum() for counts in top_k_counts(scores, target, k)])


def sums_of_rows(scores: Tensor, target: Any, rows: Callable[[Tensor, Any], Tensor]) -> Tensor:
    """Of what a function gives for each row, and of rows; those of which it gives nothing do not count."""
    values = rows(scores, target)
    return torch.stack([values.sum(), values.new_tensor(len(values))])


def average_precision_rows(scores: Tensor, target: Any) -> Tensor:
    """Average precision of every row that has a present label."""
    values = average_precision(*linked_and_matrix(scores, target, "none"))
    return values[~values.isnan()]


class AverageK(Stream):
    """Average-K accuracy: counts of all linked scores find the threshold, and the score of each row's label is kept.
    Float32, as the scores of a model are."""

    def __init__(self, k: float, link: str) -> None:
        self.k, self.link = checked_average(k), link
        self.counts, self.rows, self.num_labels = ScoreCounts(), 0, 0
        self.of_labels: list[Tensor] = []

    def update(self, scores: Tensor, target: Any) -> None:
        values, labels = self._values(scores, target)
        if len(labels):
            self.of_labels.append(values.gather(1, labels[:, None])[:, 0].cpu())
            self.rows, self.num_labels = self.rows + len(labels), values.shape[1]
            self.counts.add(to_keys(as_array(values)), self._rank)

    def merge(self, other: "AverageK") -> None:
        self.of_labels += other.of_labels
        self.rows, self.num_labels = self.rows + other.rows, max(self.num_labels, other.num_labels)
        if other.rows:
            self.counts.merge(other.counts, self._rank)

    def look_again(self) -> "Stream | None":
        places = self._places()
        if places is None or not any(place.unplaced for place in places):
            return None
        self.counts.start_again(self._rank)
        return _PlacedAverageK(self)

    def value(self) -> float:
        if not self.rows:
            return float("nan")
        return float(inside(torch.cat(self.of_labels), self._cut()).mean().float())

    def _values(self, scores: Tensor, target: Any) -> tuple[Tensor, Tensor]:
        """The linked scores of the rows that have a label, and these labels."""
        values, truth = scores_and_truth(scores, target)
        values = link_tensor(values, self.link).float()
        rows, labels = truth.single_labels()
        return (values if len(rows) == len(values) else values[rows]).contiguous(), labels

    @property
    def _rank(self) -> int:
        return min(max(floor(self.k * self.rows + 0.5), 1), self.rows * self.num_labels)

    def _places(self) -> tuple[Place, Place] | None:
        """The scores on both sides of the threshold; None where every score is in, or none is."""
        wanted = floor(self.k * self.rows + 0.5)
        if not 0 < wanted < self.rows * self.num_labels:
            return None
        return self.counts.find(wanted), self.counts.find(wanted + 1)

    def _cut(self) -> Cut:
        places = self._places()
        if places is None:
            everything = floor(self.k * self.rows + 0.5) > 0
            return Cut(float("-inf")) if everything else Cut(float("inf"), 0.0)
        here, after = places
        upper, lower = from_key(here.key), from_key(after.key)
        if lower == upper:
            return Cut(upper, (self._rank - here.above) / here.tied)
        middle = float(np.float32((lower + upper) / 2))
        return Cut(middle if lower < middle < upper else upper)


class _PlacedAverageK(Stream):
    """The second look of average-K: places the scores around the threshold, all of them."""

    def __init__(self, first: AverageK) -> None:
        self.first, self.counts = first, first.counts.copy()

    def update(self, scores: Tensor, target: Any) -> None:
        values, _ = self.first._values(scores, target)
        self.counts.place_again(to_keys(as_array(values)))

    def merge(self, other: "_PlacedAverageK") -> None:
        self.counts.merge_placed(other.counts)

    def value(self) -> float:
        self.first.counts = self.counts
        return self.first.value()


class AveragePrecision(Stream):
    """Mean average precision over classes: keeps the scores of the present entries, which are few; a second look counts
    the known entries that score as high as each of them."""

    def __init__(self) -> None:
        self.scores: list[NDArray[Any]] = [np.zeros(0, np.float32)]
        self.labels: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
        self.num_labels = 0

    def update(self, scores: Tensor, target: Any) -> None:
        rows, truth = scores_and_truth(scores, target)
        self.num_labels = rows.shape[1]
        self.scores.append(rows.reshape(-1)[truth.present].cpu().numpy())
        self.labels.append(truth.labels.cpu().numpy())

    def merge(self, other: "AveragePrecision") -> None:
        self.scores += other.scores
        self.labels += other.labels
        self.num_labels = max(self.num_labels, other.num_labels)

    def look_again(self) -> "Stream | None":
        return _CountedAveragePrecision(np.concatenate(self.scores), np.concatenate(self.labels), self.num_labels)


class _CountedAveragePrecision(Stream):
    """The second look of mean average precision."""

    def __init__(self, scores: NDArray[Any], labels: NDArray[np.int64], num_labels: int) -> None:
        order = np.lexsort((scores, labels))
        self.scores, self.labels = scores[order], labels[order]  # rising within each class
        self.ends = np.searchsorted(self.labels, np.arange(num_labels), side="right")
        self.starts = np.searchsorted(self.labels, np.arange(num_labels), side="left")
        # the known entries that reach the present entry at this place, and no higher one of its class
        self.counts = np.zeros(len(scores), np.int64)
        least = np.full(num_labels, np.nan, scores.dtype)  # nothing reaches a class without present entries
        has = self.ends > self.starts
        least[has] = self.scores[self.starts[has]]
        self.least = least

    def update(self, scores: Tensor, target: Any) -> None:
        rows, truth = scores_and_truth(scores, target)
        step = max(1, _BLOCK // max(1, rows.shape[1]))
        for start in range(0, len(rows), step):
            block = as_array(rows[start : start + step])
            reaches = block >= self.least
            reaches[as_array(truth.known_per_row[start : start + step] == 0)] = False
            if truth.unknown is not None:
                reaches &= ~as_array(truth.unknown[start : start + step])
            at = np.flatnonzero(reaches)
            self._count(block.reshape(-1)[at], at % block.shape[1])

    def _count(self, scores: NDArray[Any], labels: NDArray[np.int64]) -> None:
        """Find the last present entry of its class that each score reaches, by halving; there is at least one."""
        starts, ends, own = (beside(part, labels) for part in (self.starts, self.ends, self.scores))
        low, high = starts[labels], ends[labels]
        while bool((high - low > 1).any()):
            middle = (low + high) // 2
            reached = own[middle] <= scores
            low, high = np.where(reached, middle, low), np.where(reached, high, middle)
        self.counts += on_host(np.bincount(low, minlength=len(self.counts)))

    def merge(self, other: "_CountedAveragePrecision") -> None:
        self.counts = self.counts + other.counts

    def value(self) -> float:
        if not len(self.scores):
            return float("nan")
        # equal scores are one step: the first of them stands for all
        same = np.concatenate([[False], (np.diff(self.labels) == 0) & (self.scores[1:] == self.scores[:-1])])
        place = np.arange(len(self.scores))
        first = np.maximum.accumulate(np.where(same, 0, place))
        from_here = self.counts[::-1].cumsum()[::-1]
        beyond = np.append(from_here, 0)[self.ends[self.labels]]
        known = from_here[first] - beyond
        present = self.ends[self.labels] - first
        each = np.bincount(self.labels, present / known) / np.maximum(np.bincount(self.labels), 1)
        return float(np.float32(each[np.bincount(self.labels) > 0].mean()))
