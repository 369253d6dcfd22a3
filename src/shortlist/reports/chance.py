"""Whether sets miss a promise by more than chance: that of these examples, and that of the calibration."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from shortlist.metrics.functional.set_summary import Estimate
from shortlist.sets import Conformal

_UNLIKELY = 0.025  # as unlikely as a value beyond one end of a 95 % interval


def is_missed(rule: Conformal, held: Estimate, rows: int) -> bool:
    """Whether the coverage is below the promised one by more than chance; ``held`` by the sets of so many rows.

    >>> rule = Conformal(0.1).fit(np.tile([[0.0, 1.0]], (320, 1)), np.ones(320, int))
    >>> [is_missed(rule, Estimate(share, share - 0.02, share + 0.02), 800) for share in (0.87, 0.84)]
    [False, True]
    """
    if held.value >= 1 - rule.alpha or rule.rows < rule.rows_needed:
        return False
    if rule.labels == "single":
        return chance_of_at_most(round(held.value * rows), rows, rule.rows, rule.alpha) < _UNLIKELY
    return held.value + with_calibration(held.high - held.value, rows, rule.rows) < 1 - rule.alpha


def chance_of_at_most(hits: int, rows: int, calibrated: int, alpha: float) -> float:
    """The probability that the sets of so many rows hold at most so many right labels, by a conformal rule that was
    calibrated on rows like these, drawn as they are.

    The r-th of the n calibration scores limits the sets, r = ceil((n + 1)(1 - alpha)). Of n + m scores in any order,
    the limit is below the (hits + 1)-th new one if r or more of the first r + hits are calibration scores: a tail of
    the hypergeometric distribution, which is that of the beta-binomial one. (With a promise for each class or group, n
    is the rows of all: the noise of many small calibrations adds up to that of one large.)

    >>> round(chance_of_at_most(696, 800, 320, 0.1), 4)
    0.0735
    """
    from scipy.stats import hypergeom  # takes long to import

    rank = math.ceil((calibrated + 1) * (1 - Fraction(repr(alpha))))
    if rank > calibrated:  # every label is in every set
        return float(hits >= rows)
    return float(hypergeom.pmf(np.arange(rank, calibrated + 1), calibrated + rows, calibrated, rank + hits).sum())


def with_calibration(reach: float, rows: int, calibrated: int) -> float:
    """How far a mean over so many rows may be off by chance, where its level was set by the mean over others."""
    return reach * math.sqrt(1 + rows / max(1, calibrated))
