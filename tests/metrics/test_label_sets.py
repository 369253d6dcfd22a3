import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.metrics import accuracy_score, fbeta_score

from shortlist.labels import LabelSets
from shortlist.metrics import ExactMatch, SetCoverage, SetFScore, SetSize
from shortlist.metrics.functional import exact_match, set_coverage, set_f_score, set_size, shot_group_of
from tests.metrics import oracles


def _cases(count: int, unknown: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """Predicted and true label matrices; many rows are right so that exact matches happen."""
    rng = np.random.default_rng(0)
    cases = []
    for scores, target in oracles.random_cases(seed=20, count=count, unknown=unknown):
        predicted = np.where(rng.random((len(scores), 1)) < 0.5, target == 1, scores > 0.5)
        cases.append((predicted, target))
    return cases


WITH_UNKNOWNS = _cases(600, unknown=0.3)
KNOWN = [(p, np.maximum(t, 0)) for p, t in _cases(100, unknown=0.0)]


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else np.nan


def test_coverage_and_exact_match_are_the_oracles_ones() -> None:
    for predicted, target in WITH_UNKNOWNS:
        covered, exact = [], []
        for chosen, truth in zip(predicted, target, strict=True):
            known = set(np.flatnonzero(truth >= 0).tolist())
            present = set(np.flatnonzero(truth == 1).tolist())
            if known:
                members = set(np.flatnonzero(chosen).tolist()) & known
                covered.append(len(members & present) / len(present) if present else 1.0)
                exact.append(float(members == present))
        sets = LabelSets.from_dense(predicted)
        np.testing.assert_allclose(set_coverage(sets, target), _mean(covered), atol=1e-6)
        np.testing.assert_allclose(exact_match(sets, target), _mean(exact), atol=1e-6)


@pytest.mark.parametrize("unknown", [False, True])
def test_sets_much_larger_than_the_truth_are_counted_as_small_ones_are(unknown: bool) -> None:
    rng = np.random.default_rng(3)
    target = (rng.random((30, 200)) < 0.01).astype(np.int8)
    target[4] = 0
    if unknown:
        target[7], target[9, ::2] = -1, -1
    predicted = rng.random(target.shape) < 0.9
    sets, rows = LabelSets.from_dense(predicted), (target >= 0).any(1)
    hits, present = (predicted & (target == 1)).sum(1), (target == 1).sum(1)
    covered = np.where(present > 0, hits / np.maximum(present, 1), 1.0)
    np.testing.assert_allclose(set_coverage(sets, target), covered[rows].mean(), atol=1e-6)
    f_scores = 2 * hits / np.maximum((predicted & (target >= 0)).sum(1) + present, 1)
    np.testing.assert_allclose(set_f_score(sets, target), f_scores[rows].mean(), atol=1e-6)
    assert 0 < covered[rows].mean() < 1


@pytest.mark.parametrize(("empty", "value"), [("skip", np.nan), ("zero", 0.0), ("one", 1.0)])
def test_f_scores_are_the_oracles_ones(empty: str, value: float) -> None:
    def score(chosen: np.ndarray, truth: np.ndarray) -> float:
        hits, extra = (chosen & (truth == 1)).sum(), (chosen & (truth == 0)).sum()
        missed = (~chosen & (truth == 1)).sum()
        return 5 * hits / (5 * hits + 4 * missed + extra) if hits + missed + extra else value

    for predicted, target in WITH_UNKNOWNS:
        sets = LabelSets.from_dense(predicted)
        rows = [score(c, t) for c, t in zip(predicted, target, strict=True) if (t >= 0).any()]
        classes = [score(c, t) for c, t in zip(predicted.T, target.T, strict=True)]
        for average, values in (("sample", rows), ("class", classes), ("all", [score(predicted, target)])):
            ours = set_f_score(sets, target, beta=2, average=average, empty=empty)
            np.testing.assert_allclose(ours, _mean([v for v in values if not np.isnan(v)]), atol=1e-6)


def test_f_score_and_exact_match_agree_with_scikit_learn() -> None:
    for predicted, target in KNOWN:
        sets = LabelSets.from_dense(predicted)
        np.testing.assert_allclose(exact_match(sets, target), (predicted == target).all(1).mean(), atol=1e-6)
        if target.shape[1] == 1:
            continue  # scikit-learn reads one column as binary
        np.testing.assert_allclose(exact_match(sets, target), accuracy_score(target, predicted), atol=1e-6)
        for ours, theirs in (("sample", "samples"), ("class", "macro"), ("all", "micro")):
            for empty, zero_division in (("zero", 0.0), ("one", 1.0)):
                expected = fbeta_score(target, predicted, beta=0.5, average=theirs, zero_division=zero_division)
                value = set_f_score(sets, target, beta=0.5, average=ours, empty=empty)
                np.testing.assert_allclose(value, expected, atol=1e-6)


@pytest.mark.parametrize(
    "metric",
    [SetCoverage(), ExactMatch(), SetFScore(), SetFScore(2.0, average="class"), SetFScore(average="all", empty="one")],
)
def test_batches_add_up_to_the_whole(metric: SetCoverage) -> None:
    rng = np.random.default_rng(1)
    sets, target = LabelSets.from_dense(rng.random((60, 9)) < 0.2), rng.integers(-1, 2, size=(60, 9))
    metric.update(sets, target)
    whole, per_class = metric.compute(), metric.per_class() if hasattr(metric, "per_class") else torch.zeros(1)
    metric.reset()
    metric.update(sets[:13], target[:13])
    metric.update(sets[13:], torch.from_numpy(target[13:]))
    torch.testing.assert_close(metric.compute(), whole)
    torch.testing.assert_close(metric.per_class() if hasattr(metric, "per_class") else torch.zeros(1), per_class)


def test_class_indices_sparse_matrices_and_label_sets_are_targets_too() -> None:
    sets = LabelSets.from_lists([[0, 1], [2], [1], [0]], num_labels=3)
    labels = torch.tensor([1, 2, 0, -1])
    assert set_coverage(sets, labels) == pytest.approx(2 / 3)
    assert exact_match(sets, labels) == pytest.approx(1 / 3)
    one_hot = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0], [1, 0, 0]])
    for target in (csr_matrix(one_hot), LabelSets.from_dense(one_hot.astype(bool))):
        assert set_f_score(sets, target) == set_f_score(sets, one_hot)


