"""What the exact top-k family must say, one row at a time, straight from the formulas and slow on purpose.

Nothing here comes from the code under test. Scores are taken as the exact numbers they are: differences, exponentials
and logarithms are mpmath's with 50 digits after the decimal point and an unbounded exponent, so offsets, gaps and
temperatures cost nothing.
``usable`` lists the labels that take part: a masked label, or one at -inf, does not exist; +inf counts as a
quarter of the largest number of the row's type.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from itertools import combinations
from typing import Any, TypeVar

import mpmath
import numpy as np
import torch
from torch import Tensor

mp = mpmath.MPContext()
mp.dps = 50
Row = Sequence[float]
Mp = Any  # mpmath ships no types
Oracle = TypeVar("Oracle", bound=Callable[..., Any])


def digits_for(values: Row) -> int:
    """50 digits after the decimal point, also of a difference between scores of 1e300."""
    return 50 + max((int(math.log10(abs(v))) for v in values if v and math.isfinite(v) and abs(v) > 1), default=0)


def exact_digits(oracle: Oracle) -> Oracle:
    """Run an oracle with as many digits as its scores (its first argument) need."""

    @wraps(oracle)
    def run(scores: Row, *args: Any, **options: Any) -> Any:
        with mp.workdps(digits_for(scores)):
            return oracle(scores, *args, **options)

    return run  # type: ignore[return-value]


def plain_row(scores: Tensor, mask: Tensor | None = None) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """One row of a tensor as exact floats, and which of its labels are usable."""
    values = [min(v, largest(scores.dtype)) for v in scores.tolist()]
    kept = mask.tolist() if mask is not None else [True] * len(values)
    return tuple(values), tuple(j for j, v in enumerate(values) if kept[j] and v != -np.inf)


def largest(dtype: torch.dtype) -> float:
    """What a score of +inf counts as; half precision is computed in float32."""
    return torch.finfo(dtype if dtype == torch.float64 else torch.float32).max / 4


def all_labels(scores: Row) -> tuple[int, ...]:
    return tuple(range(len(scores)))


# ---- sums over k-subsets -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SubsetSum:
    """log sigma_k(e^a), and for every label the probability of being in the subset and of being outside it."""

    log: Mp
    inside: np.ndarray
    outside: np.ndarray


def subset_sum_by_enumeration(a: Sequence[Mp], k: int) -> SubsetSum:
    """Every k-subset, one after the other."""
    weights = [mp.exp(x) for x in a]
    total, inside = mp.mpf(0), [mp.mpf(0)] * len(a)
    for subset in combinations(range(len(a)), k):
        weight = mp.fprod(weights[j] for j in subset)
        total += weight
        for j in subset:
            inside[j] += weight
    p = [x / total for x in inside]
    return SubsetSum(mp.log(total), _floats(p), _floats([1 - x for x in p]))


def subset_sum(a: Sequence[Mp], k: int) -> SubsetSum:
    """The same by tables of prefixes and suffixes: only sums and products of positive numbers, so every digit counts.

    The coefficients span thousands of powers of ten; they are kept as (mantissa, power of two) pairs.
    """
    n = len(a)
    if k == 0:
        return SubsetSum(mp.mpf(0), np.zeros(n), np.ones(n))
    pivot = sorted(a)[n - k]
    # beyond e^(+-1e9) of the k-th largest a label is in or out for certain: only the logarithm needs to know how far
    clipped = [min(max(x - pivot, -_FAR), _FAR) for x in a]
    excess = k * pivot + mp.fsum(x - pivot - _FAR for x in a if x - pivot > _FAR)
    pairs = [mp.frexp(mp.exp(x)) for x in clipped]
    m, e = np.array([float(m) for m, _ in pairs]), np.array([int(e) for _, e in pairs])
    prefix, suffix = _coefficients(m, e, k), _coefficients(m[::-1], e[::-1], k)
    total, power = prefix[0][n, k], prefix[1][n, k]

    def without_each(size: int) -> tuple[np.ndarray, np.ndarray]:
        """For every j, the sum over the subsets of ``size`` other labels: prefix up to j times suffix after j."""
        m = prefix[0][:n, : size + 1] * suffix[0][n - 1 :: -1, : size + 1][:, ::-1]
        e = prefix[1][:n, : size + 1] + suffix[1][n - 1 :: -1, : size + 1][:, ::-1]
        top = e.max(axis=1)
        return _ldexp(m, e - top[:, None]).sum(axis=1), top

    others, up = without_each(k - 1)
    inside = _ldexp(others * m / total, up + e - power)
    others, up = without_each(k)
    outside = _ldexp(others / total, up - power)
    return SubsetSum(mp.log(float(total)) + int(power) * mp.ln2 + excess, inside, outside)


_FAR = 10**9
_NOTHING = -(2**50)  # the power of two of a coefficient that is exactly 0


def _coefficients(mantissa: np.ndarray, power: np.ndarray, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Row j: coefficients of prod_{i<j} (1 + w_i x) up to x^degree, as mantissas and powers of two."""
    n = len(mantissa)
    m, e = np.zeros((n + 1, degree + 1)), np.full((n + 1, degree + 1), _NOTHING)
    m[0, 0], e[0, 0] = 1.0, 0
    for j in range(n):
        shifted, shift = m[j, :-1] * mantissa[j], e[j, :-1] + power[j]
        top = np.maximum(e[j, 1:], shift)
        total = _ldexp(m[j, 1:], e[j, 1:] - top) + _ldexp(shifted, shift - top)
        m[j + 1, 1:], up = np.frexp(total)
        e[j + 1, 1:] = np.where(total > 0, top + up, _NOTHING)
        m[j + 1, 0], e[j + 1, 0] = 1.0, 0
    return m, e


