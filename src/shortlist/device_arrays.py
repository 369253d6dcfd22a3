"""Tensors on a device, worked on by code that is written for numpy.

Set rules, links and counts of scores are numpy: that is the fastest there is on a CPU. A `DeviceArray` holds a tensor
on another device and answers numpy's functions and operators (by its protocols ``__array_ufunc__`` and
``__array_function__``) with torch's, in the types that numpy's results have. So one text serves both, and nothing of a
device's scores comes to the host on its own: what has no answer here is an error, and so is ``np.asarray``. What may
travel, numbers and finished sets, is asked for by `on_host`, and by whole reductions (``x.max()``), which are numbers.

Unsigned integers, which torch hardly has, are int64: those of 32 bits by value, those of 64 bits by their bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray
from torch import Tensor

_U32, _U64 = np.dtype(np.uint32), np.dtype(np.uint64)
_KINDS = {torch.from_numpy(np.zeros(0, kind)).dtype: np.dtype(kind) for kind in ("?", "i1", "u1", "i2", "i4", "i8")}
_KINDS |= {torch.float16: np.dtype("f2"), torch.float32: np.dtype("f4"), torch.float64: np.dtype("f8")}
_TORCH = {kind: dtype for dtype, kind in _KINDS.items()} | {_U32: torch.int64, _U64: torch.int64}
_KINDS[torch.bfloat16] = np.dtype("f2")  # numpy has none; it is half as well, and nothing is computed in it
_SIGN = -(2**63)  # adding it puts the bits of unsigned numbers in the order of signed ones


def stays(scores: Any) -> bool:
    """Whether these are scores to be worked on where they are. (MPS has no float64, which rules compute in.)"""
    return isinstance(scores, Tensor) and scores.device.type not in ("cpu", "mps", "meta")


def on_host(array: Any) -> NDArray[Any]:
    """An array that may travel, as numpy has it."""
    if not isinstance(array, DeviceArray):
        return np.asarray(array)
    found: NDArray[Any] = array.tensor.cpu().numpy()
    return found.view(np.uint64) if array.dtype == _U64 else found.astype(array.dtype, copy=False)


def as_array(tensor: Tensor) -> Any:
    """A tensor as numpy's functions take it, where it is: sharing its memory on a CPU."""
    return DeviceArray(tensor) if stays(tensor) else tensor.numpy()


def as_torch(array: Any) -> Tensor:
    """The tensor of a DeviceArray, or one that shares the memory of a numpy array."""
    return array.tensor if isinstance(array, DeviceArray) else torch.from_numpy(array)


def as_given(tensor: Tensor, like: Any) -> Any:
    """A tensor as the kind of array that it was computed from."""
    return DeviceArray(tensor) if isinstance(like, DeviceArray) else tensor.numpy()


