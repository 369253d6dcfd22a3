"""Tables as texts: which rows and columns stand together, and what is said below."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from shortlist.metrics.seed_interval import half_width
from shortlist_recipes.results import Results
from shortlist_recipes.tables import Entry, Row, Table, Value, rows_of

WIDEST = 101  # characters, with 3 for the space between columns: what a page of the docs holds
NO_VALUE = "–"
SEED_BY_SEED = "paired by seed: mean ± 95 % interval"  # of `signed` differences


@dataclass(frozen=True)
class Texts:
    """A table as texts; the first ``keys`` columns are names, the others numbers."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    keys: int = 1
    caption: str = ""

    @property
    def width(self) -> int:
        """In characters: cells stay on one line, headings and names are broken at spaces and hyphens."""
        columns = zip(*(self.header, *self.rows), strict=True)
        return sum(
            3 + max(_longest_word(text) if place == 0 or number < self.keys else len(text) for place, text in pairs)
            for number, pairs in enumerate(list(enumerate(column)) for column in columns)
        )

    def markdown(self) -> str:
        """
        >>> print(Texts(["k", "top-k, %"], [["5", "90.1"]], caption="Noise").markdown())
        **Noise**
        <BLANKLINE>
        | k | top-k, % |
        | --- | ---: |
        | 5 | 90.1 |
        <BLANKLINE>
        """
        rule = ["---"] * self.keys + ["---:"] * (len(self.header) - self.keys)
        table = ((text.replace("|", "\\|") for text in line) for line in (self.header, rule, *self.rows))
        lines = [f"| {' | '.join(line)} |\n" for line in table]
        return (f"**{self.caption}**\n\n" if self.caption else "") + "".join(lines)


def measured_and_published(table: Table, results: Results) -> tuple[list[Texts], list[Texts]]:
    """What was measured, beside the published figures, and the published rows that were not run."""
    rows = rows_of(table, results)
    measured = [row for row in rows if row.measured]
    others = [row for row in rows if not row.measured]
    usual = usual_seeds(measured)
    return _laid_out(table, measured, usual), _laid_out(table, others, None)


def notes(table: Table, results: Results) -> str:
    """What the signs in the measured rows mean; nothing where there is nothing to say."""
    measured = [row for row in rows_of(table, results) if row.measured]
    entries = [entry for row in measured for entry in row.entries.values()]
    usual, sentences = usual_seeds(measured), []
    if any(entry.interval is not None for entry in entries):
        other = any(entry.ours and len(entry.ours) != usual for entry in entries)
        more = "; another number of them is in brackets" if other else ""
        sentences.append(f"Ours: mean ± 95 % interval (Student's t) over {usual} seeds{more}.")
    shown = [text for texts in measured_and_published(table, results)[0] for row in texts.rows for text in row]
    if NO_VALUE in shown:
        sentences.append(f"{NO_VALUE}: no such number.")
    if _has_gaps(table, measured):
        sentences.append("Where ours is blank: not run.")
    return " ".join(sentences)


def _has_gaps(table: Table, rows: Sequence[Row]) -> bool:
    """Whether some row was not run for one of the values across."""
    if table.across is None:
        return False
    place = table.by.index(table.across)
    return any(
        len(some) < len({r.keys[place] for r in some}) * len({r.keys[:place] + r.keys[place + 1 :] for r in some})
        for _, some in _groups(table, rows, table.apart)
    )


def usual_seeds(rows: Sequence[Row]) -> int:
    """The number of seeds that most cells have."""
    counts = [len(entry.ours) for row in rows for entry in row.entries.values() if entry.ours]
    return statistics.mode(counts) if counts else 0


def _laid_out(table: Table, rows: Sequence[Row], seeds: int | None) -> list[Texts]:
    """``seeds`` is None for rows that were only published."""
    values = [value for value in table.values if seeds is not None or _is_published(rows, value)]
    found = []
    for caption, some in _groups(table, rows, table.apart):
        found += _fitted(table, some, values, seeds, caption)
    return found


def _fitted(
    table: Table, rows: Sequence[Row], values: Sequence[Value], seeds: int | None, caption: tuple[str, ...]
) -> list[Texts]:
    """One table, or several where it is too wide: one for each value, or, where no key goes across, for as many as fit,
    those with published figures apart from the others. Where that is not enough, each value across has its own."""
    whole = _texts(table, rows, values, seeds, caption)
    if whole.width <= WIDEST:
        return [whole]
    if len(values) == 1:
        compared = seeds is not None and table.across is not None and _is_published(rows, values[0])
        if not compared:
            return [whole]
        groups = _groups(table, rows, table.across)
        return [_texts(table, some, values, seeds, (*caption, *place)) for place, some in groups]
    found: list[Texts] = []
    for _, alike in groupby(values, lambda value: _is_published(rows, value)):
        left = list(alike)
        while left:
            most = 1 if table.across else len(left)
            fit = [n for n in range(most, 1, -1) if _texts(table, rows, left[:n], seeds, caption).width <= WIDEST]
            count = fit[0] if fit else 1
            found += _fitted(table, rows, left[:count], seeds, caption)
            left = left[count:]
    return found


