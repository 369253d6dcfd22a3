"""One process trains a run at a time: a lock that names its holder and dies with it."""

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from shortlist.errors import ShortlistError
from shortlist.files import PathLike

try:
    import fcntl
except ModuleNotFoundError:  # a platform without POSIX locks: two processes on one run are then not noticed
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"


@contextmanager
def locked(run: PathLike) -> Iterator[None]:
    """Hold the run's lock; a ShortlistError that names the holder where another process has it.

    The operating system releases it when the process ends, however it ends. The file stays: removing it would let two
    processes lock two files of one name.
    """
    with open(Path(run) / LOCK, "a+", encoding="utf-8") as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ShortlistError(
                    f"{os.fspath(run)} is being trained by {_holder(file)}: wait until it has ended, or stop it"
                ) from None
        file.truncate(0)
        json.dump(
            {
                "process": os.getpid(),
                "machine": socket.gethostname(),
                "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
                "since": datetime.now(UTC).isoformat(timespec="seconds"),
            },
            file,
        )
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)  # nobody holds it; closing the file releases it


def _holder(file: Any) -> str:
    file.seek(0)
    try:
        found = json.loads(file.read())
        return (
            f"process {found['process']} on {found['machine']} since {found['since']} ({' '.join(found['command'])!r})"
        )
    except (ValueError, LookupError, TypeError):  # it has the lock and has not written its name yet
        return "another process"
