"""What a config leaves open for tuning: ``lr: {search: log, low: 1e-4, high: 0.1}`` in place of a value.

A search is a mapping with the key ``search``: "log" and "uniform" are numbers from ``low`` to ``high``, "integer" whole
ones (with a ``step``, if wanted), "choice" one of the ``choices``, which may be anything a config can hold.
"""

import copy
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from shortlist.checks import whole
from shortlist.errors import ShortlistError, nearest

_KEYS = {
    "log": ("low", "high"),
    "uniform": ("low", "high"),
    "integer": ("low", "high", "step"),
    "choice": ("choices",),
}


@dataclass(frozen=True)
class Search:
    """The values that one key of a config may take."""

    key: str  # with dots
    kind: str
    low: float = 0
    high: float = 0
    step: int = 1
    choices: tuple[Any, ...] = ()

    def suggest(self, trial: Any) -> Any:
        """A value, as an Optuna trial proposes it."""
        if self.kind == "choice":  # Optuna keeps plain values only: they are told to it as JSON
            return json.loads(trial.suggest_categorical(self.key, [json.dumps(one) for one in self.choices]))
        if self.kind == "integer":
            return trial.suggest_int(self.key, int(self.low), int(self.high), step=self.step)
        return trial.suggest_float(self.key, self.low, self.high, log=self.kind == "log")

    def ends(self) -> tuple[Any, ...]:
        """Values that are allowed if all are: every choice, or the lowest and the highest one. Of numbers that are not
        whole these lie just inside, since a bound itself (a rate of 0, say) is never tried."""
        if self.kind == "choice":
            return self.choices
        if self.kind == "integer":
            return int(self.low), int(self.high)
        margin = (self.high - self.low) * 1e-9
        return self.low + margin, self.high - margin

    def chosen(self, kept: Any) -> Any:
        """The value that a trial has kept, as the config has it."""
        return json.loads(kept) if self.kind == "choice" else kept


def find_searches(content: Any) -> list[Search]:
    """All searches in a config, in their order.

    >>> [search.key for search in find_searches({"optimizer": {"lr": {"search": "log", "low": 1e-4, "high": 0.1}}})]
    ['optimizer.lr']
    >>> find_searches({"objective": {"name": "imcl", "search": "approximate"}})
    []
    """
    return [_checked(".".join(map(str, path)), found) for path, found in _walk(content, ())]


def with_values(content: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The config with these values in place of its searches.

    >>> with_values({"rules": [{"name": "top-k", "k": {"search": "choice", "choices": [1, 3]}}]}, {"rules.0.k": 3})
    {'rules': [{'name': 'top-k', 'k': 3}]}
    """
    changed: dict[str, Any] = copy.deepcopy(dict(content))
    for path, _ in list(_walk(content, ())):
        here: Any = changed
        for step in path[:-1]:
            here = here[step]
        here[path[-1]] = values[".".join(map(str, path))]
    return changed


def _walk(content: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Mapping[str, Any]]]:
    if isinstance(content, Mapping):
        if "search" in content and "name" not in content and path:  # search is an option of imcl, which has a name
            yield path, content
            return
        for key, value in content.items():
            yield from _walk(value, (*path, key))
    elif isinstance(content, list | tuple):
        for place, value in enumerate(content):
            yield from _walk(value, (*path, place))


def _checked(key: str, given: Mapping[str, Any]) -> Search:
    kind = given["search"]
    if not isinstance(kind, str) or kind not in _KEYS:
        raise ShortlistError(f"{key}.search must be one of {', '.join(_KEYS)}, got {kind!r}{nearest(str(kind), _KEYS)}")
    unknown = [name for name in given if name not in ("search", *_KEYS[kind])]
    if unknown:
        raise ShortlistError(
            f"{key}.{unknown[0]}: there is no such key; a search {kind!r} takes {', '.join(_KEYS[kind])}"
        )
    if kind == "choice":
        choices = given.get("choices")
        if not isinstance(choices, list | tuple) or not choices:
            raise ShortlistError(f"{key}.choices must be a list of values, got {choices!r}")
        return Search(key, kind, choices=tuple(choices))
    low, high = (_number(f"{key}.{name}", given.get(name), kind) for name in ("low", "high"))
    if not low <= high:
        raise ShortlistError(f"{key}: low must be at most high, got {low:g} and {high:g}")
    if not math.isfinite(high - low):
        raise ShortlistError(f"{key}: low and high are too far apart, got {low:g} and {high:g}")
    if kind == "log" and low <= 0:
        raise ShortlistError(f"{key}.low must be above 0 for a search on the log scale, got {low:g}")
    step = whole(given.get("step", 1), f"{key}.step", 1)
    return Search(key, kind, low, high - (high - low) % step if kind == "integer" else high, step)


def _number(key: str, value: Any, kind: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ShortlistError(f"{key} must be a number, got {value!r}")
    if kind == "integer" and value != int(value):
        raise ShortlistError(f"{key} must be a whole number, got {value!r}")
    return value
