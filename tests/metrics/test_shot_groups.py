import pytest
import torch
from torchmetrics.classification import MulticlassAccuracy

from shortlist.labels import LabelSets
from shortlist.metrics import (
    AverageKAccuracy,
    MeanAveragePrecision,
    RecallAtK,
    SetCoverage,
    SetSize,
    ShotGroups,
    TopKAccuracy,
)
from shortlist.metrics.functional import shot_groups

COUNTS = torch.tensor([19, 20, 100, 101, 3, 1000])


def test_bounds_are_fewer_than_twenty_and_more_than_a_hundred() -> None:
    groups = shot_groups(torch.arange(6.0), COUNTS)
    assert {name: value.item() for name, value in groups.items()} == {"few": 2, "medium": 1.5, "many": 4}


def test_bounds_are_options() -> None:
    groups = shot_groups(torch.arange(6.0), COUNTS, few=4, many=500)
    assert {name: value.item() for name, value in groups.items()} == {"few": 4, "medium": 1.5, "many": 5}


@pytest.mark.parametrize(
    "metric", [TopKAccuracy(2), AverageKAccuracy(2), MeanAveragePrecision(), MulticlassAccuracy(6, average=None)]
)
def test_groups_are_means_of_the_per_class_values(metric: torch.nn.Module) -> None:
    generator = torch.Generator().manual_seed(0)
    scores, labels = torch.randn(200, 6, generator=generator), torch.randint(6, (200,), generator=generator)
    grouped = ShotGroups(metric, COUNTS)
    grouped.update(scores[:50], labels[:50])
    grouped.update(scores[50:], labels[50:])
    values = metric.per_class() if hasattr(metric, "per_class") else metric.compute()
    expected = [values[[0, 4]].mean(), values[[1, 2]].mean(), values[[3, 5]].mean()]
    torch.testing.assert_close(list(grouped.compute().values()), expected)


@pytest.mark.parametrize("metric", [SetCoverage(), SetSize()])
def test_set_metrics_can_be_grouped(metric: SetCoverage) -> None:
    grouped = ShotGroups(metric, torch.tensor([1, 50, 500]))
    grouped.update(LabelSets.from_lists([[0], [1], [2]], num_labels=3), torch.tensor([0, 1, 2]))
    assert all(value == 1 for value in grouped.compute().values())


def test_classes_without_examples_are_left_out() -> None:
    groups = shot_groups(torch.tensor([0.5, float("nan"), float("nan")]), torch.tensor([1, 2, 500]))
    assert groups["few"] == 0.5
    assert groups["many"].isnan()


def test_forward_gives_the_batch_and_adds_it_and_reset_forgets() -> None:
    grouped = ShotGroups(TopKAccuracy(1), torch.tensor([1, 50, 500]))
    assert grouped(torch.eye(3), torch.tensor([0, 1, 2]))["few"] == 1
    assert grouped(torch.eye(3), torch.tensor([1, 0, 2]))["few"] == 0
    assert grouped.compute()["few"] == 0.5
    grouped.reset()
    grouped.update(torch.eye(3), torch.tensor([0, 1, 2]))
    assert grouped.compute()["few"] == 1


def test_errors_say_what_does_not_fit() -> None:
    grouped = ShotGroups(TopKAccuracy(1), torch.tensor([1, 50]))
    grouped.update(torch.eye(3), torch.tensor([0, 1, 2]))
    with pytest.raises(ValueError, match=r"one value for each of the 2 classes of train_counts, got shape \(3,\)"):
        grouped.compute()
    not_per_class = ShotGroups(RecallAtK(1), torch.tensor([1, 50, 3]))
    not_per_class.update(torch.eye(3), torch.tensor([0, 1, 2]))
    with pytest.raises(ValueError, match=r"one value for each of the 3 classes of train_counts, got shape \(\)"):
        not_per_class.compute()
    with pytest.raises(ValueError, match="few must be at most many"):
        ShotGroups(TopKAccuracy(1), COUNTS, few=200)
    with pytest.raises(ValueError, match="train_counts must be one number >= 0 per class"):
        ShotGroups(TopKAccuracy(1), -COUNTS)
    with pytest.raises(ValueError, match="metric must be a torchmetrics Metric, got str"):
        ShotGroups("top-k", COUNTS)
