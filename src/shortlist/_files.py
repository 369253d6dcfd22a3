"""Files written whole or not at all, and errors that name the file."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

PathLike = str | os.PathLike[str]


@contextmanager
def written_whole(path: PathLike) -> Iterator[IO[bytes]]:
    """A file to write to that takes its place at ``path`` at the end, or leaves no trace if anything fails."""
    target = Path(os.path.realpath(path))  # a link keeps pointing where it points
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot write {os.fspath(path)}: there is no folder {target.parent}")
    draft = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(draft, "xb") as file:
            yield file
        os.replace(draft, target)
    except BaseException:
        with suppress(FileNotFoundError):
            draft.unlink()
        raise


@contextmanager
def errors_name(path: PathLike) -> Iterator[None]:
    try:
        yield
    except ValueError as error:  # pyarrow's ArrowInvalid and json's JSONDecodeError are ValueErrors too
        raise ValueError(f"{os.fspath(path)}: {error}") from error
