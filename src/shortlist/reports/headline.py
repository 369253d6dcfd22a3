"""The table of results: every rule of every run, mean, spread over seeds and 95 % interval, as text for readers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shortlist.metrics.functional import mean_average_precision, set_summary, top_k_accuracy
from shortlist.metrics.functional.set_summary import Estimate, share_interval
from shortlist.reports.advice import advise
from shortlist.reports.data import ReportData, RunResult
from shortlist.reports.differences import differences
from shortlist.reports.numbers import SHOTS, Examples, Measured, measure, over_seeds
from shortlist.reports.words import fixed, percent


def words_for(data: ReportData) -> dict[str, str]:
    """What the share of right labels in the sets is called, and what it means."""
    if data.is_single:
        means = "share of the examples whose set holds the right label; it is the recall of the sets, too"
        return {"accuracy": "Accuracy", "means": means}
    right = "labels known to be right" if (data.runs[0].target < 0).any() else "right labels"
    return {"accuracy": "Coverage", "means": f"mean share of an example’s {right} that its set holds"}


def headline(by_name: Mapping[str, Sequence[RunResult]], examples: Examples, data: ReportData) -> dict[str, Any]:
    word = words_for(data)["accuracy"]
    shares = {"coverage": word, "precision": "Precision", "recall": "Recall", "f1": "F1"}
    if data.is_single:
        del shares["recall"]  # it is the coverage
    columns = ["Top-1" if data.is_single else "mAP", "Rule", "Mean set size", *shares.values()]
    columns += [f"{word}, {SHOTS[group]} shots" for group in examples.shots]
    if examples.truth is not None:
        columns += ["Holds every right label", "Is exactly the right labels"]
    found = {name: [_of_run(run, examples) for run in runs] for name, runs in by_name.items()}
    models = [_headline_rows(name, runs, found[name], examples, tuple(shares)) for name, runs in by_name.items()]
    apart = differences(by_name, found, ("size", *shares))
    return {"columns": columns, "models": models, "differences": apart, "compared": columns[: 3 + len(shares)]}


def _of_run(run: RunResult, examples: Examples) -> dict[str, Measured]:
    """What is measured of each rule's sets, and under "" of the scores themselves."""
    return {"": _ranking(run), **{rule: _measured(run, rule, examples) for rule in run.rules}}


def _headline_rows(
    name: str,
    runs: Sequence[RunResult],
    found: Sequence[Mapping[str, Measured]],
    examples: Examples,
    shares: tuple[str, ...],
) -> dict[str, Any]:
    rows, worth = [], {}
    for rule in dict.fromkeys(rule for run in runs for rule in run.rules):
        having = [run for run in runs if rule in run.rules]
        mean, spread = over_seeds([of_run[rule] for of_run in found if rule in of_run])
        cells = [_cell(mean, spread, key) for key in ("size", *shares)]
        cells += [_cell(mean, spread, "shot_accuracy", place) for place in range(len(examples.shots))]
        if examples.truth is not None:
            cells += [_cell(mean, spread, "covers"), _cell(mean, spread, "exact")]
        rows.append({"rule": rule, "settings": repr(having[0].rules[rule]), "cells": cells})
        worth[rule] = {key: Estimate(float(mean[key]), *mean[f"{key}_interval"].tolist()) for key in _ESTIMATES}
    ranking = _cell(*over_seeds([of_run[""] for of_run in found]), "top")
    rules = {rule: of for run in reversed(runs) for rule, of in run.rules.items()}
    wishes = [wish._asdict() for wish in advise(rules, worth, int(examples.known.sum()), examples.knows_absent)]
    return {"name": name, "seeds": len(runs), "first": ranking, "rows": rows, "wishes": wishes}


_ESTIMATES = ("size", "coverage", "precision", "recall", "f1")


def _measured(run: RunResult, rule: str, examples: Examples) -> Measured:
    """What `measure` finds, and the numbers of `set_summary` with their intervals (of several seeds: their mean)."""
    sets = run.sets_by(rule)
    found, summary = measure(sets, examples), set_summary(sets, run.target)
    for key in _ESTIMATES:
        found[key], found[f"{key}_interval"] = np.float64(summary[key].value), np.array(summary[key][1:])
    for key in ("covers", "exact"):
        if key in found:
            found[f"{key}_interval"] = np.array(share_interval(float(found[key]), len(sets)))
    return found


def _cell(mean: Measured, spread: Measured, key: str, place: Any = ...) -> dict[str, str]:
    """A number, its spread over seeds and its interval, as text: a share in percent, a size in labels."""
    value = float(np.asarray(mean[key])[place])

    def number(one: float) -> str:
        return fixed(one, 2) if key == "size" else fixed(100 * one, 1)

    cell = {"value": fixed(value, 2) if key == "size" else percent(value), "spread": "", "interval": ""}
    if not math.isfinite(value):
        return cell
    if key in spread:
        cell["spread"] = f"± {number(float(np.asarray(spread[key])[place]))}"
    if f"{key}_interval" in mean:
        low, high = mean[f"{key}_interval"]
        cell["interval"] = f"{number(low)}–{number(high)}"
    return cell


def _ranking(run: RunResult) -> Measured:
    if run.is_single:
        return {"top": float(top_k_accuracy(run.scores, run.target, 1))}
    return {"top": float(mean_average_precision(run.scores, run.target))}
