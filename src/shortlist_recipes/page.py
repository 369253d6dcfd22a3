"""What a recipe leaves behind: index.md with its tables and figures, and table.json with every number."""

import platform
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shortlist import __version__
from shortlist.files import write_json, write_text, written_whole
from shortlist.runs.environment import environment
from shortlist_recipes.figures import Drawing, saved
from shortlist_recipes.layout import Texts, measured_and_published, notes
from shortlist_recipes.recipe import Recipe, Scale
from shortlist_recipes.results import Results
from shortlist_recipes.tables import Table, as_json

INDEX, TABLE = "index.md", "table.json"
PROTOCOL = "## Protocol"


def write_page(recipe: Recipe, scale: Scale, results: Results, folder: Path, planned: int | None = None) -> Path:
    """Write index.md, table.json and the figures; the path of index.md. ``planned``: how many cells there will be,
    where these are not all."""
    planned = len(results.records) if planned is None else planned
    drawings = recipe.figures(results)
    for drawing in drawings:
        with written_whole(folder / figure_name(recipe, drawing)) as file:
            file.write(saved(drawing.figure, "svg"))
    findings = list(recipe.findings(results))
    overview = list(recipe.overview(results))
    write_json(folder / TABLE, _numbers(recipe, scale, results, planned, findings, overview))
    write_text(folder / INDEX, _text(recipe, scale, results, planned, findings, overview, drawings))
    return folder / INDEX


def figure_name(recipe: Recipe, drawing: Drawing) -> str:
    return f"{recipe.name}-{drawing.name}.svg"


def command(recipe: Recipe, scale: Scale) -> str:
    return f"shortlist recipe {recipe.name} --scale {scale}"


def versions() -> dict[str, Any]:
    """What the numbers were made with; nothing that says where."""
    here = environment()
    kept = {name: here[name] for name in ("shortlist", "python", "torch", "numpy", "kernels", "threads")}
    return {**kept, "machine": f"{platform.system()} {platform.machine()}"}


def _numbers(
    recipe: Recipe, scale: Scale, results: Results, planned: int, findings: Sequence[str], overview: Sequence[Texts]
) -> dict[str, Any]:
    return {
        "recipe": recipe.name,
        "scale": scale,
        "command": command(recipe, scale),
        "versions": versions(),
        "cells": len(results.records),
        "planned": planned,
        "run with": dict(sorted(Counter(record.version for record in results.records if record.version).items())),
        "seeds": results.levels("seed"),
        "seconds": round(sum(record.seconds for record in results.records), 1),
        "findings": list(findings),
        "overview": [
            {"caption": texts.caption, "header": list(texts.header), "rows": [list(row) for row in texts.rows]}
            for texts in overview
        ],
        "tables": [as_json(table, results) for table in recipe.tables],
    }


def _text(
    recipe: Recipe,
    scale: Scale,
    results: Results,
    planned: int,
    findings: Sequence[str],
    overview: Sequence[Texts],
    drawings: Sequence[Drawing],
) -> str:
    seconds = sum(record.seconds for record in results.records)
    made_with = ", ".join(f"{name} {value}" for name, value in versions().items())
    seeds, done = len(results.each("seed")), len(results.records)
    unfinished = "" if done == planned else " What is not run yet is missing from the tables."
    counts = Counter(record.version for record in results.records if record.version)
    if set(counts) - {__version__}:
        each = ", ".join(f"{count} with version {version}" for version, count in sorted(counts.items()))
        unfinished += f" Cells were run {each}."
    parts = [
        f"# {recipe.title}",
        f"{recipe.paper}",
        f"```bash\n{command(recipe, scale)}\n```",
        f"{done} of {planned} cells are done{f', {seeds} seeds' if seeds > 1 else ''}, {duration(seconds)}; "
        f"{made_with}.{unfinished}",
        f"**The paper claims:** {recipe.claim}",
        "**We find:**",
        "\n".join(f"- {sentence}" for sentence in findings),
        *(texts.markdown() for texts in overview),
    ]
    if scale in recipe.differences:
        parts.append(f"**Not as in the paper:** {recipe.differences[scale]}")
    for table in recipe.tables:
        if any(shown := _shown(table, results)):  # not so where a table is of another scale
            parts += [f"## {table.title}", *shown]
    for drawing in drawings:
        parts += [f"![{drawing.caption}]({figure_name(recipe, drawing)})", f"*{drawing.caption}*"]
    parts.append(protocol_text(recipe, scale))
    return "\n\n".join(part.rstrip() for part in parts if part) + "\n"


def protocol_text(recipe: Recipe, scale: Scale) -> str:
    """The end of the page: what was published field by field, and what this scale does; of the experiments that it has,
    and nothing at smoke scale."""
    if not recipe.protocols or scale == "smoke":
        return ""
    grid = [cell.keys.items() for cell in recipe.cells(scale, Path("data"))]
    run = (one for one in recipe.protocols if any(one.where.items() <= keys for keys in grid))
    return "\n\n".join([PROTOCOL, *(protocol.texts(scale).markdown().rstrip() for protocol in run)])


def _shown(table: Table, results: Results) -> list[str]:
    measured, others = measured_and_published(table, results)
    reference = f"Published: {table.reference}."
    parts = [reference] if table.published and (_has_published(measured) or not others) else []
    parts += [texts.markdown() for texts in measured]
    parts.append(notes(table, results))
    if others:
        parts.append("### Published, not run at this scale" + ("" if parts[0] == reference else f"\n\n{reference}"))
        parts += [texts.markdown() for texts in others]
    return parts


def _has_published(tables: Sequence[Texts]) -> bool:
    return any("published" in heading for texts in tables for heading in texts.header)


def duration(seconds: float) -> str:
    """For people.

    >>> duration(5.2), duration(75), duration(7300)
    ('5 s', '1 min 15 s', '2 h 01 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"
