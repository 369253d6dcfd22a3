"""Curriculum labelling: unknown labels get the model's own answers, more of them in every stage of the training."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from shortlist.distributed import gathered, world_size
from shortlist.memories import CurriculumLabelingLoss
from shortlist.objectives.base import LinearObjective
from shortlist.objectives.registry import register


@register
class Curriculum(LinearObjective):
    """A linear head trained by `shortlist.nn.CurriculumLabelingLoss`.

    The epochs are cut into ``len(schedule) + 1`` equal stages; the first fills nothing, stage r fills what
    ``schedule[r-1]`` allows. An example is filled once per stage, from its scores when the stage first sees it: that
    needs no extra pass over the data. Shares are taken within a batch (of each process).

    >>> target = torch.tensor([[1, -1, -1], [0, 1, -1]])
    >>> config = Curriculum.Config(schedule=(0.5, 1.0), by="share")
    >>> objective = Curriculum(in_features=4, num_labels=3, config=config, train_target=target)
    >>> objective.start_epoch(epoch=9, epochs=10)
    >>> loss = objective.loss(torch.randn(2, 4), target, index=torch.tensor([0, 1]))
    >>> objective.memory.complete(target, torch.tensor([0, 1])).min()  # the last stage leaves nothing unknown
    tensor(0, dtype=torch.int8)
    """

    name = "curriculum"
    accepts = ("label-matrix",)
    link = "sigmoid"
    monitor = "mean-average-precision"
    training_only = ("memory", "filled_in")

    @dataclass(frozen=True)
    class Config:
        """The options of CurriculumLabelingLoss; by default sure answers only: probability 0.98, then 0.95, 0.88."""

        schedule: tuple[float, ...] = (4.0, 3.0, 2.0)
        by: Literal["share", "score"] = "score"
        fill: Literal["both", "present"] = "both"
        boost: float = 5.0

    memory: CurriculumLabelingLoss | None
    filled_in: Tensor | None  # the stage in which each example was last filled

    def __init__(self, in_features: int, num_labels: int, config: Any = None, **training_set: Any) -> None:
        super().__init__(in_features, num_labels, config, **training_set)
        self.memory = None
        self.register_buffer("filled_in", None)
        self._new: list[Tensor] = []
        if self.num_examples is not None:
            self.memory = CurriculumLabelingLoss(self.num_examples, num_labels, **asdict(self.config))
            self.filled_in = torch.zeros(self.num_examples, dtype=torch.int16)

    def start_epoch(self, epoch: int, epochs: int) -> None:
        if self.memory is not None:
            self.memory.round.fill_(epoch * (len(self.config.schedule) + 1) // epochs)

    def loss(self, features: Tensor, target: Tensor, index: Tensor | None = None) -> Tensor:
        index = self.needed_index(index)
        assert self.memory is not None
        scores = self(features)
        if self.training:
            self._fill(scores, target, index)
        return self.memory(scores, target, index)

    def _fill(self, scores: Tensor, target: Tensor, index: Tensor) -> None:
        assert self.memory is not None
        assert self.filled_in is not None
        due = self.filled_in[index] < self.memory.round
        if bool(due.any()):
            self.memory.fill(scores[due], target[due], index[due])
            self.filled_in[index[due]] = self.memory.round.to(torch.int16)
            self._new.append(index[due])

    def after_step(self, lr: float) -> None:
        """Between processes: everybody learns what the others have filled in."""
        new, self._new = self._new, []
        world = world_size(None)
        if self.memory is None or self.filled_in is None or world == 1:
            return
        index = torch.cat(new).cpu() if new else torch.empty(0, dtype=torch.int64)
        for rows, answers in gathered((index, self.memory.filled[index].cpu()), world):
            self.memory.filled[rows] = answers.to(self.memory.filled.device)
            self.filled_in[rows] = self.memory.round.to(torch.int16)
