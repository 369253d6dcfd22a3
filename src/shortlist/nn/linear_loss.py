"""A linear layer and its loss as one module, for more labels than there is memory for scores."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from shortlist.errors import ShortlistError
from shortlist.functional import average_k_loss, linear_loss
from shortlist.labels.sparse_labels import Target
from shortlist.nn.average_k_head import AverageKHead
from shortlist.nn.losses import Loss


class LinearLoss(nn.Module):
    """A head that returns the loss in training, without making all scores, and the scores in evaluation.

    Args:
        in_features: length of a feature vector. num_labels: number of scores.
        loss: a loss module of `shortlist.nn`, or a function of `shortlist.functional` that needs no options.
        bias: whether the head has one. memory: as in `shortlist.functional.linear_loss`, which it calls.

    With ``AverageKLoss`` the head is two, as in `AverageKHead`, and the set scores are the scores.

    >>> import torch
    >>> from shortlist.nn import SmoothTopKLoss
    >>> head = LinearLoss(8, 1000, SmoothTopKLoss(k=5))
    >>> head(torch.zeros(2, 8), torch.tensor([3, 999])).shape
    torch.Size([])
    >>> head.eval()(torch.zeros(2, 8)).shape
    torch.Size([2, 1000])
    """

    def __init__(
        self,
        in_features: int,
        num_labels: int,
        loss: Loss | Callable[..., Tensor],
        *,
        bias: bool = True,
        memory: int | None = None,
    ) -> None:
        super().__init__()
        if isinstance(loss, nn.Module) and not isinstance(loss, Loss):
            raise ShortlistError(
                f"loss must be a loss module of shortlist.nn or a function of shortlist.functional, "
                f"got {type(loss).__name__}"
            )
        self.loss, self.memory = loss, memory
        self.function = loss.function if isinstance(loss, Loss) else loss
        two = self.function is average_k_loss
        self.head: nn.Module = (AverageKHead if two else nn.Linear)(in_features, num_labels, bias=bias)

    def forward(
        self,
        features: Tensor,
        target: Target | None = None,
        *,
        mask: Tensor | None = None,
        sample_weight: Tensor | None = None,
    ) -> Tensor:
        if not self.training:
            return self.head(features)
        if target is None:
            raise ShortlistError(
                "in training LinearLoss returns the loss and needs the target; .eval() makes it return scores"
            )
        options: dict[str, Any] = self.loss.options if isinstance(self.loss, Loss) else {}
        options = {("class_weight" if name == "weight" else name): value for name, value in options.items()}
        options |= {"mask": mask, "sample_weight": sample_weight, "memory": self.memory}
        weight, bias = self._parameters_of_head()
        return linear_loss(self.function, features, weight, target, bias=bias, **options)

    def _parameters_of_head(self) -> tuple[Any, Any]:
        head = self.head
        if isinstance(head, AverageKHead):
            pair = (head.sets, head.proposals)
            bias = None if head.sets.bias is None else tuple(one.bias for one in pair)
            return tuple(one.weight for one in pair), bias
        return head.weight, head.bias
