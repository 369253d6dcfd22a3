"""Errors meant for the user, and the words in them."""

import difflib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class ShortlistError(ValueError):
    """Something the user gave is not allowed: the message says what was given, what is allowed, and where.

    The command line prints it in one line; every other exception is a defect, and keeps its traceback.
    """

    __module__ = "shortlist"  # where it is public: tracebacks name it so


class MissingFileError(ShortlistError, FileNotFoundError):
    """A file or folder that is not there."""

    __module__ = "shortlist"


class MissingPackageError(ShortlistError, ImportError):
    """A feature that needs a package that is not installed."""

    __module__ = "shortlist"


class ShortlistWarning(UserWarning):
    """Something that is allowed and will hardly do what is wanted; the command line prints it in one line."""

    __module__ = "shortlist"


def nearest(word: str, known: Iterable[str]) -> str:
    """ "; did you mean ...?", or nothing where no known word is near.

    >>> nearest("epohcs", ["epochs", "seed"])
    "; did you mean 'epochs'?"
    """
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def renamed(missing: Iterable[str], there: Iterable[str]) -> str:
    """ "; rename ... to ...", of names that differ only in capitals, spaces or marks from one that is there.

    >>> renamed(["Age", "fare"], ["age_", "name"])
    "; rename 'age_' to 'Age'"
    """

    def plain(name: str) -> str:
        return "".join(filter(str.isalnum, name)).casefold() or name

    known = {plain(name): name for name in there}
    pairs = [f"{known[plain(name)]!r} to {name!r}" for name in missing if plain(name) in known]
    return f"; rename {', '.join(pairs[:5])}{', ...' * (len(pairs) > 5)}" if pairs else ""


@contextmanager
def errors_name(path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors about the content of a file begin with its name."""
    try:
        yield
    except ValueError as error:  # pyarrow's ArrowInvalid and json's JSONDecodeError are ValueErrors too
        raise ShortlistError(f"{os.fspath(path)}: {error}") from error
