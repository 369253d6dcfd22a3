"""How busy other programs keep the processor: a time is as good as this is small.

With as many threads as cores, one other busy program makes a parallel step wait a whole time slice for its last thread:
a step of 0.3 ms then takes 28 ms, every time. No minimum over repeats removes that, so it has to be seen.
"""

import os
import time
from pathlib import Path

STAT = Path("/proc/stat")


class OtherWork:
    """A clock for the work of other programs, started when it is made."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._others = _busy_seconds() - _own_seconds()

    def share(self) -> float:
        """The share of all cores' time that other programs have taken since the start."""
        seconds = (time.monotonic() - self._start) * (os.cpu_count() or 1)
        return max(0.0, _busy_seconds() - _own_seconds() - self._others) / seconds


def _busy_seconds() -> float:
    """What the whole machine has computed, all cores together."""
    user, nice, system, _idle, _wait, *interrupts = STAT.read_text().splitlines()[0].split()[1:9]
    return sum(map(int, (user, nice, system, *interrupts))) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    """What this process and the ones it waited for have computed."""
    return sum(os.times()[:4])