def test_the_size_has_a_mean_a_histogram_and_groups_of_true_classes() -> None:
    rng = np.random.default_rng(2)
    predicted, labels = rng.random((200, 6)) < 0.4, rng.integers(-1, 6, size=200)
    sets, sizes = LabelSets.from_dense(predicted), predicted.sum(1)
    groups = shot_group_of(np.array([5, 500, 50, 10, 19, 101]))
    metric = SetSize(groups=groups)
    for rows in (slice(0, 70), slice(70, 200)):
        metric.update(sets[rows], labels[rows])
    assert set_size(sets) == metric.compute() == pytest.approx(sizes.mean())
    assert metric.histogram().tolist() == np.bincount(sizes, minlength=7).tolist()
    by_class = [sizes[labels == label].mean() for label in range(6)]
    np.testing.assert_allclose(metric.per_class(), by_class, rtol=1e-6)
    for group, members in enumerate(([0, 3, 4], [2], [1, 5])):
        of_group = sizes[np.isin(labels, members)]
        assert metric.group_histogram()[group].tolist() == np.bincount(of_group, minlength=7).tolist()
        assert metric.by_group()[group] == pytest.approx(of_group.mean())


def test_the_size_needs_no_target() -> None:
    metric = SetSize()
    metric.update(LabelSets.from_lists([[], [0, 1], [1]], num_labels=2))
    assert metric.compute() == 1
    assert metric.histogram().tolist() == [1, 1, 1]


def test_errors_say_what_is_missing_or_does_not_fit() -> None:
    sets = LabelSets.from_lists([[0], [1]], num_labels=2, vocabulary=["cat", "dog"])
    with pytest.raises(ValueError, match=r"sets must be shortlist.labels.LabelSets.*got list"):
        set_size([[0], [1]])
    with pytest.raises(ValueError, match=r"target of shape \(3,\) does not fit predictions of shape \(2, 2\)"):
        set_coverage(sets, torch.tensor([0, 1, 1]))
    other = LabelSets.from_lists([[0], [1]], num_labels=2, vocabulary=["cat", "owl"])
    with pytest.raises(ValueError, match=r"different vocabularies.*'dog', 'owl'"):
        set_coverage(sets, other)
    with pytest.raises(ValueError, match="average must be one of 'sample', 'class', 'all'"):
        SetFScore(average="macro")
    with pytest.raises(ValueError, match=r"beta must be a positive finite number \(1e-15 to 1e15\), got 0"):
        SetFScore(beta=0)
    with pytest.raises(ValueError, match="this SetSize has no groups"):
        SetSize().by_group()
    with pytest.raises(ValueError, match="groups need a target"):
        SetSize(groups=torch.tensor([0, 1])).update(sets)
    with pytest.raises(ValueError, match="one group for each of the 2 labels, got 3 groups"):
        SetSize(groups=torch.tensor([0, 1, 1])).update(sets, torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="groups must be one group number"):
        SetSize(groups=torch.tensor([0, -1]))
