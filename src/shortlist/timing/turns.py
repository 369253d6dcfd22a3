"""The time of steps that take turns.

All steps are measured in the same process and the same seconds, taking turns, so that a slow spell of the machine hits
all of them; each counts its fastest call, the one least disturbed by anything else.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from statistics import median

import torch

Step = Callable[[], object]

TURNS = 3  # how many turns each step has at least, after a call to warm up
TURN_SECONDS = 0.02  # a step repeats this long in its turn, at least once, and so finds its own data in the caches


def fastest(steps: Sequence[Step], seconds: float, threads: int | None = None, turns: int = TURNS) -> list[float]:
    """The seconds of each step's fastest call, the steps taking turns until the time is up.

    ``threads``: of torch, meanwhile; as many as before if not given.

    >>> quick, slow = fastest([lambda: None, lambda: time.sleep(0.001)], seconds=0.01)
    >>> quick < 0.001 <= slow
    True
    """
    return [only for (only,) in fastest_stages([[step] for step in steps], seconds, threads, turns)]


def fastest_stages(
    steps: Sequence[Sequence[Step]], seconds: float, threads: int | None = None, turns: int = TURNS
) -> list[list[float]]:
    """The same for steps of several stages, such as forward and backward: the fastest time of every stage."""
    with _threads(threads):
        for stages in steps:  # warm up: first calls load code, fill caches and grow the memory pool
            _times(stages)
        best = [[math.inf] * len(stages) for stages in steps]
        turn, deadline = 0, time.perf_counter() + seconds
        while turn < turns or time.perf_counter() < deadline:
            for place, stages in enumerate(steps):
                best[place] = _one_turn(stages, best[place])
            turn += 1
    return best


def typical(steps: Sequence[Step], seconds: float, threads: int | None = None) -> list[float]:
    """The median seconds of each step's calls, the steps taking turns call by call: what disturbs them counts.

    >>> quick, slow = typical([lambda: None, lambda: time.sleep(0.001)], seconds=0.01)
    >>> quick < 0.001 <= slow
    True
    """
    with _threads(threads):
        for step in steps:
            step()
        calls: list[list[float]] = [[] for _ in steps]
        deadline = time.perf_counter() + seconds
        while len(calls[0]) < TURNS or time.perf_counter() < deadline:
            for step, times in zip(steps, calls, strict=True):
                times += _times([step])
    return [median(times) for times in calls]


def _one_turn(stages: Sequence[Step], best: list[float]) -> list[float]:
    deadline = time.perf_counter() + TURN_SECONDS
    while True:
        best = [min(pair) for pair in zip(best, _times(stages), strict=True)]
        if time.perf_counter() >= deadline:
            return best


def _times(stages: Sequence[Step]) -> list[float]:
    clock = [time.perf_counter()]
    for stage in stages:
        stage()
        clock.append(time.perf_counter())
    return [end - start for start, end in pairwise(clock)]


@contextmanager
def _threads(number: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
