"""Native kernels on CPU float32 and float64 tensors; the PyTorch twin otherwise.

``SHORTLIST_KERNELS`` in the environment chooses once: ``torch`` forces the twins, ``native`` (the default) the best
instruction set of this machine, ``avx512``, ``avx2`` or ``baseline`` that one.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from shortlist.errors import ShortlistError

try:  # after torch: both then share torch's OpenMP runtime and its pool of threads
    native: Any = import_module("shortlist.kernels._native")
except ImportError:  # a pure build (SHORTLIST_PURE=1)
    native = None

_in_use = "torch"
_SERVED = (torch.float32, torch.float64)


def _choose(name: str) -> None:
    global _in_use
    isas = native.isas() if native is not None else []
    if name == "native":
        name = isas[0] if isas else "torch"
    if name != "torch":
        if name not in isas:
            allowed = ", ".join(["native", "torch", *isas])
            raise ShortlistError(f"kernels {name!r} are not available on this machine; allowed: {allowed}")
        native.use_isa(name)
    _in_use = name


_choose(os.environ.get("SHORTLIST_KERNELS", "native"))


def native_serves(scores: Tensor) -> bool:
    """Whether the native kernels take this tensor."""
    return _in_use != "torch" and scores.is_cpu and scores.dtype in _SERVED


@contextmanager
def use(name: str) -> Iterator[None]:
    """Choose kernels for a block of code: "native", "torch", or an instruction set that `info` lists.

    >>> import torch, shortlist as sl
    >>> with sl.kernels.use("torch"):
    ...     sl.kernels.info()["in use"]
    'torch'
    """
    before = _in_use
    _choose(name)
    try:
        yield
    finally:
        _choose(before)


def info() -> dict[str, Any]:
    """What is in use, what this machine could use, and how many threads.

    >>> sorted(info())
    ['available', 'in use', 'native module', 'threads']
    """
    return {
        "in use": _in_use,
        "available": [*(native.isas() if native is not None else []), "torch"],
        "native module": native is not None,
        "threads": torch.get_num_threads(),
    }
