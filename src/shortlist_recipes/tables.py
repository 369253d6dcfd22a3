"""Results beside published figures: mean, 95 % interval over seeds, difference; as rows, markdown and JSON."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shortlist.metrics.seed_interval import half_width
from shortlist_recipes.results import Results


@dataclass(frozen=True)
class Value:
    """One of the numbers that cells give, as a table shows it: times ``factor``, with so many digits.

    ``compare=False`` where a difference from the published figure means nothing, as of times on other machines.
    """

    name: str
    heading: str
    factor: float = 100.0
    digits: int = 2
    compare: bool = True


@dataclass(frozen=True)
class Table:
    """Numbers grouped by some of the keys; all other keys (seeds) are averaged over.

    Args:
        title: what it shows.
        reference: the table or figure of the paper.
        by: the keys of a row.
        values: the numbers that are shown.
        published: the keys' values of a row -> number's name -> the paper's figure, in the units shown. Rows that were
            not run are shown too, in a table of their own.
        where: only the records with these values of these keys.
        across: one of the keys, whose values are columns instead of rows.
        apart: one of the keys, each of whose values has a table of its own.
    """

    title: str
    reference: str
    by: tuple[str, ...]
    values: tuple[Value, ...]
    published: Mapping[tuple[Any, ...], Mapping[str, float]] = field(default_factory=dict)
    where: Mapping[str, Any] = field(default_factory=dict)
    across: str | None = None
    apart: str | None = None


@dataclass(frozen=True)
class Entry:
    """One number of a row, in the units shown; the interval is half as wide as the mean's 95 % interval over seeds."""

    published: float | None
    ours: tuple[float, ...]

    @property
    def mean(self) -> float | None:
        return statistics.fmean(self.ours) if self.ours else None

    @property
    def interval(self) -> float | None:
        return half_width(self.ours)

    @property
    def difference(self) -> float | None:
        return None if self.mean is None or self.published is None else self.mean - self.published


@dataclass(frozen=True)
class Row:
    """What a table has for some values of its keys; ``measured`` where there is any record of them."""

    keys: tuple[Any, ...]
    entries: Mapping[str, Entry]
    measured: bool


def rows_of(table: Table, results: Results) -> list[Row]:
    """Measured rows in the order of the grid, then published ones that were not measured.

    >>> from shortlist_recipes.results import Record
    >>> results = Results([Record({"p": 0, "seed": seed}, {"top-5": 0.9 + seed / 100}, 1.0) for seed in range(3)])
    >>> table = Table("Noise", "table 1", ("p",), (Value("top-5", "top-5, %"),), {(0,): {"top-5": 90.5}})
    >>> entry = rows_of(table, results)[0].entries["top-5"]
    >>> round(entry.mean, 3), round(entry.interval, 3), round(entry.difference, 3)
    (91.0, 2.484, 0.5)
    """
    chosen = results.where(**table.where)
    rows = []
    for keys in dict.fromkeys([*chosen.each(*table.by), *table.published]):
        of_row = chosen.where(**dict(zip(table.by, keys, strict=True)))
        published = table.published.get(keys, {})
        entries = {
            value.name: Entry(
                published.get(value.name), tuple(value.factor * number for number in of_row.values(value.name))
            )
            for value in table.values
        }
        if any(entry.ours or entry.published is not None for entry in entries.values()):
            rows.append(Row(keys, entries, bool(of_row.records)))
    return rows


def as_json(table: Table, results: Results) -> dict[str, Any]:
    """The whole table with every seed's number."""
    rows = [
        {
            **dict(zip(table.by, row.keys, strict=True)),
            **{
                name: {
                    "published": entry.published,
                    "mean": entry.mean,
                    "interval": entry.interval,
                    "seeds": len(entry.ours),
                    "difference": entry.difference,
                    "values": list(entry.ours),
                }
                for name, entry in row.entries.items()
            },
        }
        for row in rows_of(table, results)
    ]
    units = {value.name: value.heading for value in table.values}
    return {"title": table.title, "reference": table.reference, "by": list(table.by), "numbers": units, "rows": rows}
