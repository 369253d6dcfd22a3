"""Options by name: are these the names a function or a config section knows, and which one was meant?"""

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from numbers import Integral, Real
from typing import Any, get_type_hints

from shortlist.errors import ShortlistError, nearest


def unknown_key(place: str, key: str, known: Iterable[str]) -> str:
    """The message for a key that does not exist.

    >>> unknown_key("optimizer", "learning_rate", ["name", "lr"])
    'optimizer.learning_rate: there is no such key; allowed here: name, lr'
    """
    known = list(known)
    where = f"{place}.{key}" if place else key
    return f"{where}: there is no such key{nearest(key, known)}; allowed here: {', '.join(known) or 'nothing'}"


def check_call(place: str, function: Callable[..., Any], options: Mapping[str, Any], skip: int = 0) -> dict[str, Any]:
    """The options as the function wants them, checked against its signature (after its first ``skip`` parameters).

    A function that takes ``**anything`` cannot be checked by name and gets what it is given.

    >>> def scale(data, factor: float = 1.0): ...
    >>> check_call("data.train", scale, {"factor": 2}, skip=1)
    {'factor': 2.0}
    >>> check_call("data.train", scale, {"factro": 2}, skip=1)
    Traceback (most recent call last):
    shortlist.ShortlistError: data.train.factro: there is no such key; did you mean 'factor'?; allowed here: factor
    """
    parameters = list(inspect.signature(function).parameters.values())[skip:]
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters)
    named = {p.name: p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    for key in options:
        if key not in named and not open_ended:
            raise ShortlistError(unknown_key(place, key, named))
    missing = [p.name for p in named.values() if p.default is p.empty and p.name not in options]
    if missing:
        raise ShortlistError(f"{place}: {' and '.join(missing)} must be given; allowed here: {', '.join(named)}")
    hints = _hints(function)
    return {key: check_value(f"{place}.{key}", value, hints.get(key, Any)) for key, value in options.items()}


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of a function's parameters; of a class, those of its constructor."""
    function = function.func if isinstance(function, partial) else function
    if isinstance(function, type) and not dataclasses.is_dataclass(function):
        function = function.__init__  # type: ignore[misc]
    try:
        return get_type_hints(function)
    except NameError:  # a name that only type checkers import: the function will check
        return {}


def check_value(place: str, value: Any, wanted: Any) -> Any:
    """The value as the wanted type, or a ValueError that names the place. Neither text nor True is a number. Without
    pydantic, which only configs need, the function is left to check it.

    >>> check_value("k", 3, float), check_value("widths", [8, 16], tuple[int, ...])
    (3.0, (8, 16))
    >>> check_value("k", True, int)
    Traceback (most recent call last):
    shortlist.ShortlistError: k: input should be a valid integer, got True
    """
    if isinstance(value, Real) and not isinstance(value, bool):  # numpy's numbers, too
        value = int(value) if isinstance(value, Integral) else float(value)
    try:
        from pydantic import ConfigDict, TypeAdapter, ValidationError
    except ModuleNotFoundError:
        return value
    try:
        adapter = TypeAdapter(wanted, config=ConfigDict(arbitrary_types_allowed=True))
    except Exception:  # a section of its own settings, or a type pydantic cannot describe: the function will check it
        return value
    try:
        found = adapter.validate_python(value)
        mixed = isinstance(value, str) or isinstance(value, bool) != isinstance(found, bool)
        if mixed and isinstance(found, int | float):
            adapter.validate_python(value, strict=True)
        return found
    except ValidationError as error:
        reasons = sorted({in_our_words(detail["msg"]) for detail in error.errors()})
        raise ShortlistError(f"{place}: {'; or '.join(reasons)}, got {value!r}") from None


def in_our_words(message: str) -> str:
    """A message of pydantic's as the end of a sentence.

    >>> in_our_words("Value error, Give more")
    'give more'
    >>> in_our_words("'str' instances are not allowed as a Sequence value")
    'give a list in brackets, such as [a, b]'
    """
    if message.endswith("instances are not allowed as a Sequence value"):
        return "give a list in brackets, such as [a, b]"
    message = message.removeprefix("Value error, ")
    return message[0].lower() + message[1:]


@contextmanager
def errors_at(place: str) -> Iterator[None]:
    """Within this block, the message of a ValueError starts with the place."""
    try:
        yield
    except ValueError as error:
        raise ShortlistError(f"{place}: {error}") from None
