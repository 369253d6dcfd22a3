"""Large tables of text, parsed once: the commands of a run read the same file again and again.

The file of a parsed table lies in the user's cache: ``$SHORTLIST_CACHE``; otherwise ``shortlist`` in
``$XDG_CACHE_HOME`` or ``~/.cache``. It is found by the table's path, size and time of change, appears whole, and may be
deleted at any time.
"""

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from shortlist.files import written_whole
from shortlist.optional import require

_WORTH = 8_000_000  # bytes; smaller tables are parsed in no time
_MOST = 4_000_000_000  # bytes of all files in the cache: the oldest ones go
_FORMAT = 1


def cache_folder() -> Path:
    given = os.environ.get("SHORTLIST_CACHE")
    return Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shortlist"


def cached(path: Path, how: str, parse: Callable[[], Any]) -> Any:
    """The pyarrow table that ``parse`` makes of a file, ``how`` being what else decides on it."""
    now = path.stat()
    if now.st_size < _WORTH:
        return parse()
    pyarrow = require("pyarrow")
    key = (_FORMAT, pyarrow.__version__, os.path.realpath(path), now.st_size, now.st_mtime_ns, how)
    kept = cache_folder() / "tables" / f"{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}.arrow"
    with suppress(OSError, pyarrow.ArrowInvalid):  # it is not there, or damaged: parsed again
        with pyarrow.memory_map(os.fspath(kept)) as source:
            table = pyarrow.ipc.open_file(source).read_all()
        os.utime(kept)
        return table
    table = parse()
    if table.num_rows:
        with suppress(OSError):  # no room, or not allowed: then it is parsed again next time
            _keep(table, kept, pyarrow)
    return table


def _keep(table: Any, path: Path, pyarrow: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if table.nbytes > _MOST:
        return
    others = sorted(path.parent.glob("*.arrow"), key=lambda other: other.stat().st_mtime)
    left = sum(other.stat().st_size for other in others) + table.nbytes
    for other in others:
        if left > _MOST:
            left -= other.stat().st_size
            other.unlink()
    with written_whole(path) as file, pyarrow.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
