"""softplus and sigmoid in float32, exact to rounding at both ends, and what is infinite made finite."""

import triton
import triton.language as tl

from shortlist.kernels.triton.rows import MOST

TINY = tl.constexpr(2.0**-20)  # of losses that are added up: so that the sum of a million infinite ones fits


@triton.jit
def bounded(x):
    """A label at -inf is low and not out of its row, one at +inf is high; a NaN stays one."""
    x = tl.where(x > MOST, MOST, x)
    return tl.where(x < -MOST, -MOST, x)


@triton.jit
def known_scores(S, cols, there):
    """Scores of the labels that are ``there``, bounded; 0 elsewhere."""
    return bounded(tl.load(S + cols, mask=there, other=0.0).to(tl.float32))


@triton.jit
def log1p(t):
    """log(1 + t) for t from -1/2 to 1: the series of 2 atanh(t / (2 + t)), without a logarithm of the device."""
    s = t / (2.0 + t)
    z = s * s
    p = z * (2.0 / 15.0) + 2.0 / 13.0
    p = p * z + 2.0 / 11.0
    p = p * z + 2.0 / 9.0
    p = p * z + 2.0 / 7.0
    p = p * z + 2.0 / 5.0
    p = p * z + 2.0 / 3.0
    return 2.0 * s + s * (z * p)


@triton.jit
def logistic(x):
    """softplus(-|x|), sigmoid(|x|) and sigmoid(-|x|)."""
    e = tl.exp(-tl.abs(x))
    large = 1.0 / (1.0 + e)
    return log1p(e), large, e * large


@triton.jit
def softplus_and_sigmoid(x):
    """Of a number or of many."""
    log, large, small = logistic(x)
    return tl.where(x > 0, x, 0.0) + log, tl.where(x >= 0, large, small)
