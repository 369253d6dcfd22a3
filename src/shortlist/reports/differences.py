"""By how much the runs of one name differ from those of the first, seed by seed: is one better than the other?"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from shortlist.metrics.seed_interval import half_width
from shortlist.reports.data import RunResult
from shortlist.reports.words import fixed

OfRun = Mapping[str, Mapping[str, Any]]  # for each rule, and for "" (the scores themselves), numbers by name


def differences(
    by_name: Mapping[str, Sequence[RunResult]], found: Mapping[str, Sequence[OfRun]], keys: Sequence[str]
) -> dict[str, Any] | None:
    """Differences from the first name's runs of the same seeds, for every name that shares two of them or more; None
    where there is none.

    Seeds are paired because runs of one seed have much in common: the parts of the data, the labels that were made
    noisy. The interval tells of other seeds on these examples.
    """
    first, *others = by_name
    theirs, models = _by_seed(by_name[first], found[first]), []
    for name in others:
        ours = _by_seed(by_name[name], found[name])
        seeds = [seed for seed in ours if seed in theirs]
        if len(seeds) < 2:
            continue
        pairs = [(ours[seed], theirs[seed]) for seed in seeds]
        rules = [rule for rule in pairs[0][0] if rule and all(rule in one for pair in pairs for one in pair)]
        rows = [{"rule": rule, "cells": [_cell(pairs, rule, key) for key in keys]} for rule in rules]
        models.append({"name": name, "seeds": len(seeds), "first": _cell(pairs, "", "top"), "rows": rows})
    return {"from": first, "models": models} if models else None


def _by_seed(runs: Sequence[RunResult], found: Sequence[OfRun]) -> dict[int, OfRun]:
    """Nothing where a seed occurs twice: which of the two would be the pair?"""
    pairs = [(run.seed, of_run) for run, of_run in zip(runs, found, strict=True) if run.seed is not None]
    by_seed = dict(pairs)
    return by_seed if len(by_seed) == len(pairs) else {}


def _cell(pairs: Sequence[tuple[OfRun, OfRun]], rule: str, key: str) -> dict[str, Any]:
    """Mean and half of the 95 % interval, as text; whether the interval leaves out 0."""
    factor = 1 if key == "size" else 100
    apart = [factor * (float(ours[rule][key]) - float(theirs[rule][key])) for ours, theirs in pairs]
    mean, width = statistics.fmean(apart), half_width(apart) or 0.0
    if not math.isfinite(mean):
        return {"value": fixed(None, 2), "decided": False}
    sign = "+" if mean >= 0 else ""
    return {"value": f"{sign}{fixed(mean, 2)} ± {fixed(width, 2)}", "decided": abs(mean) > width}
