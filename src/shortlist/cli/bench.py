"""``shortlist bench``: the repository's benchmarks where they are at hand, else a short comparison of the losses."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from shortlist.cli._arguments import Json
from shortlist.cli._output import print_json, print_table, say
from shortlist.errors import ShortlistError


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Tiny sizes, to see that everything runs.")] = False,
    only: Annotated[str | None, typer.Option(metavar="TEXT", help="Only the cases whose name contains this.")] = None,
    losses: Annotated[
        bool, typer.Option("--losses", help="The short comparison of the losses, also inside the repository.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Measure this machine.

    In the repository's root: its benchmarks (python -m benchmarks), which take minutes and renew their record; --quick
    and --only do not renew it. Elsewhere: the time of a forward and backward pass of each loss, beside cross-entropy
    on the same scores.
    """
    if not losses and not as_json and Path("benchmarks/__main__.py").is_file():
        arguments = [*(["--quick"] if quick else []), *(["--only", only] if only else [])]
        raise typer.Exit(subprocess.run([sys.executable, "-m", "benchmarks", *arguments], check=False).returncode)
    from shortlist.cli._loss_times import ROWS, loss_times, shape_of

    times = loss_times(quick, only)
    if not times:
        raise ShortlistError(f"--only {only!r} matches no loss")
    base = times["cross-entropy"]
    if as_json:
        print_json({"shape": shape_of(quick), "milliseconds": times})
        return
    rows = [[name, time, f"{time / base:.1f}x"] for name, time in times.items()]
    print_table(
        f"forward and backward, {ROWS} x {shape_of(quick)[1]} scores", ["objective", "ms", "cross-entropy"], rows
    )
    say("\nmedian of several runs; other programs on this machine slow it down")
