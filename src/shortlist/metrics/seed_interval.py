"""The 95 % interval of a mean over a few seeds."""

import statistics
from collections.abc import Sequence

# Student's t, 97.5 %, for 1 to 10 degrees of freedom
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


def half_width(values: Sequence[float]) -> float | None:
    """How far the 95 % interval of the mean goes either way, by Student's t; None for fewer than two values.

    >>> round(half_width([1.0, 2.0, 3.0]), 3), half_width([1.0])
    (2.484, None)
    """
    if len(values) < 2:
        return None
    return _student(len(values) - 1) * statistics.stdev(values) / len(values) ** 0.5


def _student(freedom: int) -> float:
    """The first terms of its expansion by 1 / freedom are good to 1e-3 beyond the table."""
    if freedom <= len(_T):
        return _T[freedom - 1]
    z = statistics.NormalDist().inv_cdf(0.975)
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
