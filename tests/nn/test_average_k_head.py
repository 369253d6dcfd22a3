"""AverageKHead: both score matrices in training, the set scores alone in evaluation."""

import pytest
import torch

from shortlist.nn import AverageKLoss
from shortlist.nn.average_k_head import AverageKHead


def test_training_gives_both_scores_and_evaluation_the_set_scores() -> None:
    head, features = AverageKHead(4, 6), torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    sets, proposals = head(features)
    assert sets.shape == proposals.shape == (3, 6)
    assert not torch.equal(sets, proposals)
    assert torch.equal(head.eval()(features), sets)


def test_the_set_terms_train_the_set_head_and_cross_entropy_the_proposal_head() -> None:
    head, target = AverageKHead(4, 6), torch.tensor([0, 5, 2])
    features = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    AverageKLoss(k=2)(*head(features), target).backward()
    proposals = head.proposals.weight.grad.clone()
    head.zero_grad()
    torch.nn.functional.cross_entropy(head(features)[1], target).backward()
    torch.testing.assert_close(head.proposals.weight.grad, proposals)
    assert head.sets.weight.grad is None


def test_a_head_without_bias_has_none() -> None:
    names = [name for name, _ in AverageKHead(4, 6, bias=False).named_parameters()]
    assert names == ["sets.weight", "proposals.weight"]


def test_sizes_below_1_are_refused() -> None:
    with pytest.raises(ValueError, match="num_labels must be a whole number of at least 1, got 0"):
        AverageKHead(4, 0)
