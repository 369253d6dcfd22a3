from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_array, csr_matrix
from sklearn.metrics import ndcg_score, top_k_accuracy_score
from torch import Tensor
from torchmetrics.functional.classification import multiclass_accuracy

from shortlist.labels import LabelSets
from shortlist.metrics import NDCGAtK, PrecisionAtK, RecallAtK, TopKAccuracy
from shortlist.metrics.functional import ndcg_at_k, precision_at_k, recall_at_k, top_k_accuracy
from tests.metrics import oracles

CASES = list(oracles.random_cases(seed=10, count=1000))
FEW = st.integers(-2, 2)  # hence many ties
AT_K = [
    (precision_at_k, PrecisionAtK, oracles.precision_at_k),
    (recall_at_k, RecallAtK, oracles.recall_at_k),
    (ndcg_at_k, NDCGAtK, oracles.ndcg_at_k),
]


@pytest.mark.parametrize(("function", "oracle"), [(f, o) for f, _, o in AT_K])
def test_every_row_is_the_oracles_value_with_ties_unknowns_and_empty_rows(
    function: Callable[..., Tensor], oracle: Callable[..., float]
) -> None:
    for case, (scores, target) in enumerate(CASES):
        k = 1 + case % scores.shape[1]
        rows = [oracle(s, t, k) for s, t in zip(scores, target, strict=True)]
        rows = [value for value in rows if not np.isnan(value)]
        expected = np.mean(rows) if rows else np.nan
        np.testing.assert_allclose(function(scores, target, k), expected, atol=1e-6)


def test_ndcg_agrees_with_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    scores, target = rng.normal(size=(500, 20)), (rng.random((500, 20)) < 0.1).astype(int)
    for k in (1, 3, 20):  # scikit-learn counts a row without a present label as 0
        ours = ndcg_at_k(scores, target, k, empty="zero")
        np.testing.assert_allclose(ours, ndcg_score(target, scores, k=k), atol=1e-6)


@pytest.mark.parametrize("k", [1, 3, 9])
def test_top_k_accuracy_agrees_with_scikit_learn_and_torchmetrics(k: int) -> None:
    rng = np.random.default_rng(1)
    scores, labels = rng.normal(size=(2000, 10)), rng.integers(10, size=2000)
    ours = top_k_accuracy(scores, labels, k)
    np.testing.assert_allclose(ours, top_k_accuracy_score(labels, scores, k=k), atol=1e-6)
    metric = TopKAccuracy(k)
    metric.update(scores, labels)
    theirs = multiclass_accuracy(torch.from_numpy(scores), torch.from_numpy(labels), 10, average="none", top_k=k)
    torch.testing.assert_close(metric.per_class(), theirs, atol=1e-6, rtol=0)


@given(hnp.arrays(np.float32, hnp.array_shapes(min_dims=2, max_dims=2, max_side=8), elements=FEW), st.data())
def test_top_k_accuracy_rises_with_k_to_one(scores: np.ndarray, data: st.DataObject) -> None:
    num_labels = scores.shape[1]
    labels = data.draw(hnp.arrays(np.int64, len(scores), elements=st.integers(0, num_labels - 1)))
    accuracies = [top_k_accuracy(scores, labels, k).item() for k in range(1, num_labels + 1)]
    assert accuracies == sorted(accuracies)
    assert accuracies[-1] == 1


def test_equal_scores_are_ranked_by_label_on_any_number_of_labels() -> None:
    for num_labels in (3, 100, 5000):
        scores = torch.zeros(1, num_labels)
        assert top_k_accuracy(scores, torch.tensor([1]), k=2) == 1
        assert top_k_accuracy(scores, torch.tensor([2]), k=2) == 0


def test_top_k_accuracy_is_recall_of_the_one_label() -> None:
    for scores, target in CASES[:300]:
        single = np.where(np.cumsum(target == 1, axis=1) > 1, np.minimum(target, 0), target)  # the first present one
        k = 1 + len(scores) % scores.shape[1]
        np.testing.assert_allclose(top_k_accuracy(scores, single, k), recall_at_k(scores, single, k))


@pytest.mark.parametrize(("function", "metric"), [(f, m) for f, m, _ in AT_K])
def test_sparse_targets_and_label_sets_count_as_the_dense_matrix(
    function: Callable[..., Tensor], metric: Callable[..., PrecisionAtK]
) -> None:
    rng = np.random.default_rng(2)
    scores, dense = rng.normal(size=(40, 15)), (rng.random((40, 15)) < 0.2).astype(np.float32)
    dense[7] = 0
    stored_zeros = csr_matrix(np.ones((40, 15)))
    stored_zeros.data = dense.ravel().astype(float)
    expected = function(scores, dense, 4)
    for target in (csr_matrix(dense), csr_array(dense), stored_zeros, LabelSets.from_dense(dense.astype(bool))):
        assert function(scores, target, 4) == expected
        batches = metric(k=4)
        batches.update(scores[:10], target[:10])
        batches.update(scores[10:], target[10:])
        torch.testing.assert_close(batches.compute(), expected)