class DeviceArray(NDArrayOperatorsMixin):
    """An array on a device. ``dtype`` is the type that numpy would have."""

    __slots__ = ("dtype", "tensor")

    def __init__(self, tensor: Tensor, dtype: Any = None) -> None:
        self.tensor = tensor
        self.dtype = _KINDS[tensor.dtype] if dtype is None else np.dtype(dtype)

    # ---- what arrays have

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    @property
    def ndim(self) -> int:
        return self.tensor.ndim

    @property
    def size(self) -> int:
        return self.tensor.numel()

    def __len__(self) -> int:
        return len(self.tensor)

    def __repr__(self) -> str:
        return f"DeviceArray{self.shape} of {self.dtype} on {self.tensor.device}"

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(f"{self!r} does not come to the host by itself: see shortlist.device_arrays")

    def item(self, at: int = 0) -> Any:
        return on_host(self.reshape(-1)[at]).item()

    def tolist(self) -> Any:
        return on_host(self).tolist()

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    # ---- other shapes and types of it

    def reshape(self, *shape: Any) -> DeviceArray:
        return DeviceArray(self.tensor.reshape(*shape), self.dtype)

    def copy(self) -> DeviceArray:
        return DeviceArray(self.tensor.clone(), self.dtype)

    def astype(self, kind: Any, copy: bool = True) -> DeviceArray:
        kind = np.dtype(kind)
        changed = self.tensor.to(_TORCH[kind])
        if kind == _U32 and self.dtype != _U32:
            changed = changed & 0xFFFFFFFF
        return DeviceArray(changed.clone() if copy and changed is self.tensor else changed, kind)

    def view(self, kind: Any) -> DeviceArray:
        """The same bits as another type of so many."""
        kind = np.dtype(kind)
        if kind == _U32:
            return DeviceArray(self.tensor.view(torch.int32).long() & 0xFFFFFFFF, kind)
        if self.dtype == _U32:
            return DeviceArray(self.tensor.to(torch.int32).view(_TORCH[kind]), kind)
        return DeviceArray(self.tensor.view(_TORCH[kind]), kind)

    def __getitem__(self, key: Any) -> DeviceArray:
        tensor, key = self._at(key)
        return DeviceArray(tensor[key], self.dtype)

    def __setitem__(self, key: Any, value: Any) -> None:
        tensor, key = self._at(key)
        if isinstance(value, DeviceArray | np.ndarray):
            value = _tensor(value, tensor.device, self.dtype)
        tensor[key] = value

    def _at(self, key: Any) -> tuple[Tensor, Any]:
        """A key as torch takes it; steps backwards, which it does not take, are taken in the tensor that it is for."""
        tensor, keys = self.tensor, []
        for dim, one in enumerate(key if isinstance(key, tuple) else (key,)):
            if isinstance(one, slice) and one.step == -1:
                assert (one.start, one.stop) == (None, None)
                tensor, one = tensor.flip(dim), slice(None)
            if isinstance(one, DeviceArray | np.ndarray | list):
                one = _tensor(one, tensor.device)
                one = one if one.dtype in (torch.bool, torch.uint8) else one.long()
            keys.append(one)
        return tensor, tuple(keys) if isinstance(key, tuple) else keys[0]

    # ---- numpy's protocols

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, dtype: Any = None) -> Any:
        run = _UFUNCS.get(ufunc)
        if method != "__call__" or run is None:
            return NotImplemented
        made = _applied(run, ufunc, inputs, np.dtype(dtype) if dtype else None)
        if out is None:
            return made
        out[0].tensor.copy_(made.tensor)
        return out[0]

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        run = _FUNCTIONS.get(func.__name__)
        return NotImplemented if run is None else run(*args, **kwargs)

    def nonzero(self) -> tuple[DeviceArray, ...]:
        return tuple(map(DeviceArray, self.tensor.nonzero(as_tuple=True)))

    # ---- reductions: along an axis an array, of everything a number

    def sum(self, axis: int | None = None, keepdims: bool = False) -> Any:
        return self.tensor.sum().item() if axis is None else DeviceArray(self.tensor.sum(axis, keepdim=keepdims))

    def any(self, axis: int | None = None) -> Any:
        return bool(self.tensor.any().item()) if axis is None else DeviceArray(self.tensor.any(axis))

    def all(self, axis: int | None = None) -> Any:
        return bool(self.tensor.all().item()) if axis is None else DeviceArray(self.tensor.all(axis))

    def max(self, axis: int | None = None, initial: float | None = None) -> Any:
        if axis is None:
            return self.tensor.max().item() if self.size else initial
        return DeviceArray(self.tensor.amax(axis))

    def min(self) -> Any:
        return self.tensor.min().item()

    def argmax(self, axis: int | None = None) -> Any:
        found = _ordered(self).argmax(axis)
        return int(found.item()) if axis is None else DeviceArray(found)

    def argmin(self, axis: int | None = None) -> Any:
        found = _ordered(self).argmin(axis)
        return int(found.item()) if axis is None else DeviceArray(found)

    def cumsum(self, axis: int = -1, dtype: Any = None) -> DeviceArray:
        return DeviceArray(self.tensor.cumsum(axis, dtype=None if dtype is None else _TORCH[np.dtype(dtype)]))


def beside(array: Any, like: Any) -> Any:
    """An array where another one is: a numpy array goes to the device of a DeviceArray."""
    if isinstance(array, DeviceArray) or not isinstance(like, DeviceArray):
        return array
    return DeviceArray(_tensor(array, like.tensor.device), array.dtype)


def _tensor(value: Any, device: torch.device, kind: np.dtype[Any] | None = None) -> Tensor:
    """An array or a number as a tensor that holds what numpy's type ``kind`` holds. Numbers stay on the host, where
    devices read them."""
    if isinstance(value, DeviceArray):
        return value.tensor if kind is None else value.astype(kind, copy=False).tensor
    array = np.asarray(value) if kind is None else np.asarray(value).astype(kind)
    if array.dtype == _U64:
        array = array.view(np.int64)
    made = torch.from_numpy(np.ascontiguousarray(array).astype(np.int64) if array.dtype == _U32 else array.copy())
    return made.reshape(array.shape) if array.ndim == 0 else made.to(device)


