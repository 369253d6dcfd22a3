"""AverageK: the exact threshold, ties, streams, merging, and what it promises on fresh data."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from shortlist import score_counts
from shortlist.errors import ShortlistError, ShortlistWarning
from shortlist.sets import AverageK, TopK
from shortlist.sets._bounds import hoeffding_bentkus_budget
from tests.sets.oracles import average_k_threshold


def draw(rows, labels, seed=0, dtype=np.float32, scale=2.0):
    return (np.random.default_rng(seed).normal(size=(rows, labels)) * scale).astype(dtype)


def in_batches(scores, size):
    return [scores[i : i + size] for i in range(0, len(scores), size)]


def growing_clearer(seed=0):
    """Rows in an order that misleads a single pass: flat ones first."""
    return draw(2000, 40, seed) * np.linspace(0.05, 3, 2000, dtype=np.float32)[:, None]


shapes = st.tuples(st.integers(1, 12), st.integers(2, 9))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data())
def test_threshold_and_sets_are_those_of_sorting_everything(dtype, data):
    width = np.dtype(dtype).itemsize * 8
    numbers = st.one_of(st.floats(allow_nan=False, width=width), st.sampled_from([0.0, -0.0, 1.0, np.inf, -np.inf]))
    scores = data.draw(hnp.arrays(dtype, shapes, elements=numbers))
    rows, labels = scores.shape
    k = data.draw(st.floats(0.01, labels))
    rule = AverageK(k, link="none").fit(scores)
    threshold, m = average_k_threshold(scores, k)
    assert rule.threshold == threshold
    dense = rule.predict(scores).to_dense()
    assert dense[scores > threshold].all()
    assert not dense[scores < threshold].any()
    if len(np.unique(scores, axis=0)) == rows:
        assert dense.sum() == m
        assert rule.rank_error == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data())
def test_with_a_least_size_the_best_labels_are_in_and_the_others_are_those_of_sorting_them(dtype, data):
    numbers = st.one_of(st.floats(-9, 9, width=32), st.sampled_from([0.0, -0.0, 1.0, np.inf, -np.inf]))
    scores = data.draw(hnp.arrays(dtype, shapes, elements=numbers))
    rows, labels = scores.shape
    least = data.draw(st.integers(1, labels))
    k = data.draw(st.floats(least, labels))
    rule = AverageK(k, link="none", min_size=least).fit(scores)
    threshold, m = average_k_threshold(scores, k, least)
    assert rule.threshold == threshold
    dense = rule.predict(scores).to_dense()
    best = TopK(least).predict(scores).to_dense()
    assert dense[best].all()
    assert dense[scores > threshold].all()
    assert not dense[~best & (scores < threshold)].any()
    if len(np.unique(scores, axis=0)) == rows:
        assert dense.sum() == m + least * rows == math.floor(k * rows + 0.5)
        assert rule.rank_error == 0


@pytest.mark.parametrize("link", ["softmax", "sigmoid", "none"])
def test_with_a_least_size_no_set_is_smaller_and_the_mean_is_still_k_in_one_pass_and_over_shards(link):
    scores = draw(3000, 20, seed=5)
    rule = AverageK(1.6, link=link, min_size=1).fit(scores)
    assert AverageK(1.6, link=link).fit(scores).predict(scores).sizes.min() == 0
    assert rule.predict(scores).sizes.min() == 1
    assert rule.predict(scores).sizes.sum() == 4800
    assert AverageK.from_json(rule.to_json()).predict(scores) == rule.predict(scores)
    shards = [AverageK(1.6, link=link, min_size=1).fit(part) for part in in_batches(scores, 1000)]
    one_pass = AverageK(1.6, link=link, min_size=1).fit(iter(in_batches(scores, 500)))
    for other in (one_pass, shards[0].merge(*shards[1:])):
        assert other.rank_error == 0
        assert other.threshold == rule.threshold


def test_where_the_least_size_is_k_the_sets_are_those_of_top_k():
    scores = draw(50, 6)
    for k in (1, 3, 6):
        assert AverageK(k, min_size=k).fit(scores).predict(scores) == TopK(k).predict(scores)


def test_a_least_size_above_k_is_refused_and_rules_of_before_there_was_one_are_read():
    with pytest.raises(ShortlistError, match="min_size must be at most k, the mean size"):
        AverageK(1.5, min_size=2)
    rule = AverageK(2).fit(draw(30, 5))
    before = json.loads(rule.to_json())
    del before["settings"]["min_size"]
    assert AverageK.from_json(json.dumps(before)).to_json() == rule.to_json()


def test_midpoint_is_the_higher_score_where_rounding_would_give_the_lower():
    low = np.float32(1)
    high = np.nextafter(low, np.float32(2))
    rule = AverageK(1, link="none").fit(np.array([[high, low]]))
    assert rule.threshold == float(high)


def test_midpoint_of_the_largest_numbers_does_not_overflow():
    for dtype in (np.float32, np.float64):
        big = np.finfo(dtype).max
        assert AverageK(1, link="none").fit(np.array([[big, big / 2]], dtype)).threshold == float(big * dtype(0.75))


def test_float64_scores_that_are_equal_in_float32_are_told_apart():
    scores = 1 + 1e-12 * np.random.default_rng(0).permutation(200).reshape(20, 10)
    rule = AverageK(2.5, link="none").fit(scores)
    threshold, m = average_k_threshold(scores, 2.5)
    assert rule.threshold == threshold
    assert rule.predict(scores).sizes.sum() == m == 50
    assert (rule.predict(scores).to_dense() == (scores >= threshold)).all()


@pytest.mark.parametrize("k", [0.3, 1, 2.5, 7])
@pytest.mark.parametrize("link", ["softmax", "sigmoid", "none"])
def test_mean_size_on_the_calibration_scores_is_exactly_k_whatever_ties_there_are(k, link):
    scores = np.random.default_rng(1).integers(-2, 3, size=(400, 10)).astype(np.float16)
    assert len(np.unique(scores, axis=0)) == len(scores)
    rule = AverageK(k, link=link).fit(scores)
    assert rule.predict(scores).sizes.sum() == math.floor(k * 400 + 0.5)
    assert rule.rank_error == 0


def test_tied_labels_are_let_in_evenly_whatever_their_index():
    scores = np.zeros((4000, 20), np.float32)
    scores[:, 0] = -10 - np.arange(4000)  # makes the rows different
    per_label = AverageK(9.5, link="none").fit(scores).predict(scores).to_dense().mean(0)
    assert per_label[0] == 0
    assert np.abs(per_label[1:] - 0.5).max() < 5 * 0.5 / math.sqrt(4000)


def test_all_labels_when_k_is_their_number_and_none_when_k_rounds_to_nothing():
    scores = draw(5, 4)
    assert AverageK(4).fit(scores).threshold == -math.inf
    assert AverageK(4).fit(scores).predict(-100 * scores).sizes.tolist() == [4] * 5
    assert AverageK(0.05).fit(scores).predict(scores).sizes.tolist() == [0] * 5


def test_sets_grow_with_k():
    scores = draw(300, 12)
    before = np.zeros(scores.shape, bool)
    for k in (0.5, 1, 1.7, 3, 8, 12):
        now = AverageK(k).fit(scores).predict(scores).to_dense()
        assert (now >= before).all()
        before = now
    assert before.all()


def test_a_hundred_thousand_labels():
    scores = draw(30, 100_000)
    assert AverageK(5).fit(scores).predict(scores).sizes.sum() == 150


# ---- streams


def test_a_stream_in_batches_gives_the_threshold_of_the_whole():
    scores = draw(3000, 50)
    whole = AverageK(3).fit(scores)
    one_pass = AverageK(3)
    for batch in in_batches(scores, 500):
        assert one_pass.partial_fit(batch) is one_pass
    for rule in (one_pass, AverageK(3).fit(iter(in_batches(scores, 500)))):
        assert rule.rank_error == 0
        assert rule.threshold == whole.threshold
    assert whole.threshold == average_k_threshold(torch.softmax(torch.tensor(scores), -1).numpy(), 3)[0]


def test_two_passes_are_exact_where_the_first_batches_mislead():
    scores = growing_clearer()
    batches = in_batches(scores, 100)
    once = AverageK(4).fit(iter(batches))
    assert once.rank_error > 0
    for again in (AverageK(4).fit(batches), AverageK(4).fit(lambda: iter(batches)), AverageK(4).fit(scores)):
        assert again.rank_error == 0
        assert again.threshold == average_k_threshold(torch.softmax(torch.tensor(scores), -1).numpy(), 4)[0]
        assert again.predict(scores).sizes.sum() == 8000


@pytest.mark.parametrize("order", ["rising", "falling", "shuffled"])
@pytest.mark.parametrize("batch", [1, 7, 100])
def test_one_pass_is_off_by_no_more_than_the_stated_rank_error(order, batch):
    scores = np.sort(np.random.default_rng(3).lognormal(sigma=3, size=6000).astype(np.float32)).reshape(1000, 6)
    shuffled = np.random.default_rng(0).permutation(scores)
    scores = {"rising": scores, "falling": scores[::-1], "shuffled": shuffled}[order]
    rule = AverageK(1.5, link="none")
    for part in in_batches(scores, batch):
        rule.partial_fit(part)
        seen = scores[: rule._rows]
        assert abs(int(rule.predict(seen).sizes.sum()) - math.floor(1.5 * len(seen) + 0.5)) <= rule.rank_error
    assert rule.rank_error < 60  # 1% of the scores, however unlucky the order


def test_one_pass_over_tied_scores_lets_in_the_wanted_share():
    rng = np.random.default_rng(4)
    scores = rng.integers(0, 3, size=(3000, 30)).astype(np.float32)
    rule = AverageK(15, link="none").fit(iter(in_batches(scores, 1000)))
    size = rule.predict(scores).sizes.sum()
    assert 0 < abs(size - 45_000) < 5 * math.sqrt(30_000 / 4)  # 30,000 labels tie; the promise is the bound
    assert abs(size - 45_000) <= rule.rank_error


def test_memory_of_the_counts_is_bounded_however_the_threshold_wanders():
    rule = AverageK(1, link="none")
    for power in range(30, -30, -1):
        rule.partial_fit(np.array([[2.0**power, 0.0]], np.float32))
        assert len(rule._counts.open) <= score_counts.MOST_OPEN
        # the next score, 0, is far below all others; its bucket stays open, so that the midpoint is exact
        assert rule.threshold == 2.0**power / 2


def test_very_many_ties_are_resolved_exactly_while_keeping_few_hashes():
    scores = np.zeros((60_000, 20), np.float32)
    scores[:, 0] = -1 - np.arange(60_000)
    rule = AverageK(7.25, link="none").fit(scores)  # 1,140,000 ties: beyond what is kept whole
    assert rule.rank_error == 0
    assert rule.predict(scores).sizes.sum() == 7.25 * 60_000


def test_identical_rows_cannot_be_told_apart_and_the_rank_error_says_so():
    rule = AverageK(1, link="none").fit(np.zeros((10, 4), np.float32))
    size = rule.predict(np.zeros((10, 4))).sizes.sum()
    assert abs(size - 10) == rule.rank_error
    assert size % 10 == 0


def test_a_function_that_returns_other_scores_each_time_is_found_out():
    seeds = iter(range(10))

    def other_scores():
        return in_batches(growing_clearer(seed=next(seeds)), 100)

    with pytest.raises(ValueError, match="two passes over the scores differ"):
        AverageK(2).fit(other_scores)

    rows = iter([2000, 1900])
    with pytest.raises(ValueError, match="2000 rows in the first pass over them and 1900 in a later one"):
        AverageK(2).fit(lambda: in_batches(growing_clearer()[: next(rows)], 100))


# ---- merging


def test_merged_shards_give_the_threshold_of_the_whole():
    scores = draw(3000, 50)
    shards = [AverageK(3).fit(part) for part in in_batches(scores, 1000)]
    states = [shard.to_json() for shard in shards]
    merged = shards[0].merge(*shards[1:])
    assert merged.rank_error == 0
    assert merged.threshold == AverageK(3).fit(scores).threshold
    assert [shard.to_json() for shard in shards] == states  # unchanged


def test_shards_merge_after_a_trip_through_json_and_learning_goes_on():
    scores = draw(3000, 50)
    first = AverageK.from_json(AverageK(3).fit(scores[:1000]).to_json())
    merged = first.merge(AverageK(3).partial_fit(scores[1000:2000])).partial_fit(scores[2000:])
    assert merged.threshold == AverageK(3).fit(scores).threshold


def test_shards_that_differ_merge_within_the_stated_rank_error():
    a, b = draw(500, 20, seed=1, scale=0.5), draw(500, 20, seed=2, scale=4)
    merged = AverageK(3).fit(a).merge(AverageK(3).fit(b))
    size = merged.predict(np.concatenate([a, b])).sizes.sum()
    assert merged.rank_error > 0
    assert abs(size - 3000) <= merged.rank_error < 100


def test_merging_with_an_unfitted_rule_changes_nothing():
    rule = AverageK(3).fit(draw(100, 20))
    assert rule.merge(AverageK(3)).threshold == AverageK(3).merge(rule).threshold == rule.threshold


# ---- the promise


def test_mean_size_on_fresh_data_is_k_within_sampling_error():
    k, n, sizes = 2.5, 500, []
    for seed in range(60):
        scores = draw(2 * n, 12, seed=100 + seed)
        sizes.append(AverageK(k).fit(scores[:n]).predict(scores[n:]).sizes.mean() - k)
    error = np.std(sizes) / math.sqrt(len(sizes))
    assert abs(np.mean(sizes)) < 4 * error
    assert error < 0.03


@pytest.mark.parametrize("k", [0, -1, math.nan, math.inf, True, "5", None])
def test_k_that_is_not_a_positive_number_is_refused(k):
    with pytest.raises(ValueError, match="k must be"):
        AverageK(k)


def test_k_beyond_the_number_of_labels_is_refused_with_that_number():
    with pytest.raises(ValueError, match=r"at most 4 \(the number of labels\), got 4\.5"):
        AverageK(4.5).fit(draw(3, 4))


@pytest.mark.parametrize("seed", [0, 1])
def test_tied_scores_in_small_batches_let_in_about_as_many_as_wanted(seed):
    scores = np.round(draw(400, 5, seed))
    rule = AverageK(3.2, link="none")
    for part in in_batches(scores, 1):
        rule.partial_fit(part)
    assert rule._counts.find(rule._rank).unplaced  # seen before it was known where to look
    assert abs(rule.predict(scores).sizes.sum() - 3.2 * 400) <= 20  # all that are tied would be 200 too many


# ---- the promise about new rows


def test_max_size_bounds_every_set_and_keeps_the_mean():
    scores = np.random.default_rng(0).normal(size=(400, 9)) * 3
    for least in (0, 1):
        rule = AverageK(2.5, min_size=least, max_size=3).fit(scores)
        sizes = rule.predict(scores).sizes
        assert sizes.sum() == 1000
        assert sizes.max() == 3
        assert sizes.min() >= least
        third = np.sort(scores, -1)[:, -3]
        assert not (rule.predict(scores).to_dense() & (scores < third[:, None])).any()
    assert (AverageK(3, max_size=3).fit(scores).predict(scores).sizes == 3).all()


def test_the_price_of_a_confidence_is_what_the_bound_asks_for_and_falls_with_the_rows():
    rng, prices = np.random.default_rng(0), []
    for rows in (50, 500, 5000):
        scores = rng.normal(size=(rows, 9))
        rule = AverageK(2, max_size=4, confidence=0.9).fit(scores)
        budget = math.floor(4 * hoeffding_bentkus_budget(rows, 0.5, 1 - 0.9))
        assert rule.predict(scores).sizes.sum() == budget
        assert rule.price == pytest.approx(2 - budget / rows)
        prices.append(rule.price)
    assert prices[0] > 2 * prices[1] > 4 * prices[2] > 0
    said = f"new sets have at most 2 labels on average, and never above 4; it costs {rule.price:.2g} labels"
    assert rule.promise == f"with a confidence of 90.0%, {said}"


def test_too_few_rows_for_a_confidence_give_the_fewest_labels_and_say_so():
    rule = AverageK(1.1, min_size=1, max_size=5, confidence=0.99).fit(np.random.default_rng(0).normal(size=(8, 9)))
    assert (rule.predict(np.zeros((3, 9))).sizes == 1).all()
    assert rule.concern.startswith("8 calibration rows allow the promise of")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_size": 1}, "max_size must be at least k, the mean size, which is 2; got 1"),
        ({"confidence": 0.9}, "a confidence needs a max_size"),
        ({"confidence": 1.0, "max_size": 3}, "confidence must be between 0 and 1"),
    ],
)
def test_promises_that_cannot_be_made_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        AverageK(2, **options)


def test_a_confidence_with_min_size_equal_to_k_has_sets_of_that_size() -> None:
    scores = np.random.default_rng(0).normal(size=(40, 5))
    rule = AverageK(2, min_size=2, max_size=3, confidence=0.9).fit(scores)
    assert rule.predict(scores).sizes.tolist() == [2] * 40


def test_with_a_confidence_identical_rows_have_fewer_labels_rather_than_more() -> None:
    scores = np.zeros((40, 5))
    sizes = AverageK(1.5, min_size=1, max_size=3, confidence=0.9).fit(scores).predict(scores).sizes
    assert sizes.max() <= 1.5


def test_rows_that_are_too_few_for_the_promise_are_told_at_once() -> None:
    rule = AverageK(2, min_size=1, max_size=3, confidence=0.9)
    with pytest.warns(ShortlistWarning, match="^1 calibration row allows .* only with 1 label in every set$"):
        rule.fit(np.zeros((1, 5)))
    assert rule.predict(np.zeros((1, 5))).sizes.tolist() == [1]
