"""Objectives by name: a name and options -> an objective; with errors that say what to do."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from torch import Tensor

from shortlist import verticals
from shortlist.errors import ShortlistError
from shortlist.labels.sparse_labels import SparseLabels, dense_labels
from shortlist.links import check_link
from shortlist.metrics.named import MANY_LABELS
from shortlist.objectives.base import Objective
from shortlist.options import check_call, errors_at
from shortlist.registry import Registry
from shortlist.tasks import task_of

_T = TypeVar("_T", bound=type[Objective])


def register(objective: _T) -> _T:
    """Class decorator: makes an objective known under its ``name``.

    >>> from dataclasses import dataclass
    >>> import torch.nn.functional as F
    >>> from shortlist.objectives import LinearObjective, build
    >>> @register
    ... class Squared(LinearObjective):
    ...     name, accepts, link, monitor = "squared", ("label-matrix",), "none", "mean-average-precision"
    ...
    ...     @dataclass(frozen=True)
    ...     class Config:
    ...         scale: float = 1.0
    ...
    ...     def score_loss(self, scores, target):
    ...         return self.config.scale * F.mse_loss(scores, target.float())
    >>> build("squared", {"scale": 0.5}, in_features=4, num_labels=3).config
    Squared.Config(scale=0.5)
    >>> del OBJECTIVES["squared"]
    """
    check_class(getattr(objective, "name", ""), objective)
    known = OBJECTIVES.get(objective.name)
    if known is not None and (known.__module__, known.__qualname__) != (objective.__module__, objective.__qualname__):
        raise ShortlistError(f"objective name {objective.name!r} is taken by {known.__module__}.{known.__qualname__}")
    OBJECTIVES[objective.name] = objective
    return objective


def check_class(name: str, objective: Any) -> None:
    """An `Objective` subclass of this name with every class attribute set, or an error that names the missing one."""
    if not (isinstance(objective, type) and issubclass(objective, Objective)):
        raise ShortlistError(f"an objective is a subclass of shortlist.objectives.Objective, got {objective!r}")
    for attribute in ("name", "accepts", "link", "monitor"):
        if not hasattr(objective, attribute):
            raise ShortlistError(
                f"the objective class {objective.__qualname__} lacks the class attribute {attribute!r}"
            )
    title = objective.__qualname__
    kinds = set(objective.accepts)
    of_task = len(kinds) == 1 and kinds <= set(verticals.TASKS)
    if not of_task and not (kinds and kinds <= {"indices", "label-matrix"}):
        alone = " or ".join(map(repr, verticals.TASKS))
        raise ShortlistError(
            f"{title}.accepts must hold 'indices', 'label-matrix' or both, or {alone} alone, got {objective.accepts!r}"
        )
    check_link(objective.link, f"{title}.link")
    if not dataclasses.is_dataclass(objective.Config):
        raise ShortlistError(f"{title}.Config must be a dataclass (frozen, every field with a default)")
    if ":" not in name and objective.name != name:
        raise ShortlistError(f"the objective {name!r} is {title}, whose name is {objective.name!r}: give it one name")


OBJECTIVES: Registry[type[Objective]] = Registry("objective", verticals.OBJECTIVES, check_class)


def make_config(objective: type[Objective], options: Mapping[str, Any] | None = None, place: str = "") -> Any:
    """The objective's ``Config`` with these options; an unknown name or a value of the wrong type is an error.

    >>> make_config(OBJECTIVES["smooth-topk"], {"k": 3}).k
    3
    >>> make_config(OBJECTIVES["smooth-topk"], {"tua": 3})
    Traceback (most recent call last):
    shortlist.ShortlistError: smooth-topk.tua: there is no such key; did you mean 'tau'?; allowed here: k, tau, alpha
    """
    place = place or objective.name
    for old, new in objective.renamed.items():
        if old in (options or {}):
            raise ShortlistError(f"{place}.{old} is now called {new}: give {new} in its place, with the same meaning")
    checked = check_call(place, objective.Config, options or {})
    with errors_at(place):
        return objective.Config(**checked)


def build(
    name: str,
    options: Mapping[str, Any] | None = None,
    *,
    in_features: int,
    num_labels: int,
    num_examples: int | None = None,
    class_counts: Tensor | None = None,
    train_target: Tensor | SparseLabels | None = None,
    label_names: Sequence[str] | None = None,
    allow_import: Sequence[str] = (),
) -> Objective:
    """The objective of this name with these options; a ``train_target`` that it does not accept is an error.

    >>> build("average-k", {"k": 2.5}, in_features=8, num_labels=5).link
    'softmax'
    """
    objective = OBJECTIVES.find(name, allow_import=allow_import)
    config = make_config(objective, options)
    if train_target is not None:
        check_target(objective, train_target)
        if not objective.takes_sparse:
            train_target = dense_labels(train_target)
    return objective(
        in_features, num_labels, config,
        num_examples=num_examples, class_counts=class_counts, train_target=train_target, label_names=label_names,
    )  # fmt: skip


def check_target(objective: type[Objective], target: Tensor | SparseLabels) -> None:
    """Raise a ``ValueError`` that proposes what to do where the objective cannot learn from this target.

    >>> import torch
    >>> check_target(OBJECTIVES["smooth-topk"], torch.tensor([3, 1]))
    >>> check_target(OBJECTIVES["smooth-topk"], torch.tensor([[0, 1]]))
    Traceback (most recent call last):
    shortlist.ShortlistError: objective 'smooth-topk' takes class indices, got a label matrix of shape (1, 2): ...
    """
    check_kind(objective)
    if target.ndim not in (1, 2):
        raise ShortlistError(
            f"target must be class indices (N,) or a label matrix (N, L), got shape {tuple(target.shape)}"
        )
    kind = "indices" if target.ndim == 1 else "label-matrix"
    if kind not in objective.accepts:
        if kind == "indices":
            takes, got = "a label matrix", "class indices"
            advice = "convert them with shortlist.labels.from_indices(target, num_labels)"
        else:
            takes, got = "class indices", "a label matrix"
            advice = "if every row has exactly one present label, (target == 1).int().argmax(1) gives its index"
        raise ShortlistError(
            f"objective {objective.name!r} takes {takes}, got {got} of shape {tuple(target.shape)}: "
            f"use one of {', '.join(_accepting(target))}; or {advice}"
        )
    if kind == "label-matrix" and objective.one_positive:
        several = (target == 1).sum(1) > 1
        if bool(several.any()):
            row = int(several.nonzero()[0])
            raise ShortlistError(
                f"objective {objective.name!r} takes at most one present label per row, row {row} has "
                f"{int((target[row : row + 1] == 1).sum())}: use one of {', '.join(_accepting(target))}"
            )


def check_kind(objective: type[Objective], kind: str = "features") -> None:
    """Raise a ``ValueError`` where an objective of a vertical room meets other data, or another objective meets its.

    >>> check_kind(OBJECTIVES["lml"], "scenes")
    Traceback (most recent call last):
    shortlist.ShortlistError: objective 'lml' takes features or images, the data are scenes: use one of ...
    """
    takes = next((task for task in verticals.TASKS if task in objective.accepts), None)
    has = kind if kind in verticals.TASKS else None
    if takes == has:
        return
    task = None if takes is None else task_of(takes)
    what = "features or images" if task is None else f"{takes} (readers {', '.join(task.readers)})"
    if has is not None:
        others = ", ".join(name for name, other in OBJECTIVES.items() if has in other.accepts)
        raise ShortlistError(f"objective {objective.name!r} takes {what}, the data are {has}: use one of {others}")
    raise ShortlistError(
        f"objective {objective.name!r} takes {what}, the data are features or images: use {objective.plain}"
    )


def default_monitor(objective: type[Objective], target: Tensor | SparseLabels) -> str:
    """The objective's metric, or mean average precision where several labels of a row are present; NDCG of the first 5
    in its place where there are very many labels.

    >>> import torch
    >>> default_monitor(OBJECTIVES["lml"], torch.tensor([[1, 1, 0]]))
    'mean-average-precision'
    """
    several = target.ndim == 2 and bool(((target == 1).sum(1) > 1).any())
    monitor = "mean-average-precision" if several else objective.monitor
    many = target.ndim == 2 and target.shape[1] >= MANY_LABELS
    return "ndcg@5" if many and monitor == "mean-average-precision" else monitor


def _accepting(target: Tensor | SparseLabels) -> list[str]:
    """The names of the objectives that take such a target."""
    several = target.ndim == 2 and bool(((target == 1).sum(1) > 1).any())
    kind = "indices" if target.ndim == 1 else "label-matrix"
    return [name for name, o in OBJECTIVES.items() if kind in o.accepts and not (several and o.one_positive)]
