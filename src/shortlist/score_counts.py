"""A mergeable summary of very many float32 scores that finds the score of a given rank.

Read as an unsigned integer in the order of the numbers (its *key*), a float32 has 32 bits. The summary counts all
scores by their upper 16 bits (the *bucket*), and, in the buckets around the rank that is looked for, by all 32 bits.
A bucket that is opened late has scores from before that are not placed inside it; while there are none where the rank
falls, the answer is exact. Memory: 0.5 MB, and 0.5 MB for each open bucket, of which there are at most 64.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shortlist.device_arrays import on_host
from shortlist.errors import ShortlistError
from shortlist.packed import pack, unpack

REACH = 8  # buckets opened on each side: 6% in value, so that the rank's bucket is open before the rank drifts into it
MOST_OPEN = 64
_SIZE = 1 << 16

Keys = NDArray[np.uint32]


def to_keys(scores: NDArray[np.float32]) -> Keys:
    """Keys in the order of the scores; -0.0 and 0.0 share one."""
    bits = (scores + np.float32(0)).reshape(-1).view(np.uint32)
    flip = (bits.view(np.int32) >> 31).view(np.uint32)  # negative: every bit; in place from here: memory is the cost
    flip |= np.uint32(1 << 31)  # else: the sign
    bits ^= flip
    return bits


def from_key(key: int) -> float:
    bits = key ^ (1 << 31) if key >> 31 else key ^ 0xFFFFFFFF
    return float(np.uint32(bits).view(np.float32))


class Place(NamedTuple):
    """Where a rank falls: at ``key``, with ``above`` placed scores above it, ``tied`` placed scores on it, and
    ``unplaced`` scores of the same bucket that may be on either side (0: the place is exact). ``wanted`` / ``of``: the
    share of the scores on the key that the rank takes in, the unplaced ones in proportion to the placed."""

    key: int
    above: int
    tied: int
    unplaced: int
    wanted: int
    of: int


class ScoreCounts:
    def __init__(self) -> None:
        self.buckets = np.zeros(_SIZE, dtype=np.int64)
        self.open: dict[int, NDArray[np.int64]] = {}

    def add(self, keys: Keys, rank: int) -> None:
        """Count a batch of keys; ``rank`` is the rank looked for once they are counted."""
        self.buckets += on_host(np.bincount(np.right_shift(keys, 16, dtype=np.int64), minlength=_SIZE))
        _place(keys, self.open)
        _place(keys, self._look_at(rank))

    def start_again(self, rank: int) -> None:
        """Empty the buckets around ``rank``: ``place_again`` on all the scores then makes its place exact."""
        self.open = {}
        self._look_at(rank)

    def place_again(self, keys: Keys) -> None:
        _place(keys, self.open)

    def merge(self, other: "ScoreCounts", rank: int) -> None:
        """Take in the counts of other scores; ``rank`` is the rank looked for in all of them."""
        self.buckets += other.buckets
        for bucket, counts in other.open.items():
            self.open[bucket] = self.open[bucket] + counts if bucket in self.open else counts.copy()
        self._look_at(rank)

    def merge_placed(self, other: "ScoreCounts") -> None:
        """Add what another has placed, in ``place_again`` on other scores, in the same open buckets."""
        for bucket, counts in other.open.items():
            self.open[bucket] += counts

    def copy(self) -> "ScoreCounts":
        copied = ScoreCounts()
        copied.buckets = self.buckets.copy()
        copied.open = {bucket: counts.copy() for bucket, counts in self.open.items()}
        return copied

    def find(self, rank: int) -> Place:
        """The place of the ``rank``-th largest score (from 1)."""
        [(bucket, above)] = self._find_buckets(rank)
        inside, total = rank - above, int(self.buckets[bucket])
        counts = self.open.get(bucket)
        placed = 0 if counts is None else int(counts.sum())
        if counts is None or not placed:  # spread evenly over the bucket
            return Place((bucket << 16) + (_SIZE - 1) - (2 * inside - 1) * _SIZE // (2 * total), above, 0, total, 1, 1)
        wanted = -(-inside * placed // total)  # = inside where all are placed; else in proportion
        reached = counts[::-1].cumsum()
        low = int(np.searchsorted(reached, wanted))
        tied = int(counts[_SIZE - 1 - low])
        higher = int(reached[low]) - tied
        share = inside * placed - higher * total, tied * total
        return Place((bucket << 16) + _SIZE - 1 - low, above + higher, tied, total - placed, *share)

    def to_state(self) -> dict[str, Any]:
        return {str(b): _sparse(c) for b, c in [("buckets", self.buckets), *sorted(self.open.items())]}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "ScoreCounts":
        counts = cls()
        counts.buckets = _dense(state["buckets"])
        if len(state) > 1 + MOST_OPEN:
            raise ShortlistError(f"at most {MOST_OPEN} buckets are open, it has {len(state) - 1}")
        counts.open = {int(b): _dense(c) for b, c in state.items() if b != "buckets"}
        if not all(0 <= bucket < _SIZE for bucket in counts.open):
            raise ShortlistError(f"buckets are numbered 0..{_SIZE - 1}, it has {list(counts.open)}")
        return counts

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles and copies hold the counts as JSON does: of megabytes of zeros, the few that are none."""
        return type(self).from_state, (self.to_state(),)

    def _find_buckets(self, *ranks: int) -> list[tuple[int, int]]:
        """For each rank, the bucket of the rank-th largest score and the number of scores in the buckets above it."""
        reached = self.buckets[::-1].cumsum()
        places = np.minimum(np.searchsorted(reached, ranks), _SIZE - 1).tolist()
        return [(_SIZE - 1 - i, int(reached[i - 1]) if i else 0) for i in places]

    def _look_at(self, rank: int) -> dict[int, NDArray[np.int64]]:
        """Open the buckets where ``rank`` and the next fall, and those near; close the farthest beyond ``MOST_OPEN``.
        Gives the newly opened, still empty."""
        (here, _), (after, _) = self._find_buckets(rank, rank + 1)
        new: dict[int, NDArray[np.int64]] = {}
        if here not in self.open or after not in self.open:
            near = {*range(max(here - REACH, 0), min(here + REACH + 1, _SIZE)), after}
            new = {b: np.zeros(_SIZE, dtype=np.int64) for b in near if b not in self.open}
        by_distance = sorted({**self.open, **new}.items(), key=lambda item: item[0] != after and abs(item[0] - here))
        self.open = dict(by_distance[:MOST_OPEN])
        return new


