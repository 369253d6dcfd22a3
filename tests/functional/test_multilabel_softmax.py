"""Softmax cross-entropy against the uniform distribution over the present labels."""

import torch

import shortlist.functional as F
from tests.functional.harness import some_scores


def test_with_every_label_known_it_is_cross_entropy_against_the_uniform_distribution(path: str) -> None:
    scores = some_scores(7, 6)
    one = torch.eye(6, dtype=torch.long).repeat(2, 1)[:7]
    target = one | one.roll(2, 1)
    uniform = target.double() / target.sum(-1, keepdim=True)
    expected = torch.nn.functional.cross_entropy(scores, uniform, reduction="none")
    loss = F.multilabel_softmax_loss(scores, target, reduction="none")
    torch.testing.assert_close(loss, expected, rtol=1e-12, atol=0)
