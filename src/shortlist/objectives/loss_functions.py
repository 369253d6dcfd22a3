"""The objectives that are one linear head and one loss function. Their options are the function's own."""

import functools
import inspect
import operator
import typing
from collections.abc import Callable
from dataclasses import asdict, field, fields, make_dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist import functional as losses
from shortlist.checks import check_indices, check_number, check_sample_weight, check_scores, check_shares
from shortlist.distributed import sum_over_processes, world_size
from shortlist.errors import ShortlistError
from shortlist.links import Link
from shortlist.objectives.base import LARGE_SCORES, Accepts, LinearObjective
from shortlist.objectives.imbalance import Imbalance
from shortlist.objectives.registry import register

# what the training loop decides, and what is a tensor
_NOT_OPTIONS = {"scores", "set_scores", "proposal_scores", "target", "mask", "weight", "sample_weight", "reduction"}
_NOT_OPTIONS |= {"sync", "soft", "generator", "class_counts", "prior"}
_DEFAULT_K = 5


def config_of(function: Callable[..., Tensor], module: str, owner: str, **more: tuple[Any, Any]) -> type[Any]:
    """A frozen dataclass of the function's options and defaults; ``more`` adds fields as (type, default).

    A k without a default gets 5: the size of sets in most published tables. ``module`` and ``owner`` say where pickle
    finds it.
    """
    hints = typing.get_type_hints(function)
    columns = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in _NOT_OPTIONS and parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            if name not in hints:
                raise ShortlistError(f"the option {name!r} of {function.__name__} needs a type, such as {name}: float")
            default = _DEFAULT_K if parameter.default is inspect.Parameter.empty else parameter.default
            kinds = [kind for kind in typing.get_args(hints[name]) or (hints[name],) if kind is not Tensor]
            columns.append((name, functools.reduce(operator.or_, kinds), field(default=default)))
    columns += [(name, kind, field(default=default)) for name, (kind, default) in more.items()]
    config = make_dataclass("Config", columns, frozen=True)
    config.__module__, config.__qualname__ = module, f"{owner}.Config"
    return config


