"""Splits."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shortlist.data import Dataset, split


def numbered(target, labels):
    return Dataset(torch.arange(float(len(target)))[:, None], target, tuple(map(str, range(labels))))


def rows(part):
    return part.inputs.flatten().long().tolist()


@given(st.integers(1, 60), st.lists(st.integers(1, 5), min_size=1, max_size=4), st.booleans(), st.integers(0, 9))
def test_parts_are_disjoint_of_the_right_size_and_keep_rows_together(total, weights, stratify, seed):
    target = torch.arange(total) % 3
    parts = [weight / sum(weights) for weight in weights]
    found = split(numbered(target, 3), parts, seed=seed, stratify=stratify)
    assert sorted(row for part in found for row in rows(part)) == list(range(total))
    for part, share in zip(found, parts, strict=True):
        assert abs(len(part) - share * total) <= 1
        assert torch.equal(part.target, target[rows(part)])


def test_sizes_may_leave_examples_out():
    first, second = split(numbered(torch.zeros(10, dtype=torch.int64), 1), (3, 4))
    assert (len(first), len(second)) == (3, 4)
    assert not set(rows(first)) & set(rows(second))


def test_the_same_seed_gives_the_same_parts_and_another_one_others():
    data = numbered(torch.zeros(100, dtype=torch.int64), 1)
    one, same, other = (rows(split(data, (50,), seed=seed)[0]) for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_stratified_parts_have_each_label_in_proportion():
    target = torch.cat([torch.zeros(600), torch.ones(300), torch.full((100,), 2)]).long()
    train, val, test = split(numbered(target, 3), (0.7, 0.1, 0.2), stratify=True)
    for part, share in ((train, 0.7), (val, 0.1), (test, 0.2)):
        counts = part.label_counts()
        assert (counts - share * torch.tensor([600.0, 300, 100])).abs().max() <= 1


def test_labels_with_one_example_do_not_all_end_up_in_one_part():
    halves = split(numbered(torch.arange(200), 200), (0.5, 0.5), stratify=True)
    first_labels = sum(label < 100 for label in halves[0].target.tolist())
    assert 25 < first_labels < 75


def test_every_label_of_a_label_matrix_keeps_its_share_and_unknown_ones_do_not_count():
    target = torch.zeros(1000, 3, dtype=torch.int8)
    target[:, 0] = 1
    target[:20, 1] = 1
    target[500:600, 2] = -1
    train, test = split(numbered(target, 3), (0.8, 0.2), stratify=True)
    assert (train.label_counts().tolist(), test.label_counts().tolist()) == ([800, 16, 0], [200, 4, 0])


def test_several_labels_at_once_stay_nearer_to_their_shares_than_at_random():
    random = torch.Generator().manual_seed(0)
    frequency = torch.logspace(-2, -0.3, 30)
    target = (torch.rand(600, 30, generator=random) < frequency).to(torch.int8)
    data = numbered(target, 30)

    def distances(stratify):
        """How many examples each label of each part is from its share; the rarest labels first."""
        parts = split(data, (0.6, 0.3, 0.1), stratify=stratify)
        assert [len(part) for part in parts] == [360, 180, 60]
        assert sorted(row for part in parts for row in rows(part)) == list(range(600))
        shares = torch.tensor([[0.6], [0.3], [0.1]]) * target.sum(0)
        return (torch.stack([part.label_counts() for part in parts]) - shares).abs()

    stratified, drawn = distances(stratify=True), distances(stratify=False)
    assert stratified[:, :15].max() < 1
    assert stratified.mean() < 1
    assert drawn[:, :15].max() > 3
    assert drawn.mean() > 2


def test_a_label_with_two_examples_is_in_both_halves():
    target = torch.zeros(40, 10, dtype=torch.int8)
    for label in range(10):
        target[[label, 20 + label], label] = 1
    for half in split(numbered(target, 10), (0.5, 0.5), stratify=True):
        assert half.label_counts().tolist() == [1] * 10


@given(st.lists(st.integers(0, 12), min_size=12, max_size=80), st.booleans(), st.booleans(), st.integers(0, 5))
def test_a_group_is_never_in_two_parts(groups, single, stratify, seed):
    count = len(groups)
    target = torch.arange(count) % 3 if single else (torch.arange(count * 3).view(count, 3) % 2).to(torch.int8)
    groups = [f"patient {group}" for group in groups[:-12]] + [f"patient {group}" for group in range(12)]
    parts = split(numbered(target, 3), (0.5, 0.5), groups=groups, stratify=stratify, seed=seed)
    sides = [{groups[row] for row in rows(part)} for part in parts]
    assert not sides[0] & sides[1]
    assert sorted(row for part in parts for row in rows(part)) == list(range(count))


def test_parts_of_groups_have_about_the_size_asked_for_and_their_share_of_each_label():
    random = torch.Generator().manual_seed(0)
    groups = torch.randint(0, 200, (2000,), generator=random).tolist()
    target = (torch.rand(200, generator=random) < 0.2).long()[groups]  # a group has one label
    test = split(numbered(target, 2), (0.7, 0.3), groups=groups, stratify=True)[1]
    assert abs(len(test) - 600) <= 10
    assert abs(test.label_counts()[1] - 0.3 * target.sum()) <= 10


def test_groups_that_leave_nothing_for_a_part_are_an_error():
    data = numbered(torch.zeros(10, dtype=torch.int64), 1)
    with pytest.raises(ValueError, match="1 groups, the largest of 10 of 10 examples, leave nothing for part 1"):
        split(data, (0.8, 0.2), groups=["a"] * 10)


def test_parts_by_time_follow_each_other_and_the_oldest_are_left_over():
    dates = ["2026-01-05", "2026-01-01", "2026-01-04", "2026-01-02", "2026-01-03"]
    train, test = split(numbered(torch.zeros(5, dtype=torch.int64), 1), (2, 1), time=dates, stratify=True)
    assert (rows(train), rows(test)) == ([2, 4], [0])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"groups": [1, 2]}, "groups must have one value for each of 3 examples"),
        ({"time": [1.0, float("nan"), 2.0]}, r"time\[1\] is missing"),
        ({"groups": np.array(["a", "b", None], dtype=object)}, r"groups\[2\] is missing"),
        ({"time": np.array(["a", 1, "b"], dtype=object)}, "all numbers, all dates or all texts, got int and str"),
        ({"time": [1, 2, 3], "groups": [1, 2, 3]}, "by groups or by time, not by both"),
    ],
)
def test_columns_that_cannot_be_used_are_refused(columns, message):
    with pytest.raises(ValueError, match=message):
        split(numbered(torch.zeros(3, dtype=torch.int64), 1), (1, 1), **columns)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((0.8, 0.3), "parts sum to 1.1, but there is only 1"),
        ((8, 3), "parts sum to 11, but there are only 10"),
        ((0.8, 2), "all fractions"),
        ((-1, 3), "all fractions"),
        ((), "all fractions"),
        ((float("nan"), 0.5), "all fractions"),
    ],
)
def test_parts_that_make_no_sense_are_refused(parts, message):
    with pytest.raises(ValueError, match=message):
        split(numbered(torch.zeros(10, dtype=torch.int64), 1), parts)


@pytest.mark.parametrize("seed", [-1, 1.5, True])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(ValueError, match="seed must be a whole number"):
        split(numbered(torch.zeros(4, dtype=torch.int64), 1), (2,), seed=seed)
