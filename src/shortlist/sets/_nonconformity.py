"""Nonconformity scores of blocks of rows: of the true labels, of all labels, and the sets below a limit.

Only the values of a row are sorted, never the labels with them: the labels up to some rank are those whose value is at
least the value on that rank. Rows where that rank is tied are ranked label by label, ties broken by hash.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.device_arrays import beside, on_host
from shortlist.errors import ShortlistError
from shortlist.links import AnyLink, link_rows
from shortlist.sets._blocks import Block
from shortlist.sets._hash import mix, row_hashes
from shortlist.sets._order import descending
from shortlist.sets.scores import RankScore, Score, ValueScore

FIRST = 128  # ranks that are looked at first: most sets end within them


class Nonconformity:
    """A score, with the link that makes rows comparable and the seed of its random numbers (None: not randomised)."""

    def __init__(self, score: Score, link: AnyLink, seed: int | None) -> None:
        self.score, self.link, self.seed = score, link, seed

    def of_true(self, block: Block, row: NDArray[np.int64], label: NDArray[np.int64]) -> NDArray[np.float64]:
        """The scores of these labels of these rows, on the host."""
        row, label = beside(row, block.scores), beside(label, block.scores)
        return on_host(self._of_true(self._linked(block), block, row, label))

    def _of_true(
        self, p: NDArray[Any], block: Block, row: NDArray[np.int64], label: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        if isinstance(self.score, ValueScore):
            return self.score.of_one(p, row, label)
        p = p[row]
        own = p[np.arange(len(row)), label]
        rank = (p > own[:, None]).sum(-1)
        tied = np.flatnonzero((p == own[:, None]).sum(-1) > 1)
        if len(tied):
            order = descending(p[tied], block.scores[row[tied]])
            rank[tied] = (order == label[tied, None]).argmax(-1)
        return self._of_ranks(sorted_rows(p), block.scores[row])[np.arange(len(row)), rank]

    def of_all(self, block: Block) -> NDArray[np.float64]:
        """The score of every label of every row."""
        p = self._linked(block)
        if isinstance(self.score, ValueScore):
            return self.score.of_labels(p)
        order = descending(p, block.scores)
        ranked = self._of_ranks(np.take_along_axis(p, order, -1), block.scores)
        scores = np.empty_like(ranked)
        np.put_along_axis(scores, order, ranked, -1)
        return scores

    def below(self, block: Block, limit: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which labels of each row score at most its limit: ``limit`` is (rows or 1, labels or 1)."""
        if isinstance(self.score, ValueScore):
            return self.score.below(self._linked(block), limit)
        if limit.shape[1] > 1:
            return self.of_all(block) <= limit
        p = self._linked(block)
        found, going_on = self._below_first(p, block.scores, limit, FIRST)
        if len(going_on):
            own = limit[on_host(going_on)] if len(limit) > 1 else limit
            found[going_on] = self._below_first(p[going_on], block.scores[going_on], own, p.shape[1])[0]
        return found

    def _below_first(
        self, p: NDArray[Any], scores: NDArray[Any], limit: NDArray[np.float64], ranks: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Membership as far as the first ranks tell it, and the rows whose sets go on beyond them."""
        ranked = first_ranks(p, ranks)
        inside = self._of_ranks(ranked, scores) <= limit
        # up to the last rank below the limit: scores never fall along the ranks, up to rounding
        size = np.where(inside.any(-1), inside.shape[1] - inside[:, ::-1].argmax(-1), 0)
        going_on = np.flatnonzero(inside[:, -1]) if ranks < p.shape[1] else np.zeros(0, np.int64)
        size[going_on] = 0
        return first_labels(p, ranked, size, scores), going_on

    def _linked(self, block: Block) -> NDArray[Any]:
        p = link_rows(block.scores, self.link, block.first_row)
        if self.score.uses_masses:
            check_masses(p, block.first_row)
        return p

    def _of_ranks(self, ranked: NDArray[Any], scores: NDArray[Any]) -> NDArray[np.float64]:
        assert isinstance(self.score, RankScore)
        u = None if self.seed is None else _uniform(scores, self.seed)[:, None]
        return self.score.of_ranks(ranked.astype(np.float64), u)


def sorted_rows(p: NDArray[Any]) -> NDArray[Any]:
    """The values of each row from the largest to the smallest."""
    return np.sort(p, axis=-1)[:, ::-1]


def first_ranks(p: NDArray[Any], ranks: int) -> NDArray[Any]:
    """The so many largest values of each row, from the largest on; fewer where rows have fewer."""
    after = p.shape[1] - min(ranks, p.shape[1])
    return sorted_rows(np.partition(p, after, axis=-1)[:, after:] if after else p)


def first_labels(
    p: NDArray[Any], ranked: NDArray[Any], size: NDArray[np.int64], scores: NDArray[Any]
) -> NDArray[np.bool_]:
    """Membership of the ``size`` best labels of each row; ``ranked`` are the rows of ``p``, sorted: all of them, or one
    more at least than the size."""
    rows, num_labels = p.shape
    if not rows:
        return np.zeros_like(p, dtype=bool)
    at = np.arange(rows)
    last = ranked[at, np.maximum(size, 1) - 1]
    inside = (p >= last[:, None]) & (size > 0)[:, None]
    after = ranked[at, np.minimum(size, ranked.shape[1] - 1)]
    tied = np.flatnonzero((size > 0) & (size < num_labels) & (after == last))
    if len(tied):
        order = descending(p[tied], scores[tied])
        some = np.zeros_like(inside[tied])
        np.put_along_axis(some, order, np.arange(num_labels) < size[tied, None], -1)
        inside[tied] = some
    return inside


def check_masses(p: NDArray[Any], first_row: int) -> None:
    if p.size and p.min() < 0:
        row, label = np.argwhere(p < 0)[0].tolist()
        raise ShortlistError(
            f"with link='none' scores are masses and must not be negative: "
            f"row {first_row + row}, label {label} is {p[row, label].item()}"
        )


def _uniform(scores: NDArray[Any], seed: int) -> NDArray[np.float64]:
    """A number in [0, 1) for each row, from its content: the same row always gets the same set."""
    key = mix(np.array([seed % 2**64], dtype=np.uint64))
    return (mix(row_hashes(scores) ^ key) >> np.uint64(11)).astype(np.float64) * 2.0**-53
