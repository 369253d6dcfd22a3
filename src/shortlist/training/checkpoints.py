"""What training has to remember to go on after an interruption: between epochs, and in the middle of a long one.

`shortlist.runs.train` begins a resumed run, the loop calls `Kept.restore`, and a run directory keeps the files.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import torch
from torch import Tensor

from shortlist.distributed import gathered
from shortlist.objectives import Objective
from shortlist.training.average import WeightAverage
from shortlist.training.history import History, Record
from shortlist.training.learner import Learner

if TYPE_CHECKING:
    from shortlist.training.one_process import Engine

_LOOK_EVERY = 16  # steps between two looks at the clock, where processes have to agree


class Checkpoints(Protocol):
    """What keeps every epoch: a `shortlist.runs.Run`."""

    def save_epoch(
        self, weights: Mapping[str, Tensor], state: Mapping[str, Any], records: list[Record], best: int | None
    ) -> None: ...
    def save_part(self, state: Mapping[str, Any]) -> None: ...
    def weights(self, which: Literal["best", "last"]) -> Mapping[str, Tensor]: ...
    def state(self) -> dict[str, Any] | None: ...
    def part(self) -> dict[str, Any] | None: ...
    def records(self) -> list[Record]: ...
    @property
    def checkpoint(self) -> dict[str, Any]: ...


@dataclass
class Standing:
    """Where this process stands within an epoch."""

    step: int = 0  # optimizer steps done
    total: float = 0.0  # the losses so far, and of how many examples
    seen: int = 0
    seconds: float = 0.0
    first: float = 0.0  # the loss of the first batch
    draws: Tensor | None = None  # the state of PyTorch's generator, and that of the graphics card
    device_draws: Tensor | None = None
    objective: dict[str, Any] = field(default_factory=dict)
    started: float = 0.0  # on this process's clock

    def go_on(self, objective: Objective, device: torch.device) -> None:
        """Where an epoch goes on in its middle: generators and objective as they were then."""
        if not self.step:
            return
        objective.load_epoch_state(self.objective)
        if self.draws is not None:
            torch.set_rng_state(self.draws)
        if self.device_draws is not None and device.type == "cuda":
            torch.cuda.set_rng_state(self.device_draws, device)


@dataclass
class Kept:
    """Everything that is saved and restored together; without a run, nothing is."""

    fabric: Engine
    learner: Learner
    optimizer: Any  # None where all rows are fitted at once
    average: WeightAverage | None
    run: Checkpoints | None
    minutes: float | None

    def __post_init__(self) -> None:
        self._saved = time.monotonic()

    def save_epoch(self, history: History) -> None:
        """After an epoch; where weights are averaged, within `WeightAverage.in_place`."""
        assert self.run is not None
        if self.fabric.is_global_zero:
            self.run.save_epoch(self.learner.weights(), self._state(), history.records, history.best_epoch)
        self.fabric.barrier()
        self._saved = time.monotonic()

    def is_due(self, step: int) -> bool:
        """Whether to save in the middle of an epoch now: the same answer on every process."""
        if self.run is None or self.minutes is None:
            return False
        due = time.monotonic() - self._saved >= 60 * self.minutes
        if self.fabric.world_size == 1:
            return due
        return step % _LOOK_EVERY == 0 and bool(self.fabric.broadcast(due))

    def save_part(self, epoch: int, standing: Standing) -> None:
        """In the middle of an epoch (counted from 0)."""
        assert self.run is not None
        device = self.fabric.device
        own = vars(standing) | {
            "draws": torch.get_rng_state(),
            "device_draws": torch.cuda.get_rng_state(device) if device.type == "cuda" else None,
            "objective": self.learner.objective.epoch_state(),
        }
        everybodys = gathered(own, self.fabric.world_size)
        if self.fabric.is_global_zero:
            state = {"epoch": epoch, "weights": self.learner.weights(), "processes": everybodys, **self._state()}
            self.run.save_part(state)
        self.fabric.barrier()
        self._saved = time.monotonic()

    def restore(self, history: History) -> Standing:
        """Everything as it was when the run was last saved, the history too; where the epoch in progress stands."""
        if self.run is None:
            return Standing()
        saved, part = self.run.state(), self.run.part()
        if saved is not None:
            history.records, history.best_epoch = self.run.records(), self.run.checkpoint["best"]
        if part is not None and part["epoch"] == len(history.records):
            processes = part["processes"]
            if len(processes) == self.fabric.world_size:  # else the epoch starts again, shared differently
                self.learner.load_state_dict(part["weights"])
                self._load(part)
                return Standing(**processes[self.fabric.global_rank])
        if saved is not None:
            self.learner.load_state_dict(self.run.weights("last"))
            self._load(saved)
            if self.average is not None:
                self.average.swap()  # the weights of a saved epoch are the averages
        return Standing()

    def _state(self) -> dict[str, Any]:
        return {
            "optimizer": None if self.optimizer is None else self.optimizer.state_dict(),
            "precision": self.fabric.strategy.precision.state_dict(),
            "average": None if self.average is None else self.average.state(),
        }

    def _load(self, state: Mapping[str, Any]) -> None:
        if self.optimizer is not None:
            self.optimizer.load_state_dict(state["optimizer"])
        self.fabric.strategy.precision.load_state_dict(state["precision"])
        if self.average is not None:
            self.average.load(state["average"])
