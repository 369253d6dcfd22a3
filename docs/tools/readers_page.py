"""Readers and corruptions: what a config's ``data`` section can name."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from docstring_parts import readable, section, summary, table, written_by

from shortlist.data import CORRUPTIONS, READERS, limits

INTRODUCTION = f"""\
# Readers and corruptions

{written_by("the docstrings")}

A *reader* makes a `Dataset` of files in a format that exists. `shortlist data check READER key=value ...` lists
everything that is wrong with the files; `shortlist.data.read(READER, key=value, ...)` and
`data: {{train: {{reader: READER, key: value}}}}` in a config read them. A *corruption* changes labels on purpose, to
see what a method makes of it. What trains on images is a [backbone](backbones.md). A format that is not here: write
[your own reader](extend.md#your-own-reader).
"""


def page() -> str:
    parts = [INTRODUCTION, "## Readers\n", *_described(READERS)]
    parts += ["## Limits\n", f"{readable(inspect.cleandoc(limits.__doc__ or ''))}"]
    return "\n".join([*parts, "## Corruptions\n", *_described(CORRUPTIONS)])


def _described(things: Mapping[str, Callable[..., Any]]) -> list[str]:
    """A table of them, and then one by one."""
    rows = [[f"[`{name}`](#{name})", summary(thing)] for name, thing in things.items()]
    sections = [section(f"### {name}", thing) for name, thing in things.items()]
    return [table(["name", "what it does"], rows), *sections]
