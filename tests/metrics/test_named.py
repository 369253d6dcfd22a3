"""Metrics by name."""

import pytest
import torch

from shortlist.metrics.functional import average_k_accuracy
from shortlist.metrics.named import find_metric


def test_average_k_accuracy_compares_rows_by_the_objectives_link() -> None:
    torch.manual_seed(0)
    scores, target = 3 * torch.randn(200, 10) + 5 * torch.randn(200, 1), torch.randint(10, (200,))
    by_softmax = float(average_k_accuracy(scores, target, 2.5, link="softmax"))
    assert find_metric("average-k-accuracy@2.5")(scores, target, "softmax") == by_softmax
    assert find_metric("average-k-accuracy@2.5")(scores, target, "sigmoid") != by_softmax


def test_k_of_average_k_accuracy_is_positive() -> None:
    with pytest.raises(ValueError, match="needs a number after @"):
        find_metric("average-k-accuracy@0")
