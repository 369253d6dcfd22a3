"""Values that are not allowed, found on a device without waiting for it.

On a CPU a wrong target raises in the call that is given it. To look at a value that is on a GPU, the host would have to
wait for all the work before it, in every step. There, a wrong value sets a flag on the device. A call ends by sending
the flag to the host behind its work, and the next call raises if it has arrived, naming the loss, its call and the
place (or the value): nothing is waited for, and a flag that is still on its way is found by a later call. `check` waits
and raises what there is. With ``SHORTLIST_CHECKS=1`` in the environment every call waits and raises its own error.

The flag is one int64 per device: 0 where nothing is wrong, else the smallest of (call, what, position), packed, less
2^63: below 0, so that the smallest of all is the first. Of a target of integers the least and the largest are kept
beside it, by one operation, and the host compares them when they have arrived.
"""

import os
import threading
from collections import Counter, deque
from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

import torch
from torch import Tensor

from shortlist.errors import ShortlistError

NOTHING = 0
_BELOW = 2**63  # every place that is noted is so far below what was packed
_POSITIONS = 40  # bits of a flat position
_KINDS = 3
_CALLS = 63 - _POSITIONS - _KINDS
_RANGES = 32  # so many targets may be on their way to the host
_COPIES = 8  # and so many copies of the flag: a host that is further ahead of its device sends none for some calls
REASONS = (
    "a target value that is not allowed: class indices are 0..L-1, or -1 (or -100) for an unknown row; "
    "a label matrix holds 1 (present), 0 (absent) and -1 (unknown); for shares of labels give soft=True",
    "a row of shares that is not allowed: they are from 0 to 1 with the sum 1, or -1 in a whole unknown row",
    "a weight that is not allowed: weights are numbers from 0 to 1e15",
    "a k that is not allowed: it is at least 1 in every row",
    "a row with several present labels: this loss takes class indices, or at most one present label per row",
    "a class count that is not allowed: a finite number of examples is needed of every class",
    "or in one of the calls soon after it, a target value that is not allowed",
)
TARGET, SHARES, WEIGHT, K, SEVERAL, COUNTS, SOON = range(len(REASONS))
_F = TypeVar("_F", bound=Callable[..., Any])
_without_transforms: Callable[[], Any] = getattr(torch._C, "_DisableFuncTorch", nullcontext)


def at_once() -> bool:
    """Whether every call is to wait for its own values."""
    return os.environ.get("SHORTLIST_CHECKS") == "1"


def waits(tensor: Tensor) -> bool:
    """Whether looking at a value of this tensor makes the host wait for a device, which nobody asked for."""
    return tensor.device.type not in ("cpu", "meta") and not at_once()


class _Range(NamedTuple):
    """Where the least and the largest value of a target are kept, and what is allowed."""

    at: int
    call: int
    low: int
    high: int
    dtype: torch.dtype
    besides: int | None  # one more value that is allowed. It may hide others between it and ``low``:
    target: Tensor | None  # this is then looked through, if nobody has changed it
    version: int


class _Copy:
    """The state of a device on its way to the host, and the event behind it."""

    event_of: ClassVar[Any] = torch.Event  # the same for CUDA, ROCm, XPU and MPS

    def __init__(self, state: Tensor) -> None:
        pinned = state.device.type in ("cuda", "xpu")  # else their copies wait; MPS writes into any memory
        self.host = torch.empty(state.shape, dtype=state.dtype, pin_memory=pinned)
        self.event = self.event_of(state.device)
        self.noted = self.told = 0  # of the device, when it was sent

    def send(self, state: Tensor, noted: int, told: int) -> None:
        self.host.copy_(state, non_blocking=True)
        self.event.record(torch.accelerator.current_stream(state.device))
        self.noted, self.told = noted, told


