"""The table of labels: how often each is found, and what it is taken for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.reports.data import RunResult
from shortlist.reports.numbers import Examples

Column = list[Any]


def label_columns(runs: Sequence[RunResult], k: float, examples: Examples) -> dict[str, Column]:
    """For every label, over all seeds: its examples, the share of them whose set holds it, the share of the sets
    holding it that are right to (of those of which it is known), the mean size of its examples' sets, and the label
    that most often stands first instead of a right one (-1 for none)."""
    present = examples.present
    num_labels = present.num_labels
    rows = np.repeat(np.arange(len(present)), present.sizes)
    count = np.bincount(present.indices, minlength=num_labels)
    held, listed, size, taken = [], [], [], []
    for run in runs:
        sets = run.average_k(k).predict(run.scores)
        held.append(np.bincount((sets & present).indices, minlength=num_labels))
        listed.append(np.bincount(_judged(sets, run), minlength=num_labels))
        size.append(np.bincount(present.indices, weights=sets.sizes[rows], minlength=num_labels))
        taken.append(_first_instead(run, examples, rows))
    seeds = len(runs)
    total_held = np.sum(held, axis=0)
    return {
        "count": count.tolist(),
        "held": _share(total_held, seeds * count),
        "precision": _share(total_held, np.sum(listed, axis=0)),
        "size": _share(np.sum(size, axis=0), seeds * count),
        "taken": _most_frequent(np.concatenate(taken), num_labels),
    }


def _judged(sets: Any, run: RunResult) -> NDArray[Any]:
    """The labels in the sets of which it is known whether they are right."""
    rows = np.repeat(np.arange(len(sets)), sets.sizes)
    known = run.target[rows] >= 0 if run.is_single else run.target[rows, sets.indices] >= 0
    return np.asarray(sets.indices)[known]


def _first_instead(run: RunResult, examples: Examples, rows: NDArray[Any]) -> NDArray[np.int64]:
    """label * L + first for each right label of an example whose first label is known to be wrong."""
    num_labels = run.scores.shape[1]
    first = run.scores.argmax(1)
    if run.is_single:
        wrong = examples.known & (first != run.target)
    else:
        wrong = run.target[np.arange(len(first)), first] == 0
    chosen = wrong[rows]
    return examples.present.indices[chosen].astype(np.int64) * num_labels + first[rows[chosen]]


def _most_frequent(pairs: NDArray[np.int64], num_labels: int) -> Column:
    found, times = np.unique(pairs, return_counts=True)
    result = np.full(num_labels, -1)
    order = np.argsort(times, kind="stable")  # the most frequent is written last, and stays
    result[found[order] // num_labels] = found[order] % num_labels
    return result.tolist()


def _share(part: NDArray[Any], whole: NDArray[Any]) -> Column:
    return [p / w if w else None for p, w in zip(part.tolist(), whole.tolist(), strict=True)]
