"""OnlineConformal: conformal sets that follow the data as it changes, one row after the other."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from shortlist.errors import ShortlistError
from shortlist.labels import LabelSets
from shortlist.links import AnyLink
from shortlist.sets._blocks import Block, Scores, read_blocks
from shortlist.sets._one_row import Labels
from shortlist.sets._rule import members, number
from shortlist.sets._targets import class_indices
from shortlist.sets.conformal import Conformal


class OnlineConformal(Conformal):
    """Adaptive conformal inference (Gibbs and Candès 2021): ``fit`` calibrates as ``Conformal`` does; then ``observe``
    answers rows one after the other, and learns from the label of each: after a miss sets grow, after a hit they
    shrink a little. Its level is alpha_t = alpha + step * (alpha * rows observed - misses); at 0 and below sets hold
    every label, at 1 and above none.

    The promise needs no assumption at all, not even that rows are alike: of T observed rows in any order, the share
    that was missed differs from alpha by at most (max(alpha, 1 - alpha) + step) / (step T). A large ``step`` follows
    changes quickly and has sets that vary more; 0.005 to 0.05 is usual. Rows of unknown label (-1) are answered and
    not counted. A rule merged from m streams has m times that bound.

    ``predict`` answers at the present level and learns nothing. Scores and ``link`` are those of ``Conformal``.

    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(3000, 10))
    >>> target = (scores + rng.gumbel(size=scores.shape)).argmax(-1)
    >>> rule = OnlineConformal(alpha=0.2).fit(scores[:1000], target[:1000])
    >>> target[2000:] = rng.integers(0, 10, 1000)  # from here on, the model knows nothing
    >>> sets = rule.observe(scores[1000:], target[1000:])
    >>> round(1 - float(sets.contains(target[1000:]).mean()), 2), rule.observed, rule.missed
    (0.21, 2000, 417)
    """

    observed: int  # rows whose label came after their set
    missed: int  # and of them, those whose set did not hold it

    def __init__(
        self,
        alpha: float = 0.1,
        score: Literal["lac", "aps", "raps", "saps", "top-k", "margin"] = "lac",
        link: AnyLink | None = None,
        step: float = 0.01,
        penalty: float | None = None,
        free_rank: int = 5,
        seed: int | None = None,
    ) -> None:
        self.step = number(step, "step", "a finite number above 0", lambda x: 0 < x < math.inf)
        super().__init__(alpha, score, "single", link, penalty=penalty, free_rank=free_rank, seed=seed)

    @property
    def promise(self) -> str:
        return (
            f"of the examples observed one after the other, about {1 - self.alpha:.1%} get a set with the right label, "
            f"however the data changes: of 10,000, within {100 * self.bound(10_000):.2g} percentage points"
        )

    def bound(self, rows: int) -> float:
        """How far the share of misses among this many observed rows can be from alpha, at most."""
        return (max(self.alpha, 1 - self.alpha) + self.step) / (self.step * rows)

    @property
    def level(self) -> float:
        """The present alpha_t."""
        return float(self._level(self.observed, self.missed))

    def _level(self, observed: int, missed: int) -> Fraction:
        alpha, step = Fraction(repr(self.alpha)), Fraction(repr(self.step))
        return alpha + step * (alpha * observed - missed)

    def observe(self, scores: Scores, target: Any = None) -> LabelSets:
        """The sets of these rows, each made before its label was known; then the label is learned from. Scores and
        target as for ``fit``."""
        if not self.is_fitted:
            raise ShortlistError(f"{self!r} is not fitted: call fit on held-out scores before observe")
        sizes, labels = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for block in read_blocks(scores, target, self.block_size):
            self._check_labels(block.scores.shape[1])
            block = self._in_type(block)
            limits = self._limits_one_by_one(block)
            found = members(self._nonconformity.below(block, limits[:, None]))
            sizes.append(found[0])
            labels.append(found[1])
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
        return LabelSets(offsets, np.concatenate(labels), self.num_labels or 0)

    def _limits_one_by_one(self, block: Block) -> NDArray[np.float64]:
        known, label = class_indices(block)
        values = self._sorted.values
        n = len(values)
        needed = np.zeros(len(block.scores), np.int64)  # the rank at which the true label gets in
        needed[known] = 1 + np.searchsorted(values, self._nonconformity.of_true(block, known, label))
        counted = np.zeros(len(block.scores), bool)
        counted[known] = True
        # whole numbers, in units of 1 / scale: r = ceil((n + 1)(1 - alpha_t)), exactly
        start, up = self._level(self.observed, self.missed), Fraction(repr(self.step))
        gain = up * Fraction(repr(self.alpha))
        scale = math.lcm(start.denominator, up.denominator, gain.denominator)
        level, hit, miss = (int(part * scale) for part in (start, gain, gain - up))
        ranks = np.empty(len(block.scores), np.int64)
        for row, (rank, counts) in enumerate(zip(needed.tolist(), counted.tolist(), strict=True)):
            at = _rank(n, level, scale)
            ranks[row] = at
            if counts:
                missed = at < rank
                level += miss if missed else hit
                self.missed += missed
                self.observed += 1
        ends = np.concatenate([[-math.inf], values, [math.inf]])
        return ends[np.clip(ranks, 0, n + 1)]

    @property
    def _sorted(self) -> Any:
        return self._cells.groups[""][0]

    def labels_of_row(self, scores: Tensor) -> Labels | None:
        return None  # its limit changes

    def _limits(self, block: Block) -> NDArray[np.float64]:
        level = self._level(self.observed, self.missed)
        rank = _rank(len(self._sorted.values), level.numerator, level.denominator)
        return np.full((1, 1), self._sorted.at_rank(rank))

    def reset(self) -> None:
        super().reset()
        self.observed = self.missed = 0

    def absorb(self, other: Conformal) -> None:
        super().absorb(other)
        assert isinstance(other, OnlineConformal)
        self.observed += other.observed
        self.missed += other.missed

    def state(self) -> dict[str, Any]:
        return {**super().state(), "observed": self.observed, "missed": self.missed}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.observed, self.missed = int(state["observed"]), int(state["missed"])
        if not 0 <= self.missed <= self.observed:
            raise ShortlistError(f"it missed {self.missed} of {self.observed} rows")


def _rank(n: int, level: int, scale: int) -> int:
    """ceil((n + 1)(1 - level / scale)); 0 (no label) at a level of 1 or more, n + 1 (all labels) at 0 or less."""
    if level >= scale:
        return 0
    return n + 1 if level <= 0 else -((n + 1) * (level - scale) // scale)
