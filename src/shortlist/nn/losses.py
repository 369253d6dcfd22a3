"""One module per loss. Each keeps the options of its function, which declares them: nothing is said twice.

``forward`` takes what varies by batch: the scores, the target, and optionally ``mask`` and ``sample_weight``.
"""

import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

import torch
from torch import Tensor

from shortlist import functional as losses
from shortlist.labels.sparse_labels import Target

_Options = ParamSpec("_Options")
_PER_BATCH = ("mask", "sample_weight")


class Loss(torch.nn.Module):
    """A function of scores and target with options kept by name.

    Those that are tensors are buffers, so that they follow the module to its device.
    """

    def __init__(self, function: Callable[..., Tensor], options: dict[str, Any]) -> None:
        super().__init__()
        self.function, self._names = function, tuple(options)
        for name, value in options.items():
            if isinstance(value, Tensor):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    @property
    def options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._names}

    def forward(
        self, scores: Tensor, target: Target, *, mask: Tensor | None = None, sample_weight: Tensor | None = None
    ) -> Tensor:
        return self.function(scores, target, mask=mask, sample_weight=sample_weight, **self.options)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.options.items())


def options_of(
    function: Callable[Concatenate[Tensor, Tensor, _Options], Tensor],
) -> Callable[[Callable[[Any], None]], Callable[Concatenate[Any, _Options], None]]:
    """Decorates ``__init__``: it takes the options of ``function``, with their types and defaults, and keeps them.

    To a type checker ``mask`` and ``sample_weight`` are options too; they belong to ``forward``, and are refused here.
    """
    parameters = list(inspect.signature(function).parameters.values())[2:]
    signature = inspect.Signature([p for p in parameters if p.name not in _PER_BATCH])

    def decorate(declared: Callable[[Any], None]) -> Callable[Concatenate[Any, _Options], None]:
        def init(self: Any, /, *args: _Options.args, **kwargs: _Options.kwargs) -> None:
            given = signature.bind(*args, **kwargs)
            given.apply_defaults()
            Loss.__init__(self, function, given.arguments)

        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        init.__signature__ = inspect.Signature([own, *signature.parameters.values()])  # type: ignore[attr-defined]
        init.__name__, init.__qualname__ = "__init__", declared.__qualname__
        init.__doc__ = f"The options of `{function.__name__}`."
        return init

    return decorate


class SmoothTopKLoss(Loss):
    """Module form of `shortlist.functional.smooth_topk_loss`.

    >>> SmoothTopKLoss(k=2)(torch.tensor([[2.0, 1.0, 0.5, -1.0]]), torch.tensor([0]))
    tensor(0.7423)
    """

    @options_of(losses.smooth_topk_loss)
    def __init__(self) -> None: ...


class TopKHingeLoss(Loss):
    """Module form of `shortlist.functional.topk_hinge_loss`.

    >>> TopKHingeLoss(k=2)(torch.tensor([[2.0, 1.0, 0.5, -1.0]]), torch.tensor([3]))
    tensor(2.)
    """

    @options_of(losses.topk_hinge_loss)
    def __init__(self) -> None: ...


class TruncatedEntropyLoss(Loss):
    """Module form of `shortlist.functional.truncated_entropy_loss`.

    >>> TruncatedEntropyLoss(k=2)(torch.tensor([[2.0, 1.0, 0.0, -1.0]]), torch.tensor([1]))
    tensor(0.4076)
    """

    @options_of(losses.truncated_entropy_loss)
    def __init__(self) -> None: ...


class LMLLoss(Loss):
    """Module form of `shortlist.functional.lml_loss`.

    >>> LMLLoss(k=2)(torch.tensor([[2.0, 1.0, 0.0, -1.0]]), torch.tensor([1]))
    tensor(0.4741)
    """

    @options_of(losses.lml_loss)
    def __init__(self) -> None: ...


class NoisedTopKLoss(Loss):
    """Module form of `shortlist.functional.noised_topk_loss`; in evaluation mode no noise is drawn.

    >>> NoisedTopKLoss(k=1).eval()(torch.tensor([[2.0, 1.0, 0.5, -1.0]]), torch.tensor([3]))
    tensor(3.)
    """

    @options_of(losses.noised_topk_loss)
    def __init__(self) -> None: ...

    @property
    def options(self) -> dict[str, Any]:
        return super().options if self.training else {**super().options, "n_samples": 0}


