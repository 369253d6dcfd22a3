"""Threshold, PointwiseError and Penalized: nothing to fit, one definition each."""

from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from shortlist.sets import Penalized, PointwiseError, Threshold
from tests.sets.oracles import smallest_set_size, softmax

rows = hnp.arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(2, 6)), elements=st.floats(-1e4, 1e4))
masses = hnp.arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(2, 6)), elements=st.integers(0, 8))


@given(scores=rows, value=st.floats(0, 1))
def test_threshold_takes_the_labels_that_reach_it(scores, value):
    sigmoid = np.where(scores >= 0, 1, np.exp(np.minimum(scores, 0))) / (1 + np.exp(-abs(scores)))
    for link, linked in (("none", scores), ("sigmoid", sigmoid), ("softmax", np.array([softmax(r) for r in scores]))):
        dense = Threshold(value, link).predict(scores).to_dense()
        clear = abs(linked - value) > 1e-12
        assert (dense == (linked >= value))[clear | (link == "none")].all()


def test_threshold_is_compared_in_the_type_of_the_scores():
    assert Threshold(0.1, "none").predict(np.array([[0.1, 0.0999]], np.float32)).to_lists() == [[0]]


@given(mass=masses, eps=st.sampled_from([0, 0.125, 0.25, 0.5, 0.9]))
def test_pointwise_error_is_the_smallest_set_that_reaches_the_mass(mass, eps):
    sets = PointwiseError(eps, link="none").predict(mass)
    for row, labels in zip(mass, sets.to_lists(), strict=True):
        assert len(labels) == smallest_set_size(row, eps)
        outside = np.delete(row, labels)
        assert not len(outside) or row[labels].min() >= outside.max()


def test_pointwise_error_of_a_softmax():
    scores = np.random.default_rng(0).normal(size=(300, 20)) * 3
    sizes = PointwiseError(0.1).predict(scores).sizes
    assert sizes.tolist() == [smallest_set_size(softmax(row), 0.1) for row in scores]


@pytest.mark.parametrize("first", [1, 2, 5, 19])
def test_sets_of_pointwise_error_do_not_depend_on_how_many_ranks_are_looked_at_first(first, monkeypatch):
    rng = np.random.default_rng(0)
    mass = rng.integers(0, 9, (300, 20)) / 64.0  # with ties; their sums are exact
    mass[:, 0] += 1 / 64
    for eps in (0.0, 0.05, 0.25, 0.5, 0.9):
        expected = PointwiseError(eps, link="none").predict(mass)
        with monkeypatch.context() as patch:
            patch.setattr("shortlist.sets.pointwise_error.FIRST", first)
            assert PointwiseError(eps, link="none").predict(mass) == expected


def test_pointwise_error_refuses_negative_masses():
    with pytest.raises(ValueError, match="must not be negative: row 1, label 0 is -1"):
        PointwiseError(0.1, link="none").predict(np.array([[1.0, 2.0], [-1.0, 1.0]]))


@given(scores=hnp.arrays(np.float64, (3, 5), elements=st.floats(-5, 5)), cost=st.floats(0.01, 0.9))
def test_penalized_is_the_best_non_empty_set(scores, cost):
    for row, labels in zip(scores, Penalized(cost).predict(scores).to_lists(), strict=True):
        p = softmax(row)
        every_set = chain.from_iterable(combinations(range(5), size) for size in range(1, 6))
        best = max(sum(p[list(s)]) - cost * len(s) for s in every_set)
        assert sum(p[labels]) - cost * len(labels) == pytest.approx(best, abs=1e-12)


def test_penalized_includes_a_label_at_exactly_its_cost():
    assert Penalized(0.25).predict(np.zeros((1, 4), np.float32)).to_lists() == [[0, 1, 2, 3]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Threshold(1.5), "value must be between 0 and 1 with link='softmax' .it is a probability., got 1.5"),
        (lambda: Threshold(-2, link="sigmoid"), "between 0 and 1"),
        (lambda: Threshold(float("nan"), link="none"), "value must be a number, got nan"),
        (lambda: Threshold(float("inf"), link="none"), "value must be finite"),
        (lambda: Threshold("0.5"), "value must be a number, got '0.5'"),
        (lambda: PointwiseError(1), "eps must be at least 0 and below 1, got 1"),
        (lambda: PointwiseError(-0.1), "eps must be"),
        (lambda: Penalized(-0.1), "cost must be a finite number that is not negative, got -0.1"),
    ],
)
def test_settings_out_of_range_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
