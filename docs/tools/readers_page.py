"""Readers and corruptions: what a config's ``data`` section can name."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from docstring_parts import call, readable, summary, table, written_by

from shortlist.data import CORRUPTIONS, READERS, limits

INTRODUCTION = f"""\
# Readers and corruptions

{written_by("the docstrings")}

A *reader* makes a `Dataset` of files in a format that exists. `shortlist data check READER key=value ...` lists
everything that is wrong with the files; `shortlist.data.read(READER, key=value, ...)` and
`data: {{train: {{reader: READER, key: value}}}}` in a config read them. A *corruption* changes labels on purpose, to
see what a method makes of it. What trains on images is a [backbone](backbones.md).
"""


def page() -> str:
    parts = [INTRODUCTION, "## Readers\n", _overview(READERS)]
    parts += _sections(READERS, skip=0)
    parts += ["## Limits\n", f"{readable(inspect.cleandoc(limits.__doc__ or ''))}"]
    parts += ["## Corruptions\n", _overview(CORRUPTIONS)]
    parts += _sections(CORRUPTIONS, skip=1)
    return "\n".join(parts)


def _overview(things: Mapping[str, Callable[..., Any]]) -> str:
    rows = [[f"[`{name}`](#{name})", summary(thing)] for name, thing in things.items()]
    return table(["name", "what it does"], rows)


def _sections(things: Mapping[str, Callable[..., Any]], skip: int) -> list[str]:
    sections = []
    for name, thing in things.items():
        text = readable(inspect.cleandoc(thing.__doc__ or ""))
        sections.append(f"### {name}\n\n`{call(thing.__name__, thing)}`\n\n{text}")
    return sections
