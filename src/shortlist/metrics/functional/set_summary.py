"""What sets are worth in a few numbers, each with its 95 % interval.

A number is a ratio of two sums over rows: hits to labels listed (precision), hits to labels present (recall), rows that
are exactly right to rows. Its interval is Wilson's with the effective number of rows: the number of independent rows,
each right or wrong, whose share would vary as much as the ratio does between the rows there are (of the linearised
ratio: the labels of one row are not taken for independent). Of a share of rows that is Wilson's interval itself. It
needs no random numbers, and is not of width 0 where all rows are right. The mean size has the normal interval.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from shortlist.metrics._truth import Truth
from shortlist.metrics.functional.label_sets import coverage_rows, exact_rows, f_counts, predicted_and_truth, set_sizes

_Z = 1.959963984540054  # of the normal distribution, 2.5 % are above it


class Estimate(NamedTuple):
    """A number, and the ends of its 95 % interval; NaN where there is nothing to judge by."""

    value: float
    low: float
    high: float


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
    predicted, truth = predicted_and_truth(sets, target)
    hits, listed, present = (counts.double() for counts in f_counts(predicted, truth, by="sample"))
    most = torch.minimum(listed, present)  # hits there can be at most
    covered = coverage_rows(predicted, truth)
    exact = exact_rows(predicted, truth)
    one = torch.ones_like(covered)
    return {
        "size": _mean_size(set_sizes(sets).double()),
        "coverage": _ratio(covered, one, one),
        "precision": _ratio(hits, listed, most),
        "recall": _ratio(hits, present, most),
        "f1": _ratio(2 * hits, listed + present, 2 * most),
        "exact": _ratio(exact, one, one),
    }


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
    the label matrix) that are known, and that are not.

    >>> judged(torch.tensor([[1, -1, 0], [-1, -1, -1]]), (2, 3))
    {'rows': 1, 'labels': 2, 'unknown': 4}
    """
    known = Truth.of(target, shape).known_per_row
    labels = int(known.sum())
    return {"rows": int((known > 0).sum()), "labels": labels, "unknown": shape[0] * shape[1] - labels}


def _ratio(part: Tensor, whole: Tensor, most: Tensor) -> Estimate:
    """The sum of ``part`` over the sum of ``whole``; ``most`` is what ``part`` can be at most."""
    rows, total = len(whole), float(whole.sum())
    if not total:
        return Estimate(*(float("nan"),) * 3)
    value = float(part.sum()) / total
    variance = float((part - value * whole).square().mean()) / (total / rows) ** 2
    if variance > 1e-12:
        return Estimate(value, *share_interval(value, rows * value * (1 - value) / variance))
    largest = float(most.sum()) / total or 1.0  # the rows do not differ: a share of what was possible in each of them
    low, high = share_interval(value / largest, rows)
    return Estimate(value, low * largest, high * largest)


def _mean_size(sizes: Tensor) -> Estimate:
    if not len(sizes):
        return Estimate(*(float("nan"),) * 3)
    mean = float(sizes.mean())
    half = _Z * float(sizes.std()) / len(sizes) ** 0.5 if len(sizes) > 1 else float("nan")
    return Estimate(mean, max(mean - half, 0.0), mean + half)
