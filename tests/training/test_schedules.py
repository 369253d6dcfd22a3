"""The learning rate by how far training has come."""

import math
from typing import Any

import pytest
from pydantic import ValidationError

from shortlist.training.schedules import plateaus, rate_at
from shortlist.training.settings import ScheduleSettings, TrainSettings


def test_a_warm_up_rises_in_equal_steps_to_the_full_rate() -> None:
    schedule = ScheduleSettings(warm_up=1.5)
    rates = [rate_at(schedule, step / 4, 5, 1 / 4) for step in range(8)]
    assert rates == pytest.approx([1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6, 1, 1, 1])


def test_the_cosine_begins_where_the_warm_up_ends_and_falls_to_zero() -> None:
    schedule = ScheduleSettings(name="cosine", warm_up=1)
    assert rate_at(schedule, 1.0, 5) == 1.0
    assert rate_at(schedule, 3.0, 5) == pytest.approx(0.5)
    assert rate_at(schedule, 5.0, 5) == pytest.approx(0.0, abs=1e-12)


def test_a_plateau_counts_epochs_without_a_better_one_and_then_begins_anew() -> None:
    assert [plateaus([0.5, 0.4, 0.5, 0.3, 0.2, 0.6, 0.1][:n], patience=2) for n in range(8)] == [0, 0, 0, 1, 1, 2, 2, 2]
    assert plateaus([math.nan, 0.1, math.nan, math.nan], patience=2) == 1


def test_a_plateau_waits_for_the_end_of_the_warm_up() -> None:
    schedule = ScheduleSettings(name="plateau", patience=1, warm_up=2, factor=0.5)
    assert rate_at(schedule, 3.0, 9, values=[0.9, 0.1, 0.2]) == 1.0
    assert rate_at(schedule, 4.0, 9, values=[0.9, 0.1, 0.2, 0.2]) == 0.5


@pytest.mark.parametrize("name", ["constant", "cosine", "plateau"])
def test_schedules_written_out_are_read_back(name: str) -> None:
    schedule = ScheduleSettings(name=name)
    assert ScheduleSettings.model_validate(schedule.model_dump(mode="json")) == schedule


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"name": "cosine", "at": [3]}, "at belongs to step, not to cosine"),
        ({"factor": 0.5}, "factor belongs to step and plateau, not to constant"),
        ({"name": "step", "at": [3], "patience": 2}, "patience belongs to plateau, not to step"),
        ({"name": "step"}, "a step schedule needs the epochs"),
    ],
)
def test_options_of_another_schedule_are_refused_by_name(said: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ScheduleSettings.model_validate(said)


def test_a_warm_up_as_long_as_the_training_is_an_error() -> None:
    with pytest.raises(ValidationError, match=r"schedule\.warm_up must be less than the 3 epochs"):
        TrainSettings(epochs=3, schedule={"warm_up": 3})
