"""Numbers as readers see them, rounded as the page's script does."""

import math
from decimal import ROUND_HALF_UP, Decimal

from shortlist.metrics.functional.set_summary import Estimate


def fixed(value: float | None, digits: int) -> str:
    """A number with so many digits, halves upwards as in the page's script (Python rounds them to even).

    >>> fixed(62.25, 1), f"{62.25:.1f}", fixed(None, 1)
    ('62.3', '62.2', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    return str(Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def percent(value: float | None) -> str:
    """A share for readers: ``percent(0.8351)`` is '83.5 %'."""
    return "–" if value is None or not math.isfinite(value) else f"{fixed(100 * value, 1)}\u202f%"


def with_interval(share: Estimate) -> str:
    """A share and its 95 % interval, in percent."""
    return f"{percent(share.value)} ({fixed(100 * share.low, 1)} to {fixed(100 * share.high, 1)})"
