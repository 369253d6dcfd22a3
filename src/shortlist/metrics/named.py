"""The metrics of scores by name, for early stopping and for the record of every epoch: ``topk-accuracy@5``."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor

from shortlist import verticals
from shortlist.errors import ShortlistError
from shortlist.labels.counts import usual_k
from shortlist.metrics import functional as M
from shortlist.metrics import streams
from shortlist.metrics.functional.propensity import propensity_sums
from shortlist.metrics.functional.ranking import ndcg_rows, precision_rows, recall_rows
from shortlist.registry import Registry

MANY_LABELS = 10_000  # from here on the first ranks are judged, as is usual in extreme classification

# (scores, target) -> value, higher is better. One with a parameter k is asked for as name@k, and one with a parameter
# link is told the objective's, one with a parameter propensities those of the training labels. Those of a vertical
# room's task are given its answers as the target.
METRICS: Registry[Callable[..., Tensor]] = Registry(
    "metric",
    {
        "topk-accuracy": M.top_k_accuracy,
        "average-k-accuracy": M.average_k_accuracy,
        "precision": M.precision_at_k,
        "recall": M.recall_at_k,
        "ndcg": M.ndcg_at_k,
        "propensity-precision": M.propensity_precision_at_k,
        "propensity-ndcg": M.propensity_ndcg_at_k,
        "mean-average-precision": lambda scores, target: M.mean_average_precision(scores, target),
        "mean-average-precision-sample": lambda scores, target: M.mean_average_precision(
            scores, target, average="sample"
        ),
        **{name: path for names in verticals.METRICS.values() for name, path in names.items()},
    },
)

# the same over batches, of k, link and propensities; a metric without a stream is given all scores at once
_STREAMS: dict[str, Callable[[Any, str, Any], streams.Stream]] = {
    "topk-accuracy": lambda k, link, propensities: streams.Ratio(partial(streams.top_k_sums, k=k)),
    "average-k-accuracy": lambda k, link, propensities: streams.AverageK(k, link),
    "precision": lambda k, link, propensities: _row_mean(precision_rows, k=k),
    "recall": lambda k, link, propensities: _row_mean(recall_rows, k=k, empty="skip"),
    "ndcg": lambda k, link, propensities: _row_mean(ndcg_rows, k=k, empty="skip"),
    "propensity-precision": lambda k, link, propensities: _gains(k, propensities, discounted=False),
    "propensity-ndcg": lambda k, link, propensities: _gains(k, propensities, discounted=True),
    "mean-average-precision": lambda k, link, propensities: streams.AveragePrecision(),
    "mean-average-precision-sample": lambda k, link, propensities: _row_mean(streams.average_precision_rows),
}


def _row_mean(rows: Callable[..., Tensor], **options: Any) -> streams.Stream:
    return streams.Ratio(partial(streams.sums_of_rows, rows=partial(rows, **options)))


def _gains(k: int, propensities: Any, discounted: bool) -> streams.Stream:
    return streams.Ratio(partial(propensity_sums, k=k, propensities=propensities, discounted=discounted))


@dataclass(frozen=True)
class Metric:
    """A metric of scores, with its k."""

    name: str  # with @k
    function: Callable[..., Tensor]
    k: float | None = None

    def __call__(self, scores: Tensor, target: Any, link: str, propensities: Any = None) -> float:
        """The value on these scores; ``target`` is what the data is answered with (``Dataset.answers``)."""
        options: dict[str, Any] = {"link": link} if self.asks_for("link") else {}
        if self.asks_for("propensities"):
            options["propensities"] = self._needed(propensities)
        if self.k is not None:
            options["k"] = self._number
        return float(self.function(scores, target, **options))

    def stream(self, link: str, propensities: Any = None) -> streams.Stream | None:
        """The same metric over batches; None where it must be given all scores at once."""
        base = self.name.partition("@")[0]
        if base not in _STREAMS or METRICS[base] is not self.function:
            return None
        if self.asks_for("propensities"):
            self._needed(propensities)
        return _STREAMS[base](self._number, link, propensities)

    def asks_for(self, parameter: str) -> bool:
        """Whether it is told something beside scores and target: its "link", or "propensities"."""
        return parameter in _parameters(self.function)

    @property
    def _number(self) -> float | None:
        return int(self.k) if self.k is not None and self.k == int(self.k) else self.k

    def _needed(self, propensities: Any) -> Any:
        if propensities is None:
            raise ShortlistError(f"the metric {self.name!r} needs the label counts of training data: it is for runs")
        return propensities


def find_metric(
    name: str,
    num_labels: int | None = None,
    kind: str | None = None,
    *,
    allow_import: Sequence[str] = (),
    place: str = "",
) -> Metric:
    """The metric of this name; k may not be more than the number of labels. ``kind``: it must be one for
    inputs of this kind. ``place`` begins the message of an error.

    >>> import torch
    >>> find_metric("topk-accuracy@1")(torch.eye(3), torch.tensor([0, 1, 1]), "softmax")
    0.6666666865348816
    >>> find_metric("topk-acuracy@5")
    Traceback (most recent call last):
    shortlist.ShortlistError: there is no metric 'topk-acuracy'; did you mean 'topk-accuracy'?; there are ...
    """
    base, at, text = name.partition("@")
    function, where = METRICS.find(base, allow_import, place), f"{place}: " if place else ""
    takes, k = _parameters(function), None
    if at and "k" not in takes:
        raise ShortlistError(f"{where}the metric {name!r} has no k: it is {base!r} alone")
    if "k" in takes:
        k, whole = _number(text), _is_whole(takes["k"])
        if k is None or k <= 0 or (whole and k != int(k)):
            number = "a whole number" if whole else "a number"
            raise ShortlistError(f"{where}the metric {name!r} needs {number} after @, such as {base}@5")
    task = kind if kind in verticals.METRICS else None
    if kind is not None and base in METRICS and _task_of(base) != task:
        allowed = [written(ours) for ours in METRICS if _task_of(ours) == task]
        raise ShortlistError(f"{where}the metric {name!r} is not for {kind}: use one of {', '.join(allowed)}")
    if k is not None and num_labels is not None and task is None and _task_of(base) is None and k > num_labels:
        raise ShortlistError(f"{where}the metric {name!r} asks for more labels than the {num_labels} there are")
    return Metric(name, function, k)


def written(name: str) -> str:
    """How one of our metrics is asked for.

    >>> written("recall"), written("mean-average-precision")
    ('recall@k', 'mean-average-precision')
    """
    return f"{name}@k" if "k" in _parameters(METRICS[name]) else name


def usual_metrics(single: bool, num_labels: int, k: float | None) -> list[str]:
    """What to report where nothing is asked for: top-1, top-k and average-k accuracy; for several labels, mean average
    precision, or precision and NDCG at k where labels are so many that most of them have few examples."""
    if not single and num_labels >= MANY_LABELS:
        return ["precision@1", "precision@5", "ndcg@5"]
    if not single:
        return ["mean-average-precision", "mean-average-precision-sample"]
    k = min(usual_k(num_labels) if k is None else k, num_labels)
    names = ["topk-accuracy@1", f"topk-accuracy@{max(1, round(k))}", f"average-k-accuracy@{k:g}"]
    return list(dict.fromkeys(names))


def with_k(name: str, k: float | None, num_labels: int, allow_import: Sequence[str] = ()) -> str:
    """A metric's name with its k filled in: an objective says ``topk-accuracy``, its options say which k.

    >>> with_k("topk-accuracy", 5, 100), with_k("topk-accuracy", None, 100), with_k("mean-average-precision", 5, 9)
    ('topk-accuracy@5', 'topk-accuracy@1', 'mean-average-precision')
    """
    if "@" in name:
        return name
    takes = _parameters(METRICS.find(name, allow_import))
    if "k" not in takes:
        return name
    k = min(1 if k is None else k, num_labels)
    return f"{name}@{max(1, round(k))}" if _is_whole(takes["k"]) else f"{name}@{k:g}"


def _parameters(function: Callable[..., Tensor]) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(function).parameters)


def _is_whole(k: inspect.Parameter) -> bool:
    return k.annotation in (int, "int")


def _task_of(name: str) -> str | None:
    """The task of a vertical room that brings this metric."""
    return next((task for task, names in verticals.METRICS.items() if name in names), None)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