def _groups(table: Table, rows: Sequence[Row], key: str | None) -> list[tuple[tuple[str, ...], list[Row]]]:
    """The rows with each value of a key, and its name; all of them without a key."""
    if key is None:
        return [((), list(rows))] if rows else []
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(_key(table, row, key), []).append(row)
    return [((_named(key, value),), some) for value, some in groups.items()]


def _texts(
    table: Table, rows: Sequence[Row], values: Sequence[Value], seeds: int | None, caption: tuple[str, ...]
) -> Texts:
    across = table.across
    at_place: dict[Any, list[Row]] = {}
    for row in rows:
        at_place.setdefault(None if across is None else _key(table, row, across), []).append(row)
    down = [key for key in table.by if key not in (table.across, table.apart)]
    alone = len(values) == 1 < len(table.values)  # then its heading is the caption
    header = [*down]
    for value in values:
        for place, here in at_place.items():
            heading = [] if alone or (len(values) == 1 and across) else [value.heading]
            heading += [] if across is None else [_named(across, place)]
            header += _headings(": ".join(heading), value, here, seeds)
    lines: dict[tuple[Any, ...], dict[Any, Row]] = {}
    for place, here in at_place.items():
        for row in here:
            lines.setdefault(tuple(_key(table, row, key) for key in down), {})[place] = row
    cells = []
    for keys, at in lines.items():
        texts = [str(key) for key in keys]
        for value in values:
            for place, here in at_place.items():
                width = len(_headings("", value, here, seeds))
                texts += _cells(at[place].entries[value.name], value, width, seeds) if place in at else [""] * width
        cells.append(texts)
    return Texts(header, cells, len(down), ": ".join([*caption, *([values[0].heading] if alone else [])]))


def _headings(heading: str, value: Value, rows: Sequence[Row], seeds: int | None) -> list[str]:
    if seeds is None or not _is_published(rows, value):
        return [heading or ("published" if seeds is None else "ours")]
    published = f"{heading}: published" if heading else "published"
    return [published, "ours", *(["difference"] if value.compare else [])]


def _cells(entry: Entry, value: Value, width: int, seeds: int | None) -> list[str]:
    published = "" if entry.published is None else f"{entry.published:.{value.digits}f}"
    if seeds is None:
        return [published]
    difference = "" if entry.difference is None else f"{entry.difference:+.{value.digits}f}"
    ours = _ours(entry, value.digits, seeds)
    return [ours] if width == 1 else [published, ours, difference][:width]


def _ours(entry: Entry, digits: int, seeds: int) -> str:
    """Mean ± interval, and the number of seeds where it is not the usual one."""
    if entry.mean is None:
        return NO_VALUE
    width = "" if entry.interval is None else f" ± {entry.interval:.{digits}f}"
    return f"{entry.mean:.{digits}f}{width}" + (f" ({len(entry.ours)})" if len(entry.ours) != seeds else "")


def _is_published(rows: Sequence[Row], value: Value) -> bool:
    return any(row.entries[value.name].published is not None for row in rows)


def _key(table: Table, row: Row, key: str) -> Any:
    return row.keys[table.by.index(key)]


def _named(key: str, value: Any) -> str:
    return value if isinstance(value, str) else f"{key} = {value:,}" if isinstance(value, int) else f"{key} = {value:g}"


def _longest_word(text: str) -> int:
    return max((len(word) for word in text.replace("-", "- ").split()), default=0)


def verdicts(found: Mapping[str, Sequence[float]], at: str = "at") -> str:
    """Where differences, paired by seed, are above 0 or below it by more than their 95 % interval; what has no seed is
    left out, and one seed decides nothing.

    >>> verdicts({"a": [1.0, 1.1, 1.2], "b": [-0.1, 0.2, 0.0], "c": [2.0, 2.1, 2.2]})
    'above at a, c; not decided at b'
    >>> verdicts({"a": [1.0, 1.1, 1.2], "b": [2.0, 2.1, 2.2]}), verdicts({"a": [1.0], "b": []})
    ('above everywhere', 'one seed, above at a')
    """
    sorted_out: dict[str, list[str]] = {"above": [], "below": [], "not decided": []}
    sorted_out |= {f"one seed, {kind}": [] for kind in ("above", "below")}
    for name, differences in found.items():
        if not differences:
            continue
        mean, width = statistics.fmean(differences), half_width(differences)
        kind = "above" if mean > 0 else "below"
        kind = f"one seed, {kind}" if width is None else "not decided" if abs(mean) <= width else kind
        sorted_out[kind].append(name)
    kinds = {kind: names for kind, names in sorted_out.items() if names}
    if not kinds:
        return "not run"
    if len(kinds) == 1 and len(found) > 1 and len(next(iter(kinds.values()))) == len(found):
        return f"{next(iter(kinds))} everywhere"
    return "; ".join(f"{kind} {at} {', '.join(names)}" for kind, names in kinds.items())


def signed(differences: Sequence[float], digits: int = 2) -> str:
    """Mean and 95 % interval of differences.

    >>> signed([1.0, 2.0, 3.0]), signed([-0.5]), signed([])
    ('+2.00 ± 2.48', '-0.50', '–')
    """
    if not differences:
        return NO_VALUE
    width = half_width(differences)
    return f"{statistics.fmean(differences):+.{digits}f}" + ("" if width is None else f" ± {width:.{digits}f}")
