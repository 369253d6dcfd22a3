"""Two loss functions that look at how often each label occurs in the training set."""

from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from shortlist.errors import ShortlistError
from shortlist.functional import noised_topk_loss, partial_selective_loss
from shortlist.objectives.loss_functions import LossFunctionObjective, config_of
from shortlist.objectives.registry import register


@register
class NoisedTopK(LossFunctionObjective):
    """A linear head trained by `noised_topk_loss`; in evaluation mode no noise is drawn.

    ``balanced=True`` is its imbalanced form: margins grow with the rarity of the class, up to ``max_margin``.

    >>> counts = torch.tensor([100, 10, 1])
    >>> objective = NoisedTopK(4, 3, NoisedTopK.Config(k=1, balanced=True, scale=5.0), class_counts=counts)
    >>> objective.loss(torch.zeros(2, 4), torch.tensor([0, 2])).ndim
    0
    """

    name = "noised-topk"
    function = staticmethod(noised_topk_loss)
    accepts = ("indices",)
    one_positive = True
    link = "softmax"
    monitor = "topk-accuracy"
    Config = config_of(noised_topk_loss, __module__, __qualname__, balanced=(bool, False))

    class_counts: Tensor

    def keep_counts(self) -> None:
        counts = torch.zeros(self.num_labels) if self._class_counts is None else self._class_counts.float()
        if self._class_counts is not None and bool((counts > 0).any()):
            counts = counts.clamp(min=counts[counts > 0].min())  # a class without examples never asks for its margin
        self.register_buffer("class_counts", counts)

    def options(self) -> dict[str, Any]:
        options = asdict(self.config)
        counted = bool((self.class_counts > 0).any())
        options["class_counts"] = self.class_counts if options.pop("balanced") and counted else None
        return options if self.training else options | {"n_samples": 0}

    def check_options(self) -> None:
        if self.config.balanced and not bool((self.class_counts > 0).any()):
            raise ShortlistError("noised-topk with balanced=True needs class_counts or train_target when it is built")


@register
class PartialSelective(LossFunctionObjective):
    """A linear head trained by `partial_selective_loss`, with the class prior counted in the training set.

    The prior of a label is the share of all training examples in which it was recorded present: unknown labels count
    as not recorded, so that data with positives only have a prior too. Without counts the prior rule is left out.

    >>> target = torch.tensor([[1, -1, 0], [1, 0, -1]])
    >>> PartialSelective(4, 3, train_target=target).prior
    tensor([1., 0., 0.])
    """

    name = "partial-selective"
    function = staticmethod(partial_selective_loss)
    accepts = ("label-matrix",)
    link = "sigmoid"
    monitor = "mean-average-precision"

    prior: Tensor

    def keep_counts(self) -> None:
        prior = torch.zeros(self.num_labels)  # no label above the threshold
        if self._class_counts is not None and self.num_examples:
            prior = self._class_counts.float() / self.num_examples
        self.register_buffer("prior", prior)

    def options(self) -> dict[str, Any]:
        return asdict(self.config) | {"prior": self.prior}
