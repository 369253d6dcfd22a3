"""YAML text read with care: whole files, and the values of ``key=value`` changes and of named things' options."""

import re
from collections.abc import Hashable, Mapping
from typing import Any, NoReturn

import yaml

from shortlist.errors import ShortlistError
from shortlist.named import Named

_NAMED = ("backbone", "objective", "optimizer", "rules", "schedule")  # keys whose values may be a name alone
_SIGNS = re.compile(r"[|,;:/\\&#*!%@>+-]+ ?| ")


def apply_override(content: dict[str, Any], override: str) -> None:
    """Set the value at a dotted key: ``optimizer.lr=0.1``, ``rules.0.k=3``; the value is read as YAML.

    >>> content = {"rules": [{"name": "top-k", "k": 5}]}
    >>> apply_override(content, "rules.0.k=3"); apply_override(content, "schedule.at=[30, 60]"); content
    {'rules': [{'name': 'top-k', 'k': 3}], 'schedule': {'at': [30, 60]}}
    """
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise ShortlistError(f"an override is key=value, such as optimizer.lr=0.1; got {override!r}")
    *places, last = key.split(".")
    here: Any = content
    for number, place in enumerate(places):
        if isinstance(here, dict) and (place not in here or here[place] is None):
            here[place] = {}
        at = _key_in(here, place, override)
        named = places[0] in _NAMED or places[:2] == ["data", "encoder"]
        if isinstance(here[at], str) and named:  # objective: smooth-topk
            here[at] = {"name": here[at]}
        here = here[at]
        if not isinstance(here, dict | list):
            raise ShortlistError(f"{override}: {'.'.join(places[: number + 1])} is {here!r}, it has no keys")
    # separator=| and decimal=, are meant as they are; YAML has other uses for such signs
    here[_key_in(here, last, override)] = text if _SIGNS.fullmatch(text) else read_yaml(text, override)


def _key_in(here: Any, place: str, override: str) -> str | int:
    if isinstance(here, dict):
        return place
    if not place.isdecimal() or int(place) >= len(here):
        raise ShortlistError(f"{override}: a list of {len(here)} has the keys 0..{len(here) - 1}, got {place!r}")
    return int(place)


_BETWEEN = re.compile(r",(?![^\[]*\])")  # commas that are in no list


def parse_named(text: str | Named | Mapping[str, Any]) -> Named:
    """``average-k:k=3,link=softmax`` as a name and its options; what is that already stays.

    >>> parse_named("average-k:k=3").options, parse_named({"name": "average-k", "k": 3}).options
    ({'k': 3}, {'k': 3})
    >>> parse_named("my_module:Rule:k=3")
    Named(name='my_module:Rule', k=3)
    >>> parse_named("risk-control:risk=[recall, f1],alpha=[0.4, 0.5]").options
    {'risk': ['recall', 'f1'], 'alpha': [0.4, 0.5]}
    """
    if not isinstance(text, str):
        return Named.model_validate(text)
    name, _, rest = text.partition(":")
    if rest and "=" not in rest.split(":")[0]:  # module:name
        own, _, rest = rest.partition(":")
        name = f"{name}:{own}"
    content: dict[str, Any] = {}
    for option in filter(None, _BETWEEN.split(rest)):
        apply_override(content, option)
    return Named.of(name, **content)


# ---- what YAML may hold

_MOST_VALUES = 1_000_000  # a few lines of references to references can unfold to any number of values


_MERGE = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    """Safe YAML in which 1e-3 is a number, a repeated key is an error, and merged keys cannot unfold without end."""

    def __init__(self, text: str | bytes) -> None:
        super().__init__(text)
        self._flat: set[int] = set()  # mappings whose merges are done: merged keys now stand among their own
        self._merged = 0

    def flatten_mapping(self, node: Any) -> None:
        if id(node) in self._flat:
            return
        self._flat.add(id(node))
        keys: set[Any] = set()
        for key_node, value in node.value:
            if key_node.tag == _MERGE:  # <<: may bring keys that are then given anew
                for part in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    if isinstance(part, yaml.MappingNode):  # the base class refuses the others
                        self.flatten_mapping(part)
                        self._merged += len(part.value)
                        if self._merged > _MOST_VALUES:
                            _unfolds_too_far()
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable):  # the base class refuses the others
                if key in keys:
                    message = f"the key {key!r} is given twice"
                    raise yaml.constructor.ConstructorError(None, None, message, node.start_mark)
                keys.add(key)
        super().flatten_mapping(node)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+0123456789.")
)


def read_yaml(text: str | bytes, where: str) -> Any:
    """What YAML holds; of the bytes of a file, in UTF-8 or, with its mark, in UTF-16."""
    try:
        content = yaml.load(text, _Loader)
        if _unfolded(content, {}) > _MOST_VALUES:
            _unfolds_too_far()
    except yaml.YAMLError as error:
        raise ShortlistError(f"{where}: not YAML: {error}") from None
    except RecursionError:
        raise ShortlistError(f"{where}: the YAML is nested too deeply, or holds itself") from None
    return content


def _unfolds_too_far() -> NoReturn:
    raise yaml.YAMLError(f"it unfolds to more than {_MOST_VALUES:,} values by its *references")


def _unfolded(content: Any, known: dict[int, int]) -> int:
    """How many values there are once every reference is written out; each shared part is counted in one visit."""
    if not isinstance(content, dict | list):
        return 1
    if id(content) not in known:
        parts = [*content, *content.values()] if isinstance(content, dict) else content
        known[id(content)] = 1 + sum(_unfolded(part, known) for part in parts)
    return known[id(content)]
