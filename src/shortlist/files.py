"""Files written whole or not at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from shortlist.errors import MissingFileError

PathLike = str | os.PathLike[str]


@contextmanager
def written_whole(path: PathLike) -> Iterator[IO[bytes]]:
    """A file to write to that takes its place at ``path`` at the end, or leaves no trace if anything fails."""
    target = Path(os.path.realpath(path))  # a link keeps pointing where it points
    if not target.parent.is_dir():
        raise MissingFileError(f"cannot write {os.fspath(path)}: there is no folder {target.parent}")
    draft = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(draft, "xb") as file:
            yield file
        os.replace(draft, target)
    except BaseException:
        with suppress(FileNotFoundError):
            draft.unlink()
        raise

