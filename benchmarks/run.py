"""The command line that every suite shares: choose cases, run them one by one, print and write the table."""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

from benchmarks import report
from benchmarks.harness import SECONDS, THREADS, Case, Row
from shortlist.timing import describe_machine

PEERS = ("numpy", "difftopk", "pytopk", "entmax", "torchmetrics", "scikit-learn")  # whose versions are said


def parser(name: str, description: str) -> argparse.ArgumentParser:
    """The options every suite takes."""
    options = argparse.ArgumentParser(prog=f"python -m {name}", description=description)
    options.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything runs; no goals apply")
    options.add_argument("--only", metavar="TEXT", help="only the cases whose group, name or shape contains this")
    options.add_argument("--json", metavar="FILE", help="write the rows and the machine as JSON")
    options.add_argument("--markdown", metavar="FILE", help="write the table as Markdown")
    return options


def run_suite(
    name: str, description: str | None, cases: Callable[[bool], Sequence[Case]], arguments: Sequence[str] | None = None
) -> argparse.Namespace:
    """``python -m NAME``: the cases of one suite; returns the options."""
    options = parser(name, description or "").parse_args(arguments)
    run(cases(options.quick), options, f"python -m {name}")
    return options


def run(cases: Sequence[Case], options: argparse.Namespace, command: str) -> list[Row]:
    """Run the chosen cases, print the table, write the files asked for and return the rows."""
    chosen = [case for case in cases if not options.only or options.only in f"{case.group} {case.name} {case.shape}"]
    if not chosen:
        names = ", ".join(sorted({case.name for case in cases}))
        raise SystemExit(f"--only {options.only!r} matches no case; there are {names}")
    if options.quick:  # no goal is meant for tiny sizes
        chosen = [replace(case, goal=None) for case in chosen]
    rows = []
    for number, case in enumerate(chosen, 1):
        if sys.stderr.isatty():
            print(f"\r\033[K{number}/{len(chosen)} {case.name} {case.shape}", end="", file=sys.stderr, flush=True)
        rows.append(case.run(0.0 if options.quick else SECONDS))
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    machine = describe_machine(THREADS, PEERS)
    print("\n".join(f"{key}: {value}" for key, value in machine.items()))
    print(f"\n{report.as_text(rows)}")
    if options.json:
        report.write(options.json, report.as_json(rows, machine))
    if options.markdown:
        report.write(options.markdown, report.as_markdown(rows, machine, command))
    return rows