class _Device:
    """The flag of one device and the ranges of targets, copies of them that are on their way to the host, and the names
    of the latest calls."""

    def __init__(self, device: torch.device) -> None:
        size = 1 + 2 * _RANGES
        self.state = torch.full((size,), NOTHING, dtype=torch.int64, device=device)
        self.flag = self.state[:1]
        self.ranges: deque[_Range] = deque()
        self.noted = self.told = 0  # how many ranges there were, and how many flags were raised
        self.sent: deque[_Copy] = deque()
        self.idle: list[_Copy] = []
        module = getattr(torch, device.type, None)
        self.silent = getattr(module, "is_current_stream_capturing", bool)  # into a graph: nothing is sent or asked
        self.number, self.under_way = 0, False  # of the latest call, and whether it has not ended yet
        self.calls: deque[tuple[int, str, int]] = deque(maxlen=1 << 16)
        self.counts: Counter[str] = Counter()

    @property
    def call(self) -> int:
        """The call that values belong to: what is looked at before one begins (its options) is that of the next."""
        return self.number if self.under_way else self.number + 1

    def send(self) -> None:
        """Let a copy of the flag follow the work so far. One that is under way is not taken again: were every call to
        overtake the one before, a host ahead of its device would never see any arrive."""
        if self.flag.is_cpu or len(self.sent) == _COPIES or self.silent():
            return
        try:
            copy = self.idle.pop() if self.idle else _Copy(self.state)
            copy.send(self.state, self.noted, self.told)
        except RuntimeError:  # a backend without events: only `check` tells
            self.silent = lambda: True
            return
        self.sent.append(copy)

    def arrived(self) -> _Copy | None:
        """The latest copy that has arrived, if nothing was raised since it was sent: the flag in it is then told."""
        latest = None
        while self.sent and self.sent[0].event.query():
            latest = self.sent.popleft()
            self.idle.append(latest)
        return latest if latest is not None and latest.told == self.told else None

    def look(self, wait: bool) -> None:
        """Raise if a flag has arrived. Without ``wait`` nothing waits."""
        if wait or self.flag.is_cpu:
            host, noted = self.state.cpu(), self.noted
        else:
            copy = None if self.silent() else self.arrived()
            if copy is None:
                return
            host, noted = copy.host, copy.noted
        wrong = self.wrong_ranges(host, noted)  # which may set the flag
        found = int((self.flag.cpu() if wait else host).numpy()[0])
        if found != NOTHING:
            self.told += 1
            self.flag.fill_(NOTHING)
            raise ShortlistError(self.named(found))
        if wrong:
            raise ShortlistError(wrong[0])

    def wrong_ranges(self, host: Tensor, noted: int) -> list[str]:
        """What is wrong with the targets whose ranges have arrived: the first so many."""
        wrong = []
        while self.ranges and self.ranges[0].at < noted:
            kept = self.ranges.popleft()
            least, most = (int(end) for end in _ends(host, kept.at, kept.dtype))
            if least == kept.besides:
                self.look_besides(kept)
            if most > kept.high or (least < kept.low and least != kept.besides):
                value = most if most > kept.high else least
                wrong.append(f"{self.who(kept.call)} {value}, {REASONS[TARGET]}")
        return wrong

    def make_room(self) -> None:
        """Compare all ranges on the device, which sets the flag: nobody waits for what is still on its way."""
        alike = len({kept[2:6] for kept in self.ranges}) == 1
        for kept in [self.ranges[0]] if alike else self.ranges:
            least, most = _ends(self.state, None if alike else kept.at, kept.dtype)
            low = least < kept.low
            note((low if kept.besides is None else low & (least != kept.besides)) | (most > kept.high), SOON, kept.call)
        for kept in self.ranges:
            self.look_besides(kept)
        self.ranges.clear()

    def look_besides(self, kept: _Range) -> None:
        """Set the flag where the value that is allowed besides hides others."""
        if kept.target is not None and kept.target._version == kept.version:
            note((kept.target < kept.low) & (kept.target != kept.besides), TARGET, kept.call)

    def named(self, found: int) -> str:
        found += _BELOW
        position = found & ((1 << _POSITIONS) - 1)
        kind = (found >> _POSITIONS) & ((1 << _KINDS) - 1)
        where = "" if kind == SOON else f"at flat position {position}, "
        return f"{self.who(found >> (_POSITIONS + _KINDS))} {where}{REASONS[kind]}"

    def who(self, call: int) -> str:
        names = [(name, count) for number, name, count in self.calls if number % (1 << _CALLS) == call % (1 << _CALLS)]
        return f"{names[-1][0]} was given, in its call {names[-1][1]}," if names else "a loss was given"


