"""Fast0Tag: the pairwise loss against its double sum, and label vectors from a file."""

import math

import numpy as np
import pytest
import torch

from shortlist.objectives import Fast0Tag, build
from shortlist.objectives.fast0tag import pairwise_logistic_loss


def double_sum(scores, target):
    rows = []
    for s, y in zip(scores.tolist(), target.tolist(), strict=True):
        pairs = [(p, n) for p in range(len(y)) for n in range(len(y)) if y[p] == 1 and y[n] == 0]
        if pairs:
            rows.append(sum(math.log1p(math.exp(s[n] - s[p])) for p, n in pairs) / len(pairs))
    return sum(rows) / len(rows) if rows else 0.0


@pytest.mark.parametrize("seed", range(5))
def test_the_loss_is_the_mean_over_pairs_then_over_rows(seed):
    torch.manual_seed(seed)
    scores = 3 * torch.randn(7, 6, dtype=torch.float64)
    target = torch.randint(-1, 2, (7, 6))
    target[0] = 1
    target[1] = -1
    assert pairwise_logistic_loss(scores, target).item() == pytest.approx(double_sum(scores, target), rel=1e-12)


def test_the_gradient_is_exact():
    torch.manual_seed(0)
    target = torch.tensor([[1, 0, -1, 0], [1, 1, 0, -1], [0, 0, 0, 0]])
    scores = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s: pairwise_logistic_loss(s, target), scores)


def test_extreme_scores_give_the_limit_and_half_precision_keeps_its_type():
    target = torch.tensor([[1, 0]])
    assert pairwise_logistic_loss(torch.tensor([[-1e6, 1e6]]), target).item() == 2e6
    assert pairwise_logistic_loss(torch.tensor([[1e6, -1e6]]), target).item() == 0
    half = pairwise_logistic_loss(torch.tensor([[0.5, 1.0]], dtype=torch.bfloat16), target)
    assert half.dtype == torch.bfloat16


@pytest.fixture
def vector_file(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(4, 3))
    np.save(tmp_path / "words.npy", vectors)
    return str(tmp_path / "words.npy")


def test_word_vectors_are_scaled_to_length_one_and_held_fixed(vector_file):
    objective = build("fast0tag", {"vectors": vector_file, "dim": 3}, in_features=5, num_labels=4, num_examples=9)
    torch.testing.assert_close(objective.label_vectors.norm(dim=1), torch.ones(4))
    assert {name for name, _ in objective.named_parameters()} == {"direction.weight", "direction.bias"}


def test_without_a_file_the_label_vectors_are_learned():
    objective = Fast0Tag(5, 4, Fast0Tag.Config(dim=3))
    assert "label_vectors" in dict(objective.named_parameters())


def test_prediction_needs_no_vector_file(vector_file, tmp_path):
    trained = build("fast0tag", {"vectors": vector_file, "dim": 3}, in_features=5, num_labels=4, num_examples=9)
    gone = build("fast0tag", {"vectors": str(tmp_path / "gone.npy"), "dim": 3}, in_features=5, num_labels=4)
    gone.load_state_dict(trained.state_dict())
    x = torch.randn(2, 5)
    assert torch.equal(gone(x), trained(x))
    with pytest.raises(ValueError, match="to train, pass num_examples"):
        gone.loss(x, torch.tensor([[1, 0, 0, 0]] * 2))


def test_a_vector_file_of_the_wrong_shape_is_named_with_the_right_one(vector_file):
    with pytest.raises(ValueError, match=r"words\.npy holds an array of shape \(4, 3\).*needs \(4, 7\)"):
        build("fast0tag", {"vectors": vector_file, "dim": 7}, in_features=5, num_labels=4, num_examples=9)
