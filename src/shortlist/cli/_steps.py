"""How a command of several steps goes, shown on standard error: one bar on a terminal, a line per step elsewhere."""

import sys
import time
from typing import Any

from shortlist.cli._progress import new_bar


def make_steps(count: int, quiet: bool) -> "Steps":
    """Begin each step with ``begin``; a step that trains passes itself on as the loop's progress."""
    if quiet:
        return Steps(count)
    return LiveSteps(count) if sys.stderr.isatty() else LineSteps(count)


class Steps:
    """Steps that show nothing. It is also a `shortlist.training.loop.Progress`."""

    def __init__(self, count: int) -> None:
        self.count, self.number, self.epochs = count, 0, 1

    def __enter__(self) -> "Steps":
        return self

    def __exit__(self, *_: object) -> None: ...

    def begin(self, name: str) -> None:
        self.number, self.name = self.number + 1, name
        self.reach(0.0)

    def reach(self, share: float) -> None:
        """This share of the present step is done."""

    # ---- what the training loop tells

    def start(self, first_epoch: int, epochs: int, metric: str | None) -> None:
        self.epochs = epochs

    def step(self, epoch: int, step: int, steps: int, loss: Any) -> None:
        self.reach((epoch + (step + 1) / steps) / self.epochs)

    def epoch(self, record: dict[str, Any]) -> None: ...

    def end(self) -> None: ...


class LineSteps(Steps):
    def begin(self, name: str) -> None:
        super().begin(name)
        sys.stderr.write(f"[{self.number}/{self.count}] {name}\n")
        sys.stderr.flush()


class LiveSteps(Steps):
    def __enter__(self) -> "LiveSteps":
        from rich.progress import TimeElapsedColumn

        self.bar = new_bar(TimeElapsedColumn())
        self.task = self.bar.add_task("starting", total=self.count)
        self.shown = 0.0
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def reach(self, share: float) -> None:
        now = time.monotonic()
        if share in (0.0, 1.0) or now - self.shown > 0.05:  # drawing costs time that training could use
            self.shown = now
            self.bar.update(self.task, completed=self.number - 1 + share, description=self.name)
