"""A device that is not there: tensors that say they are on it, computed on the CPU, from which little may be copied.

A tensor on it is a `Pretended`; inside `pretending` tensors are made there, moved there and copied from there. It is as
strict as a GPU is: an operator does not take a tensor of it together with one of the CPU (numbers excepted), and the
memory of its tensors is not numpy's. And it is stricter: a copy of more than ``most`` fractions to the host is an
error, or of more int64 than `ScoreCounts` counts (sets, their membership and label matrices have smaller types); and
any copy where ``waits`` is False, but for one that does not block: it arrives when the device has got that far
(`finish`), as an event behind it (`Event`) tells.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

DEVICE = torch.device("lazy", 0)  # a kind of device that every torch knows, and that nobody has

COUNTS = 1 << 16


class Pretended(Tensor):
    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> "Pretended":
        made = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=DEVICE,
            requires_grad=False,
        )
        made.held = held
        return made  # type: ignore[no-any-return]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError(f"{func} outside of pretending()")


class _Mode(TorchDispatchMode):
    def __init__(self, most: int, waits: bool) -> None:
        super().__init__()
        self.most, self.waits = most, waits
        self.sent: list[tuple[Tensor, Tensor]] = []  # copies that do not block: where to, and what
        self.finished = 0  # so many of them have arrived

    def finish(self, copies: int | None = None) -> None:
        """The device does what it was asked for, or only so many copies more."""
        end = len(self.sent) if copies is None else self.finished + copies
        for host, value in self.sent[self.finished : end]:
            host.copy_(value)
        self.finished = end

    def event(self) -> "Event":
        return Event(self)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = func.overloadpacket.__name__
        flat = torch.utils._pytree.tree_leaves((args, kwargs))
        here = [one for one in flat if isinstance(one, Pretended)]
        wanted = kwargs.get("device")
        if wanted is not None and wanted.type == DEVICE.type:
            kwargs["device"] = torch.device("cpu")
        stays = bool(here) if wanted is None else wanted.type == DEVICE.type
        if here and name in ("_local_scalar_dense", "is_nonzero", "equal", "nonzero", "masked_select", "_unique2"):
            assert self.waits, f"{name} waits for the device"
        if name == "_local_scalar_dense":
            stays = False
        elif name == "copy_" and here and not isinstance(args[0], Pretended):
            if len(args) > 2 and args[2]:
                self.sent.append((args[0], args[1].held.clone()))
                return args[0]
            self._travels(args[1])
            stays = False
        elif here and not stays:
            self._travels(here[0])
        elif here and name not in ("copy_", "_to_copy"):
            others = [one for one in flat if isinstance(one, Tensor) and not isinstance(one, Pretended) and one.ndim]
            assert not others, f"{name} of tensors on two devices"
        out = func(*tree_map(_held, args), **tree_map(_held, kwargs))
        if not stays:
            return out
        if out is not None and here and any(out is one.held for one in here):  # in place
            return next(one for one in here if one.held is out)
        return tree_map(lambda one: Pretended(one) if isinstance(one, Tensor) else one, out)

    def _travels(self, given: Tensor) -> None:
        assert self.waits, "a copy to the host waits for the device"
        most = self.most if given.is_floating_point() else COUNTS
        is_of_sets = given.dtype in (torch.bool, torch.int8, torch.int32)
        assert is_of_sets or given.numel() <= most, f"a copy of {given.numel()} numbers of {given.dtype} to the host"


class Event:
    """What `torch.Event` is on a device: whether all that was asked for before it was recorded is done."""

    def __init__(self, mode: _Mode) -> None:
        self.mode, self.place = mode, 0

    def record(self, stream: Any = None) -> None:
        self.place = len(self.mode.sent)

    def query(self) -> bool:
        return self.mode.finished >= self.place


def _held(one: Any) -> Any:
    return one.held if isinstance(one, Pretended) else one


@contextmanager
def pretending(most: int, waits: bool = True) -> Iterator[_Mode]:
    """In which there is such a device."""
    with _Mode(most, waits) as mode:
        yield mode


def moved(tensor: Tensor) -> Tensor:
    """A tensor on the device."""
    return Pretended(tensor.detach().clone())
