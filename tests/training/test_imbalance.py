"""Rare labels: class weights, logit adjustment and balanced sampling, through the training loop."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from shortlist.data import Dataset
from shortlist.errors import ShortlistError
from shortlist.functional import two_way_loss
from shortlist.models import build_backbone
from shortlist.objectives import OBJECTIVES, build
from shortlist.objectives.imbalance import class_weights, log_prior, rarity
from shortlist.training.learner import Learner, score
from shortlist.training.loop import drawn, train
from shortlist.training.settings import TrainSettings

INDICES = torch.tensor([0] * 90 + [1] * 9 + [-1])
MATRIX = torch.tensor([[1, 0, -1]] * 3 + [[0, 1, 1]] * 6 + [[0, 0, -1]], dtype=torch.int8)


def objective(name: str, target: torch.Tensor, way: Any) -> Any:
    labels = 2 if target.ndim == 1 else 3
    torch.manual_seed(0)
    options = {"k": 1} if "k" in OBJECTIVES[name].Config.__dataclass_fields__ else {}
    found = build(name, options, in_features=4, num_labels=labels, train_target=target)
    found.balance(way, target)
    return found.train()


def test_class_weights_are_those_of_cross_entropy() -> None:
    found = objective("cross-entropy", INDICES, "class-weights")
    features, target = torch.randn(12, 4), torch.tensor([0, 1] * 5 + [-1, 1])
    weights = torch.tensor([99 / (2 * 90), 99 / (2 * 9)])
    expected = cross_entropy(found(features), target, weights, ignore_index=-1, reduction="sum") / 11
    torch.testing.assert_close(found.loss(features, target), expected)


def test_class_weights_of_a_label_matrix_weigh_presence() -> None:
    found = objective("binary", MATRIX, "class-weights")
    features = torch.randn(len(MATRIX), 4)
    known = MATRIX >= 0
    terms = binary_cross_entropy_with_logits(
        found(features), MATRIX.clamp(min=0).float(), pos_weight=torch.tensor([7 / 3, 4 / 6, 1.0]), reduction="none"
    )
    torch.testing.assert_close(found.loss(features, MATRIX), terms[known].mean())


@pytest.mark.parametrize("name", ["cross-entropy", "smooth-topk", "lml", "average-k", "noised-topk"])
def test_logit_adjustment_moves_the_scores_in_training_alone(name: str) -> None:
    plain, moved = (objective(name, INDICES, way) for way in ("none", "logit-adjustment"))
    features, target = torch.randn(6, 4), torch.tensor([0, 1, 1, 0, -1, 0])
    assert torch.equal(plain(features), moved(features))
    torch.manual_seed(1)
    before = plain.loss(features, target)
    torch.manual_seed(1)
    assert not torch.equal(moved.loss(features, target), before)
    torch.testing.assert_close(moved.eval().loss(features, target), plain.eval().loss(features, target))


def test_logit_adjustment_of_a_label_matrix_is_by_log_odds() -> None:
    found = objective("two-way", MATRIX, "logit-adjustment")
    features = torch.randn(len(MATRIX), 4)
    prior = torch.tensor([3.5 / 7.5, 6.5 / 4.5, 6.5 / 0.5]).log()
    torch.testing.assert_close(found.loss(features, MATRIX), two_way_loss(found(features) + prior, MATRIX))


def test_balanced_draws_have_every_class_equally_often_and_no_unknown_row() -> None:
    order = drawn(rarity(INDICES.repeat(100), 2), seed=0, epoch=3)
    assert len(order) == 10_000
    shares = torch.bincount(INDICES.repeat(100)[order] + 1, minlength=3) / len(order)
    assert shares[0] == 0
    assert abs(float(shares[1]) - 0.5) < 0.02
    assert torch.equal(order, drawn(rarity(INDICES.repeat(100), 2), seed=0, epoch=3))


@pytest.mark.parametrize("way", ["class-weights", "logit-adjustment", "balanced-sampling"])
def test_every_way_finds_more_of_a_rare_class(way: str) -> None:
    generator = torch.Generator().manual_seed(0)
    target = (torch.rand(1000, generator=generator) < 0.05).long()
    inputs = torch.randn(1000, 4, generator=generator)
    inputs[:, 0] += 1.5 * target
    data, recalls = Dataset(inputs, target, ("usual", "rare")), {}
    for imbalance in ("none", way):
        torch.manual_seed(0)
        body: nn.Module = build_backbone("identity", in_shape=(4,))
        learner = Learner(body, build("cross-entropy", in_features=4, num_labels=2, train_target=target))
        settings = TrainSettings(epochs=10, batch_size=50, imbalance=imbalance, accelerator="cpu")
        train(learner.backbone, learner.objective, data, None, settings)
        found = score(learner, data).argmax(1)
        recalls[imbalance] = float((found[target == 1] == 1).float().mean())
        assert set(learner.weights()) == {"objective.head.weight", "objective.head.bias"}
    assert recalls["none"] < 0.3 < 0.6 < recalls[way]


@pytest.mark.parametrize("name", ["imcl", "role", "cnn-rnn", "latent-noise", "curriculum"])
def test_where_it_has_no_meaning_it_is_refused_with_what_is_allowed(name: str) -> None:
    with pytest.raises(ShortlistError, match=r"has no meaning for objective .* use one of none, balanced-sampling"):
        objective(name, MATRIX, "logit-adjustment")


def test_class_weights_of_a_label_matrix_are_refused_where_presence_has_no_weight() -> None:
    with pytest.raises(ShortlistError, match="use one of none, logit-adjustment, balanced-sampling"):
        objective("two-way", MATRIX, "class-weights")


def test_labels_that_never_occur_or_are_all_unknown_stay_finite() -> None:
    for target in (torch.tensor([0, 0, -1]), torch.tensor([[1, -1], [1, -1]])):
        for found in (class_weights(target, 2), log_prior(target, 2, "softmax"), log_prior(target, 2, "sigmoid")):
            assert bool(found.isfinite().all())
    with pytest.raises(ShortlistError, match="none is known"):
        drawn(rarity(torch.tensor([-1, -1]), 2), 0, 0)
