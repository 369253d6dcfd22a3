"""Label matrices of which some entries are stored: as LabelSets, as tensors, and as rooms count them."""

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from shortlist.errors import ShortlistError
from shortlist.labels import LabelSets, SparseLabels, from_sets
from shortlist.labels.counts import cardinality, present_pairs

DENSE = torch.tensor([[1, 0, -1, 0], [0, 0, 0, 0], [1, 1, 0, -1]], dtype=torch.int8)


def both() -> list[SparseLabels]:
    """What differs from 0, and what differs from -1."""
    return [SparseLabels.from_dense(DENSE), SparseLabels.from_dense(DENSE, rest=-1)]


def test_sets_of_a_target_are_what_is_present() -> None:
    sets = LabelSets.from_sparse(sparse.csr_array(DENSE.numpy()), list("abcd"))
    assert sets.to_lists() == [[0], [], [0, 1]]
    assert sets.names[2] == ["a", "b"]
    assert sets.sizes.tolist() == [1, 0, 2]
    assert sets[2] == [0, 1]
    assert sets.contains([2, 0, 0]).tolist() == [False, False, True]
    assert [0, 1] in sets
    assert np.array_equal(sets.to_dense(), DENSE.numpy() == 1)
    assert np.array_equal(sets.to_sparse().toarray(), DENSE.numpy() == 1)
    assert (sets | sets) == (sets & sets) == sets.present
    assert sets.present.values is None


def test_label_sets_keep_their_values_through_slices_pickles_and_concatenation() -> None:
    for labels in both():
        sets = labels.to_sets()
        assert np.array_equal(from_sets(sets), DENSE.numpy())
        assert np.array_equal(from_sets(LabelSets.concatenate([sets[2:], sets[:2]])), DENSE[[2, 0, 1]].numpy())
        assert pickle.loads(pickle.dumps(sets)) == sets
        assert sets != sets.present
        assert sets.named(list("abcd")).rest == sets.rest
        assert torch.equal(SparseLabels.of(sets).to_dense(), DENSE)


def test_what_equals_the_rest_is_not_stored() -> None:
    sets = LabelSets([0, 2], [0, 1], 3, values=[0, 1])
    assert sets == LabelSets([0, 1], [1], 3)


def test_files_hold_sets_alone(tmp_path: Any) -> None:
    with pytest.raises(ShortlistError, match=r"write their \.present"):
        both()[0].to_sets().to_parquet(tmp_path / "sets.parquet")


def test_rows_and_columns_are_those_of_the_matrix() -> None:
    for labels in both():
        for key in (slice(1, 3), slice(None, None, 2), torch.tensor([2, 0, 2]), torch.tensor([True, False, True]), [1]):
            assert torch.equal(labels[key].to_dense(), DENSE[key])
        assert torch.equal(labels[:, 1:3].to_dense(), DENSE[:, 1:3])
        together = SparseLabels.concatenate([labels, labels[:0], labels[1:]])
        assert torch.equal(together.to_dense(), DENSE[[0, 1, 2, 1, 2]])
        assert labels[5:].shape == (0, 4)


def test_counts_are_those_of_the_matrix() -> None:
    for labels in both():
        for value in (1, 0, -1):
            for found, whole in ((labels == value, value == DENSE), (labels != value, value != DENSE)):
                assert [found.sum(dim).tolist() for dim in (None, 0, 1)] == [
                    whole.sum().tolist(), whole.sum(0).tolist(), whole.sum(1).tolist()
                ]  # fmt: skip
                assert torch.equal(found.any(1), whole.any(1))
                assert bool(found.all()) == bool(whole.all())
        assert torch.equal((labels >= 0).sum(0), (DENSE >= 0).sum(0))
        assert cardinality(labels) == cardinality(DENSE)
        assert torch.equal(torch.stack(present_pairs(labels)), torch.stack(present_pairs(DENSE)))


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (([0, 2], [1, 0], [1, 1, 0]), "labels must increase within a set"),
        (([0, 1], [4], [1, 0]), r"row 0 holds label 4: allowed are 0\.\.3"),
        (([0, 1], [1], [2, 0]), r"target\[0, 1\] is 2: a label matrix holds"),
        (([0, 1], [1], [1, 1]), "the rest must be 0"),
        (([0, 1], [1], [1]), "one for the rest; got 1"),
        (([0, 2], [1], [1, 0]), "the last offset must be the number of indices"),
    ],
)
def test_says_what_is_wrong(parts: tuple[list[int], ...], words: str) -> None:
    with pytest.raises(ShortlistError, match=words):
        SparseLabels(*[torch.tensor(part) for part in parts], 4)  # type: ignore[misc]
    with pytest.raises(ShortlistError, match="rest must be 0"):
        LabelSets([0], [], 3, rest=1)
    with pytest.raises(ShortlistError, match="values must be numbers, one for each of the 1 indices"):
        LabelSets([0, 1], [0], 3, values=[1, 1])


@pytest.mark.parametrize("num_labels", [-1, 2.5, True])
def test_the_number_of_labels_is_a_whole_one(num_labels: Any) -> None:
    with pytest.raises(ShortlistError, match="num_labels must be a whole number"):
        SparseLabels(torch.tensor([0, 0]), torch.tensor([], dtype=torch.int64), torch.tensor([0]), num_labels)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ((slice(None), slice(None, None, 2)), r"chosen by a range, as in \[:, 2:5\], got slice"),
        ((slice(None), 3), r"chosen by a range, as in \[:, 2:5\], got 3"),
        ((slice(None), torch.tensor([1])), r"chosen by a range"),
        ((1, 2), "one after the other"),
        ((slice(None), slice(None), slice(None)), "one after the other"),
        (0, r"\[\[0\]\], not \[0\]"),
        (torch.tensor(2), "chosen by a slice, a mask or positions"),
    ],
)
def test_other_keys_are_refused(key: Any, words: str) -> None:
    for labels in both():
        with pytest.raises(ShortlistError, match=words):
            labels[key]
