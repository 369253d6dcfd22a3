"""The top-k family as modules: the LML layer and the losses, each holding the options of its function."""

import torch
from torch import Tensor, nn

from shortlist.functional.lml import lml, lml_loss
from shortlist.functional.noised_topk import noised_topk_loss
from shortlist.functional.smooth_topk import smooth_topk_loss, topk_hinge_loss
from shortlist.functional.truncated_entropy import truncated_entropy_loss
from shortlist.nn.multilabel import _Loss


class LML(nn.Module):
    """The Limited Multi-Label projection as a layer: probabilities that sum to k (`shortlist.functional.lml`).

    >>> LML(k=2)(torch.tensor([2.0, 1.0, 0.0, -1.0]))
    tensor([0.8176, 0.6225, 0.3775, 0.1824])
    """

    def __init__(self, k: int, *, dim: int = -1, temperature: float = 1.0) -> None:
        super().__init__()
        self.k, self.dim, self.temperature = k, dim, temperature

    def forward(self, scores: Tensor, *, mask: Tensor | None = None) -> Tensor:
        return lml(scores, self.k, dim=self.dim, mask=mask, temperature=self.temperature)

    def extra_repr(self) -> str:
        return f"k={self.k}, dim={self.dim}, temperature={self.temperature}"


class LMLLoss(_Loss):
    """Module form of `shortlist.functional.lml_loss`.

    >>> LMLLoss(k=2)(torch.tensor([[2.0, 1.0, 0.0, -1.0]]), torch.tensor([1]))
    tensor(0.4741)
    """

    function = staticmethod(lml_loss)

    def __init__(
        self,
        k: int,
        *,
        temperature: float = 1.0,
        weight: Tensor | None = None,
        reduction: str = "mean",
        sync: bool | None = None,
    ) -> None:
        super().__init__(k=k, temperature=temperature, weight=weight, reduction=reduction, sync=sync)


class SmoothTopKLoss(_Loss):
    """Module form of `shortlist.functional.smooth_topk_loss`.

    >>> SmoothTopKLoss(k=2)(torch.tensor([[2.0, 1.0, 0.5, -1.0]]), torch.tensor([0]))
    tensor(0.7423)
    """

    function = staticmethod(smooth_topk_loss)

    def __init__(
        self,
        k: int,
        *,
        tau: float = 1.0,
        alpha: float = 1.0,
        weight: Tensor | None = None,
        reduction: str = "mean",
        sync: bool | None = None,
    ) -> None:
        super().__init__(k=k, tau=tau, alpha=alpha, weight=weight, reduction=reduction, sync=sync)


class TopKHingeLoss(_Loss):
    """Module form of `shortlist.functional.topk_hinge_loss`.

    >>> TopKHingeLoss(k=2)(torch.tensor([[2.0, 1.0, 0.5, -1.0]]), torch.tensor([3]))
    tensor(2.)
    """

    function = staticmethod(topk_hinge_loss)

    def __init__(
        self,
        k: int,
        *,
        alpha: float = 1.0,
        weight: Tensor | None = None,
        reduction: str = "mean",
        sync: bool | None = None,
    ) -> None:
        super().__init__(k=k, alpha=alpha, weight=weight, reduction=reduction, sync=sync)


class TruncatedEntropyLoss(_Loss):
    """Module form of `shortlist.functional.truncated_entropy_loss`.

    >>> TruncatedEntropyLoss(k=2)(torch.tensor([[2.0, 1.0, 0.0, -1.0]]), torch.tensor([1]))
    tensor(0.4076)
    """

    function = staticmethod(truncated_entropy_loss)

    def __init__(
        self, k: int, *, weight: Tensor | None = None, reduction: str = "mean", sync: bool | None = None
    ) -> None:
        super().__init__(k=k, weight=weight, reduction=reduction, sync=sync)


class NoisedTopKLoss(_Loss):
    """Module form of `shortlist.functional.noised_topk_loss`; in evaluation mode no noise is drawn.

    >>> NoisedTopKLoss(k=1).eval()(torch.tensor([[2.0, 1.0, 0.5, -1.0]]), torch.tensor([3]))
    tensor(3.)
    """

    function = staticmethod(noised_topk_loss)

    def __init__(
        self,
        k: int,
        *,
        epsilon: float = 1.0,
        n_samples: int = 5,
        class_counts: Tensor | None = None,
        max_margin: float = 0.3,
        scale: float | None = None,
        generator: torch.Generator | None = None,
        weight: Tensor | None = None,
        reduction: str = "mean",
        sync: bool | None = None,
    ) -> None:
        super().__init__(
            k=k,
            epsilon=epsilon,
            n_samples=n_samples,
            class_counts=class_counts,
            max_margin=max_margin,
            scale=scale,
            generator=generator,
            weight=weight,
            reduction=reduction,
            sync=sync,
        )

    def forward(
        self, scores: Tensor, target: Tensor, *, mask: Tensor | None = None, sample_weight: Tensor | None = None
    ) -> Tensor:
        options = {name: getattr(self, name) for name in self._names}
        if not self.training:
            options["n_samples"] = 0
        return noised_topk_loss(scores, target, mask=mask, sample_weight=sample_weight, **options)
