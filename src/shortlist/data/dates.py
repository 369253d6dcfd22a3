"""Dates and times as numbers: days since the beginning of 1970."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.data.column_use import listed

YEAR_FIRST, DAY_FIRST, MONTH_FIRST = "year first", "day first", "month first"
DATE = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})([T ].*)?|(\d{1,2})([-/.])(\d{1,2})[-/.](\d{2,4})([T ].*)?")
_TIME = re.compile(r"(\d{1,2})(:\d\d.*?)? ?(?:([ap])\.?m\.?)?", re.IGNORECASE)
_PLAIN = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?")  # what NumPy reads, many at once
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECONDS = 86_400_000_000  # of a day


def are_dates(cells: Collection[str]) -> bool:
    """Whether most cells are dates, however they are written."""
    return 2 * sum(DATE.fullmatch(cell) is not None for cell in cells) > len(cells)


def order_of(cells: Iterable[str]) -> str:
    """Where the year, the month and the day stand in dates; an empty text where these cells do not tell.

    >>> order_of(["2026-01-31"]), order_of(["5/1/2026", "31/1/2026"]), order_of(["5.1.2026"]), order_of(["5/1/2026"])
    ('year first', 'day first', 'day first', '')
    """
    orders = set()
    for found in filter(None, map(DATE.fullmatch, cells)):
        if found[1]:
            orders.add(YEAR_FIRST)
        elif found[6] == "." or int(found[5]) > 12:
            orders.add(DAY_FIRST)
        elif int(found[7]) > 12:
            orders.add(MONTH_FIRST)
        else:
            orders.add("")
    orders -= {""} if len(orders) > 1 and YEAR_FIRST not in orders else set()
    return orders.pop() if len(orders) == 1 else ""


def as_days(cell: str, order: str) -> float | None:
    """A date in this order as days since 1970, a time of day as a fraction; None where it is none. Times without a zone
    are taken as UTC.

    >>> as_days("1970-01-02 12:00", YEAR_FIRST), as_days("2/1/1970 6:00 PM", DAY_FIRST), as_days("30.2.1970", DAY_FIRST)
    (1.5, 1.75, None)
    """
    found = DATE.fullmatch(cell)
    if found is None or (order == YEAR_FIRST and not found[1]):  # a year in front is never in doubt
        return None
    if found[1]:
        year, month, day, time = found[1], found[2], found[3], found[4]
    else:
        year, time = found[8], found[9]
        day, month = (found[5], found[7]) if order == DAY_FIRST else (found[7], found[5])
    if len(year) != 4:  # 24 may be 1924
        return None
    try:
        when = datetime.fromisoformat(f"{year}-{month:0>2}-{day:0>2}{_time_of(time)}")
    except ValueError:
        return None
    return ((when if when.tzinfo else when.replace(tzinfo=UTC)) - _EPOCH) / timedelta(days=1)


def _time_of(text: str | None) -> str:
    """What follows a date as ISO writes it: T09:05:00Z of 9:05:00 UTC."""
    cell = "" if text is None else text[1:].strip().removesuffix(" UTC").removesuffix(" GMT")
    found = _TIME.fullmatch(cell)
    if not cell or found is None:
        return f"T{cell}" if cell else ""
    hour, half = int(found[1]), (found[3] or "").lower()
    if half and 1 <= hour <= 12:
        hour = hour % 12 + 12 * (half == "p")
    return f"T{hour:02}{(found[2] or ':00').replace(' ', '')}"


def days_of(cells: Collection[str], order: str = "") -> tuple[dict[str, float], str, str]:
    """Each cell as days; the order of its parts, which the cells have to tell where it is not given; and why the cells
    are no dates that can be used, if so."""
    order = order or order_of(cells)
    if not order:
        return {}, "", "dates of which nothing tells where the day stands: write them as 2026-01-31"
    at_once = _all_at_once(cells) if order == YEAR_FIRST else None
    if at_once is not None:
        return at_once, order, ""
    found = {cell: as_days(cell, order) for cell in cells}
    wrong = [cell for cell, days in found.items() if days is None]
    shown = listed([repr(cell) for cell in wrong], 3)
    why_not = f"dates, of which these cannot be read: {shown}: write them as 2026-01-31, or leave them blank"
    return {cell: days for cell, days in found.items() if days is not None}, order, why_not if wrong else ""


def _all_at_once(cells: Collection[str]) -> dict[str, float] | None:
    """The days of plain dates, of which a log has one in every row; None where a cell is another thing."""
    if not all(map(_PLAIN.fullmatch, cells)):
        return None
    try:
        moments = np.array([*cells], dtype="M8[us]")
    except ValueError:
        return None
    return dict(zip(cells, _days(moments).tolist(), strict=True))


def days_in(series: Any) -> NDArray[np.float64]:
    """pandas' times as days; NaN where there is none."""
    import pandas as pd

    native = isinstance(series.dtype, np.dtype | pd.DatetimeTZDtype)  # not Arrow's, which have kinds of their own
    moments = pd.to_datetime(series if native else series.astype(object), utc=True).dt.tz_localize(None)
    return _days(moments.to_numpy().astype("M8[us]"))


def _days(moments: NDArray[np.datetime64]) -> NDArray[np.float64]:
    found = moments.astype(np.int64) / _MICROSECONDS
    found[np.isnat(moments)] = np.nan
    return found