def _ordered(array: DeviceArray) -> Tensor:
    """Numbers that torch puts in the order of the array's."""
    if array.dtype == _U64:
        return array.tensor ^ _SIGN
    return array.tensor.to(torch.uint8) if array.dtype == np.bool_ else array.tensor


# ---- operators

_Run = Callable[..., Tensor]


def _shifted(x: Tensor, bits: Tensor, kind: np.dtype[Any]) -> Tensor:
    """To the right; of 64 unsigned bits, zeros come in."""
    moved = x >> bits
    return moved & ((1 << (64 - int(bits))) - 1) if kind == _U64 else moved


def _compared(run: _Run) -> Callable[..., Tensor]:
    def apply(a: Tensor, b: Tensor, kind: np.dtype[Any]) -> Tensor:
        return run(a ^ _SIGN, b ^ _SIGN) if kind == _U64 else run(a, b)

    return apply


def _plain(run: Any) -> Callable[..., Tensor]:
    return lambda *given: run(*given[:-1])  # it needs no type


_UFUNCS: dict[Any, Callable[..., Tensor]] = {
    np.right_shift: _shifted,
    np.matmul: lambda a, b, _: (a * b).sum(-1),  # of whole numbers too, which no device's own takes
    **{
        getattr(np, name): _plain(run)
        for name, run in {
            "add": torch.add, "subtract": torch.sub, "multiply": torch.mul, "true_divide": torch.true_divide,
            "floor_divide": torch.floor_divide, "remainder": torch.remainder, "power": torch.pow,
            "negative": torch.neg, "absolute": torch.abs, "exp": torch.exp, "isnan": torch.isnan,
            "maximum": torch.maximum, "minimum": torch.minimum, "nextafter": torch.nextafter,
            "bitwise_and": torch.bitwise_and, "bitwise_or": torch.bitwise_or, "bitwise_xor": torch.bitwise_xor,
            "invert": torch.bitwise_not,
        }.items()
    },
    **{
        getattr(np, name): _compared(getattr(torch, short))
        for name, short in {
            "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
        }.items()
    },
}  # fmt: skip


def _applied(run: _Run, ufunc: Any, inputs: tuple[Any, ...], dtype: np.dtype[Any] | None) -> DeviceArray:
    """With the types that numpy resolves; plain numbers of Python have none of their own."""
    weak = (int, float)
    given = [type(x) if type(x) in weak else getattr(x, "dtype", np.dtype(bool)) for x in inputs]
    *kinds, out = (dtype,) * 3 if dtype else ufunc.resolve_dtypes((*given, None))
    device = next(x.tensor.device for x in inputs if isinstance(x, DeviceArray))
    tensors = [_tensor(x, device, kind) for x, kind in zip(inputs, kinds, strict=False)]
    return DeviceArray(run(*tensors, kinds[0]), out)


# ---- functions


def _device(*arrays: Any) -> torch.device:
    return next(x.tensor.device for x in arrays if isinstance(x, DeviceArray))


def _where(condition: Any, a: Any, b: Any) -> DeviceArray:
    kind = np.result_type(*(x if type(x) in (int, float) else x.dtype for x in (a, b)))
    device = _device(condition, a, b)
    chosen = torch.where(_tensor(condition, device), _tensor(a, device, kind), _tensor(b, device, kind))
    return DeviceArray(chosen, kind)


def _concatenate(arrays: Any, axis: int = 0) -> DeviceArray:
    kind, device = np.result_type(*(x.dtype for x in arrays)), _device(*arrays)
    return DeviceArray(torch.cat([_tensor(x, device, kind) for x in arrays], axis), kind)


def _sort(array: DeviceArray, axis: int = -1) -> DeviceArray:
    found = _ordered(array).sort(dim=axis).values
    return DeviceArray(found ^ _SIGN if array.dtype == _U64 else found, array.dtype)


def _argsort(array: DeviceArray, axis: int = -1, kind: str | None = None) -> DeviceArray:
    return DeviceArray(_ordered(array).sort(dim=axis, stable=True).indices)


