"""What commands print: results as tables or JSON on standard output, everything else on standard error.

Names come from data: nothing in them is markup, and no character of them steers the terminal.
"""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from shortlist.text import STEERING, visible

_ALL_LABELS, _ENDS = 12, 5  # labels of which all are shown; of more ones, how many from both ends
_SHOWN = 3  # examples of images that were left out for one cause
_SKIPPED = 3  # the exit code where something was left out
_TOP_1 = "topk-accuracy@1"
GIVEN_SCORES = "given scores"  # the title of results that are not of a run


def say(text: str) -> None:
    """A remark for the person at the terminal."""
    sys.stderr.write(f"{visible(text)}\n")


def print_line(text: str) -> None:
    """A line of a command's result."""
    sys.stdout.write(f"{visible(text)}\n")


def print_json(content: Any) -> None:
    """One JSON object; numbers that JSON cannot hold (NaN) become null."""
    written = json.dumps(_without_nan(content), ensure_ascii=False, indent=2)
    sys.stdout.write(STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", written) + "\n")


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table: drawn on a terminal, plain columns elsewhere."""
    header = [_text(name) for name in header]
    texts = [[_text(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(title=Text(visible(title)), title_justify="left")
        for number, name in enumerate(header):
            table.add_column(Text(name), justify="right" if number else "left")
        for row in texts:
            table.add_row(*map(Text, row))
        Console().print(table)
        return
    widths = [max(map(len, column)) for column in zip(header, *texts, strict=True)]
    lines = [visible(title)] if title else []
    for row in [header, *texts]:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    sys.stdout.write("\n".join(lines) + "\n")


def print_results(title: str, results: Mapping[str, Any]) -> None:
    """The tables of `shortlist.runs.evaluate`, and what follows from them in words. In the second, each number has
    its 95 % interval beneath it."""
    print_table(f"{title}, {results['examples']} examples", ["metric", "value"], _metrics(results))
    if results["rules"]:
        columns = list(next(iter(results["rules"].values())))
        rows = []
        for name, found in results["rules"].items():
            rows.append([name, *(found[column] for column in columns)])
            if "intervals" in results:
                ends = [results["intervals"][name][column] for column in columns]
                rows.append(["", *(f"{_short(low)}-{_short(high)}" for low, high in ends)])
        sys.stdout.write("\n")
        print_table(f"{title}: sets, with 95 % intervals{_judged(results)}", ["rule", *columns], rows)
    for name, promise in results.get("promises", {}).items():
        print_line(f"{name} promises: {promise}")
    for name, why in results.get("left_out", {}).items():
        say(f"warning: no sets by {name}: {why}")
    _print_labels(title, results.get("by_label"))
    for wish in results.get("advice", ()):
        sys.stdout.write("\n" if wish is results["advice"][0] else "")
        print_line(f"If you want {wish['wish']}: {wish['rule']}: {wish['why']}")
    for said in results.get("warnings", ()):
        say(f"warning: {said}")


def _print_labels(title: str, found: Mapping[str, Any] | None) -> None:
    """Precision, recall and F1 of each label, from the lowest F1 on; of many labels those of the ends that occur."""
    if not found:
        return
    by_f1 = sorted(found["labels"].items(), key=lambda item: (_number(item[1]["f1"]), -item[1]["examples"]))
    rows = [[name, *("-" if value is None else value for value in values.values())] for name, values in by_f1]
    if len(rows) > _ALL_LABELS:
        rows = [row for row in rows if row[1]]
        if len(rows) > 2 * _ENDS:
            rows = [*rows[:_ENDS], ["...", *[""] * 4], *rows[-_ENDS:]]
    sys.stdout.write("\n")
    header = ["label", "examples", "precision", "recall", "f1"]
    print_table(f"{title}: labels in the sets of {found['rule']}", header, rows)


def _number(value: float | None) -> float:
    return math.inf if value is None else value


def _metrics(results: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The metrics, and beside top-1 accuracy what always answering the commonest label would reach."""
    rows = list(results["metrics"].items())
    commonest, names = results.get("commonest"), [name for name, _ in rows]
    if commonest is not None and _TOP_1 in names:
        always = f"always {commonest['label']!r}, the commonest label"
        rows.insert(names.index(_TOP_1) + 1, (always, commonest["accuracy"]))
    return rows


def tell_skipped(result: Mapping[str, Any], quiet: bool = False) -> None:
    """The end of a command that may have left images out: they are listed, and the exit code is then 3."""
    skipped = result.get("skipped")
    if not skipped:
        return
    if not quiet:
        from shortlist.data.images import is_missing, left_out_in_words

        say(f"\nskipped: {left_out_in_words([image['reason'] for image in skipped])}")
        causes = ([image for image in skipped if is_missing(image["reason"]) == gone] for gone in (False, True))
        shown = [image for alike in causes for image in alike[:_SHOWN]]
        for image in shown:
            say(f"  {image['id']}: {image['reason']}")
        if len(shown) < len(skipped):
            say(f"  and {len(skipped) - len(shown)} more (all: --json)")
    import typer  # not above: this file is imported before the current directory has left Python's path

    raise typer.Exit(_SKIPPED)


def _short(value: float) -> str:
    return f"{value:.3f}".removeprefix("0") if value < 1 else f"{value:.3g}"


def _judged(results: Mapping[str, Any]) -> str:
    """How much of the labels is known, where not all of it is."""
    judged = results.get("judged", {})
    if not judged.get("unknown"):
        return ""
    if judged["labels"] * results["examples"] == judged["rows"] * (judged["labels"] + judged["unknown"]):
        others = results["examples"] - judged["rows"]
        return f", judged by {judged['rows']:,} examples (of {others:,} no label is known)"
    known = f"{judged['labels']:,} known labels of {judged['rows']:,} examples"
    return f", judged by {known} ({judged['unknown']:,} unknown)"


def _text(cell: Any) -> str:
    text = f"{cell:.4f}" if isinstance(cell, float) else visible(str(cell))
    return text.replace("\n", "\\n").replace("\t", "\\t")  # a cell is one line


def _without_nan(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {key: _without_nan(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_without_nan(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
