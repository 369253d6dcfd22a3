"""How training goes, shown on standard error: a live bar on a terminal, one line per epoch elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shortlist.cli._output import say
from shortlist.files import reading_shown_by
from shortlist.text import visible

_SELDOM = 5.0  # seconds between lines about a search


def make_progress(quiet: bool) -> Any:
    """Progress for `shortlist.training.loop.train`; None where nothing is to be shown."""
    if quiet:
        return None
    return LiveProgress() if sys.stderr.isatty() else LineProgress()


class LineProgress:
    """One line per epoch: for logs."""

    def start(self, first_epoch: int, epochs: int, metric: str | None) -> None:
        self.epochs, self.metric = epochs, metric

    def step(self, epoch: int, step: int, steps: int, loss: Any) -> None: ...

    def epoch(self, record: dict[str, Any]) -> None:
        sys.stderr.write(self.line(record) + "\n")
        sys.stderr.flush()

    def end(self) -> None: ...

    def line(self, record: dict[str, Any]) -> str:
        metric = f"  {self.metric} {record[self.metric]:.4f}" if self.metric else ""
        return (
            f"epoch {record['epoch']}/{self.epochs}  loss {record['loss']:.4f}{metric}"
            f"  lr {record['lr']:.3g}  {record['seconds']:.1f} s"
        )


class LiveProgress(LineProgress):
    """A bar over all epochs with loss, metric and the time left, above it one line per epoch."""

    bar: Any = None

    def start(self, first_epoch: int, epochs: int, metric: str | None) -> None:
        from rich.progress import TimeRemainingColumn

        super().start(first_epoch, epochs, metric)
        self.shown, self.reached = 0.0, ""
        self.bar = new_bar(TimeRemainingColumn())
        self.task = self.bar.add_task("starting", total=epochs, completed=first_epoch)
        self.bar.start()

    def step(self, epoch: int, step: int, steps: int, loss: Any) -> None:
        now = time.monotonic()
        if now - self.shown > 0.1:  # reading the loss waits for the device: seldom
            self.shown = now
            text = f"epoch {epoch + 1}/{self.epochs}  loss {float(loss):.4f}{self.reached}"
            self.bar.update(self.task, completed=epoch + (step + 1) / steps, description=text)

    def epoch(self, record: dict[str, Any]) -> None:
        if self.metric:
            self.reached = f"  {self.metric} {record[self.metric]:.4f}"
        self.bar.console.print(self.line(record), highlight=False, markup=False, emoji=False)
        self.bar.update(self.task, completed=record["epoch"])

    def end(self) -> None:
        if self.bar is not None:
            self.bar.stop()


def new_bar(clock: Any) -> Any:
    """A bar on standard error that is gone when it ends: what is done, how much of it, and a clock."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    return Progress(*columns, clock, console=Console(stderr=True), transient=True)


@contextmanager
def reading_shown() -> Iterator[None]:
    """Within it, a terminal shows how far a large file is read, where that takes longer than a moment."""
    if not sys.stderr.isatty():
        yield
        return
    began: dict[str, float] = {}

    def show(file: str, share: float) -> None:
        now = time.monotonic()
        if share < 1 and now - began.setdefault(file, now) > 0.5:
            sys.stderr.write(f"\rreading {visible(Path(file).name)}: {share:.0%} ")
        elif share >= 1 and now - began.pop(file, now) > 0.5:
            sys.stderr.write("\r\x1b[K")  # the line is blank again
        sys.stderr.flush()

    with reading_shown_by(show):
        yield


@contextmanager
def search_shown(quiet: bool) -> Iterator[None]:
    """Within it, what the search for a strength has tried is said where it takes longer than a few seconds."""
    from shortlist.training.strengths import search_told_to

    said = time.monotonic()

    def hear(tried: str) -> None:
        nonlocal said
        if not quiet and time.monotonic() - said > _SELDOM:
            said = time.monotonic()
            say(f"tried {tried}")

    with search_told_to(hear):
        yield


def show_examples(what: str, done: int, total: int) -> None:
    """How far an engine is, in one line that is written over; nothing where nobody looks."""
    if sys.stderr.isatty():
        end = "\n" if done >= total else ""
        sys.stderr.write(f"\r{what} {done:,} of {total:,} examples{end}")
        sys.stderr.flush()