def _lexsort(keys: Any, axis: int = -1) -> DeviceArray:
    order = _argsort(keys[0]).tensor
    for key in keys[1:]:
        order = order.gather(axis, _ordered(key).gather(axis, order).sort(dim=axis, stable=True).indices)
    return DeviceArray(order)


def _put_along_axis(array: DeviceArray, index: Any, values: Any, axis: int) -> None:
    at = _tensor(index, array.tensor.device).long()
    array.tensor.scatter_(axis, at, _tensor(values, array.tensor.device, array.dtype).to(at.device).expand(at.shape))


def _like(array: Any, value: Any, dtype: Any = None) -> DeviceArray:
    kind = array.dtype if dtype is None else np.dtype(dtype)
    return DeviceArray(torch.full(array.shape, value, dtype=_TORCH[kind], device=array.tensor.device), kind)


def _unique(array: DeviceArray, **wanted: bool) -> Any:
    found = torch.unique(_ordered(array), **wanted)  # return_inverse, return_counts
    first, *more = found if isinstance(found, tuple) else (found,)
    kept = DeviceArray(first ^ _SIGN if array.dtype == _U64 else first.to(array.tensor.dtype), array.dtype)
    return (kept, *map(DeviceArray, more)) if more else kept


def _searchsorted(values: Any, wanted: Any, side: str = "left") -> DeviceArray:
    kind, device = np.result_type(values.dtype, wanted.dtype), _device(values, wanted)
    pair = (_tensor(x, device, kind).contiguous() for x in (values, wanted))
    return DeviceArray(torch.searchsorted(*pair, right=side == "right"))


def _bincount(array: DeviceArray, weights: Any = None, minlength: int = 0) -> DeviceArray:
    weights = None if weights is None else _tensor(weights, array.tensor.device, np.dtype(np.float64))
    return DeviceArray(torch.bincount(array.tensor, weights, minlength))


def _interp(array: DeviceArray, xs: Any, ys: Any) -> DeviceArray:
    """Linear between the knots, and level beyond them, in double."""
    device = array.tensor.device
    at, x, y = array.tensor.double().contiguous(), *(_tensor(np.array(part), device).double() for part in (xs, ys))
    left = (torch.searchsorted(x, at, right=True) - 1).clamp(0, max(len(x) - 2, 0))
    right = (left + 1).clamp(max=len(x) - 1)
    slope = (y[right] - y[left]) / torch.where(right > left, x[right] - x[left], 1.0)
    between = slope * (at - x[left]) + y[left]
    return DeviceArray(torch.where(at >= x[-1], y[-1], torch.where(at <= x[0], y[0], between)))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "append": lambda a, b: _concatenate([x if isinstance(x, DeviceArray) else np.atleast_1d(x) for x in (a, b)]),
    "argmax": lambda array, axis=None: array.argmax(axis),
    "argmin": lambda array, axis=None: array.argmin(axis),
    "argsort": _argsort,
    "argwhere": lambda array: DeviceArray(array.tensor.nonzero()),
    "bincount": _bincount,
    "broadcast_to": lambda array, shape: DeviceArray(array.tensor.expand(shape), array.dtype),
    "concatenate": _concatenate,
    "count_nonzero": lambda array, axis=None: (array != 0).sum(axis),
    "diff": lambda array: array[1:] - array[:-1],
    "empty_like": lambda array: _like(array, 0),
    "flatnonzero": lambda array: array.reshape(-1).nonzero()[0],
    "full_like": lambda array, value, dtype=None: _like(array, value, dtype),
    "interp": _interp,
    "lexsort": _lexsort,
    "nonzero": lambda array: array.nonzero(),
    "ones_like": lambda array, dtype=None: _like(array, 1, dtype),
    "partition": lambda array, kth, axis=-1: _sort(array, axis),  # what is sorted is parted, too
    "put_along_axis": _put_along_axis,
    "repeat": lambda array, times: DeviceArray(array.tensor.repeat_interleave(times.tensor), array.dtype),
    "searchsorted": _searchsorted,
    "sort": _sort,
    "stack": lambda arrays, axis=0: DeviceArray(torch.stack([one.tensor for one in arrays], axis), arrays[0].dtype),
    "take_along_axis": lambda array, index, axis: DeviceArray(
        array.tensor.gather(axis, _tensor(index, array.tensor.device)), array.dtype
    ),
    "unique": _unique,
    "where": _where,
    "zeros_like": lambda array, dtype=None: _like(array, 0, dtype),
}