class LossFunctionObjective(LinearObjective):
    """A linear head trained by one function of scores and target: a subclass names it, and has its options."""

    function: ClassVar[Callable[..., Tensor]]
    takes_sparse = True
    balances = ("class-weights", "logit-adjustment")

    def __init_subclass__(cls) -> None:
        if "function" in vars(cls):
            cls.takes_weights = "sample_weight" in inspect.signature(cls.function).parameters
        if "function" in vars(cls) and "Config" not in vars(cls):
            cls.Config = config_of(cls.function, cls.__module__, cls.__qualname__)  # type: ignore[misc]
        super().__init_subclass__()

    def __init__(self, in_features: int, num_labels: int, config: Any = None, **training_set: Any) -> None:
        super().__init__(in_features, num_labels, config, **training_set)
        self.keep_counts()
        self._try_options()

    def keep_counts(self) -> None:
        """Keep, as buffers, what the loss needs to know of the training set."""

    def score_loss(self, scores: Tensor, target: Tensor, weights: Tensor | None = None) -> Tensor:
        self.check_options()
        options = self.options() | self.weighing(target) | ({} if weights is None else {"sample_weight": weights})
        return type(self).function(scores, target, **options)

    def by_blocks(self, rows: int) -> bool:
        large = rows * self.num_labels > LARGE_SCORES and self.row_weights is None
        return large and {"reduction", "sync"} <= inspect.signature(type(self).function).parameters.keys()

    def loss(self, features: Tensor, target: Tensor, index: Tensor | None = None) -> Tensor:
        if self.row_weights is not None and index is not None:
            weights = self.row_weights[index.cpu()].to(features.device)
            return self.score_loss(self.shifted(self(features)), target, weights) * weights.mean()
        if not self.by_blocks(len(features)):
            return super().loss(features, target, index)
        self.check_options()
        options = self.options() | self.weighing(target)
        options["class_weight"] = options.pop("weight", None)
        return self.loss_by_blocks(type(self).function, features, target, **options)

    def check_options(self) -> None:
        """Called before a loss is computed: raise where something it needs was not given."""

    def balances_of(self, target: Tensor) -> tuple[Imbalance, ...]:
        taken = inspect.signature(type(self).function).parameters
        own = getattr(self.config, "pos_weight", None)  # what the config says is not weighed again
        weighed = "weight" in taken if target.ndim == 1 else "pos_weight" in taken and own is None
        return self.balances if weighed else ("logit-adjustment",)

    def weighing(self, target: Tensor) -> dict[str, Tensor]:
        """How the function is told the classes' weights, where there are any."""
        if self.weight is None:
            return {}
        return {"weight" if target.ndim == 1 else "pos_weight": self.weight}

    def options(self) -> dict[str, Any]:
        """What the function is called with besides scores and target."""
        return asdict(self.config)

    def _try_options(self) -> None:
        whole = [field.name for field in fields(self.config) if field.name == "k" and field.type is int]
        if whole and self.config.k >= self.num_labels:  # some losses would be 0 for ever
            raise ShortlistError(
                f"k of objective {self.name!r} must be at most {self.num_labels - 1}, got {self.config.k}: "
                f"there are {self.num_labels} labels, and all of them together are always right"
            )
        if self.head.weight.is_meta:  # built for its shapes alone: there are no numbers to try
            return
        shape = (1,) if "indices" in self.accepts else (1, self.num_labels)
        options = dict(self.options())
        if "sync" in inspect.signature(type(self).function).parameters:
            options["sync"] = False
        with self.options_checked():
            type(self).function(torch.zeros(1, self.num_labels), torch.zeros(shape, dtype=torch.int64), **options)


def cross_entropy_loss(
    scores: Tensor,
    target: Tensor,
    *,
    label_smoothing: float = 0.0,
    weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
    sync: bool | None = None,
) -> Tensor:
    """Softmax cross-entropy, a mean over the rows with a known label (of all processes); 0 where there is none.

    Shares of the labels (soft targets) give the expected cross-entropy of a label drawn by them.
    """
    check_scores(scores)
    check_number(label_smoothing, 0, 1, "label_smoothing must be between 0 and 1")
    weight = None if weight is None else weight.to(scores.dtype)
    if target.is_floating_point() and target.shape == scores.shape:
        shares = check_shares(scores, target)
        known = shares[..., 0] >= 0
        rows = F.cross_entropy(scores, shares.clamp(min=0), weight, label_smoothing=label_smoothing, reduction="none")
        rows = torch.where(known, rows, 0.0)
    else:
        target = check_indices(scores, target)
        known, how = target >= 0, "sum" if sample_weight is None else "none"
        rows = F.cross_entropy(scores, target, weight, ignore_index=-1, label_smoothing=label_smoothing, reduction=how)
    world, counted, least = world_size(sync), known, 1.0
    each = check_sample_weight(scores, sample_weight)
    if each is not None:
        rows, counted, least = rows * each, known * each, 1e-30
    return world * rows.sum() / sum_over_processes(counted.sum(), world).clamp(min=least)


class TopKObjective(LossFunctionObjective):
    """One label per row, to be among the first k."""

    accepts: ClassVar[Accepts] = ("indices",)
    one_positive = True
    link = "softmax"
    monitor = "topk-accuracy"


class SeveralTopKObjective(TopKObjective):
    """The same, where several labels of a row may be present."""

    accepts = ("indices", "label-matrix")
    one_positive = False


class SinglePositiveObjective(LossFunctionObjective):
    """One label per row was recorded, others may apply."""

    accepts = ("indices", "label-matrix")
    one_positive = True
    link = "softmax"
    monitor = "average-k-accuracy"


