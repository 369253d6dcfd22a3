"""Coverage by class, group and size, CovGap, the worst slab, the test of new scores, calibration error."""

import numpy as np
import pytest
import torch
from scipy.stats import chi2_contingency, ks_2samp

from shortlist.labels import LabelSets
from shortlist.metrics import CalibrationError, CoverageGap
from shortlist.metrics import functional as M
from shortlist.metrics.functional.promises import _chi_square, _kolmogorov_smirnov


def some_sets():
    """Rows 0 to 5: sets {0}, {0, 1}, {}, {2}, {0, 1, 2}, {1}."""
    return LabelSets.from_lists([[0], [0, 1], [], [2], [0, 1, 2], [1]], num_labels=4)


TARGET = torch.tensor([0, 1, 0, 1, 2, -1])


def test_coverage_is_counted_by_class_group_and_size():
    classes = M.coverage_by_class(some_sets(), TARGET)
    assert [round(one.value, 3) for one in classes[:3]] == [0.5, 0.5, 1.0]
    assert np.isnan(classes[3].value)
    assert classes[0].low < 0.5 < classes[0].high
    groups = M.coverage_by_group(some_sets(), TARGET, np.array([1, 1, 2, 2, 2, 1]))
    assert {name: round(one.value, 3) for name, one in groups.items()} == {"1": 1.0, "2": 0.333}
    sizes = M.coverage_by_size(some_sets(), TARGET)
    assert {name: one.value for name, one in sizes.items()} == {"0": 0.0, "1": 0.5, "2": 1.0, "3 to 4": 1.0}
    with pytest.raises(ValueError, match="groups are one for each of 6 rows"):
        M.coverage_by_group(some_sets(), TARGET, [1, 2])


def test_the_gap_is_the_mean_distance_of_classes_and_adds_up_over_batches():
    assert M.coverage_gap(some_sets(), TARGET, coverage=0.7) == pytest.approx((0.2 + 0.2 + 0.3) / 3)
    metric = CoverageGap(coverage=0.7)
    for rows in (slice(0, 2), slice(2, 6)):
        metric.update(some_sets()[rows], TARGET[rows])
    assert metric.compute() == M.coverage_gap(some_sets(), TARGET, coverage=0.7)


def test_the_worst_slab_is_found_and_judged_by_rows_that_did_not_look_for_it():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(4000, 3))
    bad = features @ [1, 1, 0] > 1.8  # a tenth of the rows, covered half as often
    held = rng.random(4000) < np.where(bad, 0.45, 0.95)
    sets = LabelSets.from_lists([[0] if one else [1] for one in held], num_labels=2)
    target = torch.zeros(4000, dtype=torch.long)
    found = M.worst_slab_coverage(sets, target, features, directions=400)
    assert 0.35 < found.value < 0.65
    assert found.low < found.value < found.high
    fair = LabelSets.from_lists([[0] if one else [1] for one in rng.random(4000) < 0.9], num_labels=2)
    assert M.worst_slab_coverage(fair, target, features).high > 0.88
    with pytest.raises(ValueError, match="needs at least 200 known rows"):
        M.worst_slab_coverage(sets[:50], target[:50], features[:50])


def test_the_test_of_new_scores_is_that_of_scipy_and_rarely_cries_wolf():
    rng = np.random.default_rng(1)
    for _ in range(5):
        a, b = np.sort(rng.normal(size=300)), np.sort(rng.normal(size=450) + rng.random() / 3)
        assert _kolmogorov_smirnov(a, b) == pytest.approx(ks_2samp(a, b, method="asymp").pvalue, abs=0.02)
        counts = rng.integers(10, 60, (2, 6)).astype(float)
        assert _chi_square(*counts) == pytest.approx(chi2_contingency(counts, correction=False).pvalue, rel=1e-6)
    scores = rng.normal(size=(300, 200, 5)).astype(np.float32)
    small = [M.same_scores(part[:100], part[100:]) <= 0.1 for part in scores]
    assert np.mean(small) <= 0.1 + 4 * np.sqrt(0.09 / 300)
    shifted = scores[0].copy()
    shifted[:, 0] += 1.5  # it says label 0 far more often
    assert M.same_scores(scores[1], shifted) < 1e-4


def test_calibration_error_is_the_mean_distance_of_bins():
    rng = np.random.default_rng(0)
    scores = torch.from_numpy(rng.normal(size=(500, 4)))
    target = torch.from_numpy(rng.integers(-1, 4, 500))
    p, known = scores.softmax(-1).numpy(), target.numpy() >= 0
    confidence, right = p.max(-1)[known], (p.argmax(-1) == target.numpy())[known]
    place = np.minimum((confidence * 10).astype(int), 9)
    expected = sum(abs(confidence[place == b].sum() - right[place == b].sum()) for b in range(10)) / known.sum()
    assert M.calibration_error(scores, target, bins=10) == pytest.approx(expected, rel=1e-5)
    bins = M.reliability(scores, target, bins=10)
    assert sum(one.rows for one in bins) == known.sum()
    metric = CalibrationError(bins=10)
    metric.update(scores[:200], target[:200])
    metric.update(scores[200:], target[200:])
    assert metric.compute() == pytest.approx(expected, rel=1e-5)


def test_the_calibration_error_of_a_label_matrix_is_over_its_known_entries():
    scores, target = torch.zeros(2, 2), torch.tensor([[1, 0], [-1, 1]])
    assert M.calibration_error(scores, target, link="sigmoid") == pytest.approx(abs(0.5 - 2 / 3))
