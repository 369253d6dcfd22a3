"""Where exceptions and warnings become messages on the terminal, and exit codes."""

import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from shortlist.cli._output import say
from shortlist.errors import ShortlistError, ShortlistWarning

INTERRUPTED = 130
_TOLD: set[str] = set()  # warnings meant for the user, in this command


@contextmanager
def errors_as_messages() -> Iterator[None]:
    """Within it, what is meant for the user is one line; a defect keeps its traceback."""
    _TOLD.clear()
    warnings.showwarning = _show_warning
    try:
        yield
    except (ShortlistError, FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError) as error:
        _fail(error, 2)
    except OSError as error:  # a full disk, a lost connection: the machine's, not the program's
        _fail(error, 1)
    except Exception:  # a defect, here or in the user's own code: whoever mends it needs to see where
        traceback.print_exc()
        sys.stderr.write(
            "error: this should not have happened. If the last lines above are not in your own code, please report "
            "them, with the command you ran, as an issue of shortlist's repository.\n"
        )
        raise SystemExit(1) from None


@contextmanager
def interruptions_told() -> Iterator[None]:
    """Within it, an interruption that says how to go on is one line; any other passes."""
    try:
        yield
    except KeyboardInterrupt as interrupted:
        if not str(interrupted):  # before there was anything to go on with
            raise
        say(str(interrupted))
        raise SystemExit(INTERRUPTED) from None


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    """A warning meant for the user is one line, and said once, though a file is read several times; of others it also
    matters where they come from."""
    own = issubclass(category, ShortlistWarning)
    if own and str(message) in _TOLD:
        return
    _TOLD.update([str(message)] if own else [])
    say(f"warning: {message}" if own else warnings.formatwarning(message, category, filename, lineno, line).rstrip())


def _fail(error: BaseException, code: int) -> None:
    say(f"error: {error}")
    raise SystemExit(code)
