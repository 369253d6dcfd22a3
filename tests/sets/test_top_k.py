"""TopK: exactly the k best, ties by hash."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from shortlist.sets import TopK

shapes = st.tuples(st.integers(1, 8), st.integers(2, 9))


@given(
    scores=hnp.arrays(np.float32, shapes, elements=st.sampled_from([-np.inf, -1, -0.0, 0, 0.5, 1e30, np.inf])),
    data=st.data(),
)
def test_sets_hold_k_labels_and_none_outside_is_better(scores, data):
    k = data.draw(st.integers(1, scores.shape[1]))
    dense = TopK(k).predict(scores).to_dense()
    assert (dense.sum(-1) == k).all()
    for row, inside in zip(scores, dense, strict=True):
        assert inside.all() or row[inside].min() >= row[~inside].max()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_agrees_with_torch_where_nothing_is_tied(dtype):
    scores = np.random.default_rng(0).normal(size=(200, 1000)).astype(dtype)
    expected = torch.topk(torch.from_numpy(scores), 5).indices.sort(-1).values.tolist()
    assert TopK(5).predict(scores).to_lists() == expected


def test_ties_favour_no_label():
    scores = np.zeros((4000, 10), np.float32)
    scores[:, 9] = -1 - np.arange(4000)
    chosen = TopK(3).predict(scores).to_dense().mean(0)
    assert chosen[9] == 0
    assert np.abs(chosen[:9] - 1 / 3).max() < 5 * np.sqrt(2 / 9 / 4000)


def test_k_of_another_size_or_kind_is_refused():
    for k in (0, -1, 2.5, True, "3", None, 2**70, np.True_, np.zeros(2, int)):
        with pytest.raises(ValueError, match="k must be a whole number"):
            TopK(k)
    for call in (TopK(8).fit, TopK(8).predict):
        with pytest.raises(ValueError, match=r"k must be between 1 and 7 \(the number of labels\), got 8"):
            call(np.zeros((2, 7)))


def test_numpy_integers_are_whole_numbers():
    assert TopK(np.int64(2)).to_json() == TopK(2).to_json()
