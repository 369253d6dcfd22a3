"""The numbers of sets and their 95 % intervals: counts by hand, Wilson's formula, and how often they hold the truth."""

import math

import numpy as np
import pytest

from shortlist.labels import LabelSets
from shortlist.metrics import functional as M
from shortlist.metrics.functional.set_summary import judged, share_interval
from shortlist.sets import Threshold, TopK


def wilson_by_search(share: float, rows: int) -> tuple[float, float]:
    """The shares p of which the observed one is at most 1.96 standard deviations away, tried one after the other."""
    tried = np.linspace(0, 1, 200_001)
    near = tried[np.abs(share - tried) <= 1.959964 * np.sqrt(tried * (1 - tried) / rows) + 1e-12]
    return near[0], near[-1]


@pytest.mark.parametrize(("share", "rows"), [(0.0, 10), (1.0, 10), (0.5, 4), (0.9, 100), (0.013, 1000)])
def test_the_interval_of_a_share_of_rows_is_wilsons(share: float, rows: int) -> None:
    assert share_interval(share, rows) == pytest.approx(wilson_by_search(share, rows), abs=1e-5)


def test_the_coverage_of_single_labels_and_the_exact_match_are_shares_of_rows() -> None:
    scores = np.random.default_rng(0).normal(size=(60, 5))
    target = scores.argmax(1)
    target[:9] = 0
    found = M.set_summary(TopK(1).predict(scores), target)
    for name in ("coverage", "exact", "precision", "recall", "f1"):  # sets of one label, one right label: all the same
        share = float((scores.argmax(1) == target).mean())
        assert found[name] == pytest.approx((share, *share_interval(share, 60)))


def test_the_numbers_are_those_of_plain_loops_and_unknown_labels_count_in_the_size_only() -> None:
    rng = np.random.default_rng(1)
    sets = LabelSets.from_dense(rng.random((50, 6)) < 0.4)
    target = rng.integers(-1, 2, (50, 6))
    target[:5] = -1
    hits = listed = present = 0
    for row, members in enumerate(sets):
        for label in range(6):
            known = target[row, label] >= 0
            hits += known and label in members and target[row, label] == 1
            listed += known and label in members
            present += target[row, label] == 1
    found = M.set_summary(sets, target)
    assert found["size"].value == sets.sizes.mean()
    assert found["precision"].value == pytest.approx(hits / listed)
    assert found["recall"].value == pytest.approx(hits / present)
    assert found["f1"].value == pytest.approx(2 * hits / (listed + present))
    assert found["f1"].value == pytest.approx(float(M.set_f_score(sets, target, average="all")))
    assert found["coverage"].value == pytest.approx(float(M.set_coverage(sets, target)))
    assert found["exact"].value == pytest.approx(float(M.exact_match(sets, target)))
    known = target >= 0
    assert list(judged(target, (50, 6)).values()) == [
        known.any(1).sum(), known.sum(), (target == 0).sum(), (~known).sum()
    ]  # fmt: skip
    assert all(low <= value <= high for value, low, high in found.values())


def test_the_interval_of_the_mean_size_is_the_normal_one() -> None:
    sets = LabelSets.from_lists([[0], [0, 1], [0, 1, 2], []], num_labels=3)
    half = 1.959964 * np.std([1, 2, 3, 0], ddof=1) / 2
    assert M.set_summary(sets, np.zeros(4, int))["size"] == pytest.approx((1.5, 1.5 - half, 1.5 + half), abs=1e-6)


def test_no_size_is_below_zero_and_neither_is_its_interval() -> None:
    sets = LabelSets.from_lists([[0, 1, 2, 3, 4, 5], [], []], num_labels=6)
    size = M.set_summary(sets, np.zeros((3, 6), int))["size"]
    assert (size.value, size.low) == (2.0, 0.0)


def test_where_every_row_is_as_good_as_it_can_be_the_interval_still_has_a_width() -> None:
    """Sets of two labels, one right label each, always held: precision is a half, which no other rows could exceed."""
    found = M.set_summary(LabelSets.from_lists([[0, 1]] * 20, num_labels=3), np.zeros(20, int))
    low, high = share_interval(1.0, 20)
    assert found["coverage"] == (1.0, low, high)
    assert found["precision"] == pytest.approx((0.5, low / 2, high / 2))


def test_nothing_to_judge_by_gives_nan() -> None:
    found = M.set_summary(LabelSets.from_lists([[], []], num_labels=3), np.array([0, 1]))
    assert math.isnan(found["precision"].value)
    assert found["recall"].value == 0
    assert math.isnan(M.set_summary(TopK(1).predict(np.eye(3)), np.full(3, -1))["coverage"].low)


@pytest.mark.parametrize("unknown", [0.0, 0.6])
def test_the_intervals_hold_the_truth_about_19_times_of_20(unknown: float) -> None:
    """100 rows a draw, 300 draws: of these, 95 % are 285, with a standard deviation of 4."""
    rng, rule = np.random.default_rng(2), Threshold(0.3, link="sigmoid")

    def drawn(rows: int) -> dict[str, tuple[float, float, float]]:
        scores = rng.normal(size=(rows, 8)) * 1.5 - 1
        target = (rng.random(scores.shape) < 1 / (1 + np.exp(-scores))).astype(np.int8)
        target[rng.random(target.shape) < unknown] = -1
        return M.set_summary(rule.predict(scores), target)

    truth, held = drawn(200_000), dict.fromkeys(drawn(2), 0)
    for _ in range(300):
        for name, (_, low, high) in drawn(100).items():
            held[name] += low <= truth[name][0] <= high
    assert min(held.values()) > 285 - 16
    assert max(held.values()) < 285 + 15


def test_large_sets_are_counted_like_plain_loops_where_whole_rows_are_unknown_or_empty() -> None:
    rng = np.random.default_rng(2)
    for density in (0.0, 0.02, 0.5, 1.0):
        sets = LabelSets.from_dense(rng.random((40, 300)) < density)
        target = rng.integers(-1, 300, 40)
        hits = sum(int(label in set(members)) for members, label in zip(sets, target, strict=True))
        found = M.set_summary(sets, target)
        known = target >= 0
        assert found["recall"].value == pytest.approx(hits / known.sum())
        listed = sets.sizes[known].sum()
        assert found["precision"].value == pytest.approx(hits / listed if listed else np.nan, nan_ok=True)
