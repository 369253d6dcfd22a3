"""What a run saves of its training: the weights of two epochs, the state to go on from, and a record of every epoch."""

import hashlib
import io
import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from shortlist.errors import ShortlistError, errors_name
from shortlist.files import (
    parse_json,
    read_json,
    read_tensors,
    remove_drafts,
    write_json,
    write_tensors,
    write_text,
    written_whole,
)
from shortlist.runs.config import CONFIG
from shortlist.text import command

METRICS, CHECKPOINT = "metrics.jsonl", "checkpoint.json"


class SavedEpochs:
    """The files of training in a run directory; `shortlist.training.checkpoints` says what they are for."""

    path: Path

    @property
    def checkpoint(self) -> dict[str, Any]:
        """``{"last": epoch, "best": epoch or None, "state": checksum}``; empty before the first epoch is saved."""
        file = self.path / CHECKPOINT
        if not file.exists():
            return {}
        found = read_json(file)
        best = found.get("best") if isinstance(found, dict) else None
        if not isinstance(found, dict) or not _is_epoch(found.get("last")) or not (best is None or _is_epoch(best)):
            raise ShortlistError(f'{file} must hold the numbers of two epochs, "last" and "best", got {found!r}')
        return found

    def save_epoch(
        self, weights: Mapping[str, Tensor], state: Mapping[str, Any], records: list[dict[str, Any]], best: int | None
    ) -> None:
        """Save the state after an epoch; it counts from the moment that checkpoint.json names it."""
        epoch = len(records)
        write_tensors(self._weights_file(epoch), weights)
        content = io.BytesIO()
        torch.save(dict(state), content)
        with written_whole(self._state_file(epoch)) as file:
            file.write(content.getvalue())
        write_text(self.path / METRICS, "".join(json.dumps(record) + "\n" for record in records))
        digest = hashlib.sha256(content.getbuffer()).hexdigest()
        write_json(self.path / CHECKPOINT, {"last": epoch, "best": best, "state": digest})
        self._prune()

    def records(self) -> list[dict[str, Any]]:
        """The records of the saved epochs."""
        last, file = self.checkpoint.get("last", 0), self.path / METRICS
        if not last:
            return []
        if not file.exists():
            raise ShortlistError(f"{file} is missing, and with it the records of {last} epochs: train the run again")
        lines = file.read_bytes().splitlines()[:last]
        if len(lines) < last:
            raise ShortlistError(f"{file} ends after {len(lines)} records, there were {last} epochs: was it cut short?")
        records = []
        for number, line in enumerate(lines, start=1):
            with errors_name(f"{file}, line {number}"):
                record = parse_json(line)
                if not isinstance(record, dict) or record.get("epoch") != number:
                    raise ShortlistError(f"this is not the record of epoch {number}")
            records.append(record)
        return records

    def state(self) -> dict[str, Any] | None:
        """The optimizer's state after the last saved epoch, None where no epoch is saved; runs no code."""
        checkpoint = self.checkpoint
        if not checkpoint:
            return None
        file = self._state_file(checkpoint["last"])
        damaged = (
            f"{file} is missing or damaged: training cannot go on from here. The weights are kept apart and still "
            f"serve to predict; to train again: "
            + command("shortlist", "train", self.path / CONFIG, "--out", f"{self.path}-again")
        )
        if not file.exists():
            raise ShortlistError(damaged)
        content = file.read_bytes()
        if checkpoint.get("state") != hashlib.sha256(content).hexdigest():
            raise ShortlistError(damaged)
        return _read_state(content, damaged)

    def save_part(self, state: Mapping[str, Any]) -> None:
        """Save the state in the middle of the epoch after the last saved one, in place of an earlier such state."""
        with written_whole(self._part_file(self.checkpoint.get("last", 0) + 1)) as file:
            torch.save(dict(state), file)

    def part(self) -> dict[str, Any] | None:
        """The state in the middle of the epoch after the last saved one; None where there is none. Runs no code."""
        file = self._part_file(self.checkpoint.get("last", 0) + 1)
        if not file.exists():
            return None
        return _read_state(file.read_bytes(), f"{file} is damaged: remove it, and training goes on from the last epoch")

    def weights(self, which: Literal["best", "last"] = "best") -> dict[str, Tensor]:
        """The weights of the best epoch (of the last, where no validation data chose one) or of the last."""
        checkpoint = self.checkpoint
        if not checkpoint:
            raise ShortlistError(
                f"{self.path} has no checkpoint yet: train it with "
                + command("shortlist", "train", "--resume", self.path)
            )
        epoch = checkpoint["last"] if which == "last" or checkpoint["best"] is None else checkpoint["best"]
        file = self._weights_file(epoch)
        if not file.exists():
            raise ShortlistError(f"the weights of {self.path} are gone ({file.name} is missing): train it again")
        return read_tensors(file)[0]

    def clear_leftovers(self) -> None:
        """Remove what a killed process left: drafts, and checkpoints that were not finished."""
        remove_drafts(self.path)
        self._prune()

    def _prune(self) -> None:
        checkpoint = self.checkpoint
        epochs = (checkpoint.get("last"), checkpoint.get("best"))
        keep = {self._weights_file(epoch) for epoch in epochs if epoch is not None}
        if checkpoint:
            keep.add(self._state_file(checkpoint["last"]))
        keep.add(self._part_file(checkpoint.get("last", 0) + 1))
        for pattern in ("epoch-*", "part-*"):
            for file in (self.path / "checkpoints").glob(pattern):
                if file not in keep:
                    file.unlink(missing_ok=True)

    def _weights_file(self, epoch: int) -> Path:
        return self.path / "checkpoints" / f"epoch-{epoch:04d}.safetensors"

    def _state_file(self, epoch: int) -> Path:
        return self.path / "checkpoints" / f"epoch-{epoch:04d}.pt"

    def _part_file(self, epoch: int) -> Path:
        return self.path / "checkpoints" / f"part-{epoch:04d}.pt"


def _read_state(content: bytes, damaged: str) -> dict[str, Any]:
    """A state of training from the content of its file, or a ShortlistError with this message."""
    try:
        found: dict[str, Any] = torch.load(io.BytesIO(content), weights_only=True)
    except (RuntimeError, pickle.UnpicklingError, EOFError, LookupError, ValueError, TypeError, OSError) as error:
        raise ShortlistError(damaged) from error
    return found


def _is_epoch(value: Any) -> bool:
    return type(value) is int and value >= 1
