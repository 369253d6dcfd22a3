"""What each column of a table is used for."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

# why columns are ignored that perhaps should not be
LISTS, UNEVEN_LISTS = "it holds lists of numbers", "it holds lists of objects, or of different lengths"
NO_NUMBERS, DECIMAL_COMMAS = "it holds no numbers", "it holds numbers with decimal commas"
ALWAYS_BLANK, NO_NAME = "it is always blank", "it has no name"

# the others: as pandas reads or writes it
_NAMELESS = re.compile(r"|unnamed: \d+(\.\d+)?|__index_level_\d+__", re.IGNORECASE)
_PLAIN = re.compile(r"[^\W\d](?:[\w .()/-]*[\w)])?")  # what YAML takes as text without quotes, but for the next
_NO_TEXTS = {"yes", "no", "true", "false", "on", "off", "null"}


@dataclass(frozen=True)
class ColumnUse:
    """The columns of a table by their use; of those that have none, why.

    >>> use = ColumnUse(("width", "height"), labels=("kind",), ignored={"note": "it holds text"})
    >>> print("\\n".join(use.lines()))
    features (2): width, height
    labels (1): kind
    ignored (1): note (it holds text)
    """

    features: tuple[str, ...]
    labels: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    others: Mapping[str, str] = field(default_factory=dict)  # column -> what it is
    ignored: Mapping[str, str] = field(default_factory=dict)  # column -> why

    def without(self, left_out: Mapping[str, str]) -> ColumnUse:
        """With these columns (and why) ignored that were to be features."""
        kept = tuple(name for name in self.features if name not in left_out)
        return replace(self, features=kept, ignored={**self.ignored, **left_out})

    def as_json(self) -> dict[str, Any]:
        """By use, as lists and dicts."""
        return {name: list(value) if isinstance(value, tuple) else dict(value) for name, value in vars(self).items()}

    def lines(self) -> list[str]:
        """To read: a line for each use that there is."""
        found = {
            "features": list(self.features),
            "labels": list(self.labels),
            "ids": [name or "(no name)" for name in self.ids],
            "others": [f"{name} ({what})" for name, what in self.others.items()],
            "ignored": [f"{name or '(no name)'} ({why})" for name, why in self.ignored.items()],
        }
        return [f"{use} ({len(names)}): {listed(names)}" for use, names in found.items() if names]


def is_nameless(name: str) -> bool:
    """Whether a column has no name, or the one that pandas gives to such a column: mostly it counts the rows."""
    return _NAMELESS.fullmatch(name) is not None


def listed(texts: Sequence[str], most: int = 12) -> str:
    """The texts with commas between; of many the first ones.

    >>> listed(["a", "b", "c"], most=2)
    'a, b, ... (3 in all)'
    """
    return ", ".join(texts[:most]) + (f", ... ({len(texts)} in all)" if len(texts) > most else "")


def as_option(value: str | Sequence[str]) -> str:
    """A text, or texts as a list, in YAML and in quotes for a shell: the value of an option that can be copied.

    >>> print(as_option("width"), as_option("my width"), as_option("no"), as_option(["NA", "?"]))
    width 'my width' '"no"' '["NA", "?"]'
    """
    plain = isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _NO_TEXTS
    return shlex.quote(str(value) if plain else json.dumps(value, ensure_ascii=False))
