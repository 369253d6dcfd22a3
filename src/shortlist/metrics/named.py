"""The metrics of scores by name, for early stopping and for the record of every epoch: ``topk-accuracy@5``."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from shortlist import verticals
from shortlist.errors import ShortlistError, nearest
from shortlist.labels.counts import usual_k
from shortlist.metrics import functional as M
from shortlist.verticals import Table

# name -> (scores, target, k, link) -> value. Higher is better in all of them.
_AT_K: dict[str, Callable[..., Tensor]] = {
    "topk-accuracy": lambda scores, target, k, link: M.top_k_accuracy(scores, target, k),
    "average-k-accuracy": lambda scores, target, k, link: M.average_k_accuracy(scores, target, k, link=link),
    "precision": lambda scores, target, k, link: M.precision_at_k(scores, target, k),
    "recall": lambda scores, target, k, link: M.recall_at_k(scores, target, k),
    "ndcg": lambda scores, target, k, link: M.ndcg_at_k(scores, target, k),
}
_PLAIN: dict[str, Callable[..., Tensor]] = {
    "mean-average-precision": lambda scores, target, link: M.mean_average_precision(scores, target),
    "mean-average-precision-sample": lambda scores, target, link: M.mean_average_precision(
        scores, target, average="sample"
    ),
}
# of the tasks of vertical rooms, all of them at k: task -> name -> (scores, answers, k) -> value
_OF_TASKS: dict[str, Table[Callable[[Tensor, Any, int], Tensor]]] = {
    task: Table(elsewhere=names) for task, names in verticals.METRICS.items()
}
_TASK_OF = {name: task for task, names in _OF_TASKS.items() for name in names}
NAMES = (*(f"{name}@k" for name in _AT_K), *_PLAIN, *(f"{name}@k" for name in _TASK_OF))


def check_metric(name: str, num_labels: int | None = None, kind: str | None = None) -> str:
    """The name, if there is such a metric; k may not be more than the number of labels. ``kind``: it must be one for
    inputs of this kind.

    >>> check_metric("topk-accuracy@5")
    'topk-accuracy@5'
    >>> check_metric("topk-acuracy@5")
    Traceback (most recent call last):
    shortlist.ShortlistError: there is no metric 'topk-acuracy@5'; did you mean 'topk-accuracy@k'?; there are ...
    """
    base, at, k = name.partition("@")
    if base in _PLAIN and not at:
        _check_kind(name, base, kind)
        return name
    if base not in _AT_K and base not in _TASK_OF:
        raise ShortlistError(f"there is no metric {name!r}{nearest(name, NAMES)}; there are {', '.join(NAMES)}")
    value = _number(k)
    whole = base != "average-k-accuracy"
    if value is None or value <= 0 or (whole and value != int(value)):
        number = "a whole number" if whole else "a number"
        raise ShortlistError(f"the metric {name!r} needs {number} after @, such as {base}@5")
    _check_kind(name, base, kind)
    if num_labels is not None and base not in _TASK_OF and value > num_labels:
        raise ShortlistError(f"the metric {name!r} asks for more labels than the {num_labels} there are")
    return name


def _check_kind(name: str, base: str, kind: str | None) -> None:
    if kind is not None and _TASK_OF.get(base) != (kind if kind in _OF_TASKS else None):
        own = [f"{name}@k" for name in _OF_TASKS.get(kind, ())]
        allowed = own or [name for name in NAMES if name.removesuffix("@k") not in _TASK_OF]
        raise ShortlistError(f"the metric {name!r} is not for {kind}: use one of {', '.join(allowed)}")


def measure(name: str, scores: Tensor, target: Any, link: str) -> float:
    """The metric's value on these scores.

    >>> import torch
    >>> measure("topk-accuracy@1", torch.eye(3), torch.tensor([0, 1, 1]), "softmax")
    0.6666666865348816
    """
    base, _, k = check_metric(name).partition("@")
    if base in _PLAIN:
        return float(_PLAIN[base](scores, target, link))
    if base in _TASK_OF:
        return float(_OF_TASKS[_TASK_OF[base]][base](scores, target, int(float(k))))
    value = float(k)
    return float(_AT_K[base](scores, target, int(value) if value == int(value) else value, link))


def usual_metrics(single: bool, num_labels: int, k: float | None) -> list[str]:
    """What to report where nothing is asked for: top-1, top-k and average-k accuracy, or mean average precision."""
    if not single:
        return ["mean-average-precision", "mean-average-precision-sample"]
    k = min(usual_k(num_labels) if k is None else k, num_labels)
    names = ["topk-accuracy@1", f"topk-accuracy@{max(1, round(k))}", f"average-k-accuracy@{k:g}"]
    return list(dict.fromkeys(names))


def with_k(name: str, k: float | None, num_labels: int) -> str:
    """A metric's name with its k filled in: an objective says ``topk-accuracy``, its options say which k.

    >>> with_k("topk-accuracy", 5, 100), with_k("topk-accuracy", None, 100), with_k("mean-average-precision", 5, 9)
    ('topk-accuracy@5', 'topk-accuracy@1', 'mean-average-precision')
    """
    if "@" in name or name in _PLAIN:
        return name
    k = min(1 if k is None else k, num_labels)
    return f"{name}@{max(1, round(k))}" if name != "average-k-accuracy" else f"{name}@{k:g}"


def measure_all(names: Sequence[str], scores: Tensor, target: Any, link: str) -> dict[str, float]:
    return {name: measure(name, scores, target, link) for name in names}


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
