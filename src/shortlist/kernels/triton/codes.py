"""Label matrices of every kind as codes: 1 present, 0 absent, -1 unknown; of floats also as chances between them.

A dense one is a matrix of any type; a sparse one is three tensors, of which each label looks up its own entry: the
labels of a row are increasing, so that a few steps of bisection find it, in the cache and without a matrix.
"""

import triton
import triton.language as tl

from shortlist.kernels.triton.launch import LossCall


def stored_of(call: LossCall) -> int:
    """How many entries are stored of a sparse target."""
    return 0 if call.target.offsets is None else len(call.target.labels)


@triton.jit
def weight_of(W, row):
    """The row's weight, 1 where there are none."""
    if W is None:
        return (row * 0 + 1).to(tl.float32)
    else:
        return tl.load(W + row)


@triton.jit
def label_codes(
    T, OFFSETS, VALUES, FLAG, base, n, tstride, stored, row, cols, inside, TILE: tl.constexpr = False
):
    """Codes of labels ``cols`` of a row, -1 where not ``inside``. A value that is not allowed counts as unknown, and
    sets the flag (None: it has been read before). TILE: of several rows; ``row`` is then a column, ``cols`` a row."""
    if OFFSETS is None:
        given = tl.load(T + row * tstride + cols, mask=inside, other=0)
        code = tl.where(given == 1, 1, tl.where(given == 0, 0, -1))
        if FLAG is not None:
            wrong = inside & (code < 0) & (given != -1)
            first = tl.min(tl.where(wrong, row * n + cols, 1 << 62))
            tl.atomic_min(FLAG, base + first, mask=first < (1 << 62))
    else:  # T: the labels that are stored; nothing is trusted: no memory is touched that is not the matrix's
        first = tl.maximum(tl.load(OFFSETS + row), 0)
        own = tl.minimum(tl.minimum(tl.load(OFFSETS + row + 1), stored) - first, n).to(tl.int32)  # entries of the row
        length = tl.max(own) if TILE else own
        at = tl.where(inside, 0, 0)
        while length > 0:
            half = (length + 1) // 2
            probe = at + (half - 1)
            label = tl.load(T + first + probe, mask=inside & (probe < own), other=0x7FFFFFFF)
            at = tl.where(label < cols, at + half, at)
            length = length - half
        there = inside & (at < own)
        label = tl.load(T + first + at, mask=there, other=-1)
        value = tl.load(VALUES + first + at, mask=there, other=0).to(tl.int32)
        rest = tl.load(VALUES + stored).to(tl.int32)
        code = tl.where(there & (label == cols), value, rest)
    return tl.where(inside, code, -1)


@triton.jit
def label_chances(T, FLAG, base, n, tstride, row, cols, inside):
    """The chance by which labels ``cols`` of a row are present, from a dense matrix of floats: from 0 to 1, or -1 for
    unknown and what is not ``inside``. What is not allowed counts as unknown, and sets the flag, as above."""
    given = tl.load(T + row * tstride + cols, mask=inside, other=-1.0)
    allowed = (given >= 0) & (given <= 1)
    if FLAG is not None:
        wrong = inside & (allowed == 0) & (given != -1)
        first = tl.min(tl.where(wrong, row * n + cols, 1 << 62))
        tl.atomic_min(FLAG, base + first, mask=first < (1 << 62))
    return tl.where(allowed, given.to(tl.float32), -1.0)
