"""Metrics of scores that are on a device: the values of the CPU, and the scores are not copied to the host."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor

from shortlist.errors import ShortlistError
from shortlist.metrics import MeanAveragePrecision, RecallAtK, TopKAccuracy
from shortlist.metrics import functional as M
from shortlist.metrics.named import find_metric
from shortlist.metrics.streams import AverageK, AveragePrecision, values_of
from tests.pretend_device import moved, pretending

ROWS, LABELS, K = 330, 210, 5
FEW = 20 * ROWS  # fractions that may travel: a few for each row
GPU = pytest.param(
    "cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")]
)
random = torch.Generator().manual_seed(0)
SCORES = (torch.randn(ROWS, LABELS, generator=random) * 8).round() / 4  # with ties
INDEX = torch.randint(-1, LABELS, (ROWS,), generator=random)
MATRIX = (torch.rand(ROWS, LABELS, generator=random) < 0.03).to(torch.int8)
MATRIX[torch.rand(ROWS, LABELS, generator=random) < 0.1] = -1
PROPENSITIES = torch.linspace(0.1, 1, LABELS)


def stream(make: Callable[[], Any], scores: Tensor, target: Tensor) -> float:
    batches = [(scores[:100], target[:100]), (scores[100:], target[100:])]
    return values_of({"it": make()}, lambda: batches)["it"]


def named(metric: str) -> Any:
    return find_metric(f"{metric}@{K}").stream("softmax", PROPENSITIES)


def by_class(metric: Any, scores: Tensor, target: Tensor) -> Tensor:
    metric = metric.to(scores.device)
    metric.update(scores[:100], target[:100])
    metric.update(scores[100:], target[100:])
    value: Tensor = metric.compute()
    return value


CASES: dict[str, tuple[Callable[[Tensor, Tensor], Any], Tensor]] = {
    "top-k accuracy": (lambda s, t: M.top_k_accuracy(s, t, K), INDEX),
    "precision": (lambda s, t: M.precision_at_k(s, t, K), MATRIX),
    "recall": (lambda s, t: M.recall_at_k(s, t, K), MATRIX),
    "recall, class indices": (lambda s, t: M.recall_at_k(s, t, K), INDEX),
    "ndcg": (lambda s, t: M.ndcg_at_k(s, t, K, empty="zero"), MATRIX),
    "propensity precision": (lambda s, t: M.propensity_precision_at_k(s, t, K, PROPENSITIES), MATRIX),
    "propensity ndcg": (lambda s, t: M.propensity_ndcg_at_k(s, t, K, PROPENSITIES), MATRIX),
    "average precision of classes": (lambda s, t: M.mean_average_precision(s, t), MATRIX),
    "average precision of samples": (lambda s, t: M.mean_average_precision(s, t, average="sample"), MATRIX),
    "average precision, bins": (lambda s, t: M.mean_average_precision(s, t, bins=100, link="sigmoid"), MATRIX),
    "average-k accuracy": (lambda s, t: M.average_k_accuracy(s, t, K), INDEX),
    "average-k accuracy, calibrated": (lambda s, t: M.average_k_accuracy(s, t, K, calibration=s[:50]), INDEX),
    "calibration error": (lambda s, t: M.calibration_error(s, t), INDEX),
    "calibration error, label matrix": (lambda s, t: M.calibration_error(s, t, link="sigmoid"), MATRIX),
    "same scores": (lambda s, t: torch.tensor(M.same_scores(s[:100], s[100:])), INDEX),
    "stream of top-k accuracy": (lambda s, t: stream(lambda: named("topk-accuracy"), s, t), INDEX),
    "stream of average-k": (lambda s, t: stream(lambda: AverageK(K, "softmax"), s, t), INDEX),
    "stream of average precision": (lambda s, t: stream(AveragePrecision, s, t), MATRIX),
    "stream of gains": (lambda s, t: stream(lambda: named("propensity-ndcg"), s, t), MATRIX),
}


@pytest.fixture(params=["pretended", GPU])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    with pretending(most=FEW) if request.param == "pretended" else nullcontext():
        yield request.param


def on(device: str, tensor: Tensor) -> Tensor:
    return moved(tensor) if device == "pretended" else tensor.cuda()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
def test_values_are_those_of_the_cpu_and_scores_stay_on_the_device(name: str, dtype: torch.dtype, device: str) -> None:
    call, target = CASES[name]
    scores = SCORES.to(dtype)
    found, expected = call(on(device, scores), on(device, target)), call(scores, target)
    exact = {"rtol": 0.0, "atol": 0.0} if device == "pretended" else {"rtol": 1e-5, "atol": 1e-6}
    assert float(found) == pytest.approx(float(expected), rel=exact["rtol"], abs=exact["atol"])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("name", ["top-k", "recall", "average precision"])
def test_metric_objects_on_a_gpu(name: str) -> None:
    make = {"top-k": lambda: TopKAccuracy(K), "recall": lambda: RecallAtK(K), "average precision": MeanAveragePrecision}
    target = INDEX if name == "top-k" else MATRIX
    expected = by_class(make[name](), SCORES, target)
    torch.testing.assert_close(by_class(make[name](), SCORES.cuda(), target.cuda()).cpu(), expected)


def test_a_wrong_target_raises_in_its_own_call(device: str) -> None:
    with pytest.raises(ShortlistError, match=r"target\[3\] is 210"):
        M.top_k_accuracy(on(device, SCORES), on(device, INDEX.index_fill(0, torch.tensor([3]), LABELS)), K)
    wrong = MATRIX.clone()
    wrong[2, 7] = 5
    with pytest.raises(ShortlistError, match=r"target\[2, 7\] is 5"):
        M.mean_average_precision(on(device, SCORES), on(device, wrong))
