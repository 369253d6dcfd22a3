"""What the clock counts."""

import pytest
import torch

from shortlist.timing import fastest, fastest_stages


class Clock:
    """Time that passes only when a step says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def step(self, *pauses: float):
        """A step that takes these times, call by call, and the last one from then on."""
        left = [*pauses]

        def run() -> None:
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return run


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr("shortlist.timing.turns.time", clock := Clock())
    return clock


def test_each_step_counts_its_fastest_call_after_the_warm_up(clock):
    (best,) = fastest([clock.step(0.0, 30.0, 5.0, 30.0)], seconds=0)
    assert best == 5


def test_each_stage_counts_its_own_fastest_time(clock):
    assert fastest_stages([[clock.step(0.0, 3.0, 5.0, 7.0), clock.step(0.0, 9.0, 2.0, 4.0)]], seconds=0) == [[3, 2]]


def test_steps_take_turns(monkeypatch):
    monkeypatch.setattr("shortlist.timing.turns.TURN_SECONDS", 0.0)
    seen = []
    fastest([lambda: seen.append("a"), lambda: seen.append("b")], seconds=0)
    assert len(seen) > 2
    assert seen == ["a", "b"] * (len(seen) // 2)


def test_timing_uses_the_threads_asked_for_and_restores_the_number_before():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        seen = []
        fastest([lambda: seen.append(torch.get_num_threads())], seconds=0, threads=2)
        assert set(seen) == {2}
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
