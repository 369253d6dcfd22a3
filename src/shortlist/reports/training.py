"""Training curves: one chart for every number that the runs wrote down each epoch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from shortlist.reports.data import RunResult
from shortlist.tasks import ScoredRun

_NOT_CURVES = ("epoch", "step", "seconds", "time", "examples_per_second")


def training_curves(by_name: Mapping[str, Sequence[RunResult | ScoredRun]]) -> list[dict[str, Any]]:
    """For each number in the histories that is not always the same: a line for every run, with the index of its name
    and its points.

    >>> import numpy as np
    >>> from shortlist.reports import RunResult
    >>> history = [{"epoch": 1, "loss": 0.5, "lr": 0.1}, {"epoch": 2, "loss": 0.25, "lr": 0.1}]
    >>> run = RunResult("a", "cross-entropy", np.zeros((1, 2)), np.array([0]), history=history)
    >>> training_curves({"a": [run]})
    [{'name': 'loss', 'lines': [{'model': 0, 'seed': None, 'points': [[1.0, 0.5], [2.0, 0.25]]}]}]
    """
    curves: dict[str, list[dict[str, Any]]] = {}
    for model, runs in enumerate(by_name.values()):
        for run in runs:
            for name in dict.fromkeys(name for row in run.history for name in row if name not in _NOT_CURVES):
                points = _points(run.history, name)
                if points:
                    curves.setdefault(name, []).append({"model": model, "seed": run.seed, "points": points})
    values = {name: {y for line in lines for _, y in line["points"]} for name, lines in curves.items()}
    return [{"name": name, "lines": lines} for name, lines in curves.items() if len(values[name]) > 1]


def _points(history: Sequence[Mapping[str, Any]], name: str) -> list[list[float]]:
    rows = [(float(row.get("epoch", place)), row.get(name)) for place, row in enumerate(history)]
    return [[x, float(f"{y:.6g}")] for x, y in rows if _is_number(y) and y is not None]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
