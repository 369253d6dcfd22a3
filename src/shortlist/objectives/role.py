"""ROLE: the model and a table of estimated labels, one row per training example, teach each other."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from shortlist.memories import ROLELoss
from shortlist.objectives.base import LinearObjective
from shortlist.objectives.registry import register


@register
class Role(LinearObjective):
    """A linear head trained by `shortlist.nn.ROLELoss`; the table moves after every optimizer step.

    >>> objective = Role(in_features=8, num_labels=5, config=Role.Config(k=2), num_examples=100)
    >>> loss = objective.loss(torch.zeros(2, 8), torch.tensor([3, 0]), index=torch.tensor([17, 42]))
    >>> objective.after_step(lr=0.1)
    """

    name = "role"
    accepts = ("indices", "label-matrix")
    link = "softmax"  # as average-k
    monitor = "average-k-accuracy"
    training_only = ("role",)

    @dataclass(frozen=True)
    class Config:
        """The options of ROLELoss; ``dtype`` is the table's, ``seed`` of its start (the same in every process)."""

        k: float = 5
        beta: float = 1.0
        lr_multiple: float = 10.0
        optimizer: Literal["sgd", "adam"] = "sgd"
        dtype: Literal["float32", "float16", "bfloat16"] = "float32"
        seed: int = 0

    role: ROLELoss | None

    def __init__(self, in_features: int, num_labels: int, config: Any = None, **training_set: Any) -> None:
        super().__init__(in_features, num_labels, config, **training_set)
        self.role = None
        if self.num_examples is not None:
            options = asdict(self.config) | {"dtype": getattr(torch, self.config.dtype)}
            self.role = ROLELoss(self.num_examples, num_labels, **options)

    def loss(self, features: Tensor, target: Tensor, index: Tensor | None = None) -> Tensor:
        index = self.needed_index(index)
        assert self.role is not None
        return self.role(self(features), target, index)

    def after_step(self, lr: float) -> None:
        if self.role is not None:
            self.role.step(lr)