def _ldexp(mantissa: np.ndarray, power: np.ndarray) -> np.ndarray:
    return np.ldexp(mantissa, np.clip(power, -4000, 4000).astype(np.int32))


def _floats(values: Sequence[Mp]) -> np.ndarray:
    return np.array([float(v) for v in values])


@cache
@exact_digits
def log_subset_sum(scores: Row, k: int, usable: tuple[int, ...]) -> tuple[float, np.ndarray]:
    """log sigma_k(e^s) and its gradient, the marginals."""
    result = subset_sum([mp.mpf(scores[j]) for j in usable], k)
    marginals = np.zeros(len(scores))
    marginals[list(usable)] = result.inside
    return float(result.log), marginals


# ---- smooth top-k and its hinge ------------------------------------------------------------------------------------


@cache
@exact_digits
def smooth_topk(
    scores: Row, target: int, k: int, tau: float, alpha: float, usable: tuple[int, ...], enumerate_: bool = False
) -> tuple[float, np.ndarray]:
    """Loss and gradient of eq. 9 with margin alpha: tau * softplus(z), e^z = e^(alpha/tau) sum_without_y / sum_with_y.

    Rows without k usable other labels have no wrong k-subset: loss 0.
    """
    others = [j for j in usable if j != target]
    gradient = np.zeros(len(scores))
    if len(others) < k:
        return 0.0, gradient
    sums = subset_sum_by_enumeration if enumerate_ else subset_sum
    s, kt = [mp.mpf(v) for v in scores], k * mp.mpf(tau)
    a = [s[j] / kt for j in others]
    wrong = sums(a, k)
    right = sums(a, k - 1)
    z = mp.mpf(alpha) / mp.mpf(tau) + wrong.log - right.log - s[target] / kt
    share = float(_sigmoid(z))
    gradient[target] = -share / k
    small = wrong.inside < 0.5  # subtract the complements where both are near 1: no digit lost
    gradient[others] = share / k * np.where(small, wrong.inside - right.inside, right.outside - wrong.outside)
    return float(mp.mpf(tau) * _softplus(z)), gradient


