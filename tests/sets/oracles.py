"""The set rules written from their definitions, one row and one label at a time, in plain Python and float64."""

import math
from fractions import Fraction

import numpy as np


def softmax(row):
    row = np.asarray(row, dtype=np.float64)
    e = np.exp(row - row.max())
    return e / e.sum()


def average_k_threshold(linked, k, min_size=0):
    """Algorithm 1 by sorting everything but the min_size best of each row, which are in anyway: (threshold, M)."""
    flat = np.sort(np.sort(linked, -1)[:, : linked.shape[1] - min_size].reshape(-1))[::-1]
    m = math.floor(k * len(linked) + 0.5) - min_size * len(linked)
    if m == 0:
        return math.inf, m
    if m >= flat.size:
        return -math.inf, flat.size
    high, low = flat[m - 1], flat[m]
    with np.errstate(over="ignore", invalid="ignore"):
        middle = flat.dtype.type((np.longdouble(high) + np.longdouble(low)) / 2)
    return float(middle if low < middle <= high else high), m


def conformal_limit(true_scores, alpha):
    """The finite-sample quantile."""
    r = math.ceil((len(true_scores) + 1) * (1 - Fraction(str(alpha))))
    return sorted(true_scores)[r - 1] if r <= len(true_scores) else math.inf


def lac(p, y):
    return 1 - p[y]


def aps(p, y):
    """Mass ranked before y (rows without ties)."""
    return sum(q for q in p if q > p[y])


def raps(p, y, penalty, free_rank):
    rank = 1 + sum(q > p[y] for q in p)
    return aps(p, y) + penalty * max(0, rank - free_rank)


def rank_of(p, y):
    return 1 + sum(q > p[y] for q in p)


def saps(p, y, weight, u=0.0):
    """Huang et al. 2024, as TorchCP 1.2 computes it."""
    return u * max(p) if rank_of(p, y) == 1 else max(p) + (rank_of(p, y) - 2 + u) * weight


def margin(p, y):
    return max(q for j, q in enumerate(p) if j != y) - p[y]


def weighted_limit(true_scores, weights, new, alpha):
    """The smallest calibration score with a weight of at least (1 - alpha) (all + new) at or below it."""
    wanted = (1 - Fraction(str(alpha))) * (sum(map(Fraction, weights)) + Fraction(new))
    for limit in sorted(true_scores):
        if sum(Fraction(w) for s, w in zip(true_scores, weights, strict=True) if s <= limit) >= wanted:
            return limit
    return math.inf


def risk_threshold(linked, target, alpha):
    """The largest candidate lambda with (sum of missed shares + 1) / (n + 1) <= alpha, trying all of them."""
    rows = [(p, t) for p, t in zip(linked, target, strict=True) if (t != -1).any()]

    def risk(lam):
        missed = Fraction(0)
        for p, t in rows:
            present = p[t == 1]
            if len(present):
                missed += Fraction(int((present < lam).sum()), len(present))
        return (missed + 1) / (len(rows) + 1)

    candidates = sorted({-math.inf, math.inf, *linked[target == 1].tolist()})
    allowed = [lam for lam in candidates if risk(lam) <= Fraction(str(alpha))]
    return max(allowed, default=-math.inf)


def smallest_set_size(p, eps):
    """How many of the most probable labels it takes to reach a share of 1 - eps."""
    total, mass = float(sum(p)), 0.0
    for size, q in enumerate(sorted(p, reverse=True), start=1):
        mass += float(q)
        if mass >= (1 - eps) * total:
            return size
    raise AssertionError("unreachable")
