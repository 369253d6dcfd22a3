"""Fast0Tag: features point in a direction of label-vector space along which present labels come before absent ones."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from shortlist.checks import in_compute_type, whole
from shortlist.distributed import world_size
from shortlist.errors import ShortlistError
from shortlist.functional.label_matrix import read_label_matrix
from shortlist.functional.reduction import reduce_over_processes
from shortlist.objectives.base import Objective
from shortlist.objectives.registry import register


@register
class Fast0Tag(Objective):
    """A linear map from features to label-vector space, scores by inner product (Zhang et al. 2016).

    Loss: log(1 + e^(s_n - s_p)), averaged over the pairs of a present label p and an absent label n of a row, then over
    the rows that have such a pair. Unknown labels are in no pair.

    ``vectors`` names a ``.npy`` file with one word vector of length ``dim`` per label; they are scaled to unit length
    and held fixed, and belong to the state dict from then on. Without a file the label vectors are learned.

    >>> objective = Fast0Tag(in_features=8, num_labels=5, config=Fast0Tag.Config(dim=3))
    >>> objective.loss(torch.zeros(1, 8), torch.tensor([[1, 0, 0, -1, 1]])) >= 0
    tensor(True)
    """

    name = "fast0tag"
    accepts = ("label-matrix",)
    link = "sigmoid"
    only_ranks = True
    monitor = "mean-average-precision"
    balances = ("logit-adjustment",)

    @dataclass(frozen=True)
    class Config:
        dim: int = 100
        vectors: str | None = None

    def __init__(self, in_features: int, num_labels: int, config: Any = None, **training_set: Any) -> None:
        super().__init__(in_features, num_labels, config, **training_set)
        dim = whole(self.config.dim, "dim of 'fast0tag'", 1)
        self.direction = nn.Linear(in_features, dim)
        if self.config.vectors is None:
            self.label_vectors = nn.Parameter(F.normalize(torch.randn(num_labels, dim), dim=1))
        elif self.num_examples is None:  # for prediction: they come with the state dict
            self.register_buffer("label_vectors", torch.zeros(num_labels, dim))
        else:
            self.register_buffer("label_vectors", _read_vectors(self.config.vectors, num_labels, dim))

    def forward(self, features: Tensor) -> Tensor:
        return self.direction(self.check_features(features)) @ self.label_vectors.T

    def loss(self, features: Tensor, target: Tensor, index: Tensor | None = None) -> Tensor:
        if self.config.vectors is not None:
            self.check_trainable()
        return pairwise_logistic_loss(self.shifted(self(features)), target)


def pairwise_logistic_loss(scores: Tensor, target: Tensor) -> Tensor:
    """softplus(s_n - s_p), averaged over P x N of each row, then over the rows that have a pair.

    >>> pairwise_logistic_loss(torch.tensor([[1.0, 1.0, 0.0]]), torch.tensor([[1, 0, -1]]))
    tensor(0.6931)
    """
    present, absent = read_label_matrix(scores, target)
    x = in_compute_type(scores)
    row, label = present.nonzero(as_tuple=True)  # memory: one row of labels per present label, not L x L per example
    terms = torch.where(absent[row], F.softplus(x[row] - x[row, label].unsqueeze(1)), 0.0).sum(1)
    pairs = present.sum(1) * absent.sum(1)
    losses = x.new_zeros(len(x)).index_add(0, row, terms) / pairs.clamp(min=1)
    return reduce_over_processes(losses, (pairs > 0).to(x.dtype), "mean", world_size(None)).to(scores.dtype)


def _read_vectors(path: str, num_labels: int, dim: int) -> Tensor:
    vectors = np.load(path, allow_pickle=False)
    if vectors.shape != (num_labels, dim):
        raise ShortlistError(
            f"{path} holds an array of shape {vectors.shape}; fast0tag with dim={dim} needs ({num_labels}, {dim}), one "
            f"row per label in the order of the vocabulary"
        )
    return F.normalize(torch.from_numpy(np.ascontiguousarray(vectors, dtype=np.float32)), dim=1)
