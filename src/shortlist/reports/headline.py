"""The table of results: every rule of every run, mean and spread over seeds, as text for readers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np

from shortlist.metrics.functional import mean_average_precision, top_k_accuracy
from shortlist.reports.data import ReportData, RunResult
from shortlist.reports.numbers import SHOTS, Examples, Measured, measure, over_seeds


def fixed(value: float, digits: int) -> str:
    """A number with so many digits, halves upwards as in the page's script (Python rounds them to even).

    >>> fixed(62.25, 1), f"{62.25:.1f}"
    ('62.3', '62.2')
    """
    return str(Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def percent(value: float) -> str:
    """A share for readers: ``percent(0.8351)`` is '83.5 %'."""
    return f"{fixed(100 * value, 1)}\u202f%" if math.isfinite(value) else "–"


def words_for(data: ReportData) -> dict[str, str]:
    """What the share of right labels in the sets is called, and what it means."""
    if data.is_single:
        return {"accuracy": "Accuracy", "means": "share of the examples whose set holds the right label"}
    return {"accuracy": "Recall", "means": "mean share of an example’s right labels that its set holds"}


def headline(by_name: Mapping[str, Sequence[RunResult]], examples: Examples, data: ReportData) -> dict[str, Any]:
    words = words_for(data)
    columns = ["Top-1" if data.is_single else "mAP", "Rule", "Mean set size", words["accuracy"]]
    columns += [f"{words['accuracy']}, {SHOTS[group]} shots" for group in examples.shots]
    if examples.truth is not None:
        columns += ["Holds every right label", "Is exactly the right labels"]
    return {"columns": columns, "models": [_headline_rows(name, runs, examples) for name, runs in by_name.items()]}


def _headline_rows(name: str, runs: Sequence[RunResult], examples: Examples) -> dict[str, Any]:
    rows = []
    for rule in dict.fromkeys(rule for run in runs for rule in run.rules):
        having = [run for run in runs if rule in run.rules]
        mean, spread = over_seeds([measure(run.rules[rule].predict(run.scores), examples) for run in having])
        cells = [_cell(mean, spread, "size"), _cell(mean, spread, "accuracy")]
        cells += [_cell(mean, spread, "shot_accuracy", place) for place in range(len(examples.shots))]
        if examples.truth is not None:
            cells += [_cell(mean, spread, "covers"), _cell(mean, spread, "exact")]
        rows.append({"rule": rule, "settings": repr(having[0].rules[rule]), "cells": cells})
    ranking = _cell(*over_seeds([_ranking(run) for run in runs]), "top")
    return {"name": name, "seeds": len(runs), "first": ranking, "rows": rows}


def _cell(mean: Measured, spread: Measured, key: str, place: Any = ...) -> dict[str, str]:
    """A number and its spread over seeds, as text: a share in percent, a size in labels."""
    value = float(np.asarray(mean[key])[place])
    shown = fixed(value, 2) if key == "size" else percent(value)
    if key not in spread or not math.isfinite(value):
        return {"value": shown, "spread": ""}
    deviation = float(np.asarray(spread[key])[place])
    return {"value": shown, "spread": f"± {fixed(deviation, 2) if key == 'size' else fixed(100 * deviation, 1)}"}


def _ranking(run: RunResult) -> Measured:
    if run.is_single:
        return {"top": float(top_k_accuracy(run.scores, run.target, 1))}
    return {"top": float(mean_average_precision(run.scores, run.target))}
