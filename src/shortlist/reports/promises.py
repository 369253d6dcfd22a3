"""Whether rules keep their promise on these examples, for every label and every kind of set, and whether probabilities
mean what they say: in sentences, with a reliability diagram."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shortlist.labels import LabelSets
from shortlist.links import ScaledLink
from shortlist.metrics.functional import (
    calibration_error,
    coverage_by_class,
    coverage_by_group,
    coverage_by_size,
    coverage_gap,
    reliability,
    same_scores,
    set_coverage,
    set_summary,
    worst_slab_coverage,
)
from shortlist.metrics.functional.set_summary import Estimate
from shortlist.reports.chance import is_missed, with_calibration
from shortlist.reports.charts import Chart
from shortlist.reports.data import ReportData, RunResult
from shortlist.reports.drawing import picture_of
from shortlist.reports.words import fixed, percent, with_interval
from shortlist.sets import AverageK, Conformal, OnlineConformal, RiskControl, SetRule

_ENOUGH = 20  # examples of a label or of a set size, to be named
_SLAB = 200  # examples that are needed to look for the worst slab
_DOUBT = 0.01  # a p-value below this says that the scores differ
_WORDS = {
    "recall": "the share of an example's right labels that is missed",
    "precision": "the share of a set that is wrong",
    "f1": "1 less the F1 score of a set",
    "false-positives": "the number of wrong labels in a set",
}


def promises(by_name: Mapping[str, Sequence[RunResult]], data: ReportData) -> list[dict[str, Any]]:
    """For each run (its first seed): what each rule promises and how it is kept; and its probabilities."""
    found = []
    for place, (name, runs) in enumerate(by_name.items()):
        run = runs[0]
        rules = [{"rule": rule, "said": _said(run, rule, data)} for rule, made in run.rules.items() if made.promise]
        left_out = [{"rule": rule, "why": why} for rule, why in run.left_out.items()]
        told = {"rules": rules, "left_out": left_out, "alike": _alike(run)}
        found.append({"name": name, **told, **_probabilities(run, place)})
    return found


def _said(run: RunResult, rule: str, data: ReportData) -> list[str]:
    sets = run.sets_by(rule)
    summary = set_summary(sets, run.target)
    held, size = summary["coverage"], summary["size"]
    of = "of the right labels" if run.is_single else "of an example's right labels"  # else that would be the recall
    said = [f"It promises: {run.rules[rule].promise}."]
    if not math.isfinite(held.value):
        return said
    said.append(
        f"Here sets have {fixed(size.value, 2)} labels on average ({fixed(size.low, 2)} to {fixed(size.high, 2)}), and "
        f"hold {with_interval(held)} {of}{', on average over the examples' * (not run.is_single)}."
    )
    said += kept(run.rules[rule], sets, run.target, held, size)
    present = _present(run)
    often = [(label, one) for label, one in enumerate(coverage_by_class(sets, run.target)) if present[label] >= _ENOUGH]
    if len(often) > 1:
        label, worst = min(often, key=lambda pair: pair[1].value)
        wanted = float(set_coverage(sets, run.target))
        gap = float(coverage_gap(sets, run.target, coverage=min(max(wanted, 0.0), 1.0)))
        name = data.names[label] if data.names else str(label)
        said.append(
            f"Of the labels with {_ENOUGH} examples or more, {name} is held least often: {with_interval(worst)}. On "
            f"average the coverage of a label is {fixed(100 * gap, 1)} percentage points away from that of all."
        )
    groups = run.rows.get("groups")
    if groups is not None:
        of_groups = coverage_by_group(sets, run.target, groups)
        name = min(of_groups, key=lambda group: of_groups[group].value)
        said.append(f"Of {len(of_groups)} groups, {name} does worst: sets hold {with_interval(of_groups[name])}.")
    by_size = coverage_by_size(sets, run.target)
    counted = {name: one for name, one in by_size.items() if _rows(sets.sizes, name) >= _ENOUGH}
    if len(counted) > 1:
        worst_size = min(counted, key=lambda name: counted[name].value)
        labels = "label" if worst_size == "1" else "labels"
        which = "empty sets" if worst_size == "0" else f"sets of {worst_size} {labels}"
        nothing = "" if run.is_single else "; where an example has no right label, none is missed"
        share = with_interval(counted[worst_size])
        said.append(f"By size, {which} do worst: they hold {share} {of}{nothing}.")
    if int(_known(run.target).sum()) >= _SLAB:
        slab = worst_slab_coverage(sets, run.target, _spread(run.scores), directions=50)
        said.append(
            "In the worst tenth of the examples, of all tenths that the scores can tell apart, sets hold "
            f"{with_interval(slab)} {of}."
        )
    return said


def kept(rule: SetRule, sets: LabelSets, target: Any, held: Estimate, size: Estimate) -> list[str]:
    """One sentence for each level that is promised; none where it cannot be told of these examples. ``held`` and
    ``size``: coverage and mean size of the sets, with their 95 % intervals."""
    if isinstance(rule, OnlineConformal) or (isinstance(rule, Conformal) and rule.labels == "votes"):
        return []
    if isinstance(rule, Conformal):
        least = 1 - rule.alpha
        missed = is_missed(rule, held, int(_known(target).sum()))
        return [f"At least {percent(least)} is promised: {_verdict(held.value >= least, not missed)}"]
    if isinstance(rule, AverageK):
        return [f"At most {rule.k:g} labels are promised: {_verdict(size.value <= rule.k, size.low <= rule.k)}"]
    if not isinstance(rule, RiskControl) or rule.per_label:
        return []
    said = []
    matrix = np.asarray(target)
    if matrix.ndim == 1:
        matrix = np.where((matrix >= 0)[:, None], np.arange(sets.num_labels) == matrix[:, None], -1)
    known = (matrix != -1).any(-1)
    for risk, level in rule.levels:
        losses = risk.losses(sets.to_dense(), matrix)[known]
        mean, reach = losses.mean(), 1.96 * losses.std() / math.sqrt(max(1, len(losses)))
        chance = reach if rule.delta is not None else with_calibration(reach, len(losses), rule.rows)
        what = _WORDS.get(risk.name, f"the risk {risk.name}")
        said.append(
            f"Here {what} is {fixed(mean, 3)} on average ({fixed(max(0.0, mean - reach), 3)} to "
            f"{fixed(mean + reach, 3)}). At most {level:g} is promised: "
            f"{_verdict(mean <= level, mean - chance <= level)}"
        )
    return said


def _verdict(met: bool, within_chance: bool) -> str:
    if met:
        return "that is kept here."
    if within_chance:
        return "it is missed here by no more than chance may do in so few examples, or in so few of calibration."
    return (
        "it is missed here by more than chance: these examples are not like those of calibration, or the calibration "
        "was an unlucky one."
    )


def _alike(run: RunResult) -> str:
    """Whether the scores look like those of the calibration examples."""
    if run.calibration is None:
        return ""
    p = same_scores(run.calibration, run.scores, link=run.link)
    told = "p < 0.001" if p < 0.001 else f"p = {fixed(p, 3)}"
    if p < _DOUBT:
        return (
            f"The scores do not look like those of the calibration examples ({told}): promises are about examples like "
            "those, and may not hold here."
        )
    return f"The scores look like those of the calibration examples ({told}); promises are about examples like those."


def _probabilities(run: RunResult, place: int) -> dict[str, Any]:
    """The reliability diagram and what it says; nothing for scores that are no probabilities."""
    known = bool((run.target >= 0).any())
    if run.link == "none" or not run.probabilities or not known:
        return {"reliability": "", "error": ""}
    bins = reliability(run.scores, run.target, link=run.link)
    error = float(calibration_error(run.scores, run.target, link=run.link))
    # of any label: low probabilities are sure as well, of its absence; so what counts is how far apart they are
    middle = sum(one.rows * one.probability for one in bins) / max(1, sum(one.rows for one in bins))
    away = [1.0 if run.is_single else one.probability - middle for one in bins]
    above = sum(one.rows * far * (one.probability - one.right.value) for one, far in zip(bins, away, strict=True))
    what = "its best label" if run.is_single else "a label"
    leaning = "too sure" if above > 0 else "not sure enough"
    said = (
        f"The probability of {what} differs from how often it is right by {fixed(100 * error, 1)} percentage points on "
        f"average (the expected calibration error); on the whole the model is {leaning}."
    )
    links = {name: getattr(rule, "link", None) for name, rule in run.rules.items()}
    scaled = {name: link for name, link in links.items() if isinstance(link, ScaledLink)}
    for name, link in scaled.items():
        left = float(calibration_error(run.scores, run.target, link=link))
        said += f" With the {link.kind} scaling of {name} it is {fixed(100 * left, 1)} percentage points."
    if error > 0.02 and not scaled:
        said += " A rule with scaling=temperature, vector or isotonic calibrates the probabilities first."
    return {"reliability": picture_of([_chart(bins, place, what)]).to_svg(in_page=True), "error": said}


def _chart(bins: Sequence[Any], place: int, what: str) -> Chart:
    points = [[one.probability, one.right.value] for one in bins]
    band = [[one.probability, one.right.low] for one in bins]
    band += [[one.probability, one.right.high] for one in reversed(bins)]
    ticks = [[at / 5, f"{20 * at}\u202f%"] for at in range(6)]
    axis = {"from": 0, "to": 1, "ticks": ticks}
    described = "; ".join(f"at {percent(x)}, {percent(y)} are right" for x, y in points)
    return {
        "title": "Reliability",
        "detail": "how often it is right, at each probability; the band is the 95 % interval",
        "description": f"How often {what} is right at each probability: {described}.",
        "height": 300,
        "x": {**axis, "to": 1.04, "name": f"probability of {what}"},  # room for the last tick's words
        "y": {**axis, "name": "how often it is right"},
        "bands": [{"color": place, "points": band}],
        "lines": [
            {"color": None, "kind": "ideal", "points": [[0, 0], [1, 1]]},
            {"color": place, "kind": "", "points": points},
        ],
        "dots": [{"color": place, "point": point} for point in points],
    }


def _known(target: Any) -> Any:
    """Of which rows a label is known."""
    return target >= 0 if target.ndim == 1 else (target >= 0).any(1)


def _present(run: RunResult) -> Any:
    if run.is_single:
        return np.bincount(run.target[run.target >= 0], minlength=run.scores.shape[1])
    return (run.target == 1).sum(0)


def _rows(sizes: Any, name: str) -> int:
    """How many sets have a size of this name of `coverage_by_size`."""
    low, _, high = name.partition(" to ")
    return int(((sizes >= int(low)) & (sizes <= int(high or low))).sum())


def _spread(scores: Any) -> Any:
    """Scores without infinities, each label of the same spread."""
    finite = np.clip(np.asarray(scores, np.float64), -1e6, 1e6)
    spread = finite.std(0)
    return (finite - finite.mean(0)) / np.where(spread > 0, spread, 1)
