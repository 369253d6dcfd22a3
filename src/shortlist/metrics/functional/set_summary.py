"""What sets are worth in a few numbers, each with its 95 % interval.

A number is a ratio of two sums over rows: hits to labels listed (precision), hits to labels present (recall), rows that
are exactly right to rows. Its interval is Wilson's with the effective number of rows: the number of independent rows,
each right or wrong, whose share would vary as much as the ratio does between the rows there are (of the linearised
ratio: the labels of one row are not taken for independent). Of a share of rows that is Wilson's interval itself. It
needs no random numbers, and is not of width 0 where all rows are right. The mean size has the normal interval.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from shortlist.labels.sparse_labels import is_sparse
from shortlist.metrics._truth import Truth
from shortlist.metrics.functional.label_sets import (
    counts_of_rows,
    f_counts,
    predicted_and_truth,
    set_sizes,
    vote_rows,
)

Values = NDArray[np.float64]

_Z = 1.959963984540054  # of the normal distribution, 2.5 % are above it


class Estimate(NamedTuple):
    """A number, and the ends of its 95 % interval; NaN where there is nothing to judge by."""

    value: float
    low: float
    high: float


NO_ESTIMATE = Estimate(*3 * (float("nan"),))


def set_summary(sets: Any, target: Any) -> dict[str, Estimate]:
    """Size, coverage, precision, recall, F1 and exact match of sets, each with its 95 % interval.

    ``coverage`` and ``exact`` are means over rows (`set_coverage`, `exact_match`), ``size`` is one over all rows, known
    or not. The others are of all rows together: ``precision`` is the share of the listed labels that are right,
    ``recall`` the share of the right labels that are listed, ``f1`` their harmonic mean (`set_f_score` with
    ``average="all"``). Unknown labels are neither right nor wrong, and count nowhere but in the size.

    >>> import torch
    >>> from shortlist.labels import LabelSets
    >>> found = set_summary(LabelSets([0, 2, 3], [0, 1, 1], num_labels=3), torch.tensor([[1, 0, 0], [0, 1, -1]]))
    >>> {name: round(estimate.value, 3) for name, estimate in found.items()}
    {'size': 1.5, 'coverage': 1.0, 'precision': 0.667, 'recall': 1.0, 'f1': 0.8, 'exact': 0.5}
    >>> [round(end, 3) for end in found["coverage"][1:]]
    [0.342, 1.0]
    """
    outcomes = SetOutcomes()
    outcomes.update(sets, target)
    return outcomes.summary()


class SetOutcomes:
    """How often each outcome occurred: rows that are known or not, with so many hits, labels listed and present (of the
    known ones), in a set of this size. It is all that `set_summary` needs, and takes the memory of the different
    outcomes, however many rows there are; outcomes of other rows are merged.

    >>> from shortlist.labels import LabelSets
    >>> sets, target = LabelSets([0, 2, 3], [0, 1, 1], num_labels=3), torch.tensor([1, 1])
    >>> first, second = SetOutcomes(), SetOutcomes()
    >>> first.update(sets[:1], target[:1])
    >>> second.update(sets[1:], target[1:])
    >>> first.merge(second)
    >>> first.summary() == set_summary(sets, target)
    True
    """

    def __init__(self) -> None:
        self.kinds = np.zeros((5, 0), np.int64)  # known, hits, listed, present, size: in this order
        self.times = np.zeros(0, np.int64)

    def update(self, sets: Any, target: Any) -> None:
        truth, counts = counts_of_rows(sets, target)
        known = (truth.known_per_row > 0).numpy()
        kinds = np.zeros((5, len(known)), np.int64)
        kinds[0], kinds[4] = known, set_sizes(sets).numpy()
        kinds[1:4, known] = torch.stack(counts).numpy()
        self._add(kinds, np.ones(len(known), np.int64))

    @property
    def empty(self) -> int:
        """How many sets hold no label."""
        return int(self.times[self.kinds[4] == 0].sum())

    def merge(self, other: "SetOutcomes") -> None:
        self._add(other.kinds, other.times)

    def _add(self, kinds: NDArray[np.int64], times: NDArray[np.int64]) -> None:
        kinds, times = np.concatenate([self.kinds, kinds], axis=1), np.concatenate([self.times, times])
        if not len(times):
            return
        order = np.lexsort(kinds)
        kinds, times = kinds[:, order], times[order]
        first = np.flatnonzero(np.concatenate([[True], (kinds[:, 1:] != kinds[:, :-1]).any(0)]))
        self.kinds, self.times = kinds[:, first], np.add.reduceat(times, first)

    def summary(self) -> dict[str, Estimate]:
        """What `set_summary` gives for all rows together."""
        known = self.kinds[0] == 1
        hits, listed, present, times = (values[known].astype(np.float64) for values in (*self.kinds[1:4], self.times))
        most = np.minimum(listed, present)  # hits there can be at most
        one = np.ones_like(times)
        covered = np.where(present > 0, hits / np.maximum(present, 1), 1.0)
        exact = ((hits == listed) & (hits == present)).astype(np.float64)
        return {
            "size": _mean_size(self.kinds[4].astype(np.float64), self.times),
            "coverage": _ratio(covered, one, one, times),
            "precision": _ratio(hits, listed, most, times),
            "recall": _ratio(hits, present, most, times),
            "f1": _ratio(2 * hits, listed + present, 2 * most, times),
            "exact": _ratio(exact, one, one, times),
        }


def truth_summary(sets: Any, truth: Any) -> dict[str, Estimate]:
    """Sets against more than the recorded labels: all right labels (``LabelSets``), coverage and exact match; or votes
    (counts or shares, rows by labels), the share of them that is covered.

    >>> from shortlist.labels import LabelSets
    >>> sets = LabelSets([0, 2, 3], [0, 1, 1], num_labels=3)
    >>> round(truth_summary(sets, torch.tensor([[3, 1, 0], [1, 0, 1]]))["coverage"].value, 3)
    0.5
    """
    outcomes = outcomes_by(truth)
    outcomes.update(sets, truth)
    found = outcomes.summary()
    return {name: found[name] for name in ("coverage", "exact") if name in found}


def outcomes_by(truth: Any) -> "SetOutcomes | VoteOutcomes":
    """What gathers how sets do by such a truth: all right labels, or votes."""
    return SetOutcomes() if truth is None or is_sparse(truth) else VoteOutcomes()


class LabelOutcomes:
    """Of each label: how often it is listed in sets and present, and how often both; of the known labels. Those of
    other rows are merged.

    >>> from shortlist.labels import LabelSets
    >>> seen = LabelOutcomes()
    >>> seen.update(LabelSets([0, 2, 3], [0, 1, 1], num_labels=3), torch.tensor([0, 1]))
    >>> seen.table(["ant", "bee", "cat"])["bee"]
    {'examples': 1, 'precision': 0.5, 'recall': 1.0, 'f1': 0.6666666666666666}
    """

    def __init__(self) -> None:
        self.counts = np.zeros((3, 0), np.int64)  # both, listed, present

    def update(self, sets: Any, target: Any) -> None:
        self._add(torch.stack(f_counts(*predicted_and_truth(sets, target), by="label")).numpy())

    def merge(self, other: "LabelOutcomes") -> None:
        self._add(other.counts)

    def _add(self, counts: NDArray[np.int64]) -> None:
        self.counts = counts if not self.counts.size else self.counts + counts if counts.size else self.counts

    def table(self, names: Sequence[str] | None = None) -> dict[str, dict[str, float | None]]:
        """Examples, precision, recall and F1 of each label; None where nothing is listed, or present."""
        names = [str(label) for label in range(self.counts.shape[1])] if names is None else names
        hits, listed, present = self.counts.astype(np.float64)
        shares = {"precision": (hits, listed), "recall": (hits, present), "f1": (2 * hits, listed + present)}
        return {
            name: {
                "examples": int(present[at]),
                **{key: float(a[at] / b[at]) if b[at] else None for key, (a, b) in shares.items()},
            }
            for at, name in enumerate(names)
        }


class VoteOutcomes:
    """The share of the votes that each set covers; those of other rows are merged."""

    def __init__(self) -> None:
        self.covered = np.zeros(0)

    def update(self, sets: Any, votes: Any) -> None:
        self.covered = np.concatenate([self.covered, vote_rows(sets, votes).numpy()])

    def merge(self, other: "VoteOutcomes") -> None:
        self.covered = np.concatenate([self.covered, other.covered])

    def summary(self) -> dict[str, Estimate]:
        return {"coverage": mean_estimate(self.covered)}


def share_interval(share: float, rows: float) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of so many rows.

    >>> [round(end, 3) for end in share_interval(0.9, 100)]
    [0.826, 0.945]
    """
    if not rows:
        return float("nan"), float("nan")
    square = _Z**2
    middle = (rows * share + square / 2) / (rows + square)
    half = _Z * (rows * share * (1 - share) + square / 4) ** 0.5 / (rows + square)
    return min(max(middle - half, 0.0), share), max(min(middle + half, 1.0), share)


