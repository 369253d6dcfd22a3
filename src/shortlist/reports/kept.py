"""Whether a promise is kept on the examples of a report: in a sentence, with what chance may do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from shortlist.labels import LabelSets
from shortlist.metrics.functional.set_summary import Estimate
from shortlist.reports.words import fixed, percent
from shortlist.sets import AverageK, Conformal, OnlineConformal, RiskControl, SetRule

_WORDS = {
    "recall": "the share of an example's right labels that is missed",
    "precision": "the share of a set that is wrong",
    "f1": "1 less the F1 score of a set",
    "false-positives": "the number of wrong labels in a set",
}


def kept(rule: SetRule, sets: LabelSets, target: Any, held: Estimate, size: Estimate) -> list[str]:
    """One sentence for each level that is promised; none where it cannot be told of these examples. ``held`` and
    ``size``: coverage and mean size of the sets, with their 95 % intervals."""
    if isinstance(rule, OnlineConformal) or (isinstance(rule, Conformal) and rule.labels == "votes"):
        return []
    if isinstance(rule, Conformal):
        least = 1 - rule.alpha
        return [f"At least {percent(least)} is promised: {_verdict(held.value >= least, held.high >= least)}"]
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
        what = _WORDS.get(risk.name, f"the risk {risk.name}")
        said.append(
            f"Here {what} is {fixed(mean, 3)} on average ({fixed(max(0.0, mean - reach), 3)} to "
            f"{fixed(mean + reach, 3)}). At most {level:g} is promised: "
            f"{_verdict(mean <= level, mean - reach <= level)}"
        )
    return said


def _verdict(met: bool, within_chance: bool) -> str:
    if met:
        return "that is kept here."
    if within_chance:
        return "it is missed here by no more than chance may do in so few examples."
    return (
        "it is missed here by more than chance: these examples are not like those of calibration, or the calibration "
        "was an unlucky one."
    )