class LabelMatrixObjective(LossFunctionObjective):
    """Several labels per row."""

    accepts = ("label-matrix",)
    link: ClassVar[Link] = "sigmoid"
    monitor = "mean-average-precision"


@register
class CrossEntropy(TopKObjective):
    """A linear head trained by `cross_entropy_loss`."""

    name, function = "cross-entropy", staticmethod(cross_entropy_loss)

    def by_blocks(self, rows: int) -> bool:
        large = rows * self.num_labels > LARGE_SCORES and self.row_weights is None
        return large and not self.config.label_smoothing

    def loss(self, features: Tensor, target: Tensor, index: Tensor | None = None) -> Tensor:
        if not self.by_blocks(len(features)):
            return super().loss(features, target, index)
        options = {"k": 1, "alpha": 0.0, "class_weight": self.weight, "reduction": "sum"}  # so it is cross-entropy
        total = self.loss_by_blocks(losses.smooth_topk_loss, features, target, **options)
        known = target >= 0 if target.ndim == 1 else target[:, 0] >= 0
        return total / sum_over_processes(known.sum(), world_size(None)).clamp(min=1)


@register
class SmoothTopK(TopKObjective):
    """A linear head trained by `smooth_topk_loss`."""

    name, function = "smooth-topk", staticmethod(losses.smooth_topk_loss)


@register
class TopKHinge(TopKObjective):
    """A linear head trained by `topk_hinge_loss`."""

    name, function = "topk-hinge", staticmethod(losses.topk_hinge_loss)
    only_ranks = True


@register
class TruncatedEntropy(SeveralTopKObjective):
    """A linear head trained by `truncated_entropy_loss`."""

    name, function = "truncated-entropy", staticmethod(losses.truncated_entropy_loss)


@register
class LML(SeveralTopKObjective):
    """A linear head trained by `lml_loss`."""

    name, function = "lml", staticmethod(losses.lml_loss)


@register
class AssumeNegative(SinglePositiveObjective):
    """A linear head trained by `assume_negative_loss`."""

    name, function = "assume-negative", staticmethod(losses.assume_negative_loss)


@register
class ExpectedPositive(SinglePositiveObjective):
    """A linear head trained by `expected_positive_loss`."""

    name, function = "expected-positive", staticmethod(losses.expected_positive_loss)


@register
class Binary(LabelMatrixObjective):
    """A linear head trained by `binary_loss`."""

    name, function = "binary", staticmethod(losses.binary_loss)


@register
class TwoWay(LabelMatrixObjective):
    """A linear head trained by `two_way_loss`."""

    name, function = "two-way", staticmethod(losses.two_way_loss)


@register
class Asymmetric(LabelMatrixObjective):
    """A linear head trained by `asymmetric_loss`."""

    name, function = "asymmetric", staticmethod(losses.asymmetric_loss)


@register
class WARP(LabelMatrixObjective):
    """A linear head trained by `warp_loss`."""

    name, function = "warp", staticmethod(losses.warp_loss)
    only_ranks = True


@register
class LSEP(LabelMatrixObjective):
    """A linear head trained by `lsep_loss`."""

    name, function = "lsep", staticmethod(losses.lsep_loss)
    only_ranks = True


@register
class RML(LabelMatrixObjective):
    """A linear head trained by `rml_loss`."""

    name, function = "rml", staticmethod(losses.rml_loss)
    only_ranks = True


@register
class MultilabelSoftmax(LabelMatrixObjective):
    """A linear head trained by `multilabel_softmax_loss`."""

    name, function = "multilabel-softmax", staticmethod(losses.multilabel_softmax_loss)
    only_ranks = True
    link = "softmax"


@register
class PartialBinary(LabelMatrixObjective):
    """A linear head trained by `partial_binary_loss`."""

    name, function = "partial-binary", staticmethod(losses.partial_binary_loss)
