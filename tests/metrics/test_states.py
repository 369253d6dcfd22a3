"""What every metric class shares: batches, reset, forward, copies, and nothing observed."""

import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torchmetrics import Metric, MetricCollection

import shortlist.metrics
from shortlist.labels import LabelSets
from shortlist.metrics import (
    AverageKAccuracy,
    ExactMatch,
    MeanAveragePrecision,
    NDCGAtK,
    PrecisionAtK,
    RecallAtK,
    SetCoverage,
    SetFScore,
    SetSize,
    TopKAccuracy,
)

GENERATOR = torch.Generator().manual_seed(0)
SCORES = torch.randn(40, 6, generator=GENERATOR)
LABELS = torch.randint(-1, 6, (40,), generator=GENERATOR)
SETS = LabelSets.from_dense(SCORES > 0.3)

ON_SCORES: list[Callable[[], Metric]] = [
    lambda: TopKAccuracy(2),
    lambda: AverageKAccuracy(2),
    lambda: AverageKAccuracy(2, calibration=SCORES),
    lambda: PrecisionAtK(2),
    lambda: RecallAtK(2),
    lambda: NDCGAtK(2),
    MeanAveragePrecision,
    lambda: MeanAveragePrecision("sample"),
    lambda: MeanAveragePrecision(bins=16, link="sigmoid"),
]
ON_SETS: list[Callable[[], Metric]] = [
    SetSize,
    SetCoverage,
    SetFScore,
    lambda: SetFScore(average="class"),
    ExactMatch,
]
ALL = [(make, SCORES) for make in ON_SCORES] + [(make, SETS) for make in ON_SETS]


def _value(make: Callable[[], Metric], predictions: Any, *rows: slice) -> torch.Tensor:
    metric = make()
    for part in rows:
        metric.update(predictions[part], LABELS[part])
    value: torch.Tensor = metric.compute()
    return value


@pytest.mark.parametrize(("make", "predictions"), ALL)
def test_forward_gives_the_value_of_the_batch_and_adds_it(make: Callable[[], Metric], predictions: Any) -> None:
    metric = make()
    for rows in (slice(0, 15), slice(15, 40)):
        torch.testing.assert_close(metric(predictions[rows], LABELS[rows]), _value(make, predictions, rows))
    torch.testing.assert_close(metric.compute(), _value(make, predictions, slice(0, 40)))


@pytest.mark.parametrize(("make", "predictions"), ALL)
def test_reset_forgets_and_copies_remember(make: Callable[[], Metric], predictions: Any) -> None:
    metric = make()
    metric.update(predictions[:15], LABELS[:15])
    copy = pickle.loads(pickle.dumps(metric))
    metric.reset()
    metric.update(predictions[15:], LABELS[15:])
    torch.testing.assert_close(metric.compute(), _value(make, predictions, slice(15, 40)))
    torch.testing.assert_close(copy.compute(), _value(make, predictions, slice(0, 15)))


@pytest.mark.parametrize(("make", "predictions"), ALL)
def test_nothing_observed_is_nan(make: Callable[[], Metric], predictions: Any) -> None:
    metric = make()
    metric.update(predictions[:0], LABELS[:0])
    assert metric.compute().isnan()
    if not isinstance(metric, SetSize):  # a size needs no known label
        metric = make()
        metric.update(predictions, torch.full((40,), -1))
        assert metric.compute().isnan()


@pytest.mark.parametrize("make", ON_SCORES)
@pytest.mark.filterwarnings("ignore:The ``compute`` method")
def test_compute_before_any_batch_is_nan(make: Callable[[], Metric]) -> None:
    assert make().compute().isnan()


@pytest.mark.parametrize(
    "make", [lambda: TopKAccuracy(2), lambda: AverageKAccuracy(2), lambda: MeanAveragePrecision(bins=4, link="sigmoid")]
)
def test_the_number_of_labels_may_not_change_between_batches(make: Callable[[], Metric]) -> None:
    metric = make()
    metric.update(SCORES, LABELS)
    with pytest.raises(ValueError, match="labels"):
        metric.update(SCORES[:, :3], LABELS.clamp(max=2))


def test_states_are_counts_of_labels_not_of_pairs_of_labels() -> None:
    num_labels = 3000
    for make in ON_SCORES:
        metric = make()
        if isinstance(metric, AverageKAccuracy) and metric.cut is not None:
            metric = AverageKAccuracy(threshold=0.5)
        metric.update(torch.randn(2, num_labels), torch.tensor([0, 5]))
        held = [state for name in metric.metric_state for state in [getattr(metric, name)]]
        entries = sum(t.numel() for state in held for t in (state if isinstance(state, list) else [state]))
        assert entries <= 33 * num_labels


def test_metrics_work_in_a_collection() -> None:
    together = MetricCollection({"top2": TopKAccuracy(2), "map": MeanAveragePrecision(), "set": AverageKAccuracy(2)})
    together.update(SCORES[:7], LABELS[:7])
    together.update(SCORES[7:], LABELS[7:])
    assert together.compute()["top2"] == _value(lambda: TopKAccuracy(2), SCORES, slice(0, 40))
    assert together.compute()["map"] == _value(MeanAveragePrecision, SCORES, slice(0, 40))


def test_every_class_has_a_functional_twin_and_every_name_is_listed() -> None:
    twins = {
        "AverageKAccuracy": "average_k_accuracy", "ExactMatch": "exact_match", "NDCGAtK": "ndcg_at_k",
        "MeanAveragePrecision": "mean_average_precision", "PrecisionAtK": "precision_at_k", "RecallAtK": "recall_at_k",
        "SceneRecallAtK": "scene_recall_at_k", "SetCoverage": "set_coverage", "SetFScore": "set_f_score",
        "SetSize": "set_size", "ShotGroups": "shot_groups", "TopKAccuracy": "top_k_accuracy",
        "CalibrationError": "calibration_error", "CoverageGap": "coverage_gap", "VoteCoverage": "vote_coverage",
        "PropensityNDCGAtK": "propensity_ndcg_at_k", "PropensityPrecisionAtK": "propensity_precision_at_k",
    }  # fmt: skip
    assert set(dir(shortlist.metrics)) == {*twins, "functional"}
    assert set(twins.values()) <= set(shortlist.metrics.functional.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'TopAccuracy'; it has AverageKAccuracy"):
        shortlist.metrics.TopAccuracy  # noqa: B018


def test_the_functions_need_no_torchmetrics_and_the_classes_say_what_to_install() -> None:
    program = """
import sys
sys.modules["torchmetrics"] = None
import torch, shortlist.metrics
assert shortlist.metrics.functional.top_k_accuracy(torch.eye(2), torch.tensor([0, 1]), 1) == 1
try:
    shortlist.metrics.TopKAccuracy
except ModuleNotFoundError as error:
    assert "pip install 'shortlist[metrics]'" in str(error), error
else:
    raise SystemExit("no error")
"""
    subprocess.run([sys.executable, "-c", program], check=True)
