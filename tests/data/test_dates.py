"""Dates are days since 1970, in whatever order they are written; and what tells none is not guessed."""

import json
import warnings
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist.data.dates import DAY_FIRST, MONTH_FIRST, YEAR_FIRST, as_days, days_of, order_of
from shortlist.data.preprocessing import Preprocessor
from shortlist.errors import ShortlistError, ShortlistWarning

WHEN = pd.date_range("2024-01-05 13:30", periods=60, freq="36h")
WRITTEN = {
    "times": WHEN,
    "times with a zone": WHEN.tz_localize("UTC").tz_convert("Asia/Tokyo"),
    "days of Python": WHEN.date,
    "Arrow's times": pd.Series(WHEN.tz_localize("UTC")).astype(pd.ArrowDtype(pa.timestamp("us", "UTC"))),
    "Arrow's days": pd.Series(WHEN.date).astype(pd.ArrowDtype(pa.date32())),
    "ISO": WHEN.strftime("%Y-%m-%dT%H:%M:%SZ"),
    "slashes, year first": WHEN.strftime("%Y/%m/%d %H:%M"),
    "German": WHEN.strftime("%d.%m.%Y %H:%M"),
    "British": WHEN.strftime("%d/%m/%Y %H:%M:%S"),
    "American": WHEN.strftime("%m/%d/%Y %I:%M %p"),
}


def frame(cells: Any) -> Any:
    return pd.DataFrame({"x": np.arange(60.0), "when": cells})


@pytest.mark.parametrize("written", WRITTEN)
def test_dates_are_days_since_1970_however_they_are_written(written: str) -> None:
    prepared = Preprocessor.fit(frame(WRITTEN[written]))
    moments = WHEN.normalize() if "days" in written else WHEN
    days = np.array([(moment - pd.Timestamp(0)) / pd.Timedelta(days=1) for moment in moments])
    assert prepared.numbers is not None
    np.testing.assert_allclose(prepared.numbers.centre[1], days.mean(), rtol=1e-12)
    features = prepared.transform(frame(WRITTEN[written]))
    np.testing.assert_allclose(features[:, 1], (days - days.mean()) / days.std(), atol=1e-5)
    again = Preprocessor.from_json(json.loads(json.dumps(prepared.to_json())))
    assert again == prepared
    np.testing.assert_array_equal(again.transform(frame(moments)), features)
    assert "dates, as days since 1970, standardised (1): when" in prepared.describe()


@given(st.datetimes(min_value=datetime(1600, 1, 1), max_value=datetime(2400, 1, 1)), st.integers(-12, 14))
def test_a_date_with_a_zone_is_the_moment_that_it_names(moment: datetime, hours: int) -> None:
    moment = moment.replace(microsecond=0)
    written = moment.isoformat(sep=" ") + f"{hours:+03d}:00"
    exact = (moment.replace(tzinfo=UTC) - timedelta(hours=hours) - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(days=1)
    found = as_days(written, YEAR_FIRST)
    assert found is not None
    assert found == pytest.approx(exact, abs=1e-9)


@given(st.lists(st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 1, 1)), min_size=1, unique=True))
def test_many_plain_dates_are_the_days_that_each_is_alone(moments: list[datetime]) -> None:
    cells = [moment.isoformat(sep=" ") for moment in moments]
    found, order, why_not = days_of(cells)
    assert (order, why_not) == (YEAR_FIRST, "")
    assert list(found.values()) == pytest.approx([as_days(cell, YEAR_FIRST) for cell in cells], abs=1e-9)
    assert days_of([*cells, "2026-02-31"])[2]


