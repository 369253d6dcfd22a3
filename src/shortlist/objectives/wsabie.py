"""WSABIE: WARP on a low-rank head whose factors stay in a ball."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from shortlist.checks import check_positive, whole
from shortlist.functional import warp_loss
from shortlist.objectives.base import Objective
from shortlist.objectives.registry import register


@register
class Wsabie(Objective):
    """Features and labels embedded in ``rank`` dimensions, scores by inner product, trained by `warp_loss`.

    Every row of both factors (one per feature, one per label) is kept in the ball of radius ``ball`` by a projection
    after each optimizer step (Weston et al. 2011). ``exact``: as in `warp_loss`.

    >>> objective = Wsabie(in_features=8, num_labels=5, config=Wsabie.Config(rank=2))
    >>> objective(torch.zeros(3, 8)).shape, objective.label_factor.shape
    (torch.Size([3, 5]), torch.Size([5, 2]))
    """

    name = "wsabie"
    accepts = ("label-matrix",)
    link = "sigmoid"
    only_ranks = True
    monitor = "mean-average-precision"
    balances = ("logit-adjustment",)

    @dataclass(frozen=True)
    class Config:
        rank: int = 100
        ball: float = 1.0
        exact: bool = False

    def __init__(self, in_features: int, num_labels: int, config: Any = None, **training_set: Any) -> None:
        super().__init__(in_features, num_labels, config, **training_set)
        rank = whole(self.config.rank, "rank of 'wsabie'", 1)
        check_positive(self.config.ball, "ball of 'wsabie'")
        # features of size 1 start with scores of size 1
        self.feature_factor = nn.Parameter(torch.randn(in_features, rank) / in_features**0.5)
        self.label_factor = nn.Parameter(torch.randn(num_labels, rank) / rank**0.5)
        self.after_step(lr=0.0)

    def forward(self, features: Tensor) -> Tensor:
        return self.check_features(features) @ self.feature_factor @ self.label_factor.T

    def loss(self, features: Tensor, target: Tensor, index: Tensor | None = None) -> Tensor:
        return warp_loss(self.shifted(self(features)), target, exact=self.config.exact)

    @torch.no_grad()
    def after_step(self, lr: float) -> None:
        for factor in (self.feature_factor, self.label_factor):
            norm = factor.norm(dim=1, keepdim=True)
            factor.mul_((self.config.ball / norm).clamp(max=1.0))
