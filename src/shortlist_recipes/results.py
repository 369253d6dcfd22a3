"""The results of a grid: one file for each finished cell, and ways to look things up."""

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shortlist import __version__
from shortlist.errors import ShortlistError
from shortlist.files import write_json
from shortlist.metrics.seed_interval import half_width
from shortlist_recipes.cells import Numbers

FOLDER = "cells"


@dataclass(frozen=True)
class Record:
    """What one cell gave."""

    keys: Mapping[str, Any]
    numbers: Mapping[str, Any]
    seconds: float
    version: str = ""  # of shortlist, which it was run with


@dataclass(frozen=True)
class Results:
    """Records in the order of the grid.

    >>> results = Results([Record({"k": 1, "seed": seed}, {"top-1": 0.5 + seed / 10}, 1.0) for seed in (0, 1)])
    >>> results.values("top-1"), results.mean("top-1", k=1), results.mean("top-1", k=2)
    ([0.5, 0.6], 0.55, None)
    >>> results.each("k", "seed"), results.levels("k")
    ([(1, 0), (1, 1)], [1])
    """

    records: Sequence[Record]

    def where(self, **keys: Any) -> "Results":
        """The records with these values of these keys."""
        return Results([r for r in self.records if all(r.keys.get(key) == value for key, value in keys.items())])

    def each(self, *keys: str) -> list[tuple[Any, ...]]:
        """The combinations of these keys' values that occur, in order; records without one of the keys do not count."""
        found = (tuple(r.keys[key] for key in keys) for r in self.records if all(key in r.keys for key in keys))
        return list(dict.fromkeys(found))

    def levels(self, key: str) -> list[Any]:
        """The values of one key that occur, in order."""
        return [value for (value,) in self.each(key)]

    def values(self, name: str, **keys: Any) -> list[float]:
        """A number from every record that has it."""
        found = [r.numbers.get(name) for r in self.where(**keys).records]
        return [float(value) for value in found if value is not None]

    def mean(self, name: str, **keys: Any) -> float | None:
        """The mean over the records that have this number; None where none has."""
        values = self.values(name, **keys)
        return statistics.fmean(values) if values else None

    def interval(self, name: str, **keys: Any) -> float | None:
        """How far the 95 % interval of that mean goes either way; None for fewer than two records."""
        return half_width(self.values(name, **keys))

    def means(self, name: str, key: str) -> dict[Any, float]:
        """The mean for each value of a key; 0 where no record has the number."""
        return {value: self.mean(name, **{key: value}) or 0.0 for value in self.levels(key)}

    def gains(self, name: str, ours: Mapping[str, Any], theirs: Mapping[str, Any], **keys: Any) -> list[float]:
        """Differences of a share between two values of some keys in points, seed by seed, where both have it."""
        return _apart(self.where(**keys), (name, ours), (name, theirs))

    def differences(self, name: str, other: str) -> list[float]:
        """Differences between two shares of the same records in points, seed by seed.

        >>> records = [Record({"seed": seed}, {"ten": 0.5 + seed / 10, "one": 0.5}, 1.0) for seed in (0, 1)]
        >>> [round(difference, 6) for difference in Results(records).differences("ten", "one")]
        [0.0, 10.0]
        """
        return _apart(self, (name, {}), (other, {}))

    def curves(self, name: str, **keys: Any) -> list[list[float]]:
        """A list of numbers from every record that has it."""
        found = [r.numbers.get(name) for r in self.where(**keys).records]
        return [list(value) for value in found if value is not None]

    def mean_curve(self, name: str, factor: float = 100.0, **keys: Any) -> list[float]:
        """The mean of such lists, place by place, as far as all of them go; NaN where one has no number."""
        places = zip(*self.curves(name, **keys), strict=False)
        return [math.nan if None in numbers else factor * sum(numbers) / len(numbers) for numbers in places]


class ResultsFolder:
    """cells/: a file for every finished cell of every grid that was run here, written whole or not at all.

    ``name`` is what tells one cell from another: `Cell.fingerprint`, of the grid as it is wherever the data may be.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / FOLDER

    def get(self, scale: str, name: str) -> Record | None:
        """What this very cell gave, if it was run."""
        path = self._path(scale, name)
        if not path.exists():
            return None
        try:
            found = json.loads(path.read_text("utf-8"))
            return Record(found["keys"], found["numbers"], found["seconds"], found.get("version", ""))
        except (ValueError, KeyError, TypeError):
            raise ShortlistError(f"{path} is not a result of a recipe: remove the file") from None

    def add(self, scale: str, name: str, keys: Mapping[str, Any], numbers: Numbers, seconds: float) -> Record:
        found = {name: _finite(value) for name, value in numbers.items()}
        content: dict[str, Any] = {"scale": scale, "keys": dict(keys), "numbers": found}
        content |= {"seconds": round(seconds, 3), "version": __version__}
        self.folder.mkdir(parents=True, exist_ok=True)
        write_json(self._path(scale, name), content)
        return Record(content["keys"], found, content["seconds"], content["version"])

    def _path(self, scale: str, name: str) -> Path:
        return self.folder / f"{scale}-{name}.json"


def _apart(results: Results, ours: tuple[str, Mapping[str, Any]], theirs: tuple[str, Mapping[str, Any]]) -> list[float]:
    """By how many points two shares differ, each of some records, seed by seed, where there are both."""
    of_seeds = (
        [results.mean(name, seed=seed, **which) for name, which in (ours, theirs)] for seed in results.levels("seed")
    )
    return [100 * (a - b) for a, b in of_seeds if a is not None and b is not None]


def _finite(value: Any) -> Any:
    """As JSON can hold it: None where a number is not finite."""
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if value is None:
        return None
    return value if isinstance(value, bool | int) else float(value) if math.isfinite(value) else None
