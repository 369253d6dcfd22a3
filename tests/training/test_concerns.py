"""Warnings where training is unlikely to work."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from shortlist import ShortlistWarning
from shortlist.data import Dataset
from shortlist.data.column_use import ColumnUse
from shortlist.models import build_backbone
from shortlist.objectives import build
from shortlist.runs import Run
from shortlist.runs.config import parse_config
from shortlist.training.concerns import concerns
from shortlist.training.loop import train
from shortlist.training.settings import TrainSettings
from tests.training.test_loop import StopsAt


def data(rows: int, scale: tuple[float, ...] = (1.0, 1.0)) -> Dataset:
    inputs = torch.randn(rows, len(scale), generator=torch.Generator().manual_seed(0)) * torch.tensor(scale)
    return Dataset(inputs, (inputs[:, 0] > 0).long(), ("no", "yes"))


def test_few_steps_and_features_of_very_different_scale_are_named() -> None:
    assert concerns(TrainSettings(batch_size=8, epochs=100), data(66)) == []
    few, scale = concerns(TrainSettings(batch_size=128, epochs=10), data(66, (1.0, 2.0, 3e4)))
    assert few.startswith("only 10 optimizer steps in all (1 an epoch): raise epochs or lower batch_size")
    assert "column 2 spreads" in scale
    assert "times as far as column 0" in scale


def test_columns_of_a_table_are_called_by_their_names() -> None:
    table = replace(data(66, (1.0, 3e4)), columns=ColumnUse(("rooms", "price")))
    (scale,) = concerns(TrainSettings(batch_size=8, epochs=100), table)
    assert "column 'price' spreads" in scale
    assert "as far as column 'rooms'" in scale


def test_columns_without_any_spread_are_no_matter_of_scale() -> None:
    assert concerns(TrainSettings(batch_size=8, epochs=100), data(66, (1.0, 2.0, 0.0))) == []


def test_a_loss_far_above_its_start_is_a_warning_with_advice() -> None:
    wild = data(66, (100.0, 100.0))
    wild = Dataset(wild.inputs, torch.randint(2, (66,), generator=torch.Generator().manual_seed(1)), wild.vocabulary)
    backbone = build_backbone("identity", in_shape=(2,))
    torch.manual_seed(0)
    objective = build("cross-entropy", in_features=2, num_labels=2)
    torch.nn.init.zeros_(objective.head.weight)
    settings = TrainSettings(batch_size=128, epochs=10, accelerator="cpu")
    with pytest.warns(ShortlistWarning, match=r"the loss rose from .* in epoch 1 to .* lower optimizer\.lr"):
        train(backbone, objective, wild, None, settings)


@pytest.mark.parametrize("stops", [False, True])
def test_a_loss_that_rises_within_the_first_epoch_is_a_warning(stops: bool, tmp_path: Path) -> None:
    wild = Dataset(data(99).inputs * 100, torch.arange(99) % 2, ("a", "b"))
    torch.manual_seed(0)
    backbone, objective = build_backbone("identity", in_shape=(2,)), build("cross-entropy", in_features=2, num_labels=2)
    torch.nn.init.zeros_(objective.head.weight)
    settings = TrainSettings(batch_size=8, epochs=1, accelerator="cpu", checkpoint_minutes=1e-9)
    run = Run.create(tmp_path / "run", parse_config("data: {train: {reader: ambiguous-numbers}}"), {})
    if stops:
        with pytest.raises(KeyboardInterrupt):
            train(backbone, objective, wild, None, settings, run=run, progress=StopsAt(5))
    with pytest.warns(ShortlistWarning, match=r"rose from 0\.\d+ in the first step to \d+ in epoch 1: lower optimizer"):
        train(backbone, objective, wild, None, settings, run=run, resume=True)
