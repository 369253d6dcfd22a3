"""Files written whole or not at all, and files of others read with care."""

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from shortlist.errors import MissingFileError, ShortlistError, errors_name
from shortlist.optional import require

if TYPE_CHECKING:
    from torch import Tensor

try:
    import fcntl
except ModuleNotFoundError:  # a platform without POSIX locks
    fcntl = None  # type: ignore[assignment]

PathLike = str | os.PathLike[str]

_DRAFT = re.compile(r"\..+\.[0-9a-f]{12}\.tmp")
_CHECKSUM = "shortlist.sha256"


# ---- writing


@contextmanager
def written_whole(path: PathLike, is_cache: bool = False) -> Iterator[IO[bytes]]:
    """A file to write to that takes its place at ``path`` at the end, or leaves no trace if anything fails.

    It is on the disk before it replaces an older file, so that a power cut leaves one of the two; not where it
    ``is_cache``, whose readers find out what is damaged. A full disk or a missing permission is an OSError that names
    ``path``.
    """
    target = Path(os.path.realpath(path))  # a link keeps pointing where it points
    if not target.parent.is_dir():
        raise MissingFileError(f"cannot write {os.fspath(path)}: there is no folder {target.parent}")
    draft = _draft_of(target)
    try:
        with _errors_while_writing(path, draft):
            with open(draft, "xb") as file:
                _hold(file.fileno())
                yield file
                file.flush()
                if not is_cache:
                    os.fsync(file.fileno())
            os.replace(draft, target)
            if not is_cache:
                _sync_folder(target.parent)
    except BaseException:
        _remove(draft)
        raise


@contextmanager
def folder_written_whole(path: PathLike) -> Iterator[Path]:
    """A folder to write to, from any process, that takes its place at ``path`` at the end, or leaves no trace if
    anything fails. An older folder stays until then."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise MissingFileError(f"cannot write {os.fspath(path)}: there is no folder {target.parent}")
    if target.exists() and not target.is_dir():
        raise ShortlistError(f"{os.fspath(path)} is a file: a folder is written here; name another one")
    draft, older = _draft_of(target), _draft_of(target)
    try:
        with _errors_while_writing(path, draft):
            draft.mkdir()
            yield draft
            if target.exists():
                os.rename(target, older)
            os.rename(draft, target)
            _sync_folder(target.parent)
    finally:
        _remove(draft)
        _remove(older)


def write_folder(folder: PathLike, files: Mapping[str, bytes]) -> None:
    """Write files (paths inside the folder, and their content) once all of them fit on the disk.

    A new folder appears whole. In an existing one the files replace older ones in the order given, and other files
    are left alone.
    """
    target = Path(os.path.realpath(folder))
    if target.exists() and not target.is_dir():
        raise ShortlistError(f"{os.fspath(folder)} is a file: a folder is needed here")
    draft, held = _draft_of(target), None
    try:
        with _errors_while_writing(folder, draft):
            draft.mkdir(parents=True)
            held = _opened(draft)
            for name, content in files.items():
                (draft / name).parent.mkdir(parents=True, exist_ok=True)
                with open(draft / name, "xb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            if target.exists():
                for name in files:
                    (target / name).parent.mkdir(parents=True, exist_ok=True)
                    os.replace(draft / name, target / name)
            else:
                os.rename(draft, target)
            for changed in {target.parent, *((target / name).parent for name in files)}:
                _sync_folder(changed)
    finally:
        _remove(draft)
        if held is not None:
            os.close(held)


def is_draft(path: Path) -> bool:
    """Whether a file or folder is a draft: being written now, or left by a process that was killed."""
    return _DRAFT.fullmatch(path.name) is not None


def remove_drafts(folder: PathLike) -> None:
    """Remove the drafts, files and folders, that killed processes left anywhere in a folder.

    What another process is writing now stays, and so does a draft that cannot be removed: it is in nobody's way.
    """
    for path in list(Path(folder).rglob(".*.tmp")):
        if is_draft(path) and (held := _opened(path)) is not None:
            _remove(path)
            os.close(held)


def _draft_of(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")


def _opened(draft: Path) -> int | None:
    """A handle of the draft that is held until it is closed; None where another process holds it."""
    try:
        handle = os.open(draft, os.O_RDONLY)
    except OSError:
        return None
    if _hold(handle):
        return handle
    os.close(handle)
    return None


def _hold(handle: int) -> bool:
    """Lock an open draft, until it is closed or the process ends; False where another process has."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:  # a file system may know no locks
        return error.errno not in (errno.EAGAIN, errno.EACCES)
    return True


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


