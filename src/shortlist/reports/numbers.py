"""The numbers behind every chart: what sets are worth, for each K of the slider, averaged over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from shortlist.labels import LabelSets
from shortlist.labels.counts import knows_absent
from shortlist.links import check_link, link_rows
from shortlist.metrics.functional import shot_group_of
from shortlist.reports.data import ReportData, RunResult
from shortlist.sets import TopK

SHOTS = ("few", "medium", "many")
Measured = dict[str, Any]  # numbers and arrays by name
_GRID = [*np.arange(1, 3, 0.25), *np.arange(3, 5, 0.5), *range(5, 10), 10, 12, 15, 20, 25, 30, 40, 50]
_MOST_BINS = 60  # sets of more labels share the last bin
_MOST_LEVELS = 8  # examples with more right labels share the last level


class Examples:
    """What is known about the examples, whatever the model: right labels, shot group, true ambiguity."""

    def __init__(self, data: ReportData) -> None:
        n, num_labels = data.shape
        target = data.runs[0].target
        present = np.zeros((n, num_labels), dtype=bool)
        if data.is_single:
            self.known: NDArray[Any] = np.asarray(target >= 0)
            present[self.known, target[self.known]] = True
        else:
            self.known = np.asarray((target >= 0).any(1))
            present = target == 1
        self.present = LabelSets.from_dense(present)
        self.unknown = np.zeros_like(present) if data.is_single else np.asarray(target < 0)  # of rows known in part
        if data.is_single:
            self.unknown[~self.known] = True
        self.knows_absent = data.is_single or knows_absent(torch.from_numpy(np.asarray(target)))
        self.truth = data.truth
        if self.truth is None and not data.is_single and not (target < 0).any():
            self.truth = self.present  # a label matrix without gaps is the whole truth
        self.shot = _shot_of_rows(data, self.present)
        self.bins = min(num_labels, _MOST_BINS) + 1  # sizes 0, 1, ...
        self.levels, self.level_of_row = _levels(self.truth)

    @property
    def shots(self) -> list[int]:
        """The shot groups that have examples; none where there is only one, with nothing to compare it to."""
        found: list[int] = np.unique(self.shot[self.shot >= 0]).tolist()
        return found if len(found) > 1 else []


def measure(sets: LabelSets, examples: Examples) -> Measured:
    """How large the sets are and how much of the right labels they hold: overall, by shot group, by true ambiguity.

    ``accuracy`` is the mean share of an example's right labels that are in its set (``metrics.set_coverage``).
    """
    sizes, right = sets.sizes, examples.present.sizes
    held = np.where(right > 0, (sets & examples.present).sizes / np.maximum(right, 1), 1.0)
    found: Measured = {
        "size": np.float64(sizes.mean()),
        "accuracy": _mean(held, examples.known),
        "histogram": shares_by_size(sizes, examples.bins),
    }
    if examples.shots:
        rows = [examples.shot == group for group in examples.shots]
        found["shot_size"] = np.array([_mean(sizes, row) for row in rows])
        found["shot_accuracy"] = np.array([_mean(held, row) for row in rows])
        found["shot_histogram"] = np.array([shares_by_size(sizes[row], examples.bins) for row in rows])
    if examples.truth is not None:
        covers = (sets & examples.truth).sizes == examples.truth.sizes
        found["covers"] = np.float64(covers.mean())
        found["exact"] = np.float64((covers & (sizes == examples.truth.sizes)).mean())
        levels = range(len(examples.levels))
        found["level_size"] = np.array([_mean(sizes, examples.level_of_row == level) for level in levels])
    return found


def k_grid(num_labels: int, start: float) -> list[float]:
    """The K of the slider: fine where sets are small, up to 20 or four times the start, and the start itself.

    >>> k_grid(4, start=2)
    [1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0, 3.5, 4.0]
    """
    top = min(num_labels, max(20, 4 * start))
    return sorted({float(k) for k in (*_GRID, start) if k <= top})


def average_k_curve(run: RunResult, grid: Sequence[float], examples: Examples) -> list[Measured]:
    return [measure(run.average_k(k).predict(run.scores), examples) for k in grid]


def top_k_curve(run: RunResult, grid: Sequence[float], examples: Examples) -> list[Measured]:
    """TopK takes a whole k. Between two, it is their mixture: k or k + 1 labels at random, K on average."""
    wholes = sorted({end for k in grid for end in (math.floor(k), math.ceil(k))})
    at = {k: measure(TopK(k).predict(run.scores), examples) for k in wholes}
    return [_mix(at[math.floor(k)], at[math.ceil(k)], k - math.floor(k)) for k in grid]


def over_seeds(measured: Sequence[Measured]) -> tuple[Measured, Measured]:
    """Mean, and standard deviation (n - 1) of each number over the seeds; no deviation from a single seed."""
    stacks = {key: np.stack([one[key] for one in measured]) for key in measured[0]}
    mean = {key: stack.mean(0) for key, stack in stacks.items()}
    return mean, {key: stack.std(0, ddof=1) for key, stack in stacks.items() if len(stack) > 1}


def linked(scores: NDArray[np.float32], link: str) -> NDArray[np.float32]:
    """Scores as the reader should see them: probabilities where the link gives those."""
    return link_rows(scores, check_link(link))


def _shot_of_rows(data: ReportData, present: LabelSets) -> NDArray[np.int64]:
    """The shot group of each example's rarest right label; -1 without a right label or without counts."""
    counts = next((run.train_counts for run in data.runs if run.train_counts is not None), None)
    shot = np.full(len(present), -1)
    if counts is None:
        return shot
    rows = np.repeat(np.arange(len(present)), present.sizes)
    rarest = np.full(len(present), len(SHOTS))
    np.minimum.at(rarest, rows, shot_group_of(counts.astype(np.float64)).numpy()[present.indices])
    return np.where(rarest < len(SHOTS), rarest, shot)


def _levels(truth: LabelSets | None) -> tuple[list[str], NDArray[np.int64]]:
    """The numbers of right labels that occur, as names, and which of them each example has."""
    if truth is None:
        return [], np.zeros(0, dtype=np.int64)
    values, level_of_row = np.unique(truth.sizes, return_inverse=True)
    names = [str(value) for value in values]
    if len(values) > _MOST_LEVELS:
        names = [*names[: _MOST_LEVELS - 1], f"{values[_MOST_LEVELS - 1]}+"]
        level_of_row = np.minimum(level_of_row, _MOST_LEVELS - 1)
    return names, level_of_row


def shares_by_size(sizes: NDArray[Any], bins: int) -> NDArray[np.float64]:
    """The share of sets with 0, 1, ... labels; larger ones in the last bin."""
    return np.bincount(np.minimum(sizes, bins - 1), minlength=bins) / max(len(sizes), 1)


def _mean(values: NDArray[Any], chosen: NDArray[np.bool_]) -> np.float64:
    return np.float64(values[chosen].mean()) if chosen.any() else np.float64("nan")


def _mix(a: Measured, b: Measured, share: float) -> Measured:
    return a if share == 0 else {key: (1 - share) * a[key] + share * b[key] for key in a}
