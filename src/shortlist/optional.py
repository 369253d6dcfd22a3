"""Dependencies that only some features need."""

from importlib import import_module
from typing import Any

from shortlist.errors import MissingPackageError


def require(module: str, extra: str = "train") -> Any:
    """An optional dependency, or an error that says how to get it: with which extra of this package."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingPackageError(
            f"this needs {package}, which is not installed: pip install 'shortlist[{extra}]'"
        ) from error
