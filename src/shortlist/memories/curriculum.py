"""Curriculum labelling: unknown labels get the model's own answer, the sure ones first, more in every round."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from shortlist.checks import check_choice, check_examples, check_label_matrix, check_reduction, check_scores, whole
from shortlist.errors import ShortlistError
from shortlist.functional.label_matrix import largest_members
from shortlist.functional.partial_binary import partial_binary_loss


class CurriculumLabelingLoss(nn.Module):
    """Curriculum labelling: partial binary cross-entropy on known labels and on those the model has filled in itself.

    Formula:
        partial_binary_loss(scores, completed target)
        completed target = the known label where known, else what the last `fill` of that example entered, else unknown
        fill in round r, by="share": of the unknown labels given, the schedule[r-1] share with the largest |s|
        fill in round r, by="score": the unknown labels with |s| >= schedule[r-1]
            each becomes present where s > 0, absent where s <= 0; with fill="present", only those with s > 0

    Use it when:
        many labels are unknown, the known ones are enough for a decent first model, and you can afford several rounds.

    Needs:
        label matrix, unknowns, example index
        Unknown labels are used once they are filled in.

    Reference:
        Durand, Mehrasa, Mori, "Learning a Deep ConvNet for Multi-label Classification with Partial Labels", CVPR 2019.

    Options:
        num_examples, num_labels: size of the memory, one byte per label.
        schedule: one number per round, shares (growing) or score thresholds (falling); round 0 fills nothing.
        by: "share" or "score". fill: "both" answers, or "present" ones alone.
        boost, reduction, sync: as in `partial_binary_loss`.

    The rhythm: train; `advance`; one pass of the model in evaluation mode with `fill` on every batch; train; ...
    A fill starts from the known labels again: a label is never kept because an earlier round believed in it. The share
    is taken within each call of `fill`, so that large batches come closest to the share of the whole set. The state
    dict holds the round and what was filled in.

    Example:
        >>> curriculum = CurriculumLabelingLoss(num_examples=100, num_labels=3, schedule=(0.5, 1.0))
        >>> scores, index = torch.tensor([[3.0, -0.5, -2.0]]), torch.tensor([17])
        >>> target = torch.tensor([[1, -1, -1]])
        >>> loss = curriculum(scores, target, index)
        >>> curriculum.advance()
        >>> curriculum.fill(scores, target, index)
        >>> curriculum.complete(target, index)
        tensor([[ 1, -1,  0]], dtype=torch.int8)
    """

    filled: Tensor
    round: Tensor

    def __init__(
        self,
        num_examples: int,
        num_labels: int,
        *,
        schedule: Sequence[float] = (0.2, 0.4, 0.6, 0.8, 1.0),
        by: str = "share",
        fill: str = "both",
        boost: float = 5.0,
        reduction: str = "mean",
        sync: bool | None = None,
    ) -> None:
        super().__init__()
        check_reduction(reduction)
        whole(num_examples, "num_examples", 1)
        whole(num_labels, "num_labels", 1)
        check_choice(by, "by", ("share", "score"))
        check_choice(fill, "fill", ("both", "present"))
        for step in schedule:
            if step < 0 or (by == "share" and step > 1):
                allowed = "between 0 and 1" if by == "share" else "not negative"
                raise ShortlistError(f"schedule with by={by!r} must hold numbers that are {allowed}, got {step!r}")
        self.schedule, self.by, self.boost, self.answers = tuple(schedule), by, boost, fill
        self.reduction, self.sync = reduction, sync
        self.register_buffer("filled", torch.full((num_examples, num_labels), -1, dtype=torch.int8))
        self.register_buffer("round", torch.zeros((), dtype=torch.int64))

    def forward(self, scores: Tensor, target: Tensor, index: Tensor) -> Tensor:
        """The loss of a batch; ``index`` says which training example each row is."""
        check_scores(scores)
        check_label_matrix(scores, target)
        completed = self.complete(target, index)
        return partial_binary_loss(scores, completed, boost=self.boost, reduction=self.reduction, sync=self.sync)

    def advance(self) -> None:
        """The next round of the schedule; the last one stays."""
        self.round.add_(1).clamp_(max=len(self.schedule))

    @torch.no_grad()
    def fill(self, scores: Tensor, target: Tensor, index: Tensor) -> None:
        """Enter the model's answers for unknown labels of these examples, as many as this round allows."""
        check_scores(scores)
        check_label_matrix(scores, target)
        check_examples(scores, index, len(self.filled))
        unknown = (target == -1) & (scores > 0) if self.answers == "present" else target == -1
        level = int(self.round)
        sure = torch.zeros_like(unknown)
        if level and self.by == "score":
            sure = unknown & (scores.abs() >= self.schedule[level - 1])
        elif level:
            count = int(self.schedule[level - 1] * int(unknown.sum()) + 0.5)
            sure = largest_members(scores.abs().flatten(), unknown.flatten(), count).reshape(unknown.shape)
        answers = torch.where(sure, (scores > 0).to(torch.int8), torch.tensor(-1, dtype=torch.int8))
        self.filled[index.to(self.filled.device)] = answers.to(self.filled.device)

    def complete(self, target: Tensor, index: Tensor) -> Tensor:
        """The label matrix of these examples with what was filled in: int8, 1, 0 and -1."""
        check_examples(target, index, len(self.filled))
        filled = self.filled[index.to(self.filled.device)].to(target.device)
        return torch.where(target == -1, filled, target.to(torch.int8))

    def extra_repr(self) -> str:
        return f"schedule={self.schedule}, by={self.by!r}, round {int(self.round)}"