@pytest.mark.parametrize(
    ("cell", "order", "days"),
    [
        ("2/1/1970 12:00 AM", DAY_FIRST, 1.0),
        ("1/2/1970 12:00 pm", MONTH_FIRST, 1.5),
        ("1970-01-02 9:36", YEAR_FIRST, 1.4),
        ("1970-01-02 12:00:00.000000000 UTC", YEAR_FIRST, 1.5),
        ("31/12/1969", DAY_FIRST, -1.0),
        ("1970-02-30", YEAR_FIRST, None),
        ("0000-00-00", YEAR_FIRST, None),
        ("1/2/70", DAY_FIRST, None),  # 1870, 1970 or 2070
        ("1/2/1970 25:00", DAY_FIRST, None),
        ("1/2/1970", YEAR_FIRST, None),
        ("1970-01-02", DAY_FIRST, 1.0),  # as programs write it, whoever writes days first
    ],
)
def test_times_of_day_are_fractions_and_what_is_no_date_is_none(cell: str, order: str, days: float | None) -> None:
    assert as_days(cell, order) == (None if days is None else pytest.approx(days))


def test_the_order_is_told_by_a_day_above_12_a_point_or_a_year_in_front_and_else_not_known() -> None:
    told = [["1/2/2024", "13/2/2024"], ["1/2/2024", "1/13/2024"], ["1.2.2024"], ["2024.1.2"], ["1-2-2024"]]
    assert [order_of(cells) for cells in told] == [DAY_FIRST, MONTH_FIRST, DAY_FIRST, YEAR_FIRST, ""]
    assert order_of(["13/2/2024", "2/13/2024"]) == order_of(["2024-01-02", "13/2/2024"]) == ""


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        (["1/2/2024", "3/4/2024"], "nothing tells where the day stands"),
        (["13/2/24", "1/2/24"], "cannot be read: '[132]{1,2}/2/24', '[132]{1,2}/2/24'"),
        (["2024-01-02", "2024-01-03", "0000-00-00"], "cannot be read: '0000-00-00': write them as 2026-01-31"),
    ],
)
def test_dates_that_are_in_doubt_are_left_out_aloud(cells: list[str], why: str) -> None:
    with pytest.warns(ShortlistWarning, match=f"columns left out: 'when' .*{why}"):
        prepared = Preprocessor.fit(frame((cells * 60)[:60]))
    assert prepared.width == 1
    assert not prepared.dates


def test_blank_dates_are_filled_and_marked() -> None:
    table = frame([*WHEN[:-3], None, "", "NA"])
    table["when"] = [cell if isinstance(cell, str) or cell is None else cell.isoformat() for cell in table["when"]]
    prepared = Preprocessor.fit(table)
    assert prepared.transform(table)[-4:, -1].tolist() == [0, 1, 1, 1]
    rows = table.tail(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert prepared.transform(rows)[:, -1].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (WRITTEN["American"], r"dates \(day first\), now it holds '01/13/2024 01:30 AM'"),
        (np.arange(60), r"dates \(day first\), now it holds 0, 1, 2"),
        (["soon", *WRITTEN["British"][1:]], "now it holds 'soon', first in row 0"),
    ],
)
def test_new_dates_that_are_written_otherwise_are_refused_with_the_cell(cells: Any, said: str) -> None:
    prepared = Preprocessor.fit(frame(WRITTEN["British"]))
    with pytest.raises(ShortlistError, match=said):
        prepared.transform(frame(cells))


def test_dates_in_a_column_of_numbers_are_refused() -> None:
    prepared = Preprocessor.fit(frame(np.arange(60)))
    for cells in (WHEN, WRITTEN["ISO"]):
        with pytest.raises(ShortlistError, match="'when' was fitted with numbers, now it holds"):
            prepared.transform(frame(cells))


def test_facts_with_dates_of_no_column_or_no_order_are_refused() -> None:
    facts = Preprocessor.fit(frame(WHEN)).to_json()
    for dates in ({"when": "backwards"}, {"other": YEAR_FIRST}):
        with pytest.raises(ShortlistError, match="the preprocessing's dates must be columns"):
            Preprocessor.from_json({**facts, "dates": dates})
