"""Average-K: two linear heads, one proposes candidates over the batch, the other learns the sets."""

from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from shortlist.functional import average_k_loss, linear_loss
from shortlist.nn import AverageKHead
from shortlist.objectives.base import LARGE_SCORES, Objective
from shortlist.objectives.imbalance import Imbalance
from shortlist.objectives.loss_functions import config_of
from shortlist.objectives.registry import register


@register
class AverageK(Objective):
    """Set scores and proposal scores trained together by `average_k_loss`; prediction uses the set scores.

    >>> objective = AverageK(in_features=8, num_labels=10, config=AverageK.Config(k=2.5))
    >>> objective(torch.zeros(4, 8)).shape
    torch.Size([4, 10])
    """

    name = "average-k"
    accepts = ("indices", "label-matrix")
    one_positive = True
    link = "softmax"  # rows are compared by it in Algorithm 1 of the paper, and better than by the loss's own sigmoid
    monitor = "average-k-accuracy"
    balances = ("class-weights", "logit-adjustment")
    Config = config_of(average_k_loss, __module__, __qualname__)

    def __init__(self, in_features: int, num_labels: int, config: Any = None, **training_set: Any) -> None:
        super().__init__(in_features, num_labels, config, **training_set)
        self.head = AverageKHead(in_features, num_labels)
        with self.options_checked():
            zeros = torch.zeros(1, num_labels)
            average_k_loss(zeros, zeros, torch.tensor([0]), **asdict(self.config), sync=False)

    def forward(self, features: Tensor) -> Tensor:
        return self.head.sets(self.check_features(features))

    def by_blocks(self, rows: int) -> bool:
        return 2 * rows * self.num_labels > LARGE_SCORES

    def loss(self, features: Tensor, target: Tensor, index: Tensor | None = None) -> Tensor:
        if self.by_blocks(len(features)):
            heads = (self.head.sets, self.head.proposals)
            return linear_loss(
                average_k_loss,
                self.check_features(features),
                (heads[0].weight, heads[1].weight),
                target,
                bias=(self.shifted(heads[0].bias), self.shifted(heads[1].bias)),
                class_weight=self.weight,
                **asdict(self.config),
            )
        sets, proposals = self.shifted(self(features)), self.shifted(self.head.proposals(features))
        return average_k_loss(sets, proposals, target, weight=self.weight, **asdict(self.config))

    def balances_of(self, target: Tensor) -> tuple[Imbalance, ...]:
        return self.balances if target.ndim == 1 else ("logit-adjustment",)
