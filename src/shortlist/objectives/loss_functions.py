"""The objectives that are one linear head and one loss function: a table. Their options are the function's own."""

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
from shortlist.checks import check_indices, check_scores
from shortlist.distributed import sum_over_processes, world_size
from shortlist.errors import ShortlistError
from shortlist.links import Link
from shortlist.objectives.base import Accepts, LinearObjective
from shortlist.objectives.imbalance import Imbalance
from shortlist.objectives.registry import register

# what the training loop decides, and what is a tensor
_NOT_OPTIONS = {"scores", "set_scores", "proposal_scores", "target", "mask", "weight", "sample_weight", "reduction"}
_NOT_OPTIONS |= {"sync", "generator", "class_counts", "prior"}
_DEFAULT_K = 5


def config_of(function: Callable[..., Tensor], **more: tuple[Any, Any]) -> type[Any]:
    """A frozen dataclass of the function's options and defaults; ``more`` adds fields as (type, default).

    A k without a default gets 5: the size of sets in most published tables.
    """
    hints = typing.get_type_hints(function)
    columns = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in _NOT_OPTIONS:
            default = _DEFAULT_K if parameter.default is inspect.Parameter.empty else parameter.default
            kinds = [kind for kind in typing.get_args(hints[name]) or (hints[name],) if kind is not Tensor]
            columns.append((name, functools.reduce(operator.or_, kinds), field(default=default)))
    columns += [(name, kind, field(default=default)) for name, (kind, default) in more.items()]
    config = make_dataclass("Config", columns, frozen=True)
    config.__module__ = __name__
    return config


class LossFunctionObjective(LinearObjective):
    """A linear head trained by one function of scores and target."""

    function: ClassVar[Callable[..., Tensor]]
    balances = ("class-weights", "logit-adjustment")

    def __init__(self, in_features: int, num_labels: int, config: Any = None, **training_set: Any) -> None:
        super().__init__(in_features, num_labels, config, **training_set)
        self.keep_counts()
        self._try_options()

    def keep_counts(self) -> None:
        """Keep, as buffers, what the loss needs to know of the training set."""

    def score_loss(self, scores: Tensor, target: Tensor) -> Tensor:
        return type(self).function(scores, target, **{**self.options(), **self.weighing(target)})

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
    sync: bool | None = None,
) -> Tensor:
    """Softmax cross-entropy, a mean over the rows with a known label (of all processes); 0 where there is none."""
    check_scores(scores)
    check_indices(scores, target)
    if not 0 <= label_smoothing <= 1:
        raise ShortlistError(f"label_smoothing must be between 0 and 1, got {label_smoothing!r}")
    target = target.long()
    weight = None if weight is None else weight.to(scores.dtype)
    total = F.cross_entropy(
        scores, target, weight, ignore_index=-1, label_smoothing=label_smoothing, reduction="sum"
    )
    world = world_size(sync)
    return world * total / sum_over_processes((target >= 0).sum(), world).clamp(min=1)


_INDICES: Accepts = ("indices",)
_MATRIX: Accepts = ("label-matrix",)
_BOTH: Accepts = ("indices", "label-matrix")
_TOP_K, _AVERAGE_K, _MAP = "topk-accuracy", "average-k-accuracy", "mean-average-precision"

# name, loss, targets, at most one present label per row, link, monitor
_TABLE: list[tuple[str, Callable[..., Tensor], Accepts, bool, Link, str]] = [
    ("cross-entropy", cross_entropy_loss, _INDICES, True, "softmax", _TOP_K),
    ("smooth-topk", losses.smooth_topk_loss, _INDICES, True, "softmax", _TOP_K),
    ("topk-hinge", losses.topk_hinge_loss, _INDICES, True, "softmax", _TOP_K),
    ("truncated-entropy", losses.truncated_entropy_loss, _BOTH, False, "softmax", _TOP_K),
    ("lml", losses.lml_loss, _BOTH, False, "softmax", _TOP_K),
    ("assume-negative", losses.assume_negative_loss, _BOTH, True, "softmax", _AVERAGE_K),
    ("expected-positive", losses.expected_positive_loss, _BOTH, True, "softmax", _AVERAGE_K),
    ("binary", losses.binary_loss, _MATRIX, False, "sigmoid", _MAP),
    ("two-way", losses.two_way_loss, _MATRIX, False, "sigmoid", _MAP),
    ("asymmetric", losses.asymmetric_loss, _MATRIX, False, "sigmoid", _MAP),
    ("warp", losses.warp_loss, _MATRIX, False, "sigmoid", _MAP),
    ("lsep", losses.lsep_loss, _MATRIX, False, "sigmoid", _MAP),
    ("rml", losses.rml_loss, _MATRIX, False, "sigmoid", _MAP),
    ("multilabel-softmax", losses.multilabel_softmax_loss, _MATRIX, False, "softmax", _MAP),
    ("partial-binary", losses.partial_binary_loss, _MATRIX, False, "sigmoid", _MAP),
]

_RANKING = {"topk-hinge", "warp", "lsep", "rml", "multilabel-softmax"}  # they compare labels, and set no level


def _objective(
    name: str, function: Callable[..., Tensor], accepts: Accepts, one_positive: bool, link: Link, monitor: str
) -> type[LossFunctionObjective]:
    title = "".join(word.capitalize() for word in name.split("-"))
    body = {
        "__doc__": f"A linear head trained by `{function.__name__}`.",
        "__module__": __name__,
        "name": name,
        "function": staticmethod(function),
        "accepts": accepts,
        "one_positive": one_positive,
        "link": link,
        "monitor": monitor,
        "only_ranks": name in _RANKING,
        "Config": config_of(function),
    }
    return type(title, (LossFunctionObjective,), body)


for _row in _TABLE:
    register(_objective(*_row))
