"""A linear layer and its loss as one module."""

import pytest
import torch
from torch.nn.functional import linear

import shortlist as sl
from shortlist.errors import ShortlistError


def test_the_loss_in_training_and_the_scores_in_evaluation() -> None:
    torch.manual_seed(0)
    loss = sl.nn.SmoothTopKLoss(k=3, weight=torch.rand(11))
    head, features, target = sl.nn.LinearLoss(5, 11, loss, memory=100), torch.randn(6, 5), torch.arange(6)
    weight = torch.rand(6)
    scores = linear(features, head.head.weight, head.head.bias)
    torch.testing.assert_close(head(features, target, sample_weight=weight), loss(scores, target, sample_weight=weight))
    assert torch.equal(head.eval()(features), scores)


def test_two_heads_for_average_k() -> None:
    torch.manual_seed(0)
    loss = sl.nn.AverageKLoss(k=2)
    head, features, target = sl.nn.LinearLoss(5, 11, loss, bias=False), torch.randn(6, 5), torch.arange(6)
    both = sl.nn.AverageKHead(5, 11, bias=False)
    both.load_state_dict(head.head.state_dict())
    torch.testing.assert_close(head(features, target), loss(*both(features), target))
    assert torch.equal(head.eval()(features), both.eval()(features))


def test_says_what_it_needs() -> None:
    head = sl.nn.LinearLoss(5, 11, sl.functional.binary_loss)
    with pytest.raises(ShortlistError, match="needs the target"):
        head(torch.zeros(2, 5))
    with pytest.raises(ShortlistError, match="got CrossEntropyLoss"):
        sl.nn.LinearLoss(5, 11, torch.nn.CrossEntropyLoss())
