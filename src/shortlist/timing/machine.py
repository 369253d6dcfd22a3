"""What figures were measured on: enough to judge them, nothing that names the machine."""

import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from shortlist import __version__, kernels

_CPU_INFO = Path("/proc/cpuinfo")  # Linux


def describe_machine(threads: int | None = None, packages: Sequence[str] = ()) -> dict[str, str]:
    """The processor, its instruction set, memory, threads, and the versions in use (also of these packages), as text.

    >>> describe_machine(threads=2)["threads"]
    '2'
    """
    return {
        "processor": _processor(),
        "cores": str(_cores()),
        "vector instructions": torch.backends.cpu.get_cpu_capability(),
        **_memory(),
        "threads": str(threads or torch.get_num_threads()),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "shortlist": __version__,
        "kernels": ", ".join(f"{key} {value}" for key, value in kernels.info().items() if os.sep not in str(value)),
        **{name: text for name in packages if (text := _version(name))},
    }


def _processor() -> str:
    lines = _CPU_INFO.read_text().splitlines() if _CPU_INFO.exists() else []
    names = [value.strip() for key, _, value in (line.partition(":") for line in lines) if key.strip() == "model name"]
    return f"{names[0]} ({platform.machine()})" if names else platform.machine()


def _cores() -> int:
    """Those this process may use, where the system says so."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory() -> dict[str, str]:
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return {}
    return {"memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
