"""Two loss functions that look at how often each label occurs in the training set."""

from dataclasses import asdict
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist.errors import ShortlistError
from shortlist.functional import noised_topk_loss, partial_selective_loss
from shortlist.objectives.loss_functions import LabelMatrixObjective, TopKObjective, config_of
from shortlist.objectives.registry import register


@register
class NoisedTopK(TopKObjective):
    """A linear head trained by `noised_topk_loss`; in evaluation mode no noise is drawn.

    ``imbalanced=True``: margins grow with the rarity of the class, up to ``max_margin``. ``normalised=True``, for which
    the published ``scale`` of about 50 and margins of 0.3 are meant: the loss is of the cosines of the angles between
    features and classes (weights without bias), and scores are ``scale`` times these.

    >>> counts = torch.tensor([100, 10, 1])
    >>> config = NoisedTopK.Config(k=1, imbalanced=True, normalised=True, scale=50.0)
    >>> objective = NoisedTopK(4, 3, config, class_counts=counts)
    >>> objective.loss(torch.zeros(2, 4), torch.tensor([0, 2])).ndim
    0
    """

    name, function = "noised-topk", staticmethod(noised_topk_loss)
    Config = config_of(noised_topk_loss, __module__, __qualname__, imbalanced=(bool, False), normalised=(bool, False))
    renamed: ClassVar[dict[str, str]] = {"balanced": "imbalanced"}  # it always meant the form for imbalanced classes

    class_counts: Tensor

    def __init__(self, in_features: int, num_labels: int, config: Any = None, **training_set: Any) -> None:
        super().__init__(in_features, num_labels, config, **training_set)
        if self.config.normalised:
            self.head.bias.requires_grad_(False)  # cosines have none

    def keep_counts(self) -> None:
        counts = torch.zeros(self.num_labels) if self._class_counts is None else self._class_counts.float()
        if self._class_counts is not None and bool((counts > 0).any()):
            counts = counts.clamp(min=counts[counts > 0].min())  # a class without examples never asks for its margin
        self.register_buffer("class_counts", counts)

    def forward(self, features: Tensor) -> Tensor:
        if not self.config.normalised:
            return super().forward(features)
        whole = self.check_features(features)
        whole = whole.to_dense() if whole.layout != torch.strided else whole  # lengths are of whole rows
        cosines = F.linear(F.normalize(whole), F.normalize(self.head.weight))
        return (self.config.scale or 1.0) * cosines

    def score_loss(self, scores: Tensor, target: Tensor, weights: Tensor | None = None) -> Tensor:
        scores = scores / (self.config.scale or 1.0) if self.config.normalised else scores
        return super().score_loss(scores, target, weights)

    def by_blocks(self, rows: int) -> bool:
        return not self.config.normalised and super().by_blocks(rows)

    def options(self) -> dict[str, Any]:
        options = asdict(self.config)
        del options["normalised"]
        counted = bool((self.class_counts > 0).any())
        options["class_counts"] = self.class_counts if options.pop("imbalanced") and counted else None
        return options if self.training else options | {"n_samples": 0}

    def check_options(self) -> None:
        if self.config.imbalanced and not bool((self.class_counts > 0).any()):
            raise ShortlistError("noised-topk with imbalanced=True needs class_counts or train_target when it is built")


@register
class PartialSelective(LabelMatrixObjective):
    """A linear head trained by `partial_selective_loss`, with the class prior counted in the training set.

    The prior of a label is the share of all training examples in which it was recorded present: unknown labels count
    as not recorded, so that data with positives only have a prior too. Without counts the prior rule is left out.

    >>> target = torch.tensor([[1, -1, 0], [1, 0, -1]])
    >>> PartialSelective(4, 3, train_target=target).prior
    tensor([1., 0., 0.])
    """

    name, function = "partial-selective", staticmethod(partial_selective_loss)

    prior: Tensor

    def keep_counts(self) -> None:
        prior = torch.zeros(self.num_labels)  # no label above the threshold
        if self._class_counts is not None and self.num_examples:
            prior = self._class_counts.float() / self.num_examples
        self.register_buffer("prior", prior)

    def options(self) -> dict[str, Any]:
        return asdict(self.config) | {"prior": self.prior}
