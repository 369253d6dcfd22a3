"""How far the reading of a large file is, for whoever wants to show it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Show = Callable[[str, float], None]  # the file, and the share of it that is read
_SHOW: ContextVar[Show | None] = ContextVar("show", default=None)


@contextmanager
def reading_shown_by(show: Show) -> Iterator[None]:
    """Within this block, readers of large files say how far they are.

    >>> with reading_shown_by(lambda file, share: print(f"{file}: {share:.0%}")):
    ...     reporter()("table.csv", 0.5)
    table.csv: 50%
    """
    token = _SHOW.set(show)
    try:
        yield
    finally:
        _SHOW.reset(token)


def reporter() -> Show:
    """What to call with a file and the share of it that is read, from any thread."""
    return _SHOW.get() or (lambda file, share: None)
