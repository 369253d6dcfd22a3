"""`module:thing` names in a config: imported only from modules that the user has allowed by name."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from shortlist.errors import ShortlistError


def import_allowed(path: str, allow_import: Sequence[str], what: str) -> Any:
    """The object that ``module:name`` names. Nothing is imported unless ``allow_import`` lists exactly that module.

    >>> import_allowed("math:sqrt", allow_import=("math",), what="backbone")(9.0)
    3.0
    >>> import_allowed("os:system", allow_import=("math",), what="backbone")
    Traceback (most recent call last):
    shortlist.ShortlistError: backbone 'os:system' would run code of the module 'os', which was not allowed...
    """
    module, _, name = path.partition(":")
    if not module or not name:
        raise ShortlistError(f"{what} must be a known name or 'module:name', got {path!r}")
    if isinstance(allow_import, str):
        raise ShortlistError(f"allow_import must be a tuple of module names, got the text {allow_import!r}")
    if module not in allow_import:
        raise ShortlistError(
            f"{what} {path!r} would run code of the module {module!r}, which was not allowed: if you trust it, pass "
            f"allow_import=({module!r},), or --allow-import {module} on the command line"
        )
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as error:
        raise ShortlistError(f"{what} {path!r}: {error}; is it installed, or in a folder on PYTHONPATH?") from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise ShortlistError(f"{what} {path!r}: the module {module!r} has no {name!r}")
        found = getattr(found, part)
    return found
