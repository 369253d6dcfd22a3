import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.metrics import average_precision_score
from torchmetrics.functional.classification import multilabel_average_precision

from shortlist.metrics import MeanAveragePrecision
from shortlist.metrics.functional import average_precision as implementation
from shortlist.metrics.functional import mean_average_precision
from tests.metrics import oracles

CASES = list(oracles.random_cases(seed=0, count=1000))


def _nanmean(values: list[float]) -> float:
    kept = [value for value in values if not np.isnan(value)]
    return sum(kept) / len(kept) if kept else np.nan


def test_the_class_mean_is_the_oracles_mean_with_ties_unknowns_and_empty_classes() -> None:
    for scores, target in CASES:
        expected = _nanmean([oracles.average_precision(s, t) for s, t in zip(scores.T, target.T, strict=True)])
        np.testing.assert_allclose(mean_average_precision(scores, target), expected, atol=1e-6)


def test_the_sample_mean_is_the_oracles_mean_with_ties_unknowns_and_empty_rows() -> None:
    for scores, target in CASES:
        expected = _nanmean([oracles.average_precision(s, t) for s, t in zip(scores, target, strict=True)])
        np.testing.assert_allclose(mean_average_precision(scores, target, average="sample"), expected, atol=1e-6)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.filterwarnings("ignore:No positive class found")
def test_every_class_agrees_with_scikit_learn(ties: bool) -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(60, 1000))
    scores = np.round(2 * scores) if ties else scores
    target = (rng.random(scores.shape) < rng.random(1000) ** 4).astype(int)
    expected = average_precision_score(target, scores, average=None)
    metric = MeanAveragePrecision(empty="zero")
    metric.update(scores, target)
    np.testing.assert_allclose(metric.per_class(), expected, atol=1e-6)
    assert (target.sum(0) == 0).any()  # the case of an empty class was there


def test_the_exact_and_the_binned_mean_agree_with_torchmetrics() -> None:
    generator = torch.Generator().manual_seed(2)
    scores = torch.rand(200, 30, generator=generator)
    target = (torch.rand(200, 30, generator=generator) < 0.2).long()
    exact = multilabel_average_precision(scores, target, num_labels=30)
    torch.testing.assert_close(mean_average_precision(scores, target), exact, atol=1e-6, rtol=0)
    binned = multilabel_average_precision(scores, target, num_labels=30, thresholds=[i / 16 for i in range(16)])
    torch.testing.assert_close(mean_average_precision(scores, target, bins=16), binned, atol=1e-6, rtol=0)


def test_the_binned_mean_is_the_exact_mean_of_scores_rounded_down() -> None:
    for scores, target in CASES[:200]:
        chance = torch.from_numpy(scores).sigmoid()
        rounded = (chance * 8).floor().clamp(max=7)
        torch.testing.assert_close(
            mean_average_precision(scores, target, bins=8, link="sigmoid"),
            mean_average_precision(rounded, target),
            atol=1e-6, rtol=0, equal_nan=True,
        )  # fmt: skip


def test_empty_classes_are_skipped_or_zero_and_wholly_unknown_ones_always_skipped() -> None:
    scores = torch.rand(4, 3)
    target = torch.tensor([[1, 0, -1]] * 4)
    assert mean_average_precision(scores, target) == 1
    assert mean_average_precision(scores, target, empty="zero") == 0.5
    assert mean_average_precision(scores, target, empty="zero", bins=4) == 0.5
    assert mean_average_precision(scores, torch.full((4, 3), -1)).isnan()
    assert mean_average_precision(scores.t(), target.t(), average="sample", empty="zero") == 0.5


@pytest.mark.parametrize("options", [{}, {"average": "sample"}, {"bins": 32, "link": "sigmoid"}, {"empty": "zero"}])
def test_batches_add_up_to_the_whole(options: dict[str, object]) -> None:
    rng = np.random.default_rng(3)
    scores, target = rng.normal(size=(50, 7)).astype(np.float32), rng.integers(-1, 2, size=(50, 7))
    metric = MeanAveragePrecision(**options)
    for rows in np.split(np.arange(50), [1, 20, 33]):
        metric.update(scores[rows], target[rows])
    torch.testing.assert_close(metric.compute(), mean_average_precision(scores, target, **options))


def test_many_blocks_give_what_one_block_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    scores, target = rng.normal(size=(50, 40)), (rng.random((50, 40)) < 0.03).astype(int)
    whole = mean_average_precision(scores, target)
    monkeypatch.setattr(implementation, "_BLOCK", 150)
    assert mean_average_precision(scores, target) == whole


def test_class_indices_are_one_against_the_rest_and_unknown_rows_are_ignored() -> None:
    scores = torch.randn(20, 5, generator=torch.Generator().manual_seed(5))
    labels = torch.arange(20) % 5
    one_hot = torch.nn.functional.one_hot(labels, 5)
    assert mean_average_precision(scores, labels) == mean_average_precision(scores, one_hot)
    assert mean_average_precision(scores, csr_matrix(one_hot)) == mean_average_precision(scores, one_hot)
    labels[3:] = -1
    assert mean_average_precision(scores, labels) == mean_average_precision(scores[:3], one_hot[:3])


def test_softmax_changes_the_class_mean_and_sigmoid_does_not() -> None:
    scores = torch.randn(40, 5, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    labels = torch.arange(40) % 5
    raw = mean_average_precision(scores, labels)
    assert mean_average_precision(scores, labels, link="sigmoid") == raw
    softmax = mean_average_precision(scores, labels, link="softmax")
    assert softmax == mean_average_precision(scores.softmax(-1), labels) != raw


def test_half_precision_leading_shapes_and_inputs_left_alone() -> None:
    scores = torch.randn(2, 10, 4, generator=torch.Generator().manual_seed(7)).half()
    target = (scores > 0.3).long() * torch.tensor([1, 1, 0, 1])
    copies = scores.clone(), target.clone()
    rows = scores.view(20, 4).float(), target.view(20, 4)
    assert mean_average_precision(scores, target) == mean_average_precision(*rows)
    assert torch.equal(scores, copies[0])
    assert torch.equal(target, copies[1])


def test_logits_are_never_binned_as_if_they_were_probabilities() -> None:
    with pytest.raises(ValueError, match=r"scores\[1, 0\] is 1.5 after the link: .* link='sigmoid'"):
        mean_average_precision(torch.tensor([[0.5, 1.0], [1.5, 0.2]]), torch.tensor([0, 1]), bins=10)


def test_bad_options_are_named() -> None:
    with pytest.raises(ValueError, match="average must be one of 'class', 'sample', got 'macro'"):
        MeanAveragePrecision(average="macro")
    with pytest.raises(ValueError, match="empty must be one of 'skip', 'zero', got 'one'"):
        MeanAveragePrecision(empty="one")
    with pytest.raises(ValueError, match="bins must be a whole number of at least 1, got 0"):
        MeanAveragePrecision(bins=0)
    with pytest.raises(ValueError, match="always exact"):
        MeanAveragePrecision(average="sample", bins=10)
    with pytest.raises(ValueError, match="link must be one of"):
        MeanAveragePrecision(link="logit")
    with pytest.raises(ValueError, match="needs average='class'"):
        MeanAveragePrecision(average="sample").per_class()


def test_a_batch_with_another_number_of_labels_is_an_error() -> None:
    metric = MeanAveragePrecision()
    metric.update(torch.rand(2, 3), torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="this batch has 4 labels, earlier ones had 3"):
        metric.update(torch.rand(2, 4), torch.tensor([0, 1]))
