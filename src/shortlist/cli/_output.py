"""What commands print: results as tables or JSON on standard output, everything else on standard error."""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any


def say(text: str) -> None:
    """A remark for the person at the terminal."""
    sys.stderr.write(f"{text}\n")


def print_json(content: Any) -> None:
    """One JSON object; numbers that JSON cannot hold (NaN) become null."""
    sys.stdout.write(json.dumps(_plain(content), ensure_ascii=False, indent=2) + "\n")


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table: drawn on a terminal, plain columns elsewhere."""
    texts = [[_text(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table

        table = Table(title=title, title_justify="left")
        for number, name in enumerate(header):
            table.add_column(name, justify="right" if number else "left")
        for row in texts:
            table.add_row(*row)
        Console().print(table)
        return
    widths = [max(map(len, column)) for column in zip(header, *texts, strict=True)]
    lines = [title] if title else []
    for row in [list(header), *texts]:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    sys.stdout.write("\n".join(lines) + "\n")


def print_results(title: str, results: Mapping[str, Any]) -> None:
    """The two tables of `shortlist.runs.evaluate.evaluate`."""
    print_table(f"{title}, {results['examples']} examples", ["metric", "value"], list(results["metrics"].items()))
    if results["rules"]:
        columns = list(next(iter(results["rules"].values())))
        rows = [[name, *(found[column] for column in columns)] for name, found in results["rules"].items()]
        sys.stdout.write("\n")
        print_table(f"{title}: sets", ["rule", *columns], rows)


def _text(cell: Any) -> str:
    return f"{cell:.4f}" if isinstance(cell, float) else str(cell)


def _plain(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {key: _plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
