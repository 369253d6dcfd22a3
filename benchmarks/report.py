"""The rows as a terminal table, Markdown and JSON."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from benchmarks.harness import Row
from shortlist.files import written_whole

HEADINGS = ("what", "size", "k", "ours", "against", "theirs", "ratio", "goal", "")
_ALIGNED = ("---", "---:", "---:", "---:", "---", "---:", "---:", "---:", "---")


def as_text(rows: Sequence[Row]) -> str:
    """A table for the terminal, one block per group."""
    blocks = []
    for group, cells in _groups(rows):
        table = [HEADINGS, *cells]
        widths = [max(len(line[i]) for line in table) for i in range(len(HEADINGS))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in table]
        blocks.append("\n".join([group, *(f"  {line}".rstrip() for line in lines)]))
    return "\n\n".join([*blocks, summary(rows)])


def as_markdown(rows: Sequence[Row], machine: Mapping[str, str], command: str) -> str:
    """A page: how to make it again, the machine, and one table per group."""
    parts = [
        "# Benchmarks",
        f"Written by `{command}`; do not edit.",
        "Forward and backward through autograd. Each ratio is ours over theirs, measured in one run, the two taking "
        "turns, each at its fastest call; below 1 is faster (or smaller). " + summary(rows),
        "| | |\n|---|---|\n" + "\n".join(f"| {key} | {value} |" for key, value in machine.items()),
    ]
    for group, cells in _groups(rows):
        table = [HEADINGS, _ALIGNED, *cells]
        parts.append(f"## {group}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in table))
    return "\n\n".join(parts) + "\n"


def as_json(rows: Sequence[Row], machine: Mapping[str, str]) -> str:
    """Everything, unrounded, for programs."""
    records = [{**vars(row), "ratio": row.ratio, "met": row.met} for row in rows]
    return json.dumps({"machine": dict(machine), "rows": records}, indent=1) + "\n"


def summary(rows: Sequence[Row]) -> str:
    """One sentence: how many goals are met."""
    verdicts = [row.met for row in rows if row.goal is not None]
    if not verdicts:
        return "No goals apply to these sizes."
    unjudged = f" ({verdicts.count(None)} not judged: other programs were busy)" if None in verdicts else ""
    return f"{verdicts.count(True)} of {len(verdicts)} goals met{unjudged}."


def write(path: str | os.PathLike[str], text: str) -> None:
    """Write the whole file or leave the old one: a run that is stopped halfway never leaves half a table."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as file:
        file.write(text.encode())


def _groups(rows: Iterable[Row]) -> list[tuple[str, list[tuple[str, ...]]]]:
    return [(group, [_cells(row) for row in members]) for group, members in groupby(rows, key=lambda row: row.group)]


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.name,
        " x ".join(map(str, row.shape)),
        "" if row.k is None else str(row.k),
        f"{_three_digits(row.ours)} {row.unit}",
        row.against,
        f"{_three_digits(row.reference)} {row.unit}",
        _three_digits(row.ratio),
        "" if row.goal is None else f"{row.goal:.3g}",
        "disturbed" if row.disturbed else {None: "", True: "met", False: "MISSED"}[row.met],
    )


def _three_digits(x: float) -> str:
    """Three significant digits, never in powers of ten: 0.0123, 1.23, 123, 12345."""
    return f"{x:.0f}" if abs(x) >= 100 else f"{x:#.3g}"
