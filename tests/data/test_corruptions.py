"""Corruptions: their probabilities, that they are recorded, and that the truth is kept."""

import numpy as np
import pytest
import torch

from shortlist.data import (
    CORRUPTIONS,
    Dataset,
    ambiguous_numbers,
    corrupt,
    long_tailed,
    missing_labels,
    noise_within_groups,
    single_positive,
    symmetric_noise,
)

N = 20_000
GROUPS = torch.tensor([0, 1, 0, 1, 0, 2, 1])  # three of group 0, three of group 1, one of group 2


def singles():
    target = torch.arange(N) % 7
    target[:70] = -1
    names = tuple("abcdefg")
    return Dataset(torch.zeros(N, 1), target, names, groups=GROUPS)


def several():
    target = torch.from_numpy(np.random.default_rng(5).integers(-1, 2, (N, 4)).astype(np.int8))
    return Dataset(torch.zeros(N, 1), target, tuple("abcd"))


def within(share, expected, n):
    """Five standard deviations of a share among n draws."""
    return abs(share - expected) <= 5 * (expected * (1 - expected) / n) ** 0.5


@pytest.mark.parametrize("p", [0.0, 0.4, 1.0])
def test_noise_within_groups_stays_in_the_group_and_may_draw_the_same_label(p):
    clean = singles()
    noisy = noise_within_groups(clean, p=p, seed=1)
    known = clean.target >= 0
    assert torch.equal(GROUPS[noisy.target[known]], GROUPS[clean.target[known]])
    for label, others in ((0, 3), (1, 3), (5, 1)):
        of_label = noisy.target[clean.target == label]
        kept = float((of_label == label).float().mean())
        assert within(kept, 1 - p + p / others, len(of_label))


def test_noise_within_groups_draws_every_label_of_the_group():
    noisy = noise_within_groups(singles(), p=1.0)
    counts = torch.bincount(noisy.target[singles().target == 2], minlength=7)
    assert counts.nonzero().flatten().tolist() == [0, 2, 4]
    assert all(within(count / int(counts.sum()), 1 / 3, int(counts.sum())) for count in counts[[0, 2, 4]].tolist())


