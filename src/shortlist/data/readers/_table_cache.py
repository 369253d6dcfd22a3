"""Large tables of text, parsed once: the commands of a run read the same file again and again.

The file of a parsed table lies in the user's cache: ``$SHORTLIST_CACHE``; otherwise ``shortlist`` in
``$XDG_CACHE_HOME`` or ``~/.cache``; there is none for a user without a home. It is found by the table's path, size and
times of change, appears whole, ends with a checksum, and may be deleted at any time.
"""

import hashlib
import os
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from shortlist.files import written_whole
from shortlist.optional import require

_WORTH = 8_000_000  # bytes; smaller tables are parsed in no time
_MOST = 4_000_000_000  # bytes of all files in the cache: the oldest ones go
_FORMAT = 2
_CHECKSUM = 4  # bytes at the end: pyarrow would follow damaged offsets out of its memory


def cache_folder() -> Path | None:
    given, caches = os.environ.get("SHORTLIST_CACHE"), os.environ.get("XDG_CACHE_HOME")
    if given:
        return Path(given)
    try:
        return (Path(caches) if caches else Path.home() / ".cache") / "shortlist"
    except RuntimeError:  # a user without a home, as in some containers
        return None


def cached(path: Path, how: str, parse: Callable[[], Any], is_right: Callable[[], bool]) -> Any:
    """The pyarrow table that ``parse`` makes of a file, ``how`` being what else decides on it; kept if it then
    ``is_right``."""
    now = path.stat()
    folder = cache_folder()
    if now.st_size < _WORTH or folder is None:
        return parse()
    pyarrow = require("pyarrow")
    # the time of change may be set back by whoever copies files; that of the inode is not
    changed = (now.st_size, now.st_mtime_ns, now.st_ctime_ns, now.st_ino)
    key = (_FORMAT, pyarrow.__version__, os.path.realpath(path), *changed, how)
    kept = folder / "tables" / f"{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}.arrow"
    with suppress(OSError, pyarrow.ArrowInvalid):  # it is not there, or damaged: parsed again
        table = _kept(kept, pyarrow)
        os.utime(kept)
        return table
    table = parse()
    if table.num_rows and is_right():
        with suppress(OSError):  # no room, or not allowed: then it is parsed again next time
            _keep(table, kept, pyarrow)
    return table


def _kept(path: Path, pyarrow: Any) -> Any:
    with pyarrow.memory_map(os.fspath(path)) as source:
        content = source.read_buffer()
    size = max(content.size - _CHECKSUM, 0)
    table, checksum = content.slice(0, size), content.slice(size)
    if zlib.crc32(table).to_bytes(_CHECKSUM) != checksum.to_pybytes():
        raise pyarrow.ArrowInvalid("the checksum is wrong")
    return pyarrow.ipc.open_file(pyarrow.BufferReader(table)).read_all()


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
    with written_whole(path, is_cache=True) as file:
        summed = _Summed(file)
        with pyarrow.ipc.new_file(pyarrow.PythonFile(summed, "w"), table.schema) as writer:
            writer.write_table(table)
        file.write(summed.checksum.to_bytes(_CHECKSUM))


class _Summed:
    """A file that is written to, with the checksum of what was."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.checksum = file, 0

    def write(self, content: Any) -> int:
        self.checksum = zlib.crc32(content, self.checksum)
        return self._file.write(content)

    def tell(self) -> int:
        return self._file.tell()

    def flush(self) -> None:
        self._file.flush()
