"""Sums over k-subsets by tilted swap polynomials, as in ``csrc/swap.h``, for k up to 8. Called inside kernels only.

A polynomial 1 + a_1 t + ... + a_K t^K is the tuple of its coefficients a_1..a_K. The largest k scores of a row and the
product of (1 + r_j t) over the rest say everything about its k-subsets; both can be had from one look at every score.
"""

import triton
import triton.language as tl

from shortlist.kernels.triton.rows import NINF


@triton.jit
def times(a, b, K: tl.constexpr):
    """The product of two polynomials."""
    out = ()
    for i in tl.static_range(K):
        c = a[i] + b[i]
        for j in tl.static_range(i):
            c += a[j] * b[i - 1 - j]
        out = out + (c,)
    return out


# tl.reduce wants functions with a fixed number of arguments: one for each k
@triton.jit
def _times2(a0, a1, b0, b1):
    return times((a0, a1), (b0, b1), 2)


@triton.jit
def _times3(a0, a1, a2, b0, b1, b2):
    return times((a0, a1, a2), (b0, b1, b2), 3)


@triton.jit
def _times4(a0, a1, a2, a3, b0, b1, b2, b3):
    return times((a0, a1, a2, a3), (b0, b1, b2, b3), 4)


@triton.jit
def _times5(a0, a1, a2, a3, a4, b0, b1, b2, b3, b4):
    return times((a0, a1, a2, a3, a4), (b0, b1, b2, b3, b4), 5)


@triton.jit
def _times6(a0, a1, a2, a3, a4, a5, b0, b1, b2, b3, b4, b5):
    return times((a0, a1, a2, a3, a4, a5), (b0, b1, b2, b3, b4, b5), 6)


@triton.jit
def _times7(a0, a1, a2, a3, a4, a5, a6, b0, b1, b2, b3, b4, b5, b6):
    return times((a0, a1, a2, a3, a4, a5, a6), (b0, b1, b2, b3, b4, b5, b6), 7)


@triton.jit
def _times8(a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7):
    return times((a0, a1, a2, a3, a4, a5, a6, a7), (b0, b1, b2, b3, b4, b5, b6, b7), 8)


@triton.jit
def product(a, K: tl.constexpr):
    """The product of the polynomials of all lanes."""
    if K == 1:
        return (tl.sum(a[0], 0),)
    elif K == 2:
        return tl.reduce(a, 0, _times2)
    elif K == 3:
        return tl.reduce(a, 0, _times3)
    elif K == 4:
        return tl.reduce(a, 0, _times4)
    elif K == 5:
        return tl.reduce(a, 0, _times5)
    elif K == 6:
        return tl.reduce(a, 0, _times6)
    elif K == 7:
        return tl.reduce(a, 0, _times7)
    else:
        return tl.reduce(a, 0, _times8)


@triton.jit
def times_linear(a, x, K: tl.constexpr):
    """The polynomial times (1 + x t)."""
    out = ()
    for i in tl.static_range(K):
        out = out + ((a[i] + x * a[i - 1]) if i > 0 else (a[i] + x),)
    return out


@triton.jit
def at_scale(a, q, K: tl.constexpr):
    """The polynomial in t q: a_i q^i."""
    out = ()
    f = q
    for i in tl.static_range(K):
        out = out + (a[i] * f,)
        f = f * q
    return out


@triton.jit
def constant(value, K: tl.constexpr, BLOCK: tl.constexpr):
    """K blocks of one value."""
    out = ()
    for _ in tl.static_range(K):
        out = out + (tl.full((BLOCK,), value, tl.float32),)
    return out


@triton.jit
def take_top(s, K: tl.constexpr, BLOCK: tl.constexpr):
    """The K largest of a block (descending), and the block without them."""
    cols = tl.arange(0, BLOCK)
    top = ()
    for _ in tl.static_range(K):
        m, at = tl.max(s, 0, return_indices=True)
        s = tl.where(cols == at, NINF, s)
        top = top + (m,)
    return top, s


@triton.jit
def stream_top(t, x, K: tl.constexpr):
    """A block into each lane's K largest (descending): them, and what falls out."""
    out = ()
    for i in tl.static_range(K):
        out = out + (tl.maximum(t[i], x),)
        x = tl.minimum(t[i], x)
    return out, x


@triton.jit
def merge_top(t, K: tl.constexpr, BLOCK: tl.constexpr):
    """The K largest of all lanes' lists (descending), and the lists without them."""
    lanes = tl.arange(0, BLOCK)
    top = ()
    for _ in tl.static_range(K):
        m, at = tl.max(t[0], 0, return_indices=True)
        top = top + (m,)
        here = lanes == at
        popped = ()
        for j in tl.static_range(K):
            popped = popped + (tl.where(here, t[j + 1] if j + 1 < K else NINF, t[j]),)
        t = popped
    return top, t


