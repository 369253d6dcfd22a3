"""The dictionary: who is in it, what it remembers, and where to find an example in it."""

import pytest
import torch

from shortlist.imcl import Dictionary
from shortlist.imcl.dictionary import choose


def target(seed=0, rows=300, labels=6):
    generator = torch.Generator().manual_seed(seed)
    full = (torch.rand(rows, labels, generator=generator) < torch.tensor([0.5, 0.2, 0.1, 0.02, 0.003, 0.0])).int()
    return full.masked_fill(torch.rand(rows, labels, generator=generator) < 0.5, -1)


def test_every_label_has_its_examples_as_far_as_there_are_any():
    y = target()
    rows = choose(y, per_label=10, seed=0)
    there, all_there = (y[rows] == 1).sum(0), (y == 1).sum(0)
    assert (there >= all_there.clamp(max=10)).all()
    assert len(rows) <= 60
    assert (y[rows] == 1).any(1).all()  # nobody is there without a label
    assert (rows.diff() > 0).all()


def test_the_seed_decides():
    y = target()
    assert torch.equal(choose(y, 5, seed=3), choose(y, 5, seed=3))
    assert not torch.equal(choose(y, 5, seed=3), choose(y, 5, seed=4))


def test_none_takes_the_whole_training_set():
    assert len(Dictionary(target(), in_features=2, per_label=None)) == 300


def test_places_are_found_and_others_are_minus_1():
    dictionary = Dictionary(target(), in_features=2, per_label=3)
    index = torch.arange(300)
    place = dictionary.places(index)
    assert torch.equal(dictionary.rows[place[place >= 0]], index[place >= 0])
    assert int((place >= 0).sum()) == len(dictionary)


def test_nobody_is_found_in_an_empty_dictionary():
    dictionary = Dictionary(torch.zeros(5, 3), in_features=2)
    assert len(dictionary) == 0
    assert dictionary.places(torch.arange(5)).tolist() == [-1] * 5


def test_it_remembers_a_copy_and_its_state_dict_holds_all_of_it():
    dictionary = Dictionary(target(), in_features=2, per_label=3)
    features = torch.randn(len(dictionary), 2)
    dictionary.remember(features)
    kept = features.clone()
    features.zero_()
    other = Dictionary(target(), in_features=2, per_label=3)
    assert not other.ready
    other.load_state_dict(dictionary.state_dict())
    assert other.ready
    assert torch.equal(other.features, kept)
    assert torch.equal(other.target, target()[dictionary.rows].to(torch.int8))


def test_features_of_another_shape_are_an_error():
    dictionary = Dictionary(target(), in_features=2, per_label=3)
    with pytest.raises(ValueError, match=r"features must have shape \(\d+, 2\)"):
        dictionary.remember(torch.zeros(len(dictionary), 3))


def test_class_indices_and_a_bad_count_are_errors():
    with pytest.raises(ValueError, match="needs a label matrix"):
        Dictionary(torch.tensor([0, 1]), in_features=2)
    with pytest.raises(ValueError, match="per_label must be a whole number of at least 1"):
        Dictionary(target(), in_features=2, per_label=0)
