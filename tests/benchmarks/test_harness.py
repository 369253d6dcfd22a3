"""Timing, memory and tables say what was measured."""

import json
import time
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest
import torch
from benchmarks.harness import MemoryCase, Row, SpeedCase
from benchmarks.other_work import OtherWork

from benchmarks import report

KEPT = Row("speed", "a", (2, 3), 5, 1.0, "b", 2.0, "ms", 1.0)
BROKEN = Row("speed", "c", (2, 3), None, 3.0, "b", 2.0, "ms", 1.2)
FREE = Row("memory", "d", (4,), 5, 3.0, "the scores", 2.0, "MB", None)


def allocate(megabytes: int):
    """A step that fills this much memory and lets it go."""

    def step() -> None:
        torch.ones(megabytes * 250_000)

    return step


def test_a_speed_case_reports_milliseconds_and_their_ratio():
    case = SpeedCase("g", "n", (1,), 5, lambda: lambda: time.sleep(0.004), "r", lambda: lambda: time.sleep(0.002), 1.5)
    row = case.run(seconds=0)
    assert 4 <= row.ours < 8
    assert 2 <= row.reference < 6
    assert row.ratio == row.ours / row.reference


def test_a_speed_case_holds_its_context_while_it_measures():
    inside = []

    @contextmanager
    def around():
        inside.append(True)
        yield
        inside.pop()

    states = []
    step = lambda: states.append(bool(inside))  # noqa: E731
    SpeedCase("g", "n", (1,), 5, lambda: step, "r", lambda: lambda: None, around=around).run(seconds=0)
    assert states
    assert all(states)
    assert not inside


def test_a_memory_case_counts_what_a_step_takes_at_its_peak():
    row = MemoryCase("g", "n", (10, 1_000_000), 5, partial(allocate, 80), partial(allocate, 1), goal=3.0).run()
    assert row.reference == 40
    assert row.ours == pytest.approx(80, abs=4)
    assert row.met


@pytest.mark.parametrize(("row", "met"), [(KEPT, True), (BROKEN, False), (FREE, None)])
def test_a_goal_is_met_by_a_ratio_not_above_it(row, met):
    assert row.met is met


def test_the_table_groups_its_rows_and_names_a_missed_goal():
    lines = report.as_text([KEPT, BROKEN, FREE]).splitlines()
    assert lines[0] == "speed"
    assert lines[2].split() == ["a", "2", "x", "3", "5", "1.00", "ms", "b", "2.00", "ms", "0.500", "1", "met"]
    assert lines[3].split()[-3:] == ["1.50", "1.2", "MISSED"]
    assert "memory" in lines
    assert lines[-1] == "1 of 2 goals met."


def test_a_disturbed_row_is_shown_but_not_judged():
    text = report.as_text([KEPT, replace(BROKEN, disturbed=True)])
    assert "MISSED" not in text
    assert "1.2   disturbed" in text
    assert text.endswith("1 of 2 goals met (1 not judged: other programs were busy).")


def test_markdown_says_how_to_make_it_again():
    page = report.as_markdown([KEPT, FREE], {"processor": "one"}, "make bench")
    assert "`make bench`" in page
    assert "| processor | one |" in page
    assert "| a | 2 x 3 | 5 | 1.00 ms | b | 2.00 ms | 0.500 | 1 | met |" in page


def test_json_keeps_every_figure():
    found = json.loads(report.as_json([BROKEN], {"processor": "one"}))
    assert found["machine"] == {"processor": "one"}
    assert found["rows"][0]["ratio"] == 1.5
    assert found["rows"][0]["met"] is False
    assert found["rows"][0]["shape"] == [2, 3]


def test_a_table_is_replaced_whole_and_leaves_no_draft(tmp_path):
    path = tmp_path / "new" / "table.md"
    report.write(path, "first")
    report.write(path, "second")
    assert path.read_text() == "second"
    assert list(path.parent.iterdir()) == [path]


def test_own_work_is_not_counted_as_the_work_of_others(monkeypatch):
    # 5 seconds of 2 cores: the machine computed for 6, this process for 4
    for name, values in {"_busy_seconds": (10, 16), "_own_seconds": (3, 7), "time.monotonic": (0, 5)}.items():
        monkeypatch.setattr(f"benchmarks.other_work.{name}", iter(values).__next__)
    monkeypatch.setattr("benchmarks.other_work.os.cpu_count", lambda: 2)
    assert OtherWork().share() == pytest.approx(0.2)


@pytest.mark.parametrize(("shares", "disturbed", "measured"), [([0.5, 0.01], False, 2), ([0.5] * 10, True, 10)])
def test_a_case_is_measured_again_until_other_programs_are_quiet(monkeypatch, shares, disturbed, measured):
    times = iter([1.0 + i for i in range(10)])
    monkeypatch.setattr("benchmarks.harness.OtherWork.share", lambda self: shares.pop(0))
    monkeypatch.setattr("benchmarks.harness.fastest", lambda steps, seconds, threads: [next(times), 2.0])
    row = SpeedCase("g", "n", (1,), 5, lambda: print, "r", lambda: print, goal=1.0).run(seconds=1)
    assert row.disturbed is disturbed
    assert row.ours == 1000 * measured  # the last attempt counts
    assert row.met is (None if disturbed else True)
