"""Splits."""

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


def test_a_label_matrix_is_stratified_by_the_rarest_label_present():
    target = torch.zeros(1000, 3, dtype=torch.int8)
    target[:, 0] = 1
    target[:20, 1] = 1
    target[500:600, 2] = -1
    train, test = split(numbered(target, 3), (0.8, 0.2), stratify=True)
    assert (train.label_counts().tolist(), test.label_counts().tolist()) == ([800, 16, 0], [200, 4, 0])


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
