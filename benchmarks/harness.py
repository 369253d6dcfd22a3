"""A benchmark case, how it is measured, and the row it becomes.

Both sides of a ratio take turns (`shortlist.timing`). A case during which other programs were busy is measured again;
one that never found quiet is marked, and its goal is not judged.
"""

import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace

from benchmarks.memory import extra_bytes
from benchmarks.other_work import OtherWork
from shortlist.timing import fastest, typical

Step = Callable[[], object]  # one forward and backward pass, ready to run
Setup = Callable[[], Step]  # makes the inputs and returns the step; called just before measuring

THREADS = 2
SECONDS = 2.0  # how long a speed case takes its turns
QUIET = 0.05  # the share of the processor that other programs may take meanwhile
ATTEMPTS = 10  # how often to try for quiet


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

    `around` makes a context manager that holds while both are measured (a choice of kernels, say). With `busy`, another
    process keeps one core busy meanwhile, as a data loader does, and it is the median call that counts.
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
    busy: bool = False

    def run(self, seconds: float = SECONDS) -> Row:
        """Measure for about this many seconds, again if other programs were busy; with 0 seconds, once."""
        measure, meant = (typical, 1 / (os.cpu_count() or 1)) if self.busy else (fastest, 0.0)
        with self.around(), _one_busy_core() if self.busy else nullcontext():
            steps = [self.ours(), self.reference()]
            for _ in range(ATTEMPTS if seconds else 1):
                others = OtherWork()
                ours, reference = (1e3 * time for time in measure(steps, seconds, THREADS))
                disturbed = others.share() - meant > QUIET
                if not disturbed:
                    break
        row = Row(self.group, self.name, self.shape, self.k, ours, self.against, reference, "ms", self.goal)
        return replace(row, disturbed=disturbed)


@contextmanager
def _one_busy_core() -> Iterator[None]:
    spinning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        spinning.kill()
        spinning.wait()


@dataclass(frozen=True)
class MemoryCase:
    """The memory one step takes beyond its inputs, against the size of the scores (float32), or of what `against` is.

    `warm_up` makes the same step on small inputs; both it and `ours` must be picklable.
    """

    group: str
    name: str
    shape: tuple[int, ...]
    k: int | None
    ours: Setup
    warm_up: Setup
    goal: float | None = None
    against: str = "the scores"

    def run(self, seconds: float = SECONDS) -> Row:
        """Measure, in a process of its own; with 0 seconds, only see that it runs."""
        scores, extra = 4 * math.prod(self.shape), 0
        if seconds:
            extra = extra_bytes(self.ours, self.warm_up, THREADS)
        else:
            self.ours()()
        return Row(
            self.group, self.name, self.shape, self.k, extra / 1e6, self.against, scores / 1e6, "MB", self.goal
        )


Case = SpeedCase | MemoryCase
