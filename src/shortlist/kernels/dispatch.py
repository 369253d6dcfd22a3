"""Native kernels on CPU float32 and float64 tensors; the PyTorch twin otherwise.

``SHORTLIST_KERNELS`` in the environment chooses once, for every thread: ``torch`` forces the twins, ``native`` (the
default) the best instruction set of this machine, ``avx512``, ``avx2`` or ``baseline`` that one. `use` chooses for the
thread that calls it, and for no other.

A backward pass goes the way of its forward pass, native or twin. Its instruction set is that of the thread it runs in:
on CPU the one that calls ``backward``; what one instruction set has saved, every other can read.
"""

import os
import threading
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
if native is not None and not hasattr(native, "rml"):  # its arguments are others than this package passes
    raise ShortlistError(f"{native.__file__} was built for another version of shortlist: install shortlist again")

_SERVED = (torch.float32, torch.float64)


def _available(name: str) -> str:
    """The name of an instruction set of this machine, or "torch"."""
    isas = native.isas() if native is not None else []
    if name == "native":
        return isas[0] if isas else "torch"
    if name != "torch" and name not in isas:
        allowed = ", ".join(["native", "torch", *isas])
        raise ShortlistError(f"kernels {name!r} are not available on this machine; allowed: {allowed}")
    return name


_USUAL = _available(os.environ.get("SHORTLIST_KERNELS", "native"))
if _USUAL != "torch":
    native.use_isa_usually(_USUAL)


class _Choice(threading.local):
    """What this thread uses; a new thread starts with what the environment says."""

    name = _USUAL


_choice = _Choice()


def _choose(name: str) -> None:
    if name != "torch":
        native.use_isa(name)
    _choice.name = name


def native_serves(scores: Tensor) -> bool:
    """Whether the native kernels take this tensor."""
    return _choice.name != "torch" and scores.is_cpu and scores.dtype in _SERVED


@contextmanager
def use(name: str) -> Iterator[None]:
    """Choose kernels for a block of code: "native", "torch", or an instruction set that `info` lists.

    The choice is this thread's own: other threads, and threads started inside the block, keep theirs.

    >>> import torch, shortlist as sl
    >>> with sl.kernels.use("torch"):
    ...     sl.kernels.info()["in use"]
    'torch'
    """
    before = _choice.name
    _choose(_available(name))
    try:
        yield
    finally:
        _choose(before)


def info() -> dict[str, Any]:
    """What is in use in this thread, what this machine could use, and how many threads the kernels take.

    >>> sorted(info())
    ['available', 'in use', 'native module', 'threads']
    """
    return {
        "in use": _choice.name,
        "available": [*(native.isas() if native is not None else []), "torch"],
        "native module": native is not None,
        "threads": torch.get_num_threads(),
    }
