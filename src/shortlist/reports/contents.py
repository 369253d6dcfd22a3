"""Everything the page and the figures show, worked out from the data: text, tables and the numbers of each chart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shortlist.metrics.functional import set_summary
from shortlist.reports.advice import cautions
from shortlist.reports.charts import legend, report_charts
from shortlist.reports.commonest import FirstLabels, said_of_first
from shortlist.reports.data import ReportData, RunResult, seeds_by_name
from shortlist.reports.examples import pick
from shortlist.reports.headline import headline, words_for
from shortlist.reports.numbers import SHOTS, Examples, Measured, average_k_curve, k_grid, over_seeds, top_k_curve
from shortlist.reports.per_label import label_columns
from shortlist.reports.promises import promises
from shortlist.reports.repeat import how_to_repeat
from shortlist.reports.similarity import similarity
from shortlist.reports.training import training_curves
from shortlist.reports.words import fixed, percent
from shortlist.sets import AverageK

_SHARES = ("accuracy", "covers", "exact")  # numbers shown as a percentage
_MOST_COLUMNS = 6


def contents(data: ReportData) -> dict[str, Any]:
    examples = Examples(data)
    start, by_name = data.start_k, seeds_by_name(data.runs)
    grid = k_grid(data.shape[1], start)
    models = [_model(name, runs, grid, examples) for name, runs in by_name.items()]
    at = grid.index(start)
    found = {
        "title": data.title,
        "about": _about(data, examples),
        "words": words_for(data),
        "lead": _lead(models, at, examples, data, by_name),
        "probabilities": all(run.probabilities for run in data.runs),
        "cautions": _cautions(data, examples),
        "runs": _runs_table(by_name),
        "headline": headline(by_name, examples, data),
        "calibrated": all(run.calibration is not None for run in data.runs),
        "grid": grid,
        "start": at,
        "models": models,
        "shots": _shot_counts(examples),
        "levels": [
            {"name": name, "examples": int((examples.level_of_row == level).sum())}
            for level, name in enumerate(examples.levels)
        ],
        "labels": _labels(by_name, start, data, examples),
        "examples": [{"name": name, **pick(runs[0], start, data, examples)} for name, runs in by_name.items()],
        "promises": promises(by_name, data),
        "similarity": similarity(by_name),
        "training": training_curves(by_name),
        "reproduce": [
            how_to_repeat(run, len(by_name[run.name]) > 1) for run in data.runs if run.config or run.commands
        ],
    }
    return {**found, "charts": report_charts(found), "legend": legend(models)}


# ---- what moves with the slider


def _model(name: str, runs: Sequence[RunResult], grid: Sequence[float], examples: Examples) -> dict[str, Any]:
    curves = {"average": average_k_curve, "top": top_k_curve}
    model: dict[str, Any] = {"name": name, "objective": runs[0].objective, "seeds": len(runs)}
    for rule, curve in curves.items():
        by_seed = [curve(run, grid, examples) for run in runs]
        model[rule] = _columns([over_seeds(seeds) for seeds in zip(*by_seed, strict=True)])
    # a TopK set has K labels whatever the example: there is nothing to look up
    for key in ("histogram", "shot_histogram"):
        model["top"].pop(key, None)
    return model


def _columns(points: Sequence[tuple[Measured, Measured]]) -> dict[str, list[Any]]:
    """One list over the K of the slider for every number, and for its spread over seeds."""
    columns: dict[str, list[Any]] = {}
    for mean, spread in points:
        for key, value in mean.items():
            columns.setdefault(key, []).append(_for_json(value, trim=key.endswith("histogram")))
        for key in ("size", *_SHARES):
            if key in spread:
                columns.setdefault(f"{key}_spread", []).append(_for_json(spread[key]))
    return columns


def _for_json(value: Any, trim: bool = False) -> Any:
    """Lists and numbers for JSON: no NaN; a trimmed one is rounded and has no zeros at the end.

    What is shown as a number keeps all its digits: the script then rounds it as the tables made here do.
    """
    if np.ndim(value) == 0:
        return float(value) if math.isfinite(value) else None
    if trim and np.ndim(value) == 1:
        value = np.trim_zeros(np.round(value, 5), "b")
    return [_for_json(one, trim) for one in value]


# ---- the top of the page


def _about(data: ReportData, examples: Examples) -> dict[str, str]:
    n, num_labels = data.shape
    known, unknown = examples.known, int(examples.unknown.sum())
    facts = {str(key): str(value) for key, value in data.about.items()}
    facts["Examples scored"] = f"{n:,}" + ("" if known.all() else f" ({known.sum():,} with a known label)")
    facts["Labels"] = f"{num_labels:,}"
    facts["Target"] = "one label per example" if data.is_single else "a label matrix (several labels per example)"
    if unknown and not data.is_single:
        judging = n * num_labels - unknown
        facts["Known entries of the matrix"] = f"{judging:,} of {n * num_labels:,}; unknown ones judge nothing"
    commonest = _first(data.runs[0], data).get("commonest")
    if commonest is not None:
        facts["Always the commonest label"] = f"right in {percent(commonest['accuracy'])} ({commonest['label']})"
    return facts


def _cautions(data: ReportData, examples: Examples) -> list[str]:
    """Of every run, each once."""
    rows, found = int(examples.known.sum()), []
    for run in data.runs:
        empty = {rule: int((run.sets_by(rule).sizes == 0).sum()) for rule in run.rules}
        found += cautions(rows, run.rules, run.used_for, run.on, empty, examples.knows_absent)
        backbone = run.config.get("backbone", {}).get("name")
        found += said_of_first(_first(run, data), run.config.get("imbalance"), backbone)
    return list(dict.fromkeys(found))


def _first(run: RunResult, data: ReportData) -> dict[str, Any]:
    first = FirstLabels()
    if run.is_single:
        first.update(run.scores, run.target)
    return first.found(data.names)


def _lead(
    models: list[dict[str, Any]],
    at: int,
    examples: Examples,
    data: ReportData,
    by_name: Mapping[str, Sequence[RunResult]],
) -> str:
    """The finding in a sentence or two, as measured: by the first rule, where there is none of AverageK."""
    best = max(models, key=lambda model: model["average"]["accuracy"][at] or 0)
    average, top = best["average"], best["top"]
    if average["accuracy"][at] is None:
        return "No example has a known label: set sizes can be shown, accuracy cannot."
    what = "the right label in" if data.is_single else "on average"
    right = "labels known to be right" if examples.unknown.any() else "right labels"
    of = "of the examples" if data.is_single else f"of an example’s {right}"
    runs = by_name[best["name"]]
    if not any(isinstance(rule, AverageK) for rule in runs[0].rules.values()):
        first = next(iter(runs[0].rules))
        found = [set_summary(run.sets_by(first), run.target) for run in runs if first in run.rules]
        size, held = (float(np.mean([one[key].value for one in found])) for key in ("size", "coverage"))
        labels = f"{fixed(size, 2)} labels on average"
        return f"The sets of {best['name']} by {first}, {labels}, hold {what} {percent(held)} {of}."
    lead = (
        f"The AverageK sets of {best['name']}, {fixed(average['size'][at], 2)} labels on average, hold "
        f"{what} {percent(average['accuracy'][at])} {of}; its TopK sets, {fixed(top['size'][at], 2)} labels on "
        f"average, {percent(top['accuracy'][at])}."
    )
    if examples.truth is not None and len(examples.levels) > 1:
        sizes, names = average["level_size"][at], examples.levels
        lead += (
            f" Its AverageK sets have {fixed(sizes[0], 1)} labels where {names[0]} "
            f"{'is' if names[0] == '1' else 'are'} right, and {fixed(sizes[-1], 1)} where {names[-1]} are."
        )
    return lead


def _runs_table(by_name: Mapping[str, Sequence[RunResult]]) -> dict[str, Any]:
    """One row for every name: objective, seeds, training examples, time, and the settings in which the runs differ."""
    flat = {name: _flatten(runs[0].config) for name, runs in by_name.items()}
    shown_already = ("seed", "objective", "objective.name")
    keys = dict.fromkeys(key for config in flat.values() for key in config if key not in shown_already)
    differing = [key for key in keys if len({str(config.get(key)) for config in flat.values()}) > 1][:_MOST_COLUMNS]
    rows = []
    for name, runs in by_name.items():
        seconds = [run.seconds for run in runs if run.seconds is not None]
        counts = runs[0].train_counts
        seeds = ", ".join(str(run.seed) for run in runs if run.seed is not None)
        rows.append(
            [
                name,
                runs[0].objective,
                seeds or "–",
                "–" if counts is None else f"{int(counts.sum()):,}",
                runs[0].link,
                f"{np.mean(seconds):.1f}\u202fs" if seconds else "–",
                *(str(flat[name].get(key, "–")) for key in differing),
            ]
        )
    columns = ["Run", "Objective", "Seeds", "Training labels", "Link", "Training time", *differing]
    return {"columns": columns, "rows": rows}


def _flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            flat.update(_flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat


# ---- the rest


def _shot_counts(examples: Examples) -> list[dict[str, Any]]:
    bounds = {"few": "fewer than 20", "medium": "20 to 100", "many": "more than 100"}
    return [
        {"name": SHOTS[group], "bounds": bounds[SHOTS[group]], "examples": int((examples.shot == group).sum())}
        for group in examples.shots
    ]


def _labels(
    by_name: Mapping[str, Sequence[RunResult]], k: float, data: ReportData, examples: Examples
) -> dict[str, Any]:
    counts = next((run.train_counts for run in data.runs if run.train_counts is not None), None)
    models = [label_columns(runs, k, examples) for runs in by_name.values()]
    count = [model.pop("count") for model in models]  # the same for every model
    groups = None
    if data.groups is not None:
        names = data.group_names
        groups = [str(group) if names is None else str(names[int(group)]) for group in data.groups]
    return {
        "names": data.names,
        "groups": groups,
        "train": None if counts is None else [round(float(count), 2) for count in counts],
        "unknown": examples.unknown.sum(0).tolist() if examples.unknown.any() else None,
        "count": count[0],
        "models": [{key: _rounded(column) for key, column in model.items()} for model in models],
    }


def _rounded(column: list[Any]) -> list[Any]:
    return [round(value, 4) if isinstance(value, float) else value for value in column]
