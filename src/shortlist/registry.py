"""What configs and commands name: readers, backbones, objectives, rules, metrics, corruptions and recipes.

A name is one of ours, or one that an installed package lists as an entry point, or ``module:name`` of a module that the
user has allowed by name.
"""

from collections import UserDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any, TypeVar

from shortlist.errors import ShortlistError, nearest

T = TypeVar("T")


class Registry(UserDict[str, T]):
    """The things of one kind. As a mapping it has ours, and what was added since; ``find`` knows the others, too.

    Args:
        kind: what a thing is called in messages. Installed packages list theirs as entry points of the group
            ``shortlist.readers`` for the kind "reader", and so on.
        things: ours. One that is costly to import, or that an earlier room may not import, is given as the text
            ``module:name`` and imported when it is first asked for.
        check: is given a name and the thing that was found, and raises a `ShortlistError` where it is not of this kind.
        families: names that begin alike, ``hf:NAME`` for the key ``hf``, and the function ``module:name`` that is given
            what follows, and then what the things are called with.

    >>> roots = Registry("root", {"square": "math:sqrt"})
    >>> roots["square"](9.0), roots.find("math:exp", allow_import=["math"])(0.0)
    (3.0, 1.0)
    >>> roots.find("sqare")
    Traceback (most recent call last):
    shortlist.ShortlistError: there is no root 'sqare'; did you mean 'square'?; there are square, and 'module:name'
    """

    def __init__(
        self,
        kind: str,
        things: Mapping[str, T | str] | None = None,
        check: Callable[[str, Any], None] | None = None,
        families: Mapping[str, str] | None = None,
    ) -> None:
        self.kind, self.group, self.families = kind, f"shortlist.{kind}s", dict(families or {})
        self._check = self._is_callable if check is None else check
        super().__init__(things)  # type: ignore[arg-type]  # texts stand for things

    def __getitem__(self, name: str) -> T:
        thing = self.data[name]
        if isinstance(thing, str):
            thing = self.data[name] = self._checked(name, imported(thing))
        return thing

    def __setitem__(self, name: str, thing: T) -> None:
        self.data[name] = thing if isinstance(thing, str) else self._checked(name, thing)

    def find(self, name: str, allow_import: Sequence[str] = (), place: str = "") -> T:
        """The thing of this name: ours, an installed package's, or ``module:name`` where ``allow_import`` lists exactly
        that module; nothing else is imported. ``place``, where the name stands, begins the message of an error."""
        if name in self.data:
            return self[name]
        family, _, member = name.partition(":")
        if family in self.families and member:
            return self._checked(name, partial(imported(self.families[family]), member))
        installed = self.installed()
        entry = installed.get(name) or next((entry for entry in installed.values() if entry.value == name), None)
        if entry is not None:
            return self._checked(entry.name, entry.load())
        where = f"{place}: " if place else ""
        if ":" in name:
            return self._checked(name, import_allowed(name, allow_import, f"{where}{self.kind} {name!r}"))
        known = [*self.data, *(other for other in installed if other not in self.data)]
        known += [f"{family}:NAME" for family in self.families]
        raise ShortlistError(
            f"{where}there is no {self.kind} {name!r}{nearest(name, known)}; there are {', '.join(known)}, "
            f"and 'module:name'"
        )

    def installed(self) -> dict[str, EntryPoint]:
        """What installed packages list, by name; a name that two of them give to different things is an error."""
        found: dict[str, EntryPoint] = {}
        for entry in entry_points(group=self.group):
            other = found.setdefault(entry.name, entry)
            if other.value != entry.value:
                raise ShortlistError(
                    f"the {self.kind} {entry.name!r} is listed twice by installed packages, as {other.value} and "
                    f"{entry.value}: uninstall one of them"
                )
        return found

    def _checked(self, name: str, thing: Any) -> T:
        self._check(name, thing)
        return thing

    def _is_callable(self, name: str, thing: Any) -> None:
        if not callable(thing):
            raise ShortlistError(f"{self.kind} {name!r} must be something to call, got {type(thing).__name__}")


def imported(path: str) -> Any:
    """What ``module:name`` names, where it is known to be there."""
    module, _, name = path.partition(":")
    return reduce(getattr, name.split("."), import_module(module))


def import_allowed(path: str, allow_import: Sequence[str], what: str) -> Any:
    """What ``module:name`` names. Nothing is imported unless ``allow_import`` lists exactly that module.

    >>> import_allowed("os:system", allow_import=("math",), what="backbone 'os:system'")
    Traceback (most recent call last):
    shortlist.ShortlistError: backbone 'os:system' would run code of the module 'os', which was not allowed...
    """
    module, _, name = path.partition(":")
    if not module or not name:
        raise ShortlistError(f"{what} must be a known name or 'module:name'")
    if isinstance(allow_import, str):
        raise ShortlistError(f"allow_import must be a tuple of module names, got the text {allow_import!r}")
    if module not in allow_import:
        raise ShortlistError(
            f"{what} would run code of the module {module!r}, which was not allowed: if you trust it, pass "
            f"allow_import=({module!r},), or --allow-import {module} on the command line"
        )
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as error:
        raise ShortlistError(f"{what}: {error}; is it installed, or in a folder on PYTHONPATH?") from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise ShortlistError(f"{what}: the module {module!r} has no {name!r}")
        found = getattr(found, part)
        if isinstance(found, ModuleType) or part.startswith("__"):  # numpy:os.system is not numpy's own
            raise ShortlistError(f"{what} must be what the module {module!r} defines: {part!r} leads out of it")
    return found