@exact_digits
def topk_hinge(
    scores: Row, target: int, k: int, alpha: float, usable: tuple[int, ...]
) -> tuple[float, np.ndarray]:
    """Loss and gradient of eq. 19: relu(alpha + (k-th largest other - s_y) / k)."""
    others = sorted((j for j in usable if j != target), key=lambda j: -scores[j])
    gradient = np.zeros(len(scores))
    if len(others) < k:
        return 0.0, gradient
    kth = others[k - 1]
    loss = mp.mpf(alpha) + (mp.mpf(scores[kth]) - mp.mpf(scores[target])) / k
    if loss > 0:
        gradient[kth], gradient[target] = 1 / k, -1 / k
    return float(max(loss, 0)), gradient


def _sigmoid(t: Mp) -> Mp:
    return 1 / (1 + mp.exp(-t)) if t > 0 else mp.exp(t) / (1 + mp.exp(t))


def _softplus(t: Mp) -> Mp:
    return t + mp.log1p(mp.exp(-t)) if t > 0 else mp.log1p(mp.exp(t))


# ---- the LML projection --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Projection:
    """y = sigma(t) with sum y = k, t = s / temperature + nu on the usable labels; h = y (1 - y)."""

    usable: tuple[int, ...]
    size: int
    temperature: float
    t: list[Mp]  # empty where every usable label is in: y = 1
    digits: int

    @property
    def y(self) -> np.ndarray:
        y = np.zeros(self.size)
        with mp.workdps(self.digits):
            y[list(self.usable)] = _floats([_sigmoid(t) for t in self.t]) if self.t else 1.0
        return y

    @property
    def margins(self) -> np.ndarray:
        """|t| of every label (0 where there is none): the condition of y."""
        margins = np.zeros(self.size)
        if self.t:
            margins[list(self.usable)] = _floats([abs(t) for t in self.t])
        return margins

    def vjp(self, gradient: Row) -> np.ndarray:
        """h o (g - (h.g) / sum h): eq. 19 of seed 000."""
        out = np.zeros(self.size)
        if not self.t:
            return out
        with mp.workdps(self.digits):
            h = [_sigmoid(t) * _sigmoid(-t) for t in self.t]
            g = [mp.mpf(gradient[j]) for j in self.usable]
            mean = mp.fdot(h, g) / mp.fsum(h)
            out[list(self.usable)] = _floats([a * (b - mean) for a, b in zip(h, g, strict=True)])
        return out / self.temperature

    def loss(self, present: Sequence[int]) -> tuple[float, np.ndarray]:
        """-sum_{j present} log y_j, and its gradient by the chain rule through ``y`` (Algorithm 2 of seed 000)."""
        gradient = np.zeros(self.size)
        if not self.t:
            return 0.0, gradient
        with mp.workdps(self.digits):
            t = dict(zip(self.usable, self.t, strict=True))
            h = {j: _sigmoid(x) * _sigmoid(-x) for j, x in t.items()}
            out = mp.fsum(_sigmoid(-t[j]) for j in present)
            total = mp.fsum(h.values())
            for j in self.usable:
                own = _sigmoid(-t[j]) if j in present else 0
                gradient[j] = float((out * h[j] / total - own) / mp.mpf(self.temperature))
            return float(mp.fsum(_softplus(-t[j]) for j in present)), gradient


@cache
@exact_digits
def lml(scores: Row, k: int, usable: tuple[int, ...], temperature: float = 1.0) -> Projection:
    """Solve sum sigma(s / temperature + nu) = k for nu to 40 digits.

    Written as "what the k largest lack is what the others have": with unbounded exponents this says where nu is even
    in rows so saturated that the plain sum is k to any number of digits.
    """
    if len(usable) <= k:
        return Projection(usable, len(scores), temperature, [], mp.dps)
    s = [mp.mpf(scores[j]) / mp.mpf(temperature) for j in usable]
    order = sorted(range(len(s)), key=lambda j: -s[j])
    top, rest = [s[j] for j in order[:k]], [s[j] for j in order[k:]]
    reach = 5 + mp.log(len(s))
    low, high, nu = -max(s) - reach, -min(s) + reach, -(top[-1] + rest[0]) / 2
    for _ in range(500):
        have, lack = [_sigmoid(x + nu) for x in rest], [_sigmoid(-x - nu) for x in top]
        excess = mp.log(mp.fsum(have)) - mp.log(mp.fsum(lack))
        low, high = (nu, high) if excess < 0 else (low, nu)
        slope = mp.fsum(y * (1 - y) for y in have) / mp.fsum(have) + mp.fsum(y * (1 - y) for y in lack) / mp.fsum(lack)
        step = -excess / slope
        if abs(step) < mp.mpf(10) ** -40:
            return Projection(usable, len(scores), temperature, [x + nu for x in s], mp.dps)
        nu = nu + step if low < nu + step < high else (low + high) / 2
    raise AssertionError("the oracle did not converge")


