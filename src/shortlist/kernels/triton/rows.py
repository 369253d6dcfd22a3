"""What the kernels share: numbers, the row's weight and target, the rule of NaN. Called inside kernels only.

A score of +inf counts as `MOST`; so does anything beyond. All is computed in float32, whatever the type that is read.
"""

import triton
import triton.language as tl

MOST = tl.constexpr(8.507059e37)  # a quarter of the largest float32, as everywhere in this package
NINF = tl.constexpr(float("-inf"))
NAN = tl.constexpr(float("nan"))


@triton.jit
def log1p(u):
    """log(1 + u) for u from 0 to 1, by Kahan's way: Triton has none that all its targets know."""
    w = 1.0 + u
    d = w - 1.0
    return tl.where(d > 0, tl.log(w) * (u / tl.where(d > 0, d, 1.0)), u)


@triton.jit
def softplus(z):
    return tl.maximum(z, 0.0) + log1p(tl.exp(-tl.abs(z)))


@triton.jit
def sigmoid(z):
    e = tl.exp(-tl.abs(z))
    return tl.where(z >= 0, 1.0, e) / (1.0 + e)


@triton.jit
def scores_at(S, cols, n):
    """A block of scores in float32, -inf beyond the row."""
    return tl.load(S + cols, mask=cols < n, other=NINF).to(tl.float32)


@triton.jit
def holds_nan(s):
    return tl.max((s != s).to(tl.int32), 0) > 0


@triton.jit
def row_weight(W, row):
    """The row's weight, 1 where there are none."""
    if W is None:
        return 1.0
    else:
        return tl.load(W + row)


@triton.jit
def row_share(SHARE, row, size):
    """What the gradient of the row is multiplied by beside its weight, where that is known beforehand."""
    if SHARE is None:
        return 1.0
    else:
        return tl.load(SHARE + row // size)


@triton.jit
def class_index(Y, row, n, FLAG, base):
    """The row's class, -1 where it is unknown; a value that is not allowed sets the flag (None: it was set before) and
    counts as unknown."""
    y = tl.load(Y + row).to(tl.int64)
    unknown = (y == -1) | (y == -100)
    bad = ((y < 0) | (y >= n)) & (unknown == 0)
    if FLAG is not None:
        tl.atomic_min(FLAG, base + row, mask=bad)
    return tl.where(unknown | bad, -1, y)


@triton.jit
def label_values(T, cols, n, row, stride, FLAG, base):
    """A block of a label matrix, -1 beyond the row and for what is not allowed, which sets the flag."""
    inside = cols < n
    y = tl.load(T + row * stride + cols, mask=inside, other=-1).to(tl.float32)
    allowed = (y == 1) | (y == 0) | (y == -1)
    bad = inside & (allowed == 0)
    if FLAG is not None:
        first = tl.min(tl.where(bad, cols, 2147483647), 0)
        tl.atomic_min(FLAG, base + row * n + first, mask=first < 2147483647)
    return tl.where(bad, -1.0, y)


@triton.jit
def stored_values(T, OFFSETS, VALUES, cursor, row, rows, first, BLOCK: tl.constexpr):
    """The block of a label matrix that begins at label ``first``, from what is stored of it: the values, and where
    the next block finds its own (``cursor``; a row begins with ``OFFSETS[row]``)."""
    end = tl.load(OFFSETS + row + 1)
    cols = first + tl.arange(0, BLOCK)
    rest = tl.load(VALUES + tl.load(OFFSETS + rows)).to(tl.float32)
    y = tl.zeros((BLOCK,), tl.float32) + rest
    label = tl.load(T + cursor, mask=cursor < end, other=2147483647).to(tl.int64)
    while label < first + BLOCK:
        y = tl.where(cols == label, tl.load(VALUES + cursor).to(tl.float32), y)
        cursor += 1
        label = tl.load(T + cursor, mask=cursor < end, other=2147483647).to(tl.int64)
    return y, cursor


@triton.jit
def target_begins(T, OFFSETS, row, n, FLAG, base, KIND: tl.constexpr):
    """Where the row's target begins, for `target_at`: a class index is this number itself."""
    if KIND == "index":
        return class_index(T, row, n, FLAG, base)
    elif KIND == "sparse":
        return tl.load(OFFSETS + row).to(tl.int64)
    else:
        return row * 0


@triton.jit
def target_at(
    T, OFFSETS, VALUES, cursor, row, first, n, tstride, FLAG, base, KIND: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """The values 1, 0, -1 of the block of labels that begins with ``first``, whatever the target's kind; and the cursor
    for the next block. Beyond the row nothing is present."""
    cols = first + tl.arange(0, BLOCK)
    if KIND == "index":
        return tl.where(cols == cursor, 1.0, 0.0), cursor
    elif KIND == "sparse":
        return stored_values(T, OFFSETS, VALUES, cursor, row, tl.num_programs(0), first, BLOCK)
    else:
        return label_values(T, cols, n, row, tstride, FLAG, base), cursor
