"""Triton's interpreter made quick, and made to count: for processes that run with TRITON_INTERPRET=1.

Its ``tl.reduce`` with a combine function of one's own is a loop over elements in Python. Combine functions work on
whole arrays as well: here halves are combined with halves. The kernels are the same.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
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
