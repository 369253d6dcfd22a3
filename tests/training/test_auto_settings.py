"""Batch size and epochs by the size of the data."""

from pathlib import Path

import pytest

from shortlist.errors import ShortlistError
from shortlist.runs import Run
from shortlist.runs import train as train_run
from shortlist.training.auto_settings import settled, steps_per_epoch
from shortlist.training.settings import TrainSettings


@pytest.mark.parametrize("rows", [3, 66, 500, 4000, 6400, 100_000])
def test_there_are_enough_steps_whatever_the_size_of_the_data(rows: int) -> None:
    found = settled(TrainSettings(), rows)
    assert found.epochs is not None
    assert found.batch_size is not None
    assert 8 <= found.batch_size <= 128
    assert 10 <= found.epochs <= 100
    assert found.epochs == 100 or found.epochs * steps_per_epoch(found, rows) >= 1000


def test_what_the_user_says_is_kept_and_auto_is_a_word_for_not_saying() -> None:
    found = settled(TrainSettings.model_validate({"batch_size": "auto", "epochs": 7}), 1000)
    assert (found.batch_size, found.epochs) == (20, 7)
    assert settled(found, 5) == found


def test_a_step_schedule_wants_to_know_the_number_of_epochs() -> None:
    with pytest.raises(ShortlistError, match="say how many epochs there are"):
        settled(TrainSettings(schedule={"name": "step", "at": [3]}), 1000)


def test_a_run_stores_and_tells_the_numbers_it_is_trained_with(tmp_path: Path) -> None:
    data = {"train": {"reader": "ambiguous-numbers", "size": 60}, "validation": 0.2, "calibration": None}
    told: list[str] = []
    train_run({"data": data}, tmp_path / "run", say=told.append)
    run = Run(tmp_path / "run")
    assert (run.config.batch_size, run.config.epochs) == (8, 100)
    assert len(run.records()) == 100
    assert told == ["48 training examples: batches of 8, 100 epochs of 6 steps"]