def test_noise_within_blocks_stays_in_the_block_whatever_the_groups_are():
    clean = Dataset(torch.zeros(N, 1), torch.arange(N) % 6, tuple("abcdef"), groups=torch.arange(6) % 2)
    noisy = noise_within_groups(clean, p=1.0, block=3)
    assert torch.equal(noisy.target // 3, clean.target // 3)
    counts = torch.bincount(noisy.target[clean.target == 4], minlength=6)
    assert all(within(count / int(counts.sum()), 1 / 3, int(counts.sum())) for count in counts[3:].tolist())
    assert noisy.corruptions == ({"name": "noise-within-groups", "p": 1.0, "block": 3, "seed": 0},)


def test_blocks_need_no_groups_and_must_divide_the_labels():
    data = Dataset(torch.zeros(4, 1), torch.arange(4), tuple("abcd"))
    with pytest.raises(ValueError, match="has none: give block"):
        noise_within_groups(data, p=1.0)
    with pytest.raises(ValueError, match="block must divide the number of labels, 4 of"):
        noise_within_groups(data, p=1.0, block=3)
    assert torch.equal(noise_within_groups(data, p=1.0, block=2).target // 2, data.target // 2)


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_symmetric_noise_changes_a_share_p_to_any_other_label(p):
    clean = singles()
    noisy = symmetric_noise(clean, p=p, seed=2)
    known = clean.target >= 0
    changed = noisy.target[known] != clean.target[known]
    assert within(float(changed.float().mean()), p, int(known.sum()))
    if p:
        counts = torch.bincount(noisy.target[clean.target == 3], minlength=7)
        wrong = counts[[0, 1, 2, 4, 5, 6]].tolist()
        assert all(within(count / sum(wrong), 1 / 6, sum(wrong)) for count in wrong)


@pytest.mark.parametrize("noise", [noise_within_groups, symmetric_noise])
def test_noise_leaves_unknown_rows_unknown(noise):
    assert noise(singles(), p=1.0).target[:70].tolist() == [-1] * 70


@pytest.mark.parametrize("rate", [0.0, 0.6, 1.0])
def test_missing_labels_hides_a_share_of_the_entries_and_changes_no_other(rate):
    clean = several()
    hidden = missing_labels(clean, rate=rate, seed=3)
    known = clean.target != -1
    gone = hidden.target[known] == -1
    assert within(float(gone.float().mean()), rate, int(known.sum()))
    kept = hidden.target != -1
    assert torch.equal(hidden.target[kept], clean.target[kept])


def test_single_positive_keeps_one_present_label_with_equal_chances():
    clean = several()
    single = single_positive(clean, seed=4)
    has = (clean.target == 1).any(1)
    assert torch.equal((single.target == 1).sum(1), has.long())
    assert not bool((single.target == 0).any())
    assert bool((clean.target[single.target == 1] == 1).all())
    rows = (clean.target == torch.tensor([1, 0, 1, 1])).all(1)
    counts = (single.target[rows] == 1).sum(0).tolist()
    assert counts[1] == 0
    assert all(within(count / int(rows.sum()), 1 / 3, int(rows.sum())) for count in counts[:1] + counts[2:])


def test_single_positive_as_indices_keeps_the_same_labels():
    matrix, indices = single_positive(several(), seed=4), single_positive(several(), seed=4, indices=True)
    has = (matrix.target == 1).any(1)
    assert torch.equal(indices.target[has], (matrix.target[has] == 1).long().argmax(1))
    assert bool((indices.target[~has] == -1).all())


def test_long_tailed_falls_geometrically_and_keeps_only_what_was_there():
    target = torch.arange(10_000) % 10
    data = Dataset(torch.arange(10_000.0)[:, None], target, tuple("abcdefghij"))
    tailed = long_tailed(data, ratio=100, seed=5)
    expected = [int(1000 * 100 ** (-label / 9) + 1e-9) for label in range(10)]
    assert tailed.label_counts().tolist() == expected
    assert (expected[0], expected[-1]) == (1000, 10)
    rows = tailed.inputs.flatten().long()
    assert len(set(rows.tolist())) == len(tailed)
    assert torch.equal(tailed.target, target[rows])


def test_long_tailed_keeps_a_rare_label_and_drops_the_unknown():
    data = Dataset(torch.zeros(8, 1), torch.tensor([0, 0, 0, 0, 0, 0, 1, -1]), ("a", "b"))
    assert long_tailed(data, ratio=1000).label_counts().tolist() == [6, 1]


EVERY = {
    "noise-within-groups": (singles, {"p": 0.5}),
    "symmetric-noise": (singles, {"p": 0.5}),
    "missing-labels": (several, {"rate": 0.5}),
    "single-positive": (several, {}),
    "long-tailed": (singles, {"ratio": 10.0}),
}


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_the_same_seed_does_the_same_and_another_one_something_else(name):
    make, options = EVERY[name]
    data = make()
    data = Dataset(torch.arange(float(N))[:, None], data.target, data.vocabulary, groups=data.groups)
    one, same, other = (corrupt(data, name, seed=seed, **options) for seed in (1, 1, 2))
    assert torch.equal(one.target, same.target)
    assert torch.equal(one.inputs, same.inputs)
    assert not (torch.equal(one.target, other.target) and torch.equal(one.inputs, other.inputs))


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_what_was_done_is_recorded_and_what_was_given_is_untouched(name):
    make, options = EVERY[name]
    data = make()
    before = data.target.clone()
    corrupted = corrupt(corrupt(data, name, seed=1, **options), *_another(name), seed=2)
    assert [done["name"] for done in corrupted.corruptions] == [name, _another(name)[0]]
    assert corrupted.corruptions[0].items() >= {"seed": 1, **options}.items()
    assert torch.equal(data.target, before)
    assert data.corruptions == ()


def _another(name):
    return ("long-tailed",) if EVERY[name][0] is singles else ("single-positive",)


def test_the_truth_is_what_was_right_before_and_a_known_one_stays():
    noisy = symmetric_noise(singles(), p=1.0)
    assert noisy.truth.to_lists()[70:73] == [[0], [1], [2]]
    assert noisy.truth.to_lists()[0] == []
    matrix = several()
    assert np.array_equal(missing_labels(matrix, rate=0.5).truth.to_dense(), matrix.target.numpy() == 1)
    ambiguous = ambiguous_numbers(20)
    assert noise_within_groups(ambiguous, p=1.0).truth == ambiguous.truth


@pytest.mark.parametrize(
    ("name", "data", "options", "message"),
    [
        ("noise-within-groups", several, {"p": 0.5}, "is for class indices"),
        ("symmetric-noise", several, {"p": 0.5}, "is for class indices"),
        ("long-tailed", several, {}, "is for class indices"),
        ("missing-labels", singles, {"rate": 0.5}, "shortlist.labels.from_indices"),
        ("single-positive", singles, {}, "shortlist.labels.from_indices"),
        ("symmetric-noise", singles, {"p": 1.5}, "p must be a probability"),
        ("missing-labels", several, {"rate": float("nan")}, "rate must be a probability"),
        ("long-tailed", singles, {"ratio": 0.5}, "ratio must be at least 1"),
        ("fog", singles, {}, "there is no corruption 'fog'; there are noise-within-groups"),
    ],
)
def test_wrong_use_is_refused_with_what_to_do(name, data, options, message):
    with pytest.raises(ValueError, match=message):
        corrupt(data(), name, **options)


def test_noise_within_groups_needs_groups():
    data = Dataset(torch.zeros(2, 1), torch.tensor([0, 1]), ("a", "b"))
    with pytest.raises(ValueError, match="needs coarse groups"):
        noise_within_groups(data, p=0.1)
