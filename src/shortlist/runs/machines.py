"""Training on several machines: what they must share is checked before any work."""

import os
import secrets
import socket
import time
from pathlib import Path
from typing import Any

import torch.distributed as dist

from shortlist.errors import ShortlistError

_PATIENCE = 15.0  # seconds: a network file system may show a new file late


def machines() -> int:
    """On how many machines torchrun has started the processes of this command."""
    return int(os.environ.get("GROUP_WORLD_SIZE", "1"))


def check_shared(fabric: Any, run: Path) -> None:
    """Raise a ShortlistError, on every machine, where not all of them see the place of the run directory: the first
    process writes there, and all others read what it wrote. ``fabric`` is launched."""
    folder = run.absolute()
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    token = fabric.broadcast(f".shortlist-{secrets.token_hex(6)}")
    problem = ""
    try:
        if fabric.is_global_zero:
            try:
                (folder / token).touch()
            except OSError as error:
                problem = f"cannot write: {error.strerror}"
        fabric.barrier()
        until = time.monotonic() + _PATIENCE
        while not problem and not (folder / token).exists():
            if time.monotonic() > until:
                problem = f"it does not see what process 0 has written in {folder}"
            else:
                time.sleep(0.2)
        said = f"process {fabric.global_rank} on {socket.gethostname()}: {problem}" if problem else ""
        everybody: list[Any] = [None] * fabric.world_size
        dist.all_gather_object(everybody, said)
    finally:
        if fabric.is_global_zero:
            (folder / token).unlink(missing_ok=True)
    wrong = [one for one in everybody if one]
    if wrong:
        raise ShortlistError(
            f"the run directory {run} must be on a file system that all machines see, under the same path: "
            + "; ".join(wrong)
        )
