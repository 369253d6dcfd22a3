"""Which rule for which wish, in words and from the figures at hand; and what to be careful about with these figures.

What sets hold "of the right labels" is the recall, of all examples together; "of an example's right labels" the
coverage, a mean over examples that counts one without a right label as held. Of single labels both are the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from shortlist.metrics.functional.set_summary import Estimate
from shortlist.reports.chance import is_missed
from shortlist.reports.words import fixed, percent, with_interval
from shortlist.sets import AverageK, Conformal, SetRule, TopK

Use = Literal["training", "choosing the epoch", "calibration"]
Worth = Mapping[str, Estimate]  # as `set_summary` gives it

FEW_ROWS = 100
_ALIKE = 0.1  # sizes that differ by less than this share are compared
_USED = {
    "training": "The model was trained on the examples that judge it here: it knows their labels, and will do worse on "
    "others.",
    "choosing the epoch": "The examples that judge here also chose the epoch: the figures are a little better than on "
    "others.",
}


class Wish(NamedTuple):
    """What someone may want, the rule for it, and what it was measured to give."""

    wish: str
    rule: str
    why: str


def advise(
    rules: Mapping[str, SetRule], worth: Mapping[str, Worth], rows: int, knows_absent: bool = True
) -> list[Wish]:
    """A rule for each wish that one of the rules serves, with its figures, which so many rows judge; nothing where no
    label is known. ``knows_absent``: whether any is known to be absent, so that sets can hold wrong ones."""
    known = {name: found for name, found in worth.items() if math.isfinite(found["recall"].value)}
    found: list[Wish] = []

    def best(kind: Any, by: str) -> str | None:
        names = [name for name in known if isinstance(rules[name], kind)]
        return max(names, key=lambda name: known[name][by].value, default=None)

    fixed_size, average, promise = best(TopK, "f1"), best(AverageK, "f1"), best(Conformal, "coverage")
    if fixed_size is not None:
        why = f"{_gives(known[fixed_size], 'every time')}."
        found.append(Wish("always the same number of labels", fixed_size, why))
    if average is not None:
        why = f"{_gives(known[average])}{_beside(average, known, fixed_size)}."
        found.append(Wish("more labels where more may be right, fewer where it is clear", average, why))
    if promise is not None:
        why, better = _promised(rules[promise], known[promise], rows), _holds_more(promise, known)
        if better is not None:
            why = f"{_gives(known[better])}, more than {promise}: {why}"
        found.append(Wish("to miss few right labels", better or promise, why))
    balanced = best(SetRule, "f1")
    if balanced is not None and len(known) > 1 and knows_absent:
        scores = known[balanced]
        right, held = percent(scores["precision"].value), percent(scores["recall"].value)
        why = (
            f"it has the highest F1 of these rules, {with_interval(scores['f1'])}: {right} of the labels in its sets "
            f"are right, and they hold {held} of the right labels."
        )
        found.append(Wish("the best balance of right and wrong labels", balanced, why))
    return found


def cautions(
    rows: int,
    rules: Mapping[str, SetRule],
    used_for: Sequence[Use] = (),
    on: str | None = None,
    empty: Mapping[str, int] | None = None,
    knows_absent: bool = True,
) -> list[str]:
    """What keeps the figures from being those of new examples: few rows, rows that had another use, no label that is
    known to be absent, and rules that answer with everything; or with nothing. ``on``: what the judging data is called,
    as ``SetRule.fitted_on`` calls it; ``empty``: how many sets of a rule hold no label."""
    found = []
    if rows and not knows_absent:
        found.append(
            "No label is known to be absent here, or hardly any, so that next to nothing counts as wrong: precision, "
            "F1 and average precision say little, and larger sets look better. If a blank cell of a table means "
            "absent, coding=marks says so; if all labels of a list are in it, rest=absent."
        )
    if rows < FEW_ROWS:
        examples = f"Only {rows} examples judge" if rows != 1 else "Only 1 example judges"
        found.append(f"{examples}: look at the intervals, not at the figures; {FEW_ROWS} or more are needed.")
    found += [_USED[use] for use in used_for if use in _USED]
    fitted_here = [name for name, rule in rules.items() if on is not None and rule.fitted_on == on]
    if fitted_here or "calibration" in used_for:
        which = ", ".join(fitted_here) or "the rules"
        found.append(
            f"The examples that judge here also calibrated {which}: size and coverage are closer to what was asked for "
            "than they would be on others."
        )
    concerns = {name: rule.concern for name, rule in rules.items() if rule.concern}
    concerns |= {name: said for name, count in (empty or {}).items() if (said := rules[name].about_empty(count))}
    return found + [f"{name}: {concern}." for name, concern in concerns.items()]


def _gives(found: Worth, when: str = "on average") -> str:
    held, size = with_interval(found["recall"]), found["size"].value
    return f"{_labels(size)} {when}, which hold{'s' if size == 1 else ''} {held} of the right labels"


def _labels(size: float) -> str:
    return f"{fixed(size, 2).rstrip('0').rstrip('.')} label{'' if size == 1 else 's'}"


def _beside(name: str, known: Mapping[str, Worth], other: str | None) -> str:
    """How it compares with sets of one size, where these are about as large."""
    if other is None:
        return ""
    ours, theirs = known[name], known[other]
    if abs(ours["size"].value - theirs["size"].value) > _ALIKE * theirs["size"].value:
        return ""
    a, b = ours["recall"], theirs["recall"]
    verdict = "more than" if a.low > b.high else "less than" if a.high < b.low else "not clearly different from"
    return f"; that is {verdict} the {percent(b.value)} of {other}, whose sets are about as large"


def _holds_more(name: str, known: Mapping[str, Worth]) -> str | None:
    """The rule that holds most right labels, if that is more than this one holds, in sets that are no larger."""
    ours = known[name]
    most = max(ours["size"].high, ours["size"].value * (1 + _ALIKE), 1.0)  # an answer has a label at least
    others = [other for other, found in known.items() if found["size"].value <= most]
    best = max(others, key=lambda other: known[other]["recall"].value, default=name)
    return best if known[best]["recall"].value > ours["recall"].value else None


def _promised(rule: SetRule, found: Worth, rows: int) -> str:
    assert isinstance(rule, Conformal), "only conformal rules promise"
    if rule.concern:
        return f"{rule.concern}: calibrate on more."
    share, wanted = found["coverage"], 1 - rule.alpha
    text = f"it promises to hold {percent(wanted)} of them on average; here it gives {_gives(found)}"
    if rule.labels == "multi":
        text = (
            f"it promises to hold {percent(wanted)} of an example's right labels on average (of one that has none, "
            f"nothing is missed); here that is {with_interval(share)}, and it gives {_gives(found)}"
        )
    if is_missed(rule, share, rows):
        text += (
            ": fewer than promised, which chance alone does about once in 40 times: these examples differ from those "
            "that calibrated it, or the draw was an unlucky one"
        )
    return f"{text}."
