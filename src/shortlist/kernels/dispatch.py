"""Which kernels serve a tensor: native ones on the CPU, Triton's on a GPU, the PyTorch twin otherwise.

``SHORTLIST_KERNELS`` in the environment chooses once, for every thread: ``torch`` forces the twins, ``native`` (the
default) the best instruction set of this machine, ``avx512``, ``avx2`` or ``baseline`` that one. All but ``torch`` use
Triton's kernels for tensors on a GPU, where triton is installed (and not too old). ``triton`` asks for them: an error
where it is not; with ``TRITON_INTERPRET=1`` they are interpreted and serve tensors on the CPU, too (for tests: slow).
`use` chooses for the thread that calls it, and for no other.

A backward pass goes the way of its forward pass, native or twin. Its instruction set is that of the thread it runs in:
on CPU the one that calls ``backward``; what one instruction set has saved, every other can read.
"""

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module, metadata
from typing import Any

import torch
from torch import Tensor

from shortlist.checks import is_exporting
from shortlist.errors import ShortlistError

try:  # after torch: both then share torch's OpenMP runtime and its pool of threads
    native: Any = import_module("shortlist.kernels._native")
except ImportError:  # a pure build (SHORTLIST_PURE=1)
    native = None
if native is not None and not hasattr(native, "rml"):  # its arguments are others than this package passes
    raise ShortlistError(f"{native.__file__} was built for another version of shortlist: install shortlist again")

_SERVED = (torch.float32, torch.float64)
_SERVED_BY_TRITON = (torch.float32, torch.float16, torch.bfloat16)


def _triton_version() -> str | None:
    """Of the package, which is not imported for it; with torch for AMD it comes by other names."""
    for name in ("triton", "triton-rocm", "pytorch-triton-rocm", "pytorch-triton"):
        with suppress(metadata.PackageNotFoundError):
            return metadata.version(name)
    return None


def _triton_lack(version: str | None) -> str | None:
    """Why a triton of this version cannot serve, or None."""
    if version is None:
        return "triton is not installed: pip install 'shortlist[gpu]'"
    if tuple(int(number) for number in re.findall(r"\d+", version)[:3]) < _LEAST_TRITON:
        least = ".".join(map(str, _LEAST_TRITON))
        return f"triton {version} is older than {least}: pip install 'shortlist[gpu]'"
    return None


_LEAST_TRITON = (3, 7, 1)  # as the extra `gpu` says; torch may bring an older one
TRITON = _triton_version()
TRITON_LACK = _triton_lack(TRITON)
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def _available(name: str) -> str:
    """The name of an instruction set of this machine, "triton" or "torch"."""
    isas = native.isas() if native is not None else []
    if name == "native":
        return isas[0] if isas else "torch"
    if name == "triton":
        if TRITON_LACK is not None:
            raise ShortlistError(f"there are no kernels 'triton': {TRITON_LACK}")
        return name
    if name != "torch" and name not in isas:
        allowed = ", ".join(["native", "triton", "torch", *isas])
        raise ShortlistError(f"kernels {name!r} are not available on this machine; allowed: {allowed}")
    return name


_USUAL = _available(os.environ.get("SHORTLIST_KERNELS", "native"))
if _USUAL not in ("torch", "triton"):
    native.use_isa_usually(_USUAL)


class _Choice(threading.local):
    """What this thread uses; a new thread starts with what the environment says."""

    name = _USUAL


_choice = _Choice()


def _choose(name: str) -> None:
    if name not in ("torch", "triton"):
        native.use_isa(name)
    _choice.name = name


def in_use() -> str:
    """What this thread uses: "torch", "triton", or an instruction set."""
    return _choice.name


def native_serves(scores: Tensor) -> bool:
    """Whether the native kernels take this tensor. An exported model is to run without this package: none serves it."""
    if not scores.is_cpu or scores.dtype not in _SERVED or native is None or is_exporting():
        return False
    return _choice.name != "torch" and not (_choice.name == "triton" and INTERPRETED)


def triton_takes(scores: Tensor) -> bool:
    """Whether tensors of this device and type are Triton's business, whatever kernels it has."""
    if TRITON_LACK is not None or _choice.name == "torch" or scores.dtype not in _SERVED_BY_TRITON:
        return False
    if is_exporting():
        return False
    return scores.is_cuda or (INTERPRETED and scores.is_cpu and _choice.name == "triton")


def _triton_offer(name: str) -> Any:
    """The kernel of this name that ``shortlist.kernels.triton`` offers, or None; the first call imports triton."""
    return import_module("shortlist.kernels.triton").OFFERS.get(name)


def _triton_offers(name: str, labels: int, args: tuple[Any, ...]) -> bool:
    offer = _triton_offer(name)
    return offer is not None and bool(offer.serves(labels, *args))


# what torch.compiler.assume_constant_result does; that would import the whole compiler at every start, for seconds
_triton_offers._dynamo_marked_constant = True  # type: ignore[attr-defined]


def triton_serves(name: str, scores: Tensor, *args: Any) -> bool:
    """Whether there is a Triton kernel ``name`` for these scores and arguments (own tensors, then numbers)."""
    if not triton_takes(scores):
        return False
    plain = tuple(True if isinstance(value, Tensor) else value for value in args)  # whether there is one, to a compiler
    return _triton_offers(name, scores.shape[-1], plain)


def triton_kernel(name: str) -> Any:
    """What runs it."""
    return _triton_offer(name).run


@contextmanager
def use(name: str) -> Iterator[None]:
    """Choose kernels for a block of code: "native", "triton", "torch", or an instruction set that `info` lists.

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
    """What is in use in this thread and why, what this machine could use, and how many threads the kernels take.

    >>> sorted(info())
    ['available', 'in use', 'native module', 'on a CPU', 'on a GPU', 'threads', 'triton']
    """
    return {
        "in use": _choice.name,
        "on a CPU": _on_cpu(),
        "on a GPU": _on_gpu(),
        "available": [*(native.isas() if native is not None else []), *(["triton"] if _triton_can() else []), "torch"],
        "native module": native is not None,
        "triton": TRITON_LACK or TRITON,
        "threads": torch.get_num_threads(),
    }


def _triton_can() -> bool:
    """Whether Triton's kernels can serve any tensor of this machine."""
    return TRITON_LACK is None and (INTERPRETED or torch.cuda.is_available())


def _on_cpu() -> str:
    if _choice.name == "torch":
        return "torch: the twins were chosen"
    if _choice.name == "triton" and INTERPRETED:
        return "triton, interpreted (TRITON_INTERPRET=1): slow; torch for float64 and k above 8"
    if native is None:
        return "torch: the native module was not built"
    return f"native: {native.isa()}; half precision is computed in float32"


def _on_gpu() -> str:
    if _choice.name == "torch":
        return "torch: the twins were chosen"
    if TRITON_LACK is not None:
        return f"torch: {TRITON_LACK}"
    return f"triton {TRITON}; torch for float64 and k above 8"
