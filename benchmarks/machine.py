"""What the figures were measured on: enough to judge them, nothing that names the machine. Linux only, as memory is."""

import os
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

import shortlist
from benchmarks.harness import THREADS

PEERS = ("numpy", "difftopk", "pytopk", "entmax", "torchmetrics", "scikit-learn")


def describe() -> dict[str, str]:
    """The processor, its instruction set, the memory, the threads and the versions in use, as text."""
    return {
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0))),
        "vector instructions": torch.backends.cpu.get_cpu_capability(),
        "memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB",
        "threads": str(THREADS),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "shortlist": shortlist.__version__,
        "kernels": _plain(shortlist.kernels.info()),
        **{name: text for name in PEERS if (text := _version(name))},
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [value.strip() for key, _, value in (line.partition(":") for line in lines) if key.strip() == "model name"]
    return f"{names[0]} ({platform.machine()})" if names else platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _plain(info: object) -> str:
    """The kernels' own account of themselves on one line, file names left out."""
    if not isinstance(info, Mapping):
        return str(info)
    return ", ".join(f"{key} {value}" for key, value in info.items() if os.sep not in str(value))