# ---- truncated entropy ---------------------------------------------------------------------------------------------


@exact_digits
def truncated_entropy(
    scores: Row, present: Sequence[int], k: int, usable: tuple[int, ...]
) -> tuple[float, np.ndarray]:
    """sum_{y present} log(1 + sum_{j in J} e^(s_j - s_y)), J = usable labels not present, less the k-|Y| largest."""
    absent = sorted((j for j in usable if j not in present), key=lambda j: -scores[j])
    kept = absent[max(k - len(present), 0) :]
    loss, gradient = mp.mpf(0), [mp.mpf(0)] * len(scores)
    for y in present:
        terms = [mp.exp(mp.mpf(scores[j]) - mp.mpf(scores[y])) for j in kept]
        total = mp.fsum(terms)
        loss += mp.log1p(total)
        gradient[y] -= total / (1 + total)
        for j, term in zip(kept, terms, strict=True):
            gradient[j] += term / (1 + total)
    return float(loss), _floats(gradient)


# ---- noised top-k --------------------------------------------------------------------------------------------------


@exact_digits
def topk_hinge_without_noise(
    scores: Row, target: int, k: int, usable: tuple[int, ...], margin: float = 1.0, scale: float = 1.0
) -> tuple[float, np.ndarray]:
    """relu(scale (margin + s_[k+1] - s_y)), the (k+1)-th largest of all labels: the limit of no noise."""
    gradient = np.zeros(len(scores))
    kth = sorted(usable, key=lambda j: -scores[j])[k]
    loss = mp.mpf(scale) * (mp.mpf(margin) + mp.mpf(scores[kth]) - mp.mpf(scores[target]))
    if loss > 0:
        gradient[kth] += scale
        gradient[target] -= scale
    return float(max(loss, 0)), gradient


def noised_kth(scores: Row, k: int, epsilon: float) -> tuple[float, float, np.ndarray]:
    """Mean and deviation of the k-th largest of s + epsilon Z, and who it is, by integrating the order statistic."""
    s = np.array(scores)
    x = np.linspace(s.min() - 10 * epsilon, s.max() + 10 * epsilon, 40001)
    density = np.exp(-(((x - s[:, None]) / epsilon) ** 2) / 2) / (epsilon * np.sqrt(2 * np.pi))
    below = np.cumsum(density, axis=1) * (x[1] - x[0])
    who = np.zeros(len(s))
    moments = np.zeros(2)
    for j in range(len(s)):
        above = np.zeros((k, len(x)))  # row i: probability that exactly i of the others are above x
        above[0] = 1
        for other in range(len(s)):
            if other != j:
                up = 1 - below[other]
                above[1:] = above[1:] * (1 - up) + above[:-1] * up
                above[0] *= 1 - up
        weight = density[j] * above[k - 1] * (x[1] - x[0])
        who[j] = weight.sum()
        moments += (weight * x).sum(), (weight * x * x).sum()
    return float(moments[0]), float(np.sqrt(moments[1] - moments[0] ** 2)), who


# ---- from rows to a batch ------------------------------------------------------------------------------------------


def over_rows(
    row: Callable[[Row, Any, tuple[int, ...]], tuple[float, np.ndarray]],
    scores: Tensor,
    targets: Sequence[Any],
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Losses and gradients of ``(rows, labels)`` scores by ``row(values, target, usable)``."""
    results = []
    for i, target in enumerate(targets):
        values, usable = plain_row(scores[i], None if mask is None else mask[i])
        results.append(row(values, target, usable))
    losses, gradients = zip(*results, strict=True)
    return torch.tensor(losses, dtype=torch.float64), torch.tensor(np.array(gradients))
