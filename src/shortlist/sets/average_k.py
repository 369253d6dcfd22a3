"""AverageK: k labels on average, more where the row is ambiguous and fewer where it is clear."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from shortlist.checks import whole
from shortlist.device_arrays import on_host
from shortlist.errors import ShortlistError, ShortlistWarning
from shortlist.links import AnyLink, high_entries, link_rows, rule_link
from shortlist.score_counts import ScoreCounts, from_key, to_keys
from shortlist.sets._blocks import Block, Scores, can_repeat, read_blocks
from shortlist.sets._bounds import hoeffding_bentkus_budget
from shortlist.sets._hash import Hashes, label_hashes, row_hashes
from shortlist.sets._one_row import Labels, reaching
from shortlist.sets._order import best_labels
from shortlist.sets._rule import Look, SetRule, members, members_at, number, pack_float, share

_EVERY = (1 << 64) - 1  # a hash limit that lets every tied label in


class AverageK(SetRule):
    """The labels with linked score >= threshold, the threshold such that sets of the calibration rows have k labels on
    average (Algorithm 1 of average-K classification). ``k`` may be a fraction.

    The threshold is the midpoint of the M-th and (M+1)-th largest of all n x L linked calibration scores,
    M = floor(k n + 1/2). Where these two are equal, labels exactly at the threshold are let in by a hash of the row's
    content and the label, up to a limit chosen so that the calibration sets hold exactly M labels (identical rows
    cannot be told apart).

    ``link`` makes rows comparable: "softmax" (single labels), "sigmoid" (multi-label) or "none" (scores that already
    are). Thresholding raw logits is a trap: on CIFAR-100 it is worse than ``TopK``, and softmax is much better.

    ``min_size``: every set holds at least its row's so many best labels (ties by hash), and sets of the calibration
    rows still have k labels on average. The threshold is then found among the other n x (L - min_size) scores, with
    n x min_size taken off M. It may not be above k; without it, sets may be empty. ``max_size``: no set holds more than
    its row's so many best labels, and the threshold is found among these.

    Without ``confidence``, k is what sets of the calibration rows have: on new rows they have a little more or less.
    With it, and a ``max_size``, the promise is about new rows: with probability at least ``confidence`` over
    calibrations, sets of rows like the calibration rows have at most k labels on average. M is then the largest sum of
    sizes for which the bound of Hoeffding and Bentkus allows that, sizes lying between min_size and max_size; ``price``
    is by how many labels that is below k, and falls as rows or as max_size / k permit. (One pass over the scores may
    leave a ``rank_error``; the promise holds where it is 0.)

    ``fit`` is exact on scores that can be passed over again: arrays, memory maps, lists of batches, functions that
    return batches. One pass is all that ``partial_fit``, ``merge`` and ``fit`` on an iterator have. They keep counts
    in bounded memory (at most 33 MB) and give the exact threshold as a rule; ``rank_error`` states by how many of the
    n x L calibration scores the result can be off at most, 0 if exact. They work in float32; only ``fit`` on float64
    that can be repeated works in float64.

    >>> import torch
    >>> scores = torch.tensor([[4.0, 0.0, 0.0, 0.1], [1.0, 1.1, 0.9, 0.0]])
    >>> rule = AverageK(2).fit(scores)
    >>> rule.predict(scores).to_lists(), round(rule.threshold, 3)
    ([[0], [0, 1, 2]], 0.188)
    >>> scores = torch.tensor([[4.0, 3.9, 0.0, 0.0], [0.1, 0.0, 0.0, -0.1]])
    >>> [AverageK(1, min_size=least).fit(scores).predict(scores).to_lists() for least in (0, 1)]
    [[[0, 1], []], [[0], [0]]]
    >>> scores = torch.randn(1000, 10, generator=torch.Generator().manual_seed(0))
    >>> print(AverageK(3, max_size=6, confidence=0.95).fit(scores).promise)
    with a confidence of 95.0%, new sets have at most 3 labels on average, and never above 6; it costs 0.2 labels
    """

    learns = True
    threshold: float  # in linked scores
    rank_error: int  # how many calibration scores may be on the wrong side, at most

    def __init__(
        self,
        k: float,
        link: AnyLink = "softmax",
        min_size: int = 0,
        max_size: int | None = None,
        confidence: float | None = None,
    ) -> None:
        self.k = number(k, "k", "above 0 and at most the number of labels", lambda x: 0 < x < math.inf)
        self.link = rule_link(link)
        self.min_size = whole(min_size, "min_size", 0)
        if self.min_size > self.k:
            raise ShortlistError(f"min_size must be at most k, the mean size, which is {self.k:g}; got {min_size}")
        self.max_size = None if max_size is None else whole(max_size, "max_size", 1)
        if self.max_size is not None and self.max_size < self.k:
            raise ShortlistError(f"max_size must be at least k, the mean size, which is {self.k:g}; got {max_size}")
        self.confidence = None if confidence is None else share(confidence, "confidence")
        if self.confidence is not None and self.max_size is None:
            raise ShortlistError("a confidence needs a max_size: nothing bounds a mean size that a few rows can exceed")
        self.reset()

    @property
    def hash_limit(self) -> int | None:
        """The largest hash of a row and label that lets a label exactly at the threshold in; None: every one does."""
        return None if self._hash_limit == _EVERY else self._hash_limit

    @property
    def in_double(self) -> bool:
        """Whether linked scores are compared with the threshold in float64."""
        return bool(self._dtype == np.float64)

    def reset(self) -> None:
        self._rows = 0
        self._counts = ScoreCounts()
        self._saw_double = False

    def learn(self, block: Block) -> None:
        rows, num_labels = block.scores.shape
        if self.k > num_labels:
            raise ShortlistError(f"k must be above 0 and at most {num_labels} (the number of labels), got {self.k:g}")
        self._saw_double |= block.scores.dtype == np.float64
        if rows:
            keys = to_keys(self._free(block, np.float32))
            self._rows += rows
            self._counts.add(keys, self._rank)

    def absorb(self, other: AverageK) -> None:
        self._rows += other._rows
        if other._rows:
            self._counts.merge(other._counts, self._rank)

    def finish(self) -> None:
        """The threshold from the counts alone, in float32."""
        self._dtype: Any = np.float32
        self.rank_error, self._hash_limit = 0, _EVERY
        if self._rank == 0:
            self.threshold, self._hash_limit = math.inf, 0  # not even a score of infinity gets in
            return
        if self._rank == self._total:
            self.threshold = -math.inf
            return
        here, after = self._counts.find(self._rank), self._counts.find(self._rank + 1)
        self.threshold = from_key(here.key)
        if here.unplaced or here.key == after.key:
            least, most = here.above, here.above + here.tied + here.unplaced
            self.rank_error = max(self._rank - least, most - self._rank)
            self._hash_limit = (here.wanted << 64) // here.of - 1  # hashes are uniform: let in the wanted share
        elif not after.unplaced:
            self.threshold = _midpoint(self.threshold, from_key(after.key), np.float32)

    # ---- the passes that end with the exact threshold

    def refine(self, scores: Scores) -> None:
        if can_repeat(scores):
            for look in self.looks():
                for block in self._again(scores):
                    look.see(block)
        if self.concern:
            warnings.warn(self.concern, ShortlistWarning, stacklevel=4)  # whoever called fit

    def looks(self) -> Iterator[Look]:
        if not 0 < self._rank < self._total:
            return
        counts = self._counts
        if counts.find(self._rank).unplaced or counts.find(self._rank + 1).unplaced:
            counts.start_again(self._rank)
            yield (placing := _Placing(self))
            counts.open = placing.counts.open
            self.finish()
        here, after = counts.find(self._rank), counts.find(self._rank + 1)
        if here.unplaced or after.unplaced:
            raise ShortlistError("two passes over the scores differ: a function must return the same scores each time")
        above, tied = here.above, here.tied
        if self._saw_double:
            # float64 scores that are equal in float32 may differ: look at those around the rank themselves
            yield (around := _Near(self, after.key, here.key))
            near = -np.sort(-np.concatenate(around.kept))
            m_th, next_one = near[self._rank - above - 1], near[self._rank - above]
            self._dtype, self.rank_error, self._hash_limit = np.float64, 0, _EVERY
            self.threshold = _midpoint(float(m_th), float(next_one), np.float64)
            above, tied = above + int((near > m_th).sum()), int((near == m_th).sum())
            is_tied = m_th == next_one
        else:
            is_tied = here.key == after.key
        if is_tied:
            wanted = self._rank - above
            yield (hashing := _Hashing(self, wanted, tied))
            self._choose_hash_limit(hashing, wanted)

    def _choose_hash_limit(self, seen: _Hashing, wanted: int) -> None:
        """The wanted-th smallest hash among the tied labels."""
        below, hashes = seen.below, np.sort(np.concatenate(seen.kept))
        # outside only when very many rows are identical; then the nearer end is the closest that is possible
        place = min(max(wanted - below - 1, 0), len(hashes) - 1)
        self._hash_limit = int(hashes[place]) if len(hashes) else seen.low
        inside = below + int(np.searchsorted(hashes, np.uint64(self._hash_limit), side="right"))
        if self.confidence is not None and inside > wanted and self._hash_limit > 0:  # the promise is an upper bound
            self._hash_limit -= 1
            inside = below + int(np.searchsorted(hashes, np.uint64(self._hash_limit), side="right"))
        self.rank_error = abs(inside - wanted)

    def _again(self, scores: Scores) -> Iterator[Block]:
        rows = 0
        for block in read_blocks(scores, size=self.block_size):
            rows += len(block.scores)
            yield block
        if rows != self._rows:
            raise ShortlistError(
                f"the scores had {self._rows} rows in the first pass over them and {rows} in a later one"
            )

    # ---- predicting

    def labels_of_row(self, scores: Tensor) -> Labels | None:
        if self.min_size or self.max_size is not None:
            return None
        return reaching(scores, self.link, self.threshold, at_ties=self._hash_limit == _EVERY)

    def sets_of(self, block: Block) -> tuple[NDArray[Any], NDArray[Any]]:
        bounded = self.min_size or self.max_size is not None
        high = None if bounded else high_entries(block.scores, self.link, self.threshold, block.first_row)
        if high is not None:
            at, values = high[0], _round(high[1], self._dtype)
            inside = values >= self._dtype(self.threshold)
            if self._hash_limit != _EVERY:
                tied = values == self._dtype(self.threshold)
                inside[tied] = _hashes_of(block, at[tied]) <= np.uint64(self._hash_limit)
            return members_at(at[inside], *block.scores.shape)
        linked = self._linked(block, self._dtype)
        inside = linked >= self._dtype(self.threshold)
        if self._hash_limit != _EVERY:
            at, hashes = _hashes_at(block, linked, self.threshold)
            inside.reshape(-1)[at] = hashes <= np.uint64(self._hash_limit)
        if self.min_size:
            np.put_along_axis(inside, best_labels(block.scores, self.min_size, block.first_row), True, -1)
        return members(inside)

    def _linked(self, block: Block, dtype: Any) -> NDArray[Any]:
        """Linked scores, with NaN where no threshold decides: for the ``min_size`` best labels of each row, and for
        those after the ``max_size`` best."""
        linked = _round(link_rows(block.scores, self.link, block.first_row), dtype)
        if self._most < linked.shape[1]:
            best = best_labels(block.scores, self._most, block.first_row)
            open_to_choice = np.full_like(linked, np.nan)
            np.put_along_axis(open_to_choice, best, np.take_along_axis(linked, best, -1), -1)
            linked = open_to_choice
        if self.min_size:
            linked = linked.copy() if linked is block.scores else linked
            best = best_labels(block.scores, self.min_size, block.first_row)
            np.put_along_axis(linked, best, np.nan, -1)
        return linked

    def _free(self, block: Block, dtype: Any) -> NDArray[Any]:
        """The linked scores about which the threshold decides, in one row."""
        linked = self._linked(block, dtype).reshape(-1)
        return linked[~np.isnan(linked)] if self.min_size or self.max_size is not None else linked

    @property
    def _rank(self) -> int:
        """How many of the scores about which the threshold decides are to reach it."""
        if self.confidence is None or self._total == 0 or self.k == self.min_size:
            return min(math.floor(self.k * self._rows + 0.5) - self._rows * self.min_size, self._total)
        free = self._most - self.min_size  # sizes beyond min_size are from 0 to this
        budget = hoeffding_bentkus_budget(self._rows, (self.k - self.min_size) / free, 1 - self.confidence)
        return min(max(math.floor(free * budget + 1e-9), 0), self._total) if budget < math.inf else self._total

    @property
    def _total(self) -> int:
        return self._rows * max(self._most - self.min_size, 0)

    @property
    def _most(self) -> int:
        """The most labels that a set may have."""
        return min(self.num_labels or 0, self.num_labels or 0 if self.max_size is None else self.max_size)

    # ---- what it promises

    @property
    def price(self) -> float:
        """By how many labels the calibration sets are smaller than k on average, for the promise about new rows."""
        reached = self._rank / self._rows + self.min_size if self._rows else self.k
        return max(min(self.k, self._most or self.k) - reached, 0.0)

    @property
    def promise(self) -> str:
        if self.confidence is None:
            return ""
        price = f"; it costs {self.price:.2g} labels" if self.is_fitted else ""
        return (
            f"with a confidence of {self.confidence:.1%}, new sets have at most {self.k:g} labels on average, "
            f"and never above {self.max_size}{price}"
        )

    @property
    def concern(self) -> str:
        if self.confidence is None or not self.is_fitted or self._rank or not self._total:
            return ""
        rows = "1 calibration row allows" if self._rows == 1 else f"{self._rows} calibration rows allow"
        size = "1 label" if self.min_size == 1 else f"{self.min_size} labels"
        return f"{rows} the promise of {self!r} only with {size} in every set"

    def state(self) -> dict[str, Any]:
        return {
            "threshold": pack_float(self.threshold),
            "dtype": np.dtype(self._dtype).name,
            "hash_limit": f"{self._hash_limit:x}",
            "rank_error": self.rank_error,
            "rows": self._rows,
            "counts": self._counts.to_state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._dtype = {"float32": np.float32, "float64": np.float64}[state["dtype"]]
        self.threshold = float(_round(np.array(float(state["threshold"])), self._dtype))
        self._hash_limit = int(state["hash_limit"], 16)
        self.rank_error = int(state["rank_error"])
        self._rows = int(state["rows"])
        self._counts = ScoreCounts.from_state(state["counts"])
        if math.isnan(self.threshold) or not 0 <= self._hash_limit <= _EVERY:
            raise ShortlistError(f"its threshold is {self.threshold} with the hash limit {state['hash_limit']}")
        counted = int(self._counts.buckets.sum())
        if counted != self._total:
            raise ShortlistError(f"it counted {counted} scores, not those of {self._rows} rows of {self.num_labels}")


class _Placing(Look):
    """Counts the scores in the buckets around the rank once more, all of them this time."""

    def __init__(self, rule: AverageK) -> None:
        self.rule, self.counts = rule, rule._counts.copy()

    def see(self, block: Block) -> None:
        self.counts.place_again(to_keys(self.rule._free(block, np.float32)))

    def merge(self, other: _Placing) -> None:
        self.counts.merge_placed(other.counts)


class _Near(Look):
    """Keeps the float64 scores whose float32 is around the rank."""

    def __init__(self, rule: AverageK, lowest: int, highest: int) -> None:
        self.rule, self.lowest, self.highest = rule, np.uint32(lowest), np.uint32(highest)
        self.kept = [np.zeros(0)]

    def see(self, block: Block) -> None:
        free = self.rule._free(block, np.float64)
        keys = to_keys(_round(free, np.float32))
        self.kept.append(free[(keys >= self.lowest) & (keys <= self.highest)])

    def merge(self, other: _Near) -> None:
        self.kept += other.kept


class _Hashing(Look):
    """Keeps hashes of the tied labels. They are uniform, so that only those near wanted / tied are needed: all of a
    million, 64 in 1,000 of 10^6, 2 in 1,000 of 10^9."""

    def __init__(self, rule: AverageK, wanted: int, tied: int) -> None:
        reach = 1.0 if tied <= 1 << 20 else 64 / math.sqrt(tied)
        self.rule, self.below, self.kept = rule, 0, [np.zeros(0, np.uint64)]
        self.low = max(0, int((wanted / tied - reach) * 2.0**64))
        self.high = min(_EVERY, int((wanted / tied + reach) * 2.0**64))

    def see(self, block: Block) -> None:
        hashes = _hashes_at(block, self.rule._linked(block, self.rule._dtype), self.rule.threshold)[1]
        self.below += int((hashes < np.uint64(self.low)).sum())
        self.kept.append(on_host(hashes[(hashes >= np.uint64(self.low)) & (hashes <= np.uint64(self.high))]))

    def merge(self, other: _Hashing) -> None:
        self.below += other.below
        self.kept += other.kept


def _round(linked: NDArray[Any], dtype: Any) -> NDArray[Any]:
    if linked.dtype == dtype:
        return linked
    with np.errstate(over="ignore"):  # a float64 beyond float32 becomes inf, which keeps the order
        return linked.astype(dtype, copy=False)


def _midpoint(high: float, low: float, dtype: Any) -> float:
    """The midpoint in the given type; the higher one where rounding (or an infinity) would put it at the lower."""
    with np.errstate(invalid="ignore"):
        middle = float(dtype(high / 2 + low / 2))
    return middle if low < middle <= high else high


def _hashes_at(block: Block, linked: NDArray[Any], threshold: float) -> tuple[NDArray[np.int64], Hashes]:
    """Flat positions of the entries exactly at the threshold, and the hashes of their row and label."""
    at = np.flatnonzero(linked == linked.dtype.type(threshold))
    return at, _hashes_of(block, at)


def _hashes_of(block: Block, at: NDArray[np.int64]) -> Hashes:
    """The hashes of the rows and labels at these flat positions."""
    if not len(at):
        return np.zeros(0, np.uint64)
    rows, labels = at // block.scores.shape[1], at % block.scores.shape[1]
    used, place = np.unique(rows, return_inverse=True)
    return label_hashes(row_hashes(block.scores[used])[place], labels)
