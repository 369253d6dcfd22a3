"""Rows that are held in registers and yet gone through block by block, as if they were streamed.

Some kernels need many numbers beside each score: at once, those of a row of 8,192 labels are more than there are
registers. Held are then the scores alone, and two bits for each label; a loop takes one block after the other, and what
it needs beside them is that of a block. Registers have no index: a block is chosen by comparing. The loop must go to
the number of labels, which is not known when compiling: unrolled, all of its blocks would be computed at once again.
"""

import triton
import triton.language as tl

from shortlist.kernels.triton.codes import label_codes
from shortlist.kernels.triton.logistic import known_scores
from shortlist.kernels.triton.rows import NINF

AT_ONCE = 4096  # labels of a row that is one block in such a kernel
PIECE = 2048  # labels of a block of a longer one: by 16 warps with all of their 128 registers


@triton.jit
def chosen(held, at, HELD: tl.constexpr):
    """The block ``at`` of those that are held."""
    out = held[0]
    for i in tl.static_range(1, HELD):
        out = tl.where(at == i, held[i], out)
    return out


@triton.jit
def with_codes(bits, code, at):
    """The codes -1, 0, 1 of block ``at`` among the bits of all: two of each label."""
    return bits | (((code + 1) & 3) << (2 * at))


@triton.jit
def codes_of(bits, at):
    return ((bits >> (2 * at)) & 3) - 1


@triton.jit
def _scores(S, cols, code, inside, OF: tl.constexpr):
    """OF: labels whose scores are wanted, and read: "known", "unknown" or "all"."""
    if OF == "known":
        return known_scores(S, cols, code >= 0)
    elif OF == "unknown":
        return known_scores(S, cols, inside & (code < 0))
    else:
        return known_scores(S, cols, inside)


@triton.jit
def held_row(
    S, T, OFFSETS, VALUES, FLAG, base, n, tstride, stored, row,
    OF: tl.constexpr, HELD: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """All blocks of a row (S: its scores), and the bits of their codes. HELD = 0: none, nothing is read."""
    held = ()
    bits = tl.zeros((BLOCK,), tl.int32)
    for i in tl.static_range(HELD):
        cols = i * BLOCK + tl.arange(0, BLOCK)
        code = label_codes(T, OFFSETS, VALUES, FLAG, base, n, tstride, stored, row, cols, cols < n)
        bits = with_codes(bits, code, i)
        held = held + (_scores(S, cols, code, cols < n, OF),)
    return held, bits


@triton.jit
def block_of(
    S, T, OFFSETS, VALUES, FLAG, base, n, tstride, stored, row, begin, held, bits,
    OF: tl.constexpr, HELD: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Codes and scores of the block that begins with this label: those that are held, or read now."""
    if HELD > 0:
        return codes_of(bits, begin // BLOCK), chosen(held, begin // BLOCK, HELD)
    else:
        cols = begin + tl.arange(0, BLOCK)
        code = label_codes(T, OFFSETS, VALUES, FLAG, base, n, tstride, stored, row, cols, cols < n)
        return code, _scores(S, cols, code, cols < n, OF)


@triton.jit
def take_top_held(s, K: tl.constexpr, HELD: tl.constexpr, BLOCK: tl.constexpr):
    """The K largest of all blocks (descending), and the blocks without them."""
    lanes = tl.arange(0, BLOCK)
    top = ()
    for _ in tl.static_range(K):
        most = s[0]
        for i in tl.static_range(1, HELD):
            most = tl.maximum(most, s[i])
        m, at = tl.max(most, 0, return_indices=True)
        here = lanes == at
        left = ()
        for i in tl.static_range(HELD):  # of equal ones in a lane the first is taken
            left = left + (tl.where(here & (s[i] == m), NINF, s[i]),)
            here = here & (s[i] != m)
        s = left
        top = top + (m,)
    return top, s
