"""The records of the epochs for other programs to read, TensorBoard or a spreadsheet, through Fabric's loggers."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from shortlist.errors import ShortlistError
from shortlist.files import PathLike
from shortlist.optional import require
from shortlist.training.history import Record

if TYPE_CHECKING:
    from lightning_fabric.loggers.logger import Logger

    from shortlist.training.one_process import Engine


def make_loggers(names: Sequence[str], folder: PathLike | None) -> list[Logger]:
    """Each writes below the folder, in one that has its name."""
    if not names:
        return []
    if folder is None:
        raise ShortlistError(f"loggers write into a run directory, there is none: remove loggers ({', '.join(names)})")
    from lightning_fabric.loggers.csv_logs import CSVLogger
    from lightning_fabric.loggers.tensorboard import TensorBoardLogger

    if "tensorboard" in names:
        require("tensorboard", extra="tensorboard")
    kinds: dict[str, Any] = {"tensorboard": TensorBoardLogger, "csv": CSVLogger}
    return [kinds[name](folder, name="", version=name) for name in dict.fromkeys(names)]


@contextmanager
def logged(fabric: Engine, records: Sequence[Record]) -> Iterator[None]:
    """Within this block `log` adds epochs to these, which are written anew: so nothing is there twice or missing,
    however a process ended before. Only the first process writes."""
    for logger in fabric.loggers:
        folder = str(logger.log_dir)
        if fabric.is_global_zero and os.path.isdir(folder):
            shutil.rmtree(folder)
    for record in records:
        log(fabric, record)
    try:
        yield
    finally:
        for logger in fabric.loggers:
            logger.finalize("finished")


def log(fabric: Engine, record: Record) -> None:
    """Write the record of an epoch, to be read at once."""
    fabric.log_dict({name: value for name, value in record.items() if name != "epoch"}, step=record["epoch"])
    for logger in fabric.loggers:
        logger.save()
