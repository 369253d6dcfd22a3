"""The catalogue of set rules."""

import inspect

from docstring_parts import flat, section, table, written_by

from shortlist.sets import SetRule
from shortlist.sets.named import RULES

INTRODUCTION = f"""\
# Catalogue of set rules

{written_by("the docstrings")}

A set rule turns scores into sets of labels. All have `fit`, `partial_fit`, `merge`, `predict`, `to_json` and
`from_json`, and take torch or numpy, memory maps and iterators of batches. [Calibrating sets](sets.md) says which one
to choose; the *name* is the one for configs and for `shortlist calibrate --rule`.
"""


def page() -> str:
    rows = [
        [f"[`{rule.__name__}`](#{rule.__name__.lower()})", f"`{name}`", _promise(rule), _learns(rule)]
        for name, rule in RULES.items()
    ]
    parts = [INTRODUCTION, table(["rule", "name", "what it does", "fitted on"], rows)]
    return "\n".join([*parts, *(section(f"## {rule.__name__}", rule) for rule in RULES.values())])


def _promise(rule: type[SetRule]) -> str:
    """What the head of the rule's file says."""
    return flat(inspect.getmodule(rule).__doc__.partition(": ")[2]).rstrip(".")


def _learns(rule: type[SetRule]) -> str:
    """What fit needs."""
    if rule.needs_target:
        return "scores and labels"
    needed = [p for p in inspect.signature(rule).parameters.values() if p.default is p.empty]
    return "nothing" if rule(**{p.name: 1 if p.name == "k" else 0.5 for p in needed}).is_fitted else "scores"