def _ends(state: Tensor, at: int | None, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Where the least and the largest value of a range are, or of all."""
    room = state[1:] if at is None else state[1 + 2 * (at % _RANGES) :][:2]
    both = room.view(dtype).view(len(room) // 2, -1).squeeze(0)
    return both[..., 0], both[..., -1]


class _Devices(threading.local):
    def __init__(self) -> None:
        self.known: dict[torch.device, _Device] = {}

    def __getitem__(self, device: torch.device) -> _Device:
        found = self.known.get(device)
        if found is None:
            found = self.known[device] = _Device(device)
        return found


_devices = _Devices()


def _plainly(function: _F) -> _F:
    """A device's state is no part of a transform: what is made of plain tensors inside one would else be wrapped in it,
    and stay so after it."""

    @wraps(function)
    def plain(*args: Any, **options: Any) -> Any:
        with _without_transforms():
            return function(*args, **options)

    return cast(_F, plain)


@_plainly
def begin(name: str, device: torch.device) -> None:
    """A call of a loss begins: raise what an earlier one has left."""
    here = _devices[device]
    here.number, here.under_way = here.number + 1, False
    here.counts[name] += 1
    here.calls.append((here.number, name, here.counts[name]))
    here.look(wait=False)
    here.under_way = True


@_plainly
def end(device: torch.device) -> None:
    """The call ends: send what it may have found, or wait for it where errors are wanted at once."""
    here = _devices[device]
    here.under_way = False
    if at_once():
        here.look(wait=True)
    else:
        here.send()


@_plainly
def check(device: torch.device | str | None = None) -> None:
    """Wait for a device (None: for all that were used in this thread) and raise what wrong values it was given."""
    for known, state in list(_devices.known.items()):
        if device is None or known == torch.device(device):
            state.look(wait=True)


@_plainly
def flag(device: torch.device, kind: int = TARGET, call: int | None = None) -> tuple[Tensor, int]:
    """What a kernel does ``atomic_min`` with: the flag, and the number that a position is added to."""
    here = _devices[device]
    call = max(1, (here.call if call is None else call) % (1 << _CALLS))
    return here.flag, (call << (_POSITIONS + _KINDS)) + (kind << _POSITIONS) - _BELOW


@_plainly
def note(bad: Tensor, kind: int, call: int | None = None) -> None:
    """Set the flag where ``bad`` holds a True, by operations of the device alone."""
    if not bad.numel():
        return
    here, base = flag(bad.device, kind, call)
    found, first = bad.detach().contiguous().view(torch.uint8).flatten().max(0)
    torch.minimum(here, first.add_(found, alpha=base), out=here)


@_plainly
def note_range(target: Tensor, low: int, high: int, besides: int | None = None) -> None:
    """Keep the least and the largest of a target's integers for whoever looks: only those from ``low`` to ``high`` are
    allowed, and the one ``besides``."""
    if not target.numel():
        return
    here = _devices[target.device]
    if len(here.ranges) == _RANGES:
        here.make_room()
    torch.aminmax(target, out=_ends(here.state, here.noted, target.dtype))
    held = None if besides is None or target.is_inference() else target  # class indices: a few numbers
    version = 0 if held is None else held._version
    here.ranges.append(_Range(here.noted, here.call, low, high, target.dtype, besides, held, version))
    here.noted += 1
