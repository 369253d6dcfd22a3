"""Runs side by side: what each rule's sets are worth, averaged over seeds."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from shortlist.errors import ShortlistError
from shortlist.metrics.functional import top_k_accuracy
from shortlist.reports import ReportData, RunResult
from shortlist.reports.data import seeds_by_name
from shortlist.reports.numbers import Examples, measure, over_seeds
from shortlist.sets import AverageK, TopK


@dataclass(frozen=True)
class Row:
    """One rule of one name: ``mean`` and ``spread`` (standard deviation) over seeds of top1, size, accuracy, covers,
    exact, seconds and sizes (by the number of right labels); no spread where there is one seed."""

    name: str
    rule: str
    mean: dict[str, Any]
    spread: dict[str, Any]


def compare(data: ReportData, rules: list[str]) -> list[Row]:
    """A row for each name and each of these rules."""
    examples = Examples(data)
    rows = []
    for name, seeds in seeds_by_name(data.runs).items():
        for rule in rules:
            mean, spread = over_seeds([_measured(run, rule, examples) for run in seeds])
            rows.append(Row(name, rule, _as_lists(mean), _as_lists(spread)))
    return rows


def best_possible(data: ReportData, k: int, name: str) -> RunResult:
    """What someone reaches who knows all right labels, and that each of them is as likely to be the recorded one."""
    if data.truth is None:
        raise ShortlistError("what is best is known only where the truth is")
    sizes = data.truth.sizes[:, None]
    scores = (data.truth.to_dense() / sizes).astype(np.float32)
    rules = {f"top-k-{k}": TopK(k), f"average-k-{k}": AverageK(k, link="none").fit(scores)}
    return RunResult(name, "truth", scores, data.runs[0].target, "none", rules, seconds=0.0)


def _measured(run: RunResult, rule: str, examples: Examples) -> dict[str, Any]:
    found = measure(run.rules[rule].predict(run.scores), examples)
    return {
        "top1": float(top_k_accuracy(run.scores, run.target, 1)),
        **{key: found[key] for key in ("size", "accuracy", "covers", "exact")},
        "sizes": found["level_size"],
        "seconds": run.seconds,
    }


def _as_lists(numbers: dict[str, Any]) -> dict[str, Any]:
    return {key: np.asarray(value).tolist() for key, value in numbers.items()}