class AverageKLoss(Loss):
    """Module form of `shortlist.functional.average_k_loss`; ``forward(set_scores, proposal_scores, target)``.

    >>> AverageKLoss(k=1.5)(torch.zeros(2, 3), torch.zeros(2, 3), torch.tensor([0, 1]))
    tensor(3.1781)
    """

    def __init__(
        self,
        k: float,
        *,
        alpha: float = 1.0,
        weight: Tensor | None = None,
        reduction: str = "mean",
        sync: bool | None = None,
        soft: bool | None = None,
    ) -> None:
        options = {"k": k, "alpha": alpha, "weight": weight, "reduction": reduction, "sync": sync, "soft": soft}
        super().__init__(losses.average_k_loss, options)

    def forward(  # type: ignore[override]
        self,
        set_scores: Tensor,
        proposal_scores: Tensor,
        target: Target,
        *,
        mask: Tensor | None = None,
        sample_weight: Tensor | None = None,
    ) -> Tensor:
        return losses.average_k_loss(
            set_scores, proposal_scores, target, mask=mask, sample_weight=sample_weight, **self.options
        )


class AssumeNegativeLoss(Loss):
    """Module form of `shortlist.functional.assume_negative_loss`.

    >>> AssumeNegativeLoss()(torch.zeros(2, 3), torch.tensor([0, 1]))
    tensor(1.3863)
    """

    @options_of(losses.assume_negative_loss)
    def __init__(self) -> None: ...


class ExpectedPositiveLoss(Loss):
    """Module form of `shortlist.functional.expected_positive_loss`.

    >>> ExpectedPositiveLoss(k=1.5)(torch.zeros(2, 3), torch.tensor([0, 1]))
    tensor(0.6931)
    """

    @options_of(losses.expected_positive_loss)
    def __init__(self) -> None: ...


class BinaryLoss(Loss):
    """Module form of `shortlist.functional.binary_loss`.

    >>> BinaryLoss(pos_weight=2.0)(torch.zeros(1, 2), torch.tensor([[1, 0]]))
    tensor(1.0397)
    """

    @options_of(losses.binary_loss)
    def __init__(self) -> None: ...


class PartialBinaryLoss(Loss):
    """Module form of `shortlist.functional.partial_binary_loss`.

    >>> PartialBinaryLoss()(torch.zeros(1, 2), torch.tensor([[1, -1]]))
    tensor(1.1167)
    """

    @options_of(losses.partial_binary_loss)
    def __init__(self) -> None: ...


class AsymmetricLoss(Loss):
    """Module form of `shortlist.functional.asymmetric_loss`.

    >>> AsymmetricLoss()(torch.zeros(1, 2), torch.tensor([[1, 0]]))
    tensor(0.1855)
    """

    @options_of(losses.asymmetric_loss)
    def __init__(self) -> None: ...


class PartialSelectiveLoss(Loss):
    """Module form of `shortlist.functional.partial_selective_loss`.

    >>> PartialSelectiveLoss(prior=torch.tensor([0.5, 0.1, 0.01]))(torch.zeros(1, 3), torch.tensor([[1, -1, 0]]))
    tensor(0.5199)
    """

    @options_of(losses.partial_selective_loss)
    def __init__(self) -> None: ...


class TwoWayLoss(Loss):
    """Module form of `shortlist.functional.two_way_loss`.

    >>> TwoWayLoss()(torch.tensor([[2.0, -1.0]]), torch.tensor([[1, 0]]))
    tensor(0.0486)
    """

    @options_of(losses.two_way_loss)
    def __init__(self) -> None: ...


class MultilabelSoftmaxLoss(Loss):
    """Module form of `shortlist.functional.multilabel_softmax_loss`.

    >>> MultilabelSoftmaxLoss()(torch.zeros(1, 2), torch.tensor([[1, 0]]))
    tensor(0.6931)
    """

    @options_of(losses.multilabel_softmax_loss)
    def __init__(self) -> None: ...


class LSEPLoss(Loss):
    """Module form of `shortlist.functional.lsep_loss`.

    >>> LSEPLoss()(torch.zeros(1, 2), torch.tensor([[1, 0]]))
    tensor(0.6931)
    """

    @options_of(losses.lsep_loss)
    def __init__(self) -> None: ...


class WARPLoss(Loss):
    """Module form of `shortlist.functional.warp_loss`.

    >>> WARPLoss(exact=True)(torch.zeros(1, 2), torch.tensor([[1, 0]]))
    tensor(1.)
    """

    @options_of(losses.warp_loss)
    def __init__(self) -> None: ...


class RMLLoss(Loss):
    """Module form of `shortlist.functional.rml_loss`.

    >>> RMLLoss()(torch.zeros(1, 2), torch.tensor([[1, 0]]))
    tensor(3.)
    """

    @options_of(losses.rml_loss)
    def __init__(self) -> None: ...
