"""Triton's interpreter made quick, and made to count: for processes that run with TRITON_INTERPRET=1.

Its ``tl.reduce`` with a combine function of one's own is a loop over elements in Python. Combine functions work on
whole arrays as well: here halves are combined with halves. And at every call of a function inside a kernel it looks
through all of Triton's language for what to replace: here it is told where that is. The kernels are the same.
"""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter


def _by_halves(self: Any, given: Any) -> Any:
    assert self.axis == 0
    assert not self.keep_dims
    types = [one.dtype for one in given]
    parts = [one.handle.data for one in given]
    while len(parts[0]) > 1:
        half = len(parts[0]) // 2
        left = [self.to_tensor(part[:half], kind) for part, kind in zip(parts, types, strict=True)]
        right = [self.to_tensor(part[half:], kind) for part, kind in zip(parts, types, strict=True)]
        both = self.combine_fn.fn(*left, *right)
        both = both if isinstance(both, tuple) else (both,)
        parts = [one.handle.data for one in both]
    return tuple(self.to_tensor(part.reshape(()), kind) for part, kind in zip(parts, types, strict=True))


interpreter.ReduceOps.generic_reduce = _by_halves


_BUILTINS = {
    part: [name for name, member in inspect.getmembers(part) if tl.core.is_builtin(member)]
    for part in (tl, tl.core, tl.tensor, tl.math, tl.core.tensor_descriptor_base)  # before anything is replaced
}
_replace = interpreter._patch_lang


@cache
def _languages(function: Any) -> list[Any]:
    """What the interpreter replaces builtins of, for this function."""
    return [value for value in function.__globals__.values() if value is tl or value is tl.core]


def _replace_once(function: Any) -> Any:
    """Nothing is left to do inside a kernel, whose launch has replaced all of it."""
    if any(tl.core.is_builtin(getattr(part, _BUILTINS[part][0])) for part in _languages(function)):
        return _replace(function)
    return interpreter._LangPatchScope()


def _replace_builtins(part: Any, builder: Any, scope: Any) -> None:
    for name in _BUILTINS[part]:
        member = getattr(part, name)
        if tl.core.is_builtin(member):  # not replaced yet
            interpreter._patch_attr(part, name, member, builder, scope)


interpreter._patch_lang, interpreter._patch_builtin = _replace_once, _replace_builtins


class Bytes:
    """Read and written inside the block, of blocks of more than one number: not a row's own few."""

    read = 0
    written = 0


@contextmanager
def counted() -> Iterator[Bytes]:
    count, builder = Bytes(), interpreter.interpreter_builder
    load, store = builder.create_masked_load, builder.create_masked_store

    def counting_load(ptrs: Any, mask: Any, *args: Any) -> Any:
        out = load(ptrs, mask, *args)
        if np.size(out.data) > 1:
            count.read += int(np.sum(mask.data)) * out.data.itemsize
        return out

    def counting_store(ptrs: Any, value: Any, mask: Any, *args: Any) -> Any:
        if np.size(value.data) > 1:
            count.written += int(np.sum(mask.data)) * value.data.itemsize
        return store(ptrs, value, mask, *args)

    builder.create_masked_load, builder.create_masked_store = counting_load, counting_store
    try:
        yield count
    finally:
        builder.create_masked_load, builder.create_masked_store = load, store