@pytest.mark.parametrize("metric", [m for _, m, _ in AT_K] + [TopKAccuracy])
def test_unknown_rows_change_nothing(metric: Callable[..., PrecisionAtK]) -> None:
    scores, labels = torch.randn(30, 6, generator=torch.Generator().manual_seed(3)), torch.arange(30) % 6
    known, all_rows = metric(k=2), metric(k=2)
    known.update(scores[:11], labels[:11])
    all_rows.update(scores, labels.masked_fill(torch.arange(30) > 10, -1))
    assert known.compute() == all_rows.compute()


@pytest.mark.parametrize("metric", [RecallAtK, NDCGAtK])
def test_rows_without_a_present_label_are_skipped_or_zero(metric: Callable[..., RecallAtK]) -> None:
    for empty, expected in (("skip", 1.0), ("zero", 0.5)):
        given_rows = metric(k=1, empty=empty)
        given_rows.update(torch.tensor([[1.0, 0.0]] * 3), torch.tensor([[1, 0], [0, -1], [-1, -1]]))
        assert given_rows.compute() == expected


def test_torch_and_numpy_any_float_type_and_leading_shape_agree() -> None:
    scores = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(4)).half()
    target = (scores > 0.5).long()
    expected = ndcg_at_k(scores.double().view(12, 6), target.view(12, 6), 3)
    for same in (scores, scores.float(), scores.numpy(), scores.double().numpy()):
        assert ndcg_at_k(same, target, 3) == ndcg_at_k(same, target.numpy(), 3) == expected
    labels = target.argmax(-1)
    assert top_k_accuracy(scores, labels, 2) == top_k_accuracy(scores.view(12, 6), labels.view(12), 2)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_class_indices_may_have_any_integer_type(dtype: torch.dtype) -> None:
    scores, labels = torch.eye(120).repeat(2, 3), torch.arange(240) % 120  # 360 labels: more than one byte counts
    assert top_k_accuracy(scores, labels.to(dtype), 1) == 1
    assert top_k_accuracy(scores[:, :200].view(2, 120, 200), labels.to(dtype).view(2, 120), 1) == 1


def test_read_only_arrays_are_read_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    scores = np.eye(3, dtype=np.float32)
    scores.flags.writeable = False
    assert top_k_accuracy(scores, np.arange(3), 1) == 1
    assert not recwarn.list


@pytest.mark.parametrize(
    ("scores", "target", "k", "message"),
    [
        (torch.tensor([[0.0, 1], [float("nan"), 2]]), torch.tensor([0, 1]), 1, r"NaN in 1 of 2 rows, .* \[1, 0\]"),
        (torch.zeros(2, 3), torch.tensor([0, 1]), 4, r"k must be between 1 and 3 \(the number of labels\), got 4"),
        (torch.zeros(2, 3), torch.tensor([0, 1]), 1.5, "k must be a whole number"),
        (torch.zeros(2, 3), torch.tensor([0, 3]), 1, r"target\[1\] is 3: allowed are 0..2, or -1"),
        (torch.zeros(2, 3), torch.tensor([[0, 2, 0], [1, 0, 0]]), 1, r"target\[0, 1\] is 2: a label matrix"),
        (torch.zeros(1, 2), torch.tensor([[0, 255]], dtype=torch.uint8), 1, r"target\[0, 1\] is 255: a label matrix"),
        (torch.zeros(2, 3), torch.tensor([0, 1, 2]), 1, r"target of shape \(3,\) does not fit .* \(2, 3\)"),
        (torch.zeros(2, 3), csr_matrix((2, 4)), 1, r"sparse target of shape \(2, 4\) does not fit"),
        (torch.zeros(2, 3), csr_matrix([[0, 0, 0], [0, 1, 2]]), 1, r"matrix\[1, 2\] is 2: allowed are True and False"),
        (torch.zeros(2, 3, dtype=torch.int64), torch.tensor([0, 1]), 1, "floating point"),
        ([[0.0, 1.0]], torch.tensor([0]), 1, "scores must be a torch tensor or a numpy array, got list"),
        (torch.zeros(1, 2), [0], 1, "target must be a torch tensor or a numpy array, got list"),
        (torch.zeros(2, 0), torch.tensor([-1, -1]), 1, r"scores of shape \(2, 0\) have no labels"),
    ],
)
def test_bad_input_is_named(scores: Tensor, target: Tensor, k: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        recall_at_k(scores, target, k)


def test_top_k_accuracy_refuses_rows_with_several_labels() -> None:
    with pytest.raises(ValueError, match="target row 1 has more than one present label"):
        top_k_accuracy(torch.zeros(2, 3), torch.tensor([[0, 1, 0], [1, 1, 0]]), 1)


@pytest.mark.parametrize("metric", [m for _, m, _ in AT_K] + [TopKAccuracy])
@pytest.mark.parametrize("k", [0, -1, 2.0, True, "3", 2**70])
def test_a_k_that_is_no_whole_number_is_refused_at_once(metric: Callable[..., PrecisionAtK], k: object) -> None:
    with pytest.raises(ValueError, match="k must be a whole number of at least 1"):
        metric(k=k)


def test_a_whole_number_of_numpy_is_a_whole_number() -> None:
    scores, target = torch.randn(8, 5), torch.randint(5, (8,))
    assert torch.equal(top_k_accuracy(scores, target, np.int64(2)), top_k_accuracy(scores, target, 2))
