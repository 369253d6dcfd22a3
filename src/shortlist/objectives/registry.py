"""The registry: a name and options -> an objective; with errors that say what to do."""

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from torch import Tensor

from shortlist import verticals
from shortlist.errors import ShortlistError, nearest
from shortlist.links import check_link
from shortlist.models.allowed_import import import_allowed
from shortlist.objectives.base import Objective
from shortlist.tasks import task_of
from shortlist.verticals import Table

OBJECTIVES: Table[type[Objective]] = Table(elsewhere=verticals.OBJECTIVES)
GROUP = "shortlist.objectives"  # of entry points
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
    check_class(objective)
    known = OBJECTIVES.get(objective.name)
    if known is not None and (known.__module__, known.__qualname__) != (objective.__module__, objective.__qualname__):
        raise ShortlistError(f"objective name {objective.name!r} is taken by {known.__module__}.{known.__qualname__}")
    OBJECTIVES[objective.name] = objective
    return objective


def check_class(objective: Any) -> None:
    """An `Objective` subclass with every class attribute set, or an error that names the missing one."""
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


def objective_class(name: str, *, allow_import: Sequence[str] = ()) -> type[Objective]:
    """The class of a registered name, or of ``module:Class`` where that module is in ``allow_import``.

    Installed packages add names by entry points of the group ``shortlist.objectives``.
    """
    if name in OBJECTIVES:
        return OBJECTIVES[name]
    if ":" in name:
        found = import_allowed(name, allow_import, "objective")
        check_class(found)
        return typing.cast(type[Objective], found)
    others = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name in others:
        return _registered(others[name])
    known = list(OBJECTIVES | others)
    raise ShortlistError(f"there is no objective {name!r}{nearest(name, known)}; there are {', '.join(known)}")


def _registered(entry: EntryPoint) -> type[Objective]:
    """Another package's objective, known from now on: its entry point has the name of the class."""
    objective = entry.load()
    check_class(objective)
    if objective.name != entry.name:
        raise ShortlistError(
            f"the entry point {entry.name!r} of {GROUP} leads to {entry.value}, whose name is {objective.name!r}: "
            f"the two must be the same"
        )
    return register(typing.cast(type[Objective], objective))


def make_config(objective: type[Objective], options: Mapping[str, Any] | None = None) -> Any:
    """The objective's ``Config`` with these options; an unknown name or a value of the wrong type is an error.

    >>> make_config(OBJECTIVES["smooth-topk"], {"k": 3}).k
    3
    >>> make_config(OBJECTIVES["smooth-topk"], {"tua": 3})
    Traceback (most recent call last):
    shortlist.ShortlistError: objective 'smooth-topk' has no option 'tua'; did you mean 'tau'?; it has k, tau, alpha
    """
    types_of = typing.get_type_hints(objective.Config)
    names = [field.name for field in dataclasses.fields(objective.Config)]
    values = {}
    for key, value in (options or {}).items():
        if key not in names:
            has = f"it has {', '.join(names)}" if names else "it has none"
            raise ShortlistError(f"objective {objective.name!r} has no option {key!r}{nearest(key, names)}; {has}")
        value = tuple(value) if isinstance(value, list) else value
        if not _fits(value, types_of[key]):
            wanted = _in_words(types_of[key])
            raise ShortlistError(f"option {key!r} of objective {objective.name!r} must be {wanted}, got {value!r}")
        values[key] = value
    return objective.Config(**values)


def build(
    name: str,
    options: Mapping[str, Any] | None = None,
    *,
    in_features: int,
    num_labels: int,
    num_examples: int | None = None,
    class_counts: Tensor | None = None,
    train_target: Tensor | None = None,
    label_names: Sequence[str] | None = None,
    allow_import: Sequence[str] = (),
) -> Objective:
    """The objective of this name with these options; a ``train_target`` that it does not accept is an error.

    >>> build("average-k", {"k": 2.5}, in_features=8, num_labels=5).link
    'softmax'
    """
    objective = objective_class(name, allow_import=allow_import)
    config = make_config(objective, options)
    if train_target is not None:
        check_target(objective, train_target)
    return objective(
        in_features, num_labels, config,
        num_examples=num_examples, class_counts=class_counts, train_target=train_target, label_names=label_names,
    )  # fmt: skip


def check_target(objective: type[Objective], target: Tensor) -> None:
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
                f"{int((target[row] == 1).sum())}: use one of {', '.join(_accepting(target))}"
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


def default_monitor(objective: type[Objective], target: Tensor) -> str:
    """The objective's metric, or mean average precision where several labels of a row are present.

    >>> import torch
    >>> default_monitor(OBJECTIVES["lml"], torch.tensor([[1, 1, 0]]))
    'mean-average-precision'
    """
    several = target.ndim == 2 and bool(((target == 1).sum(1) > 1).any())
    return "mean-average-precision" if several else objective.monitor


def _accepting(target: Tensor) -> list[str]:
    """The names of the objectives that take such a target."""
    several = target.ndim == 2 and bool(((target == 1).sum(1) > 1).any())
    kind = "indices" if target.ndim == 1 else "label-matrix"
    return [name for name, o in OBJECTIVES.items() if kind in o.accepts and not (several and o.one_positive)]


def _in_words(kind: Any) -> str:
    if typing.get_origin(kind) is typing.Literal:
        return "one of " + ", ".join(map(repr, typing.get_args(kind)))
    return kind.__name__ if isinstance(kind, type) and not typing.get_args(kind) else str(kind)


def _fits(value: Any, wanted: Any) -> bool:
    """Is the value of this type? A whole number is a float too; True is not a number."""
    if typing.get_origin(wanted) in (types.UnionType, typing.Union):
        return any(_fits(value, one) for one in typing.get_args(wanted))
    if typing.get_origin(wanted) is typing.Literal:
        return value in typing.get_args(wanted)
    if typing.get_origin(wanted) is tuple:
        return isinstance(value, tuple) and all(_fits(one, typing.get_args(wanted)[0]) for one in value)
    if wanted is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, wanted)
