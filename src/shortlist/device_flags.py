"""Values that are not allowed, found on a device without waiting for it.

On a CPU a wrong target raises in the call that is given it. To look at a value that is on a GPU, the host would have to
wait for all the work before it, in every step. There, a wrong value sets a flag on the device, and the next call that
finds the flag set raises, naming the loss, its call and the place. `check` waits and raises what there is. With
``SHORTLIST_CHECKS=1`` in the environment every call waits and raises its own error.

The flag is one int64 per device: 0 where nothing is wrong, else the smallest of (call, what, position), packed, less
2^63: below 0, so that the smallest of all is the first.
"""

import os
import threading
from collections import Counter, deque
from typing import Any

import torch
from torch import Tensor

from shortlist.errors import ShortlistError

NOTHING = 0
_BELOW = 2**63  # every place that is noted is so far below what was packed
_POSITIONS = 40  # bits of a flat position
_KINDS = 3
_CALLS = 63 - _POSITIONS - _KINDS
REASONS = (
    "a target value that is not allowed: class indices are 0..L-1, or -1 (or -100) for an unknown row; "
    "a label matrix holds 1 (present), 0 (absent) and -1 (unknown)",
    "a row of shares that is not allowed: they are from 0 to 1 with the sum 1, or -1 in a whole unknown row",
    "a weight that is not allowed: weights are numbers from 0 to 1e15",
    "a k that is not allowed: it is at least 1 in every row",
    "a row with several present labels: this loss takes class indices, or at most one present label per row",
    "a class count that is not allowed: a finite number of examples is needed of every class",
)
TARGET, SHARES, WEIGHT, K, SEVERAL, COUNTS = range(len(REASONS))


def at_once() -> bool:
    """Whether every call is to wait for its own values."""
    return os.environ.get("SHORTLIST_CHECKS") == "1"


def waits(tensor: Tensor) -> bool:
    """Whether looking at a value of this tensor makes the host wait for a device, which nobody asked for."""
    return tensor.device.type not in ("cpu", "meta") and not at_once()


class _Device:
    """The flag of one device, the copy of it that is on its way to the host, and the names of the latest calls."""

    def __init__(self, device: torch.device) -> None:
        self.flag = torch.full((1,), NOTHING, dtype=torch.int64, device=device)
        self.host = torch.full((1,), NOTHING, dtype=torch.int64, pin_memory=device.type == "cuda")
        self.copied: Any = None  # the event after which `host` holds what was copied
        self.number = 0  # of the call under way
        self.calls: deque[tuple[int, str, int]] = deque(maxlen=1 << 16)
        self.counts: Counter[str] = Counter()

    def look(self, wait: bool) -> None:
        """Raise if a flag has arrived; start its next copy. Without ``wait`` nothing waits."""
        if wait or self.flag.is_cpu:
            self.copied = None
            self.host.copy_(self.flag)
        elif self.copied is None:
            if self.flag.device.type != "cuda":
                return  # no event to ask: `check` tells
            self.host.copy_(self.flag, non_blocking=True)
            self.copied = torch.cuda.current_stream(self.flag.device).record_event()
            return
        elif not self.copied.query():
            return
        self.copied = None
        found = int(self.host.numpy()[0])
        if found != NOTHING:
            self.flag.fill_(NOTHING)
            raise ShortlistError(self.told(found))

    def told(self, found: int) -> str:
        found += _BELOW
        position = found & ((1 << _POSITIONS) - 1)
        kind = (found >> _POSITIONS) & ((1 << _KINDS) - 1)
        call = found >> (_POSITIONS + _KINDS)
        names = [(name, count) for number, name, count in self.calls if number % (1 << _CALLS) == call]
        who = f"{names[-1][0]} was given, in its call {names[-1][1]}," if names else "a loss was given"
        return f"{who} at flat position {position}, {REASONS[kind]}"


class _Devices(threading.local):
    def __init__(self) -> None:
        self.known: dict[torch.device, _Device] = {}

    def __getitem__(self, device: torch.device) -> _Device:
        found = self.known.get(device)
        if found is None:
            found = self.known[device] = _Device(device)
        return found


_devices = _Devices()


def begin(name: str, device: torch.device) -> None:
    """A call of a loss begins: raise what an earlier one has left."""
    here = _devices[device]
    here.look(wait=False)
    here.number += 1
    here.counts[name] += 1
    here.calls.append((here.number, name, here.counts[name]))


def end(device: torch.device) -> None:
    """The call ends: where errors are wanted at once, wait for them."""
    if at_once():
        _devices[device].look(wait=True)


def check(device: torch.device | str | None = None) -> None:
    """Wait for a device (None: for all that were used in this thread) and raise what wrong values it was given."""
    for known, state in list(_devices.known.items()):
        if device is None or known == torch.device(device):
            state.look(wait=True)


def flag(device: torch.device, kind: int = TARGET) -> tuple[Tensor, int]:
    """What a kernel does ``atomic_min`` with: the flag, and the number that a position is added to."""
    here = _devices[device]
    call = max(1, here.number % (1 << _CALLS))
    return here.flag, (call << (_POSITIONS + _KINDS)) + (kind << _POSITIONS) - _BELOW


def note(bad: Tensor, kind: int) -> None:
    """Set the flag where ``bad`` holds a True, by operations of the device alone."""
    if not bad.numel():
        return
    here, base = flag(bad.device, kind)
    found, first = bad.detach().contiguous().view(torch.uint8).flatten().max(0)
    torch.minimum(here, first.add_(found, alpha=base), out=here)
