"""Multi-label, partial-label and average-K losses as modules: each holds the options of its function.

``forward`` takes what varies by batch: the scores, the target, and optionally ``mask`` and ``sample_weight``.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from shortlist.functional.assume_negative import assume_negative_loss
from shortlist.functional.asymmetric import asymmetric_loss
from shortlist.functional.average_k import average_k_loss
from shortlist.functional.binary import binary_loss
from shortlist.functional.expected_positive import expected_positive_loss
from shortlist.functional.lsep import lsep_loss
from shortlist.functional.multilabel_softmax import multilabel_softmax_loss
from shortlist.functional.partial_binary import partial_binary_loss
from shortlist.functional.partial_selective import partial_selective_loss
from shortlist.functional.rml import rml_loss
from shortlist.functional.two_way import two_way_loss
from shortlist.functional.warp import warp_loss


class _Loss(nn.Module):
    """Options kept by name; those that are tensors are buffers, so that they follow the module to its device."""

    function: ClassVar[Callable[..., Tensor]]

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self._names = tuple(options)
        for name, value in options.items():
            if isinstance(value, Tensor):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def forward(
        self, scores: Tensor, target: Tensor, *, mask: Tensor | None = None, sample_weight: Tensor | None = None
    ) -> Tensor:
        options = {name: getattr(self, name) for name in self._names}
        return type(self).function(scores, target, mask=mask, sample_weight=sample_weight, **options)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self._names)


class TwoWayLoss(_Loss):
    """Module form of `shortlist.functional.two_way_loss`.

    >>> TwoWayLoss()(torch.tensor([[2.0, -1.0]]), torch.tensor([[1, 0]]))
    tensor(0.0486)
    """

    function = staticmethod(two_way_loss)

    def __init__(
        self,
        *,
        positive_temperature: float = 4.0,
        negative_temperature: float = 1.0,
        margin: float = 0.0,
        way: str = "both",
        reduction: str = "mean",
        sync: bool | None = None,
    ) -> None:
        super().__init__(
            positive_temperature=positive_temperature,
            negative_temperature=negative_temperature,
            margin=margin,
            way=way,
            reduction=reduction,
            sync=sync,
        )


class AverageKLoss(_Loss):
    """Module form of `shortlist.functional.average_k_loss`; ``forward(set_scores, proposal_scores, target)``.

    >>> AverageKLoss(k=1.5)(torch.zeros(2, 3), torch.zeros(2, 3), torch.tensor([0, 1]))
    tensor(3.1781)
    """

    function = staticmethod(average_k_loss)

    def __init__(
        self,
        k: float,
        *,
        alpha: float = 1.0,
        weight: Tensor | None = None,
        reduction: str = "mean",
        sync: bool | None = None,
    ) -> None:
        super().__init__(k=k, alpha=alpha, weight=weight, reduction=reduction, sync=sync)

    def forward(  # type: ignore[override]
        self,
        set_scores: Tensor,
        proposal_scores: Tensor,
        target: Tensor,
        *,
        mask: Tensor | None = None,
        sample_weight: Tensor | None = None,
    ) -> Tensor:
        options = {name: getattr(self, name) for name in self._names}
        return average_k_loss(set_scores, proposal_scores, target, mask=mask, sample_weight=sample_weight, **options)


class AssumeNegativeLoss(_Loss):
    """Module form of `shortlist.functional.assume_negative_loss`.

    >>> AssumeNegativeLoss()(torch.zeros(2, 3), torch.tensor([0, 1]))
    tensor(1.3863)
    """

    function = staticmethod(assume_negative_loss)

    def __init__(
        self,
        *,
        weighted: bool = True,
        label_smoothing: float = 0.0,
        weight: Tensor | None = None,
        reduction: str = "mean",
        sync: bool | None = None,
    ) -> None:
        super().__init__(
            weighted=weighted, label_smoothing=label_smoothing, weight=weight, reduction=reduction, sync=sync
        )


class ExpectedPositiveLoss(_Loss):
    """Module form of `shortlist.functional.expected_positive_loss`.

    >>> ExpectedPositiveLoss(k=1.5)(torch.zeros(2, 3), torch.tensor([0, 1]))
    tensor(0.6931)
    """

    function = staticmethod(expected_positive_loss)

    def __init__(
        self,
        k: float,
        *,
        beta: float = 0.01,
        normalize: bool = False,
        weight: Tensor | None = None,
        reduction: str = "mean",
        sync: bool | None = None,
    ) -> None:
        super().__init__(k=k, beta=beta, normalize=normalize, weight=weight, reduction=reduction, sync=sync)


class BinaryLoss(_Loss):
    """Module form of `shortlist.functional.binary_loss`.

    >>> BinaryLoss(pos_weight=2.0)(torch.zeros(1, 2), torch.tensor([[1, 0]]))
    tensor(1.0397)
    """

    function = staticmethod(binary_loss)

    def __init__(
        self, *, pos_weight: Tensor | float | None = None, reduction: str = "mean", sync: bool | None = None
    ) -> None:
        super().__init__(pos_weight=pos_weight, reduction=reduction, sync=sync)


class PartialBinaryLoss(_Loss):
    """Module form of `shortlist.functional.partial_binary_loss`.

    >>> PartialBinaryLoss()(torch.zeros(1, 2), torch.tensor([[1, -1]]))
    tensor(1.1167)
    """

    function = staticmethod(partial_binary_loss)

    def __init__(self, *, boost: float = 5.0, reduction: str = "mean", sync: bool | None = None) -> None:
        super().__init__(boost=boost, reduction=reduction, sync=sync)


class AsymmetricLoss(_Loss):
    """Module form of `shortlist.functional.asymmetric_loss`.

    >>> AsymmetricLoss()(torch.zeros(1, 2), torch.tensor([[1, 0]]))
    tensor(0.1855)
    """

    function = staticmethod(asymmetric_loss)

    def __init__(
        self,
        *,
        gamma_neg: float = 4.0,
        gamma_pos: float = 1.0,
        clip: float = 0.05,
        detach_focus: bool = False,
        reduction: str = "mean",
        sync: bool | None = None,
    ) -> None:
        super().__init__(
            gamma_neg=gamma_neg,
            gamma_pos=gamma_pos,
            clip=clip,
            detach_focus=detach_focus,
            reduction=reduction,
            sync=sync,
        )


class PartialSelectiveLoss(_Loss):
    """Module form of `shortlist.functional.partial_selective_loss`.

    >>> PartialSelectiveLoss(prior=torch.tensor([0.5, 0.1, 0.01]))(torch.zeros(1, 3), torch.tensor([[1, -1, 0]]))
    tensor(0.5199)
    """

    function = staticmethod(partial_selective_loss)

    def __init__(
        self,
        *,
        prior: Tensor | None = None,
        prior_threshold: float = 0.05,
        likelihood_topk: int = 5,
        mode: str = "selective",
        gamma_neg: float = 1.0,
        gamma_pos: float = 0.0,
        gamma_unknown: float = 2.0,
        clip: float = 0.0,
        detach_focus: bool = False,
        reduction: str = "mean",
        sync: bool | None = None,
    ) -> None:
        super().__init__(
            prior=prior,
            prior_threshold=prior_threshold,
            likelihood_topk=likelihood_topk,
            mode=mode,
            gamma_neg=gamma_neg,
            gamma_pos=gamma_pos,
            gamma_unknown=gamma_unknown,
            clip=clip,
            detach_focus=detach_focus,
            reduction=reduction,
            sync=sync,
        )


class MultilabelSoftmaxLoss(_Loss):
    """Module form of `shortlist.functional.multilabel_softmax_loss`.

    >>> MultilabelSoftmaxLoss()(torch.zeros(1, 2), torch.tensor([[1, 0]]))
    tensor(0.6931)
    """

    function = staticmethod(multilabel_softmax_loss)

    def __init__(self, *, reduction: str = "mean", sync: bool | None = None) -> None:
        super().__init__(reduction=reduction, sync=sync)


class LSEPLoss(_Loss):
    """Module form of `shortlist.functional.lsep_loss`.

    >>> LSEPLoss()(torch.zeros(1, 2), torch.tensor([[1, 0]]))
    tensor(0.6931)
    """

    function = staticmethod(lsep_loss)

    def __init__(self, *, reduction: str = "mean", sync: bool | None = None) -> None:
        super().__init__(reduction=reduction, sync=sync)


class WARPLoss(_Loss):
    """Module form of `shortlist.functional.warp_loss`.

    >>> WARPLoss(exact=True)(torch.zeros(1, 2), torch.tensor([[1, 0]]))
    tensor(1.)
    """

    function = staticmethod(warp_loss)

    def __init__(
        self,
        *,
        exact: bool = False,
        generator: torch.Generator | None = None,
        reduction: str = "mean",
        sync: bool | None = None,
    ) -> None:
        super().__init__(exact=exact, generator=generator, reduction=reduction, sync=sync)


class RMLLoss(_Loss):
    """Module form of `shortlist.functional.rml_loss`.

    >>> RMLLoss()(torch.zeros(1, 2), torch.tensor([[1, 0]]))
    tensor(3.)
    """

    function = staticmethod(rml_loss)

    def __init__(
        self, *, ramp: float = -0.8, label_weight: float = 1.0, reduction: str = "mean", sync: bool | None = None
    ) -> None:
        super().__init__(ramp=ramp, label_weight=label_weight, reduction=reduction, sync=sync)
