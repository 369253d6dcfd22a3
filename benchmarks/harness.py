"""A benchmark case, how it is timed, and the row it becomes.

Both sides of a ratio are measured in the same process and the same seconds, taking turns, so that a slow spell of the
machine hits both; each side counts its fastest call, the one least disturbed by anything else. A case during which
other programs were busy is measured again; one that never found quiet is marked, and its goal is not judged.
"""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

import torch

from benchmarks.memory import extra_bytes
from benchmarks.other_work import OtherWork

Step = Callable[[], object]  # one forward and backward pass, ready to run
Setup = Callable[[], Step]  # makes the inputs and returns the step; called just before measuring

THREADS = 2
SECONDS = 2.0  # how long a speed case takes its turns
TURNS = 3  # and how many turns at least
QUIET = 0.05  # the share of the processor that other programs may take meanwhile
ATTEMPTS = 10  # how often to try for quiet
TURN_SECONDS = 0.02  # a step repeats this long in its turn, at least once: both sides find their own data in the caches


@dataclass(frozen=True)
class Row:
    """One line of the table: ours against the reference, and the goal for their ratio where there is one."""

    group: str
    name: str
    shape: tuple[int, ...]
    k: int | None
    ours: float
    against: str
    reference: float
    unit: str
    goal: float | None = None
    disturbed: bool = False  # other programs were busy whenever it was measured

    @property
    def ratio(self) -> float:
        """Ours over the reference: below 1 is faster (or smaller) than the reference."""
        return self.ours / self.reference

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None where there is no goal, or no measurement good enough to judge it."""
        return None if self.goal is None or self.disturbed else self.ratio <= self.goal


@dataclass(frozen=True)
class SpeedCase:
    """The time of one step of ours against one step of a reference.

    `around` makes a context manager that holds while both are measured (a choice of kernels, say).
    """

    group: str
    name: str
    shape: tuple[int, ...]
    k: int | None
    ours: Setup
    against: str
    reference: Setup
    goal: float | None = None
    around: Callable[[], AbstractContextManager[object]] = field(default=nullcontext)

    def run(self, seconds: float = SECONDS) -> Row:
        """Measure for about this many seconds, again if other programs were busy; with 0 seconds, once."""
        with self.around():
            steps = [self.ours(), self.reference()]
            for _ in range(ATTEMPTS if seconds else 1):
                others = OtherWork()
                ours, reference = (1e3 * best for best in fastest(steps, seconds))
                disturbed = others.share() > QUIET
                if not disturbed:
                    break
        row = Row(self.group, self.name, self.shape, self.k, ours, self.against, reference, "ms", self.goal)
        return replace(row, disturbed=disturbed)


@dataclass(frozen=True)
class MemoryCase:
    """The memory one step takes beyond its inputs, against the size of the scores (float32).

    `warm_up` makes the same step on small inputs; both it and `ours` must be picklable.
    """

    group: str
    name: str
    shape: tuple[int, ...]
    k: int | None
    ours: Setup
    warm_up: Setup
    goal: float | None = None

    def run(self, seconds: float = SECONDS) -> Row:
        """Measure, in a process of its own (`seconds` is for speed cases)."""
        scores = 4 * math.prod(self.shape)
        extra = extra_bytes(self.ours, self.warm_up, THREADS)
        return Row(
            self.group, self.name, self.shape, self.k, extra / 1e6, "the scores", scores / 1e6, "MB", self.goal
        )


Case = SpeedCase | MemoryCase


def fastest(steps: Sequence[Step], seconds: float = SECONDS) -> list[float]:
    """The seconds of each step's fastest call, the steps taking turns until the time is up.

    >>> quick, slow = fastest([lambda: None, lambda: time.sleep(0.001)], seconds=0.01)
    >>> quick < 0.001 <= slow
    True
    """
    before = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    try:
        for step in steps:  # warm up: first calls load code, fill caches and grow the memory pool
            step()
        best = [math.inf] * len(steps)
        turns, deadline = 0, time.perf_counter() + seconds
        while turns < TURNS or time.perf_counter() < deadline:
            for i, step in enumerate(steps):
                best[i] = min(best[i], _one_turn(step))
            turns += 1
        return best
    finally:
        torch.set_num_threads(before)


def _one_turn(step: Step) -> float:
    best, deadline = math.inf, time.perf_counter() + TURN_SECONDS
    while True:
        start = time.perf_counter()
        step()
        end = time.perf_counter()
        best = min(best, end - start)
        if end >= deadline:
            return best
