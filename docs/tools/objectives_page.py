"""The table of objectives: what each takes, and its options with their defaults."""

import dataclasses
import inspect

from docstring_parts import readable, summary, table, written_by

from shortlist.objectives import OBJECTIVES, LossFunctionObjective, Objective

INTRODUCTION = f"""\
# Objectives

{written_by("the registry and the docstrings")}

An *objective* is how features become scores and a training loss: one or more heads, a loss, and the scores that
predict. It is named in a config (`objective: {{name: smooth-topk, k: 5}}`), in
`SetClassifier(objective="smooth-topk")`, or built with
`shortlist.objectives.build("smooth-topk", {{"k": 5}}, in_features=..., num_labels=...)`. Those that are one linear head
and one loss are described where [their loss](losses.md) is; the others are described below.

*Takes*: class indices, a label matrix, or both (*one*: at most one present label per row), or scenes, the relations of
images. The *link* makes scores of different rows comparable for the set rules. The *metric* chooses the best epoch
(mean average precision where rows have several labels).
"""


def page() -> str:
    rows = [_row(name, objective) for name, objective in sorted(OBJECTIVES.items())]
    options = [[row[0], row.pop()] for row in rows]
    parts = [
        INTRODUCTION,
        table(["objective", "what it is", "takes", "link", "metric"], rows),
        "## Options and their defaults\n",
        table(["objective", "options"], [row for row in options if row[1]]),
    ]
    for name, objective in sorted(OBJECTIVES.items()):
        if not _is_plain(objective):
            parts.append(f"## {name}\n\n{readable(inspect.cleandoc(objective.__doc__ or ''))}")
    return "\n".join(parts)


def _row(name: str, objective: type[Objective]) -> list[str]:
    title = f"`{name}`" if _is_plain(objective) else f"[`{name}`](#{name})"
    takes = " or ".join(kind.removeprefix("label-") for kind in objective.accepts)
    if objective.one_positive and "label-matrix" in objective.accepts:
        takes += " (one)"
    return [title, _what(objective), takes, objective.link, objective.monitor, _options(objective)]


def _what(objective: type[Objective]) -> str:
    if _is_plain(objective):
        name = objective.function.__name__
        return (
            f"a linear head, [`{name}`](losses.md#{name})"
            if name != "cross_entropy_loss"
            else "a linear head, softmax cross-entropy"
        )
    return summary(objective)


def _is_plain(objective: type[Objective]) -> bool:
    """One of the table of loss functions: nothing to say beyond its loss."""
    return (
        issubclass(objective, LossFunctionObjective)
        and objective.__doc__ == f"A linear head trained by `{objective.function.__name__}`."
    )


def _options(objective: type[Objective]) -> str:
    return ", ".join(f"`{field.name}={_default(field)!r}`" for field in dataclasses.fields(objective.Config))


def _default(field: "dataclasses.Field[object]") -> object:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
