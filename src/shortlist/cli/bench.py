"""``shortlist bench``: the losses' time beside cross-entropy on this machine."""

from typing import Annotated

import typer

from shortlist.cli._arguments import Json, option
from shortlist.cli._output import print_json, print_table, say
from shortlist.errors import ShortlistError


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Few labels and little time, to see that it runs.")] = False,
    only: Annotated[str | None, option("TEXT", "Only the losses whose name contains this.")] = None,
    as_json: Json = False,
) -> None:
    """Measure this machine: the time of a forward and backward pass of each loss, beside cross-entropy.

    All take turns on the same scores, and each counts its fastest pass. The repository's own benchmarks, with every
    goal, are run by make bench in a clone.
    """
    from shortlist.cli._loss_times import loss_times, shape_of
    from shortlist.timing import describe_machine

    times = loss_times(quick, only)
    if not times:
        raise ShortlistError(f"--only {only!r} matches no loss")
    machine, base, (rows, labels) = describe_machine(), times["cross-entropy"], shape_of(quick)
    if as_json:
        print_json({"machine": machine, "shape": [rows, labels], "milliseconds": times})
        return
    for fact, value in machine.items():
        typer.echo(f"{fact}: {value}")
    table = [[name, time, f"{time / base:.1f}x"] for name, time in times.items()]
    typer.echo()
    print_table(f"forward and backward, {rows} x {labels} scores", ["loss", "ms", "cross-entropy"], table)
    say("\nthe fastest of several passes; other programs on this machine slow it down")
