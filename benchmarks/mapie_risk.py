"""Risk control of recall beside MAPIE's at growing sizes, each in a process of its own with a limit on time and memory.

python -m benchmarks.mapie_risk [--gigabytes 16] [--minutes 10]
"""

import argparse
import multiprocessing
import resource
import time
from functools import partial
from typing import Any

import torch

from benchmarks.guarantees import RECALL, _mapie_risk, _our_risk
from benchmarks.harness import THREADS
from benchmarks.memory import RESET_PEAK, peak_bytes, resident_bytes

SHAPES = [(1_000, 300), (2_000, 300), (2_000, 1_000), (5_000, 1_000), (10_000, 1_000)]
SIDES = {
    "ours": partial(_our_risk, RECALL),
    "MAPIE": partial(_mapie_risk, {"method": "crc", "risk": "recall"}),
}


def _measure(side: str, shape: tuple[int, int], most: int, answers: Any) -> None:
    torch.set_num_threads(THREADS)
    step = SIDES[side](*shape)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    before = resident_bytes()
    RESET_PEAK.write_text("5")
    start = time.perf_counter()
    try:
        step()
    except MemoryError:
        answers.put(None)
        return
    answers.put((time.perf_counter() - start, (peak_bytes() - before) / 1e9))


def measured(side: str, shape: tuple[int, int], most: int, seconds: float) -> tuple[float, float] | str:
    """Seconds and gigabytes of fitting and predicting once; or which limit it did not keep."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=_measure, args=(side, shape, most, answers))
    process.start()
    process.join(seconds)
    if process.is_alive():
        process.kill()
        process.join()
        return f"above {seconds / 60:g} minutes"
    found = None if answers.empty() else answers.get()
    return f"above {most / 1e9:g} GB" if found is None else found


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.mapie_risk", description=__doc__)
    options.add_argument("--gigabytes", type=float, default=16.0, help="the most memory that a process may ask for")
    options.add_argument("--minutes", type=float, default=10.0, help="the most time that it may take")
    given = options.parse_args()
    print("| rows x labels | ours | MAPIE | ratio |\n|---|---|---|---|", flush=True)
    for shape in SHAPES:
        ours, theirs = (measured(side, shape, int(1e9 * given.gigabytes), 60 * given.minutes) for side in SIDES)
        told = [one if isinstance(one, str) else f"{one[0]:.3g} s, {one[1]:.2g} GB" for one in (ours, theirs)]
        both = not isinstance(ours, str) and not isinstance(theirs, str)
        ratio = f"{ours[0] / theirs[0]:.2g}" if both else ""  # type: ignore[operator]
        print(f"| {shape[0]:,} x {shape[1]:,} | {told[0]} | {told[1]} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
