"""Tiny data that every objective can learn, and one plain training loop."""

from typing import NamedTuple

import torch
from torch import Tensor

from shortlist.labels import from_indices
from shortlist.objectives import OBJECTIVES, Objective, build

LABELS, FEATURES, TRAIN = 8, 6, 96
SMALL_K = {"k": 2}
# what the defaults are too large for
OPTIONS = {
    **{name: SMALL_K for name in ("smooth-topk", "topk-hinge", "truncated-entropy", "lml", "noised-topk")},
    **{name: SMALL_K for name in ("average-k", "expected-positive", "role")},
    "wsabie": {"rank": 5, "ball": 2.0},
    "fast0tag": {"dim": 5},
    "curriculum": {"schedule": (2.0, 1.0)},
    "cnn-rnn": {"hidden": 16, "max_labels": 4},
    "partial-selective": {"likelihood_topk": 1, "prior_threshold": 0.3},
}


class Tiny(NamedTuple):
    features: Tensor
    target: Tensor
    held_out: Tensor  # features
    truth: Tensor  # full label matrix of the held-out rows


def tiny(kind: str, seed: int = 0) -> Tiny:
    """Class clusters (indices, one row unknown); or labels that lie on one side of a plane, a third unknown."""
    generator = torch.Generator().manual_seed(seed)
    n = TRAIN + 64
    directions = torch.randn(LABELS, FEATURES, generator=generator)
    if kind == "indices":
        label = torch.randint(LABELS, (n,), generator=generator)
        features = 2 * directions[label] + 0.7 * torch.randn(n, FEATURES, generator=generator)
        target = label[:TRAIN].clone()
        target[0] = -1
        return Tiny(features[:TRAIN], target, features[TRAIN:], from_indices(label[TRAIN:], LABELS))
    features = torch.randn(n, FEATURES, generator=generator)
    full = (features @ directions.T > 1.5).to(torch.int8)
    unknown = torch.rand(TRAIN, LABELS, generator=generator) < 1 / 3
    target = full[:TRAIN].masked_fill(unknown, -1)
    return Tiny(features[:TRAIN], target, features[TRAIN:], full[TRAIN:])


def make(name: str, data: Tiny, **options: object) -> Objective:
    torch.manual_seed(0)
    given = OPTIONS.get(name, {}) | options
    return build(name, given, in_features=FEATURES, num_labels=LABELS, train_target=data.target)


def first_kind(name: str) -> str:
    return OBJECTIVES[name].accepts[0]


def train(objective: Objective, data: Tiny, epochs: int, *, start: int = 0, of: int | None = None) -> list[float]:
    """Epochs start..start+epochs-1 of ``of``, three batches each, in an order that depends on the epoch alone."""
    optimizer = torch.optim.SGD(objective.parameters(), lr=0.3)
    losses = []
    for epoch in range(start, start + epochs):
        torch.manual_seed(epoch)
        objective.train()
        objective.start_epoch(epoch, of or start + epochs)
        total = 0.0
        for index in torch.randperm(TRAIN).split(TRAIN // 3):
            optimizer.zero_grad()
            wanted = objective.wanted_rows(changing=False)
            if wanted is not None:
                objective.remember(data.features[wanted])
            loss = objective.loss(data.features[index], data.target[index], index)
            loss.backward()
            optimizer.step()
            objective.after_step(0.3)
            total += loss.item()
        losses.append(total / 3)
    return losses


def pairs_in_order(scores: Tensor, truth: Tensor) -> float:
    """Share of (present, absent) pairs of the same row that the scores put in the right order; 0.5 is chance."""
    better = scores.unsqueeze(2) > scores.unsqueeze(1)
    pair = (truth == 1).unsqueeze(2) & (truth == 0).unsqueeze(1)
    return (better & pair).sum().item() / pair.sum().item()
