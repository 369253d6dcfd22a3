"""Conformal: sets that miss the true label with probability at most alpha, whatever the model."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shortlist.checks import whole
from shortlist.errors import ShortlistError, ShortlistWarning
from shortlist.links import Link, check_link, link_rows, usual_link
from shortlist.sets._blocks import Block, Scores
from shortlist.sets._hash import mix, row_hashes
from shortlist.sets._order import descending
from shortlist.sets._rule import SetRule, members, number, pack, unpack

_SCORES = ("lac", "aps", "raps")


class Conformal(SetRule):
    """Calibrated on n held-out rows that are exchangeable with the rows to come, promises on average over draws:

    - ``labels="single"``: the true label is in the set with probability at least 1 - alpha. Every label of a row gets
      a nonconformity score; a set holds the labels whose score is at most the r-th smallest of the true labels'
      calibration scores, r = ceil((n + 1)(1 - alpha)), all labels if r > n. Scores, p the linked row:

      - "lac": 1 - p_y. The smallest sets on average; may be empty.
      - "aps": the mass of the labels ranked before y. Sets adapt to how hard the row is and are never empty.
      - "raps": aps + ``penalty`` * max(0, rank of y - ``free_rank``), rank from 1. Avoids very large sets.

      aps and raps are deterministic. With a ``seed`` they are the randomised scores of the literature, (mass up to and
      with y) - u p_y: u in [0, 1) is a hash of the seed and the row's content, so the same row always gets the same
      set; sets are a little smaller and may be empty. (No seed is u = 1, the one fixed u without empty sets.)
      ``per_class=True`` (Mondrian) calibrates every label on the rows of its class: the promise then holds for each
      class, and a class with too few rows is in every set.

    - ``labels="multi"``: the expected share of a row's true labels that its set misses is at most alpha (conformal
      risk control). Sets are p >= lambda, lambda the largest with (sum of missed shares + 1) / (n + 1) <= alpha; all
      labels if alpha < 1 / (n + 1). The target is a label matrix; unknown (-1) entries are not used, a row without a
      known present label misses nothing, a row of unknowns only is left out.

    ``link`` defaults to softmax for single and sigmoid for multi. A target of -1 (single) leaves its row out.

    Fewer than 1 / alpha - 1 rows cannot keep the promise but with every label: ``fit`` then warns, and
    ``always_listed`` says how many labels are in every set whatever their scores (with ``per_class``, those of classes
    with too few rows).

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(2000, 10))
    >>> target = (scores + rng.gumbel(size=scores.shape)).argmax(-1)  # labels drawn from softmax(scores)
    >>> rule = Conformal(alpha=0.2).fit(scores[:1000], target[:1000])
    >>> float(rule.predict(scores[1000:]).contains(target[1000:]).mean())
    0.806
    """

    needs_target = True

    def __init__(
        self,
        alpha: float = 0.1,
        score: Literal["lac", "aps", "raps"] = "lac",
        labels: Literal["single", "multi"] = "single",
        link: Link | None = None,
        per_class: bool = False,
        penalty: float = 0.01,
        free_rank: int = 5,
        seed: int | None = None,
    ) -> None:
        self.alpha = number(alpha, "alpha")
        if not 0 < self.alpha < 1:
            raise ShortlistError(f"alpha must be between 0 and 1, both excluded, got {alpha!r}")
        if score not in _SCORES:
            raise ShortlistError(f"score must be one of {', '.join(map(repr, _SCORES))}, got {score!r}")
        if labels not in ("single", "multi"):
            raise ShortlistError(f"labels must be 'single' or 'multi', got {labels!r}")
        if labels == "multi" and (score != "lac" or per_class or seed is not None):
            raise ShortlistError("labels='multi' thresholds the linked scores: score, per_class and seed do not apply")
        self.penalty = number(penalty, "penalty")
        if not 0 <= self.penalty < math.inf:
            raise ShortlistError(f"penalty must be a finite number that is not negative, got {penalty!r}")
        self.score, self.labels, self.per_class = score, labels, bool(per_class)
        self.link: Link = check_link(link or usual_link(single=labels == "single"))
        self.free_rank = whole(free_rank, "free_rank", 0)
        self.seed = None if seed is None else whole(seed, "seed")
        self.reset()

    @property
    def is_fitted(self) -> bool:
        return self._rows > 0

    @property
    def rows_needed(self) -> int:
        """The fewest calibration rows (of each class, with ``per_class``) from which sets can be smaller."""
        return math.ceil(1 / Fraction(repr(self.alpha)) - 1)

    @property
    def always_listed(self) -> int:
        """How many labels are in every set, whatever their scores, because too few rows calibrated them."""
        num_labels = self.num_labels or 0
        if not self.per_class:
            return num_labels if self._rows < self.rows_needed else 0
        rows = np.bincount(np.concatenate(self._extras), minlength=0) if self._extras else np.zeros(0, np.int64)
        return num_labels - int((rows >= self.rows_needed).sum())

    @property
    def concern(self) -> str:
        """What to know about sets that hold labels whatever their scores, in a sentence; empty where none do."""
        if not self.is_fitted or not self.always_listed:
            return ""
        some = f"{self.always_listed} label{'s' if self.always_listed > 1 else ''}"
        which = "all labels" if self.always_listed == self.num_labels else some
        of_class = " of each class" if self.per_class else ""
        given = "some have fewer" if self.per_class else f"it had {self._rows}"
        return (
            f"conformal sets hold {which} whatever the scores: alpha={self.alpha:g} needs at least "
            f"{self.rows_needed} calibration rows{of_class}, and {given}"
        )

    def reset(self) -> None:
        self._rows = 0
        # single: the nonconformity score of each row's true label, and that label; multi: linked score and weight
        # (1 / number of present labels of its row) of each present label
        self._values: list[NDArray[np.float64]] = []
        self._extras: list[NDArray[Any]] = []

    def learn(self, block: Block) -> None:
        if block.target is None:
            raise ShortlistError("Conformal needs the target of its calibration rows: fit(scores, target)")
        (self._learn_multi if self.labels == "multi" else self._learn_single)(block, block.target)

    def _learn_single(self, block: Block, target: NDArray[Any]) -> None:
        num_labels = block.scores.shape[1]
        if target.ndim != 1 or target.dtype.kind not in "iu":
            raise ShortlistError(
                f"labels='single' takes class indices, one whole number per row, got {target.dtype} {target.shape}"
            )
        bad = (target < -1) | (target >= num_labels)
        if bad.any():
            row = int(np.argmax(bad))
            raise ShortlistError(
                f"target row {block.first_row + row} is {target[row]}: "
                f"allowed are 0..{num_labels - 1}, or -1 for an unknown row"
            )
        known = target >= 0
        label = target[known].astype(np.int64)
        self._values.append(self._nonconformity(block)[known, label])
        self._extras.append(label)
        self._rows += len(label)

    def _learn_multi(self, block: Block, target: NDArray[Any]) -> None:
        if target.ndim != 2:
            raise ShortlistError(f"labels='multi' takes a label matrix of the scores' shape, got shape {target.shape}")
        bad = (target != 1) & (target != 0) & (target != -1)
        if bad.any():
            row, label = np.argwhere(bad)[0]
            raise ShortlistError(
                f"target row {block.first_row + row}, label {label} is {target[row, label]}: "
                "a label matrix holds 1 (present), 0 (absent) and -1 (unknown)"
            )
        present = target == 1
        row, label = np.nonzero(present)
        self._values.append(link_rows(block.scores, self.link, block.first_row)[row, label].astype(np.float64))
        self._extras.append(1 / present.sum(-1)[row])
        self._rows += int((target != -1).any(-1).sum())

    def finish(self) -> None:
        self._values = [np.concatenate(self._values)]
        self._extras = [np.concatenate(self._extras)]
        values, extras = self._values[0], self._extras[0]
        if self.labels == "multi":
            self._limit: Any = _risk_threshold(values, extras, self._rows, self.alpha)
        elif self.per_class:
            order = np.argsort(extras, kind="stable")
            classes, first = np.unique(extras[order], return_index=True)
            parts = np.split(values[order], first[1:])
            self._limit = classes, [_quantile(part, self.alpha) for part in parts]  # other classes have no limit
        else:
            self._limit = _quantile(values, self.alpha)

    def refine(self, scores: Scores) -> None:
        if self.concern:
            warnings.warn(self.concern, ShortlistWarning, stacklevel=3)

    def absorb(self, other: Conformal) -> None:
        self._rows += other._rows
        self._values += other._values
        self._extras += other._extras

    def sets_of(self, block: Block) -> tuple[NDArray[Any], NDArray[Any]]:
        if self.labels == "multi":
            linked = link_rows(block.scores, self.link, block.first_row)
            return members(linked.astype(np.float64, copy=False) >= self._limit)
        limit = self._limit
        if self.per_class:
            classes, limits = limit
            limit = np.full(block.scores.shape[1], math.inf)
            limit[classes] = limits
        return members(self._nonconformity(block) <= limit)

    def _nonconformity(self, block: Block) -> NDArray[np.float64]:
        """The score of every label of every row, in double."""
        p = link_rows(block.scores, self.link, block.first_row)
        if self.score == "lac":
            return -p.astype(np.float64)  # in the order of 1 - p, without its rounding
        order = descending(p, block.scores)
        ranked = np.take_along_axis(p, order, -1).astype(np.float64)
        if self.seed is None:
            mass = np.concatenate([np.zeros((len(p), 1)), ranked[:, :-1].cumsum(-1)], axis=-1)
        else:
            mass = ranked.cumsum(-1) - self._uniform(block)[:, None] * ranked
        if self.score == "raps":
            beyond = np.arange(1, p.shape[1] + 1) - min(self.free_rank, p.shape[1])
            mass += self.penalty * np.maximum(beyond, 0)
        scores = np.empty_like(mass)
        np.put_along_axis(scores, order, mass, -1)
        return scores

    def _uniform(self, block: Block) -> NDArray[np.float64]:
        seed = mix(np.array([(self.seed or 0) % 2**64], dtype=np.uint64))
        return (mix(row_hashes(block.scores) ^ seed) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def state(self) -> dict[str, Any]:
        kind = "<f8" if self.labels == "multi" else "<i8"
        return {"rows": self._rows, "values": pack(self._values[0], "<f8"), "extras": pack(self._extras[0], kind)}

    def restore(self, state: dict[str, Any]) -> None:
        kind = "<f8" if self.labels == "multi" else "<i8"
        self._rows = int(state["rows"])
        values, extras = unpack(state["values"], "<f8"), unpack(state["extras"], kind)
        if self.labels == "single":
            fits = len(values) == self._rows and extras.min() >= 0 and extras.max() < (self.num_labels or 0)
        else:
            fits = self._rows > 0 and bool(((extras > 0) & (extras <= 1)).all())
        if not fits or len(values) != len(extras) or np.isnan(values).any():
            raise ShortlistError(f"what it learned does not fit {self._rows} rows of {self.num_labels} labels")
        self._values, self._extras = [values], [extras]
        self.finish()


def _quantile(values: NDArray[np.float64], alpha: float) -> float:
    """The r-th smallest value, r = ceil((n + 1)(1 - alpha)); infinity (all labels) if r > n."""
    r = math.ceil((len(values) + 1) * (1 - Fraction(repr(alpha))))  # exact: in floats, 10 * (1 - 0.7) is above 3
    return float(np.partition(values, r - 1)[r - 1]) if r <= len(values) else math.inf


def _risk_threshold(values: NDArray[np.float64], weights: NDArray[np.float64], n: int, alpha: float) -> float:
    """The largest lambda with (sum of the weights of values < lambda, plus 1) / (n + 1) <= alpha; -inf if there is
    none, inf if every lambda will do."""
    budget = alpha * (n + 1) - 1
    slack = 1e-12 * (n + 1)  # sums of 1/1, 1/2, 1/3 .. that are equal on paper
    if budget < -slack:
        return -math.inf
    order = np.argsort(values)
    over = np.cumsum(weights[order]) > budget + slack
    return float(values[order[np.argmax(over)]]) if over.any() else math.inf
