"""Metrics by name over batches: the value of all rows together, by one stream or several that are merged."""

import pickle

import numpy as np
import pytest
import torch
from torch import Tensor

from shortlist.errors import ShortlistError
from shortlist.metrics.named import METRICS, Metric, find_metric
from shortlist.metrics.streams import Stream, values_of

SINGLE = ("topk-accuracy@3", "average-k-accuracy@2.5")
MANY = (
    "precision@3", "recall@3", "ndcg@3", "propensity-precision@3", "propensity-ndcg@3", "mean-average-precision",
    "mean-average-precision-sample",
)  # fmt: skip
PROPENSITIES = torch.linspace(0.1, 1, 12)


def drawn(name: str, rows: int = 300, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Scores with ties, and a target with unknown labels and rows; rows grow clearer, which misleads a first look."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(rows, 12, generator=generator).mul(4).round() / 4
    scores *= torch.linspace(0.02, 3, rows)[:, None]
    if name in SINGLE:
        return scores, torch.randint(-1, 12, (rows,), generator=generator)
    target = (torch.rand(rows, 12, generator=generator) < 0.2).to(torch.int8)
    target[torch.rand(rows, 12, generator=generator) < 0.1] = -1
    target[5:6], target[6:7] = -1, 0
    return scores, target


def streamed(metric: Metric, scores: Tensor, target: Tensor, size: int, shares: int = 1) -> float:
    """The value over batches, as so many processes would find it that each see a share of the rows."""
    rows = torch.arange(len(scores)).tensor_split(shares)
    streams: list[Stream] = [made for _ in rows if (made := metric.stream("softmax", PROPENSITIES)) is not None]
    assert len(streams) == shares
    while True:
        for stream, share in zip(streams, rows, strict=True):
            for part in share.split(size):
                stream.update(scores[part], target[part])
        copies = [pickle.loads(pickle.dumps(stream)) for stream in streams]
        for other in copies[1:]:
            copies[0].merge(other)
        again = copies[0].look_again()
        if again is None:
            return float(copies[0].value())
        streams = [pickle.loads(pickle.dumps(again)) for _ in rows]


@pytest.mark.parametrize("name", SINGLE + MANY)
@pytest.mark.parametrize(("size", "shares"), [(7, 1), (50, 3), (1000, 2)])
def test_batches_have_the_value_of_all_rows_together(name: str, size: int, shares: int) -> None:
    metric, (scores, target) = find_metric(name), drawn(name)
    whole = metric(scores, target, "softmax", PROPENSITIES)
    assert streamed(metric, scores, target, size, shares) == pytest.approx(whole, rel=2e-7)


@pytest.mark.parametrize("name", SINGLE + MANY)
def test_streams_that_saw_no_row_change_nothing(name: str) -> None:
    metric, (scores, target) = find_metric(name), drawn(name, rows=2)
    whole = metric(scores, target, "softmax", PROPENSITIES)
    assert streamed(metric, scores, target, 1, shares=4) == pytest.approx(whole, rel=2e-7, nan_ok=True)


@pytest.mark.parametrize("name", MANY)
def test_nothing_present_is_nan(name: str) -> None:
    scores, target = torch.randn(4, 12), torch.full((4, 12), -1)
    assert np.isnan(streamed(find_metric(name), scores, target, 2))


@pytest.mark.parametrize("k", [0.001, 12])
def test_average_k_where_no_score_or_every_score_is_in(k: float) -> None:
    scores, target = drawn("topk-accuracy@3")
    metric = find_metric(f"average-k-accuracy@{k}")
    assert streamed(metric, scores, target, 10, 2) == metric(scores, target, "softmax")


def test_infinite_scores_of_a_class_without_examples_do_not_count() -> None:
    scores = torch.tensor([[0.0, float("inf")], [1.0, float("inf")]])
    target, metric = torch.tensor([[1, 0], [0, 0]]), find_metric("mean-average-precision")
    assert streamed(metric, scores, target, 1) == metric(scores, target, "none") == 0.5


def test_every_metric_of_ours_has_a_stream_and_a_function_of_ones_own_has_none() -> None:
    ours = [name for name in METRICS if not name.startswith("scene")]
    assert {name.partition("@")[0] for name in SINGLE + MANY} == set(ours)
    own = Metric("mine", lambda scores, target: torch.zeros(()))
    assert own.stream("none") is None


def test_values_of_passes_over_the_batches_as_often_as_the_streams_need() -> None:
    passes = []
    scores, target = drawn("mean-average-precision")

    def batches() -> list[tuple[Tensor, Tensor]]:
        passes.append(1)
        return list(zip(scores.split(40), target.split(40), strict=True))

    names = ["precision@1", "mean-average-precision"]
    streams = {name: found for name in names if (found := find_metric(name).stream("none")) is not None}
    values = values_of(streams, batches)
    assert list(values) == names
    assert len(passes) == 2


def test_propensities_are_asked_for_where_there_is_no_training_data() -> None:
    metric, (scores, target) = find_metric("propensity-precision@1"), drawn("precision@1")
    for ask in (lambda: metric(scores, target, "none"), lambda: metric.stream("none")):
        with pytest.raises(ShortlistError, match="needs the label counts of training data"):
            ask()


@pytest.mark.parametrize("name", [name for name in SINGLE + MANY if name != "mean-average-precision"])
def test_what_travels_between_processes_is_no_score_for_every_row_and_label(name: str) -> None:
    sizes = []
    for rows in (300, 3000):
        stream = find_metric(name).stream("softmax", PROPENSITIES)
        assert stream is not None
        stream.update(*drawn(name, rows))
        sizes.append(len(pickle.dumps(stream)))
    assert sizes[1] < 1.5 * sizes[0] + 20_000  # ten times the rows: 130 kB more of scores
