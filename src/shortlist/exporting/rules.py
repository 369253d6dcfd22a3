"""Set rules as nodes: from scores (rows, labels) to membership, one small function for each rule.

The graph repeats what the rule does, in the same types and in the same order. Only the link is computed anew: softmax
and sigmoid in double, rounded to float32, which is at most a few roundings from what PyTorch and numpy give.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from shortlist.errors import ShortlistError
from shortlist.exporting.hashes import (
    best,
    descending,
    in_order_of_size,
    in_place,
    label_hashes,
    ranks,
    row_hashes,
    uniform,
)
from shortlist.exporting.nodes import Graph
from shortlist.links import AnyLink, ScaledLink
from shortlist.sets import AverageK, Conformal, Penalized, PointwiseError, RiskControl, SetRule, Threshold, TopK


def check_exportable(rule: SetRule) -> None:
    """A ShortlistError where the sets of a rule cannot be written as a graph."""
    if type(rule) not in _RULES:
        known = ", ".join(kind.__name__ for kind in _RULES)
        raise ShortlistError(f"the rule {rule!r} cannot be exported: only {known} can")
    if not rule.is_fitted:
        raise ShortlistError(f"the rule {rule!r} is not fitted: calibrate it before it is exported")
    if isinstance(rule, Conformal) and (rule.by_group or rule.weighted):
        needed = "the group" if rule.by_group else "the weight"
        raise ShortlistError(f"the rule {rule!r} cannot be exported: it needs {needed} of every row beside its scores")
    link = getattr(rule, "link", None)
    if isinstance(link, ScaledLink) and link.kind == "isotonic":
        raise ShortlistError(f"the rule {rule!r} cannot be exported: isotonic scaling is not written as a graph")
    if isinstance(rule, RiskControl) and rule.threshold is None:
        raise ShortlistError(f"the rule {rule!r} cannot be exported: {rule.concern}")


def sets_of(graph: Graph, rule: SetRule, scores: str, num_labels: int) -> str:
    """Membership (rows, labels), bool, of float32 scores."""
    check_exportable(rule)
    return _RULES[type(rule)](graph, rule, scores, num_labels)


def linked(graph: Graph, scores: str, link: AnyLink) -> str:
    """Scores after the link, float32."""
    if isinstance(link, ScaledLink):
        scores = graph("Mul", scores, np.array([link.scale], np.float32))
        scores = graph("Add", scores, np.array([link.shift], np.float32)) if link.shift else scores
        link = link.base
    if link == "none":
        return scores
    doubled = graph.cast(scores, "DOUBLE")
    return graph.cast(graph("Softmax", doubled, axis=-1) if link == "softmax" else _sigmoid(graph, doubled), "FLOAT")


def _sigmoid(graph: Graph, x: str) -> str:
    """1 / (1 + e^-x) for x >= 0 and e^x / (1 + e^x) below."""
    e, one = graph("Exp", graph("Neg", graph("Abs", x))), np.float64(1)
    above = graph("Where", graph("GreaterOrEqual", x, np.float64(0)), one, e)
    return graph("Div", above, graph("Add", e, one))


def _top_k(graph: Graph, rule: TopK, scores: str, num_labels: int) -> str:
    if rule.k > num_labels:
        raise ShortlistError(f"k must be between 1 and {num_labels} (the number of labels), got {rule.k}")
    return best(graph, scores, rule.k, num_labels)


def _threshold(graph: Graph, rule: Threshold, scores: str, num_labels: int) -> str:
    return graph("GreaterOrEqual", linked(graph, scores, rule.link), np.float32(rule.value))


def _average_k(graph: Graph, rule: AverageK, scores: str, num_labels: int) -> str:
    p = linked(graph, scores, rule.link)
    p = graph.cast(p, "DOUBLE") if rule.in_double else p
    threshold = (np.float64 if rule.in_double else np.float32)(rule.threshold)
    inside = graph("GreaterOrEqual", p, threshold)
    if rule.hash_limit is not None:
        hashes = label_hashes(graph, row_hashes(graph, scores, num_labels), num_labels)
        limit = in_order_of_size(graph, np.uint64(rule.hash_limit))
        chosen = graph("LessOrEqual", in_order_of_size(graph, hashes), limit)
        at, above = graph("Equal", p, threshold), graph("Greater", p, threshold)
        inside = graph("Or", above, graph("And", at, chosen))
    if rule.max_size is not None and rule.max_size < num_labels:
        inside = graph("And", inside, best(graph, scores, rule.max_size, num_labels))
    if rule.min_size:
        inside = graph("Or", inside, best(graph, scores, rule.min_size, num_labels))
    return inside


def _penalized(graph: Graph, rule: Penalized, scores: str, num_labels: int) -> str:
    inside = graph("GreaterOrEqual", linked(graph, scores, rule.link), np.float32(rule.cost))
    return _not_empty(graph, inside, best(graph, scores, 1, num_labels))


def _not_empty(graph: Graph, inside: str, otherwise: str) -> str:
    """Membership, and where a set is empty what is in it otherwise."""
    some = graph("ReduceMax", graph.cast(inside, "INT64"), np.array([1], np.int64), keepdims=1)
    empty = graph("Equal", some, np.int64(0))
    return graph("Or", inside, graph("And", empty, otherwise))


def _pointwise_error(graph: Graph, rule: PointwiseError, scores: str, num_labels: int) -> str:
    mass = linked(graph, scores, rule.link)
    order = descending(graph, mass, scores, num_labels)
    ranked = graph.cast(graph("GatherElements", mass, order, axis=1), "DOUBLE")
    reached = graph("CumSum", ranked, np.int64(1))
    total = graph("Slice", reached, np.array([num_labels - 1]), np.array([num_labels]), np.array([1]))
    before = graph("CumSum", ranked, np.int64(1), exclusive=1)
    needed = graph("Less", before, graph("Mul", total, np.float64(1 - rule.eps)))
    first = np.arange(num_labels)[None] == 0
    return _back(graph, order, graph("Or", needed, first))


def _risk_control(graph: Graph, rule: RiskControl, scores: str, num_labels: int) -> str:
    p = graph.cast(linked(graph, scores, rule.link), "DOUBLE")
    inside = graph("GreaterOrEqual", p, np.asarray(rule.threshold, np.float64))
    if rule.max_size is not None and rule.max_size < num_labels:
        inside = graph("And", inside, best(graph, scores, rule.max_size, num_labels))
    return inside


# ---- conformal sets


def _conformal(graph: Graph, rule: Conformal, scores: str, num_labels: int) -> str:
    inside = _calibrated(graph, rule, scores, num_labels)
    if not rule.min_size:
        return inside
    highest = graph("ReduceMax", scores, np.array([1], np.int64), keepdims=1)
    return _not_empty(graph, inside, graph("Equal", scores, highest))


def _calibrated(graph: Graph, rule: Conformal, scores: str, num_labels: int) -> str:
    p, limit = linked(graph, scores, rule.link), rule.limits
    if rule.labels == "multi":
        return graph("GreaterOrEqual", graph.cast(p, "DOUBLE"), limit)
    if rule.score == "lac":
        return graph("LessOrEqual", graph("Neg", graph.cast(p, "DOUBLE")), limit)
    if rule.score == "margin":
        return graph("LessOrEqual", _margin(graph, graph.cast(p, "DOUBLE"), num_labels), limit)
    order = descending(graph, p, scores, num_labels)
    ranked = graph.cast(graph("GatherElements", p, order, axis=1), "DOUBLE")
    u = None if rule.seed is None else uniform(graph, scores, rule.seed, num_labels)
    nonconformity = _RANK_SCORES[rule.score](graph, rule, ranked, u, num_labels)
    if limit.shape[-1] > 1:  # a limit for every label
        return graph("LessOrEqual", in_place(graph, order, nonconformity), limit)
    inside = graph.cast(graph("LessOrEqual", nonconformity, limit), "INT64")
    places = graph("Mul", inside, np.arange(1, num_labels + 1, dtype=np.int64)[None])
    size = graph("ReduceMax", places, np.array([1], np.int64), keepdims=1)  # up to the last rank below the limit
    return graph("Less", ranks(graph, order, num_labels), size)


def _aps(graph: Graph, rule: Conformal, ranked: str, u: str | None, num_labels: int) -> str:
    if u is None:
        return graph("CumSum", ranked, np.int64(1), exclusive=1)
    return graph("Sub", graph("CumSum", ranked, np.int64(1)), graph("Mul", u, ranked))


def _raps(graph: Graph, rule: Conformal, ranked: str, u: str | None, num_labels: int) -> str:
    beyond = np.maximum(np.arange(1, num_labels + 1) - min(rule.free_rank, num_labels), 0)
    return graph("Add", _aps(graph, rule, ranked, u, num_labels), (rule.score_penalty * beyond)[None])


def _saps(graph: Graph, rule: Conformal, ranked: str, u: str | None, num_labels: int) -> str:
    share = graph.constant(np.ones((1, 1))) if u is None else u
    largest = graph("ReduceMax", ranked, np.array([1], np.int64), keepdims=1)
    steps = graph("Sub", np.arange(num_labels, dtype=np.float64)[None], share)
    others = graph("Add", largest, graph("Mul", steps, np.float64(rule.score_penalty)))
    first = graph("Mul", graph("Sub", np.float64(1), share), largest)
    return graph("Where", np.arange(num_labels)[None] == 0, first, others)


def _rank(graph: Graph, rule: Conformal, ranked: str, u: str | None, num_labels: int) -> str:
    places = np.arange(num_labels, dtype=np.float64)[None]
    if u is None:
        return graph("Expand", places, graph("Shape", ranked))
    return graph("Add", places, graph("Sub", np.float64(1), u))


_RANK_SCORES = {"aps": _aps, "raps": _raps, "saps": _saps, "top-k": _rank}


def _margin(graph: Graph, p: str, num_labels: int) -> str:
    if num_labels == 1:
        return graph("Neg", p)
    largest, _ = graph.several("TopK", 2, p, np.array([2], np.int64))
    best_one, second = (graph("Slice", largest, np.array([n]), np.array([n + 1]), np.array([1])) for n in (0, 1))
    others = graph("Where", graph("Equal", p, best_one), second, best_one)
    return graph("Sub", others, p)


def _back(graph: Graph, order: str, inside: str) -> str:
    """Membership that stands in an order of the labels, back at their labels."""
    return graph.cast(in_place(graph, order, graph.cast(inside, "INT64")), "BOOL")


_RULES: dict[type[SetRule], Callable[[Graph, Any, str, int], str]] = {
    TopK: _top_k,
    AverageK: _average_k,
    Threshold: _threshold,
    Conformal: _conformal,
    PointwiseError: _pointwise_error,
    Penalized: _penalized,
    RiskControl: _risk_control,
}