@contextmanager
def _errors_while_writing(path: PathLike, draft: Path) -> Iterator[None]:
    """Errors of the disk name the file that the user knows; errors about other files stay as they are."""
    try:
        yield
    except OSError as error:
        of_another = error.filename is not None and not str(error.filename).startswith(str(draft))
        if of_another or isinstance(error, ShortlistError):
            raise
        if error.errno is None:
            raise OSError(f"cannot write {os.fspath(path)}: {error}") from error
        raise OSError(error.errno, f"cannot write: {error.strerror}", os.fspath(path)) from error


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # not every platform opens a folder, or lets it be synced
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# ---- JSON


def parse_json(text: str | bytes) -> Any:
    """What JSON text holds; text that is no JSON, or nested too deeply, is a ShortlistError."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ShortlistError("the JSON is nested too deeply to be read") from None
    except ValueError as error:
        raise ShortlistError(f"this is not JSON: {error}") from None


def read_json(path: PathLike) -> Any:
    """What a JSON file holds."""
    if not Path(path).is_file():
        raise MissingFileError(f"there is no file {os.fspath(path)}: is the run complete?")
    with errors_name(path):
        return parse_json(Path(path).read_bytes())


def write_json(path: PathLike, content: Any) -> None:
    """A JSON file for people to read, too."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def write_text(path: PathLike, text: str) -> None:
    """A file of text in UTF-8; halves of characters, as in names of files that are not UTF-8, as JSON escapes them."""
    with written_whole(path) as file:
        file.write(text.encode(errors="backslashreplace"))


# ---- tensors


def write_tensors(path: PathLike, tensors: Mapping[str, "Tensor"], metadata: Mapping[str, str] | None = None) -> None:
    """Write a safetensors file with a checksum of its tensors and metadata in its header."""
    header = dict(metadata or {})
    header[_CHECKSUM] = checksum(tensors, header)
    with written_whole(path) as file:
        file.write(require("safetensors.torch").save(dict(tensors), header))


def read_tensors(path: PathLike) -> tuple[dict[str, "Tensor"], dict[str, str]]:
    """Tensors and metadata of a safetensors file; runs no code from it, and takes no more memory than it is long.

    A file that is cut short or damaged is a ShortlistError that names it: by its checksum, where it has one.
    """
    safetensors = require("safetensors")
    if not os.path.isfile(path):
        raise MissingFileError(f"there is no file {os.fspath(path)}")
    with errors_name(path):
        try:
            with safetensors.safe_open(os.fspath(path), framework="pt") as file:
                metadata: dict[str, str] = file.metadata() or {}
                tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except safetensors.SafetensorError as error:
            raise ShortlistError(f"this is not a safetensors file, or it is damaged: {error}") from error
        expected = metadata.pop(_CHECKSUM, None)
        if expected is not None and expected != checksum(tensors, metadata):
            raise ShortlistError("the file is damaged: its content does not match its checksum")
    return tensors, metadata


def checksum(tensors: Mapping[str, "Tensor"], metadata: Mapping[str, str] | None = None) -> str:
    """SHA-256 of tensors (names, types, shapes and bytes, in the order of the names) and texts beside them.

    >>> import torch
    >>> checksum({"w": torch.zeros(2)}) == checksum({"w": torch.zeros(2)}), checksum({"w": torch.ones(2)})[:8]
    (True, 'd18016f2')
    """
    import torch

    digest = hashlib.sha256(json.dumps(sorted((metadata or {}).items())).encode())
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


# ---- showing how far the reading of a large file is

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