@triton.jit
def stream(t, a, s, scale, K: tl.constexpr):
    """A block of scores into each lane's K largest ``t`` and the polynomial ``a`` of all that fell out of them,
    relative to the lane's K-th."""
    before = t[K - 1]
    t, x = stream_top(t, s, K)
    ref = tl.where(t[K - 1] > NINF, t[K - 1], 0.0)
    a = at_scale(a, tl.exp((before - ref) * scale), K)
    return t, times_linear(a, tl.exp((x - ref) * scale), K)


@triton.jit
def merge(t, a, scale, K: tl.constexpr, BLOCK: tl.constexpr):
    """The K largest of all lanes, and each lane's polynomial of the rest relative to the smallest of them."""
    ref = t[K - 1]
    top, t = merge_top(t, K, BLOCK)
    pivot = tl.where(top[K - 1] > NINF, top[K - 1], 0.0)
    a = at_scale(a, tl.exp((ref - pivot) * scale), K)
    for i in tl.static_range(K):
        a = times_linear(a, tl.exp((t[i] - pivot) * scale), K)
    return top, a


@triton.jit
def leave_odds(top, scale, K: tl.constexpr):
    """v_j = e^((pivot - top_j) scale) <= 1, and their sum."""
    v = ()
    total = 0.0
    for i in tl.static_range(K):
        x = tl.exp((top[K - 1] - top[i]) * scale)
        v = v + (x,)
        total += x
    return v, total


@triton.jit
def top_polynomials(v, c, K: tl.constexpr):
    """The products of (1 + v_j c t) over the first j of the top, for every j, with the coefficient 1 before them."""
    prefix = ((1.0,),)
    for i in tl.static_range(K):
        p = prefix[i]
        x = v[i] * c
        q = (1.0,)
        for j in tl.static_range(i):
            q = q + (p[j + 1] + x * p[j],)
        q = q + (x * p[i],)
        prefix = prefix + (q,)
    return prefix


@triton.jit
def weighed(V, e, K: tl.constexpr):
    """Both polynomials divided by their sums, that nothing overflows: 1 / both sums, R with its first coefficient,
    S0 = sum V_i R_i and S1 = sum V_{i+1} R_i."""
    nv = V[0]
    nr = 1.0
    for i in tl.static_range(K):
        nv += V[i + 1]
        nr += e[i]
    nv = 1.0 / nv
    nr = 1.0 / nr
    R = (nr,)
    for i in tl.static_range(K):
        R = R + (e[i] * nr,)
    S0 = V[0] * nv * R[0]
    S1 = V[1] * nv * R[0]
    for i in tl.static_range(K):
        S0 += V[i + 1] * nv * R[i + 1]
    for i in tl.static_range(K - 1):
        S1 += V[i + 2] * nv * R[i + 1]
    return nv, nr, R, S0, S1


@triton.jit
def rest_weights(V, nv, f0, f1, K: tl.constexpr):
    """w_i of `rest_slopes`: f0 V_{i+1} - f1 V_{i+2}."""
    w = ()
    for i in tl.static_range(K):
        x = f0 * (V[i + 1] * nv)
        if i + 2 <= K:
            x -= f1 * (V[i + 2] * nv)
        w = w + (x,)
    return w


@triton.jit
def rest_slopes(x, w, R, K: tl.constexpr):
    """x sum_i w_i b_i with b = R without the label: b_i = R_i - x b_{i-1}, stable because x <= 1."""
    b = x * 0.0 + R[0]
    total = b * w[0]
    for i in tl.static_range(K - 1):
        b = R[i + 1] - x * b
        total += b * w[i + 1]
    return x * total


@triton.jit
def top_slopes(prefix, v, c, R, nv, f0, f1, one, K: tl.constexpr):
    """The slopes f0 S0 - f1 S1 of the top labels: by the chance to stay where v c > 1, else by that to leave, ``one``
    less it: whichever is the smaller cancels less."""
    u = ()
    o = ()
    for i in tl.static_range(K):
        u = u + ((f1 * R[i] - f0 * R[i + 1]) * nv,)
        o = o + ((f0 * R[i] - ((f1 * R[i - 1]) if i > 0 else 0.0)) * nv,)
    g = ()
    for j in tl.static_range(K - 1, -1, -1):
        x = v[j] * c
        p = prefix[j]
        leave = 0.0
        stay = 0.0
        for i in tl.static_range(j + 1):
            leave += p[i] * u[i]
            stay += p[i] * o[i]
        g = (tl.where(x > 1.0, stay, one + x * leave),) + g
        nu = ()
        no = ()
        for i in tl.static_range(j):
            nu = nu + (u[i] + x * u[i + 1],)
            no = no + (o[i] + x * o[i + 1],)
        u = nu
        o = no
    return g


@triton.jit
def with_top(g, s, top, g_top, K: tl.constexpr):
    """The slopes of a block, those of the top's labels in their places. Equal scores have equal slopes."""
    for i in tl.static_range(K):
        g = tl.where(s == top[i], g_top[i], g)
    return g
