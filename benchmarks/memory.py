"""How much memory a step takes beyond its inputs: the rise of the process's peak, in a fresh process.

The peak of resident memory sees everything, the C++ kernels' own buffers too, which PyTorch's profiler does not. The
kernel's counter is set back just before the step (Linux only), so that nothing earlier can hide in it.
"""

import ctypes
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import torch

Setup = Callable[[], Callable[[], object]]

M_MMAP_THRESHOLD = -3  # from malloc.h
STATUS, RESET_PEAK = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def extra_bytes(setup: Setup, warm_up: Setup, threads: int) -> int:
    """The bytes that the step made by `setup` takes at its peak, its inputs not counted.

    `warm_up` makes the same step on small inputs; it runs first, so that the code a first call loads does not count.
    Both must be picklable.
    """
    if not RESET_PEAK.exists():
        raise RuntimeError(f"memory is measured through {RESET_PEAK}, which this system does not have (Linux has)")
    context = multiprocessing.get_context("forkserver")
    function = setup.func if isinstance(setup, partial) else setup
    context.set_forkserver_preload(["torch", function.__module__])  # imported once, inherited by every fork
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_measure, setup, warm_up, threads).result()


def _measure(setup: Setup, warm_up: Setup, threads: int) -> int:
    torch.set_num_threads(threads)
    # give large blocks back the moment they are freed: what the allocator keeps for later varies from run to run
    ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 1 << 16)
    warm_up()()
    step = setup()
    before = resident_bytes()
    RESET_PEAK.write_text("5")
    step()
    return peak_bytes() - before


def resident_bytes() -> int:
    """The memory that this process has now."""
    return _status("VmRSS")


def peak_bytes() -> int:
    """The most that it had since the counter was set back."""
    return _status("VmHWM")


def _status(field: str) -> int:
    for line in STATUS.read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return 1024 * int(value.split()[0])  # "123 kB"
    raise RuntimeError(f"{STATUS} has no {field}")