def judged(target: Any, shape: tuple[int, int]) -> dict[str, int]:
    """By how much the target can judge predictions of this shape: rows of which something is known, labels (entries of
    the label matrix) that are known, those of them that are absent, and labels that are not known.

    >>> judged(torch.tensor([[1, -1, 0], [-1, -1, -1]]), (2, 3))
    {'rows': 1, 'labels': 2, 'absent': 1, 'unknown': 4}
    """
    truth = Truth.of(target, shape)
    rows, labels = int((truth.known_per_row > 0).sum()), int(truth.known_per_row.sum())
    absent = labels - len(truth.present)
    return {"rows": rows, "labels": labels, "absent": absent, "unknown": shape[0] * shape[1] - labels}


def mean_estimate(shares: Values) -> Estimate:
    """The mean of shares: Wilson's interval, with as many rows as would vary as much if each were 0 or 1."""
    one = np.ones_like(shares)
    return _ratio(shares, one, one, one)


def _ratio(part: Values, whole: Values, most: Values, times: Values) -> Estimate:
    """The sum of ``part`` over the sum of ``whole``, each row so many ``times``; ``most`` is what ``part`` can be."""
    rows, total = float(times.sum()), float((whole * times).sum())
    if not total:
        return NO_ESTIMATE
    value = float((part * times).sum()) / total
    variance = float(((part - value * whole) ** 2 * times).sum()) / rows / (total / rows) ** 2
    if variance > 1e-12:
        return Estimate(value, *share_interval(value, rows * value * (1 - value) / variance))
    largest = float((most * times).sum()) / total or 1.0  # rows do not differ: a share of what was possible in each
    low, high = share_interval(value / largest, rows)
    return Estimate(value, low * largest, high * largest)


def _mean_size(sizes: Values, times: NDArray[np.int64]) -> Estimate:
    rows = int(times.sum())
    if not rows:
        return NO_ESTIMATE
    mean = float((sizes * times).sum()) / rows
    variance = float(((sizes - mean) ** 2 * times).sum()) / (rows - 1) if rows > 1 else float("nan")
    half = _Z * (variance / rows) ** 0.5
    return Estimate(mean, max(mean - half, 0.0), mean + half)
