"""The catalogue of losses, from their docstrings.

A loss's docstring is a summary line and blocks: ``Formula:``, ``Use it when:``, ``Needs:`` (its first line a list of:
indices, label matrix, unknowns, example index), ``Reference:``, ``Options:``, ``Example:``.
"""

import inspect
import re
import textwrap
from dataclasses import dataclass
from typing import Any

from docstring_parts import call, flat

import shortlist.functional as functional
import shortlist.nn as nn

BLOCKS = ("Formula", "Use it when", "Needs", "Reference", "Options", "Example")
NEEDS = ("indices", "label matrix", "unknowns", "shares", "example index")
GROUPS = {
    "One label per row": lambda loss: "label matrix" not in loss.needs,
    "One label per row, or a label matrix": lambda loss: {"indices", "label matrix"} <= set(loss.needs),
    "Label matrix": lambda loss: "indices" not in loss.needs,
}
INTRODUCTION = """\
# Catalogue of losses

<!-- Written by docs/tools/catalogue.py from the docstrings; edit those and run it again. -->

Every loss is a function `f(scores, target, *, ..., reduction="mean")` in `shortlist.functional` and a module in
`shortlist.nn`; the two that remember training examples are modules only. Scores are raw logits `s`, one per label. A
target is class indices (-1: unknown row, ignored) or a label matrix of 1 present, 0 absent, -1 unknown; `P` and `N` are
the present and absent labels of a row, `y` its index, `L` the number of labels. Not sure which? Read
[Which loss should I use?](which-loss.md).
"""


@dataclass(frozen=True)
class Loss:
    name: str
    module: str
    signature: str
    summary: str
    blocks: dict[str, str]

    @property
    def needs(self) -> list[str]:
        return re.split(r", | or ", self.blocks["Needs"].split("\n")[0])


def public_losses() -> list[Loss]:
    """The losses of shortlist.functional with their modules, then the modules that have no function."""
    modules = {name.removesuffix("Loss").lower(): name for name in nn.__all__ if name.endswith("Loss")}
    modules.pop("linear")  # takes any of the others
    losses = []
    for name in functional.__all__:
        if name.endswith("_loss") and name != "linear_loss":
            module = modules.pop(name.removesuffix("_loss").replace("_", ""))
            losses.append(read(name, f"shortlist.nn.{module}", getattr(functional, name)))
    return losses + [read(name, f"shortlist.nn.{name}", getattr(nn, name)) for name in modules.values()]


def read(name: str, module: str, thing: Any) -> Loss:
    lines = inspect.cleandoc(thing.__doc__).split("\n")
    blocks: dict[str, str] = {}
    starts = [i for i, line in enumerate(lines) if line.rstrip(":") in BLOCKS and line.endswith(":")]
    for start in starts:
        end = next((i for i in range(start + 1, len(lines)) if lines[i] and not lines[i].startswith(" ")), len(lines))
        blocks[lines[start].rstrip(":")] = textwrap.dedent("\n".join(lines[start + 1 : end])).strip()
    missing = [block for block in BLOCKS if not blocks.get(block)]
    if missing:
        raise ValueError(f"the docstring of {name} has no block {', '.join(missing)}")
    loss = Loss(name, module, call(name, thing), lines[0], blocks)
    unknown = set(loss.needs) - set(NEEDS)
    if unknown:
        raise ValueError(f"Needs of {name} starts with {', '.join(sorted(unknown))}: allowed are {', '.join(NEEDS)}")
    return loss


def table(losses: list[Loss]) -> str:
    rows = ["| loss | what it does | " + " | ".join(NEEDS) + " |", "|---|---|" + ":-:|" * len(NEEDS)]
    for loss in losses:
        ticks = " | ".join("yes" if need in loss.needs else "" for need in NEEDS)
        what = loss.summary.split(": ", 1)[-1].rstrip(".")
        rows.append(f"| [`{loss.name}`](#{loss.name.lower()}) | {what[0].upper() + what[1:]} | {ticks} |")
    return "\n".join(rows) + "\n"


def section(loss: Loss) -> str:
    needs, *remarks = loss.blocks["Needs"].split("\n", 1)
    return (
        f"### {loss.name}\n\n{loss.summary}\n\n```text\n{loss.blocks['Formula']}\n```\n\n"
        f"- **Use it when** {flat(loss.blocks['Use it when'])}\n"
        f"- **Needs** {needs}. {flat(''.join(remarks))}\n"
        f"- **Call** `{loss.signature}`; module `{loss.module}`\n"
        f"- **Reference** {flat(loss.blocks['Reference'])}\n"
    )


def page() -> str:
    losses = public_losses()
    parts = [INTRODUCTION, table(losses)]
    for title, belongs in GROUPS.items():
        parts.append(f"## {title}\n")
        parts += [section(loss) for loss in losses if belongs(loss)]
    return "\n".join(part.replace(" \n", "\n") for part in parts)