def _place(keys: Keys, into: dict[int, NDArray[np.int64]]) -> None:
    """Count those keys whose bucket is in ``into`` there, by their lower 16 bits."""
    if not into:
        return
    lowest, highest = min(into) << 16, (max(into) << 16) + _SIZE - 1
    near: Any = keys[(keys >= np.uint32(lowest)) & (keys <= np.uint32(highest))]  # few, as a rule
    times: Any = 1
    if not isinstance(near, np.ndarray):  # on a device: only counts leave it
        near, times = map(on_host, np.unique(near, return_counts=True))
    bucket_of = near >> 16
    for bucket in np.flatnonzero(np.bincount(bucket_of)).tolist() if len(near) else ():
        if bucket in into:
            here = bucket_of == bucket
            np.add.at(into[bucket], near[here] & np.uint32(_SIZE - 1), times if np.isscalar(times) else times[here])


def _sparse(counts: NDArray[np.int64]) -> list[str]:
    index = np.flatnonzero(counts)
    return [pack(index, "<u2"), pack(counts[index], "<i8")]


def _dense(parts: list[str]) -> NDArray[np.int64]:
    counts = np.zeros(_SIZE, dtype=np.int64)
    counts[unpack(parts[0], "<u2", 2 * _SIZE)] = unpack(parts[1], "<i8", 8 * _SIZE)
    if counts.min() < 0:
        raise ShortlistError(f"counts are not negative, it has {counts.min()}")
    return counts
