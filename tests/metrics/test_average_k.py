import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from shortlist.metrics import AverageKAccuracy
from shortlist.metrics.functional import average_k_accuracy, top_k_accuracy
from tests.metrics import oracles

SHARED = Path(os.environ.get("SHORTLIST_SHARED", Path(__file__).parents[3] / "shared")) / "data"
WIDE = st.integers(-120, 120)  # softmax underflows to many equal zeros


def test_the_accuracy_is_the_oracles_one_with_ties_and_fractional_k() -> None:
    rng = np.random.default_rng(0)
    for case in range(1000):
        n, num_labels = rng.integers(1, 12, size=2)
        values = rng.normal(size=(n, num_labels)).astype(np.float32)
        values = np.round(values) if case % 2 else values
        labels, k = rng.integers(num_labels, size=n), rng.uniform(0.05, num_labels)
        expected = oracles.average_k_accuracy(values, labels, k)
        np.testing.assert_allclose(average_k_accuracy(values, labels, k, link="none"), expected, atol=1e-6)
        metric = AverageKAccuracy(k, link="none")
        for rows in np.array_split(np.arange(n), 2):
            metric.update(values[rows], labels[rows])
        np.testing.assert_allclose(metric.compute(), expected, atol=1e-6)


def test_the_threshold_of_calibration_scores_holds_for_other_scores() -> None:
    rng = np.random.default_rng(1)
    held_out, scores, labels = rng.normal(size=(50, 8)), rng.normal(size=(70, 8)), rng.integers(8, size=70)
    linked = torch.from_numpy(held_out).softmax(-1).flatten().sort(descending=True).values
    threshold = (linked[149] + linked[150]) / 2  # k = 3 of 50 rows: 150 labels
    expected = (torch.from_numpy(scores).softmax(-1)[torch.arange(70), labels] >= threshold).double().mean()
    for options in ({"k": 3, "calibration": held_out}, {"threshold": threshold.item()}):
        np.testing.assert_allclose(average_k_accuracy(scores, labels, **options), expected, atol=1e-6)
        metric = AverageKAccuracy(**options)
        metric.update(scores[:30], labels[:30])
        metric.update(scores[30:], labels[30:])
        np.testing.assert_allclose(metric.compute(), expected, atol=1e-6)


def test_per_class_accuracies_average_to_the_whole_by_class_size() -> None:
    rng = np.random.default_rng(2)
    scores, labels = rng.normal(size=(90, 5)), rng.integers(4, size=90)
    for options in ({}, {"calibration": scores}):
        metric = AverageKAccuracy(2, **options)
        metric.update(scores, labels)
        per_class, sizes = metric.per_class().numpy(), np.bincount(labels, minlength=5)
        assert np.isnan(per_class[4])
        np.testing.assert_allclose(np.average(per_class[:4], weights=sizes[:4]), metric.compute(), atol=1e-6)


@given(hnp.arrays(np.float32, hnp.array_shapes(min_dims=2, max_dims=2, max_side=7), elements=WIDE), st.data())
def test_accuracy_rises_with_k_to_one(scores: np.ndarray, data: st.DataObject) -> None:
    num_labels = scores.shape[1]
    labels = data.draw(hnp.arrays(np.int64, len(scores), elements=st.integers(0, num_labels - 1)))
    ks = np.linspace(0.1, num_labels, 9)
    accuracies = [average_k_accuracy(scores, labels, float(k)).item() for k in ks]
    assert all(low <= high + 1e-7 for low, high in pairwise(accuracies))
    assert accuracies[-1] == 1


def test_chances_that_underflow_to_zero_do_not_all_count_as_chosen() -> None:
    scores = torch.tensor([[0.0, -500.0, -500.0, -500.0]])  # softmax is (1, 0, 0, 0)
    assert average_k_accuracy(scores, torch.tensor([2]), k=2) == pytest.approx(1 / 3)


def test_unknown_rows_take_part_neither_in_the_threshold_nor_in_the_accuracy() -> None:
    scores, labels = torch.randn(30, 6, generator=torch.Generator().manual_seed(3)), torch.arange(30) % 6
    masked = labels.masked_fill(torch.arange(30) >= 12, -1)
    assert average_k_accuracy(scores, masked, 2) == average_k_accuracy(scores[:12], labels[:12], 2)
    metric = AverageKAccuracy(2)
    metric.update(scores, masked)
    assert metric.compute() == average_k_accuracy(scores[:12], labels[:12], 2)


def test_a_label_matrix_with_one_present_label_counts_as_its_index() -> None:
    scores, labels = torch.randn(30, 6, generator=torch.Generator().manual_seed(4)), torch.arange(30) % 6
    one_hot = torch.nn.functional.one_hot(labels, 6)
    assert average_k_accuracy(scores, one_hot, 2) == average_k_accuracy(scores, labels, 2)


def test_errors_say_what_is_allowed() -> None:
    scores, labels = torch.zeros(2, 3), torch.tensor([0, 1])
    for k in (0, -1, float("nan"), float("inf"), None, "2"):
        with pytest.raises(ValueError, match="k must be a positive number"):
            AverageKAccuracy(k)
    with pytest.raises(ValueError, match=r"k must be at most 3 \(the number of labels\), got 3.5"):
        average_k_accuracy(scores, labels, 3.5)
    with pytest.raises(ValueError, match="not both"):
        AverageKAccuracy(1, calibration=scores, threshold=0.5)
    with pytest.raises(ValueError, match="threshold must be a number, got NaN"):
        AverageKAccuracy(threshold=float("nan"))
    with pytest.raises(ValueError, match="link must be one of 'softmax', 'sigmoid', 'none', got 'logit'"):
        AverageKAccuracy(1, link="logit")
    with pytest.raises(ValueError, match="softmax of scores row 1 is undefined"):
        average_k_accuracy(torch.tensor([[0.0, 1.0], [0.0, float("inf")]]), labels, 1)
    with pytest.raises(ValueError, match="NaN in 1 of 1 rows"):
        AverageKAccuracy(1, calibration=torch.tensor([[float("nan")]]))


@pytest.mark.skipif(not SHARED.exists(), reason="the shared data is not here")
def test_cifar100_errors_are_the_published_ones_and_raw_logits_are_the_trap() -> None:
    scores = np.load(SHARED / "cifar100_features" / "test_logits_linear_fp16.npy", mmap_mode="r")
    labels = np.load(SHARED / "cifar100" / "labels.npz")["test_fine"]
    errors = [
        1 - top_k_accuracy(scores, labels, 5).item(),
        1 - average_k_accuracy(scores, labels, 5).item(),
        1 - average_k_accuracy(scores, labels, 5, link="none").item(),
    ]
    assert [round(100 * error, 1) for error in errors] == [9.0, 5.9, 10.6]
    calibrated = AverageKAccuracy(5, calibration=scores[:5000])
    calibrated.update(scores[5000:], labels[5000:])
    assert 1 - calibrated.compute().item() == pytest.approx(0.059, abs=0.01)
