"""Why these labels: examples whose labels were completed, the training examples that did it, and the label graph."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from shortlist.data import Dataset
from shortlist.objectives import Imcl
from shortlist.reports.data import RunResult
from shortlist.reports.examples import image_uri, shortened
from shortlist.training.learner import Learner
from shortlist.training.similar_examples import SimilarExamples

SHOWN = 6  # examples
_LOOKED_AT = 512  # training examples among which to choose them
_LABELS = 3  # completed labels shown of each
_WORTH_SHOWING = 0.1  # of 1
_EDGES, _NODES = 60, 24
_RADIUS = 150.0
_DOT = 4.0  # radius of a label's dot and the line around it


def explain_run(
    learner: Learner, train_set: Dataset, shown: Dataset | None = None, on: str = "train"
) -> dict[str, Any]:
    """What the page shows: cards of training examples whose unknown labels IMCL completed, cards of the data ``shown``
    (whose name is ``on``) whose labels any model predicts, and IMCL's edges by the labels' names. All plain values."""
    similar = SimilarExamples(learner, train_set)
    objective, names = learner.objective, train_set.vocabulary
    found = similar.memory.graph.strongest(_EDGES) if isinstance(objective, Imcl) else []
    edges = [(names[edge.source], names[edge.to], edge.weight) for edge in found]
    cards, predicted = [], []
    if similar.ready:
        cards = _cards(similar, train_set, of_training=True) if isinstance(objective, Imcl) else []
        predicted = _cards(similar, shown) if shown is not None and on != "train" else []
    return {"cards": cards, "predicted": predicted, "on": on, "edges": edges}


def similarity(by_name: Mapping[str, Sequence[RunResult]]) -> list[dict[str, Any]]:
    """For every run that has an explanation (the first seed's): its cards, and its graph as a drawing."""
    found = []
    for name, runs in by_name.items():
        why = runs[0].why
        if why is not None:
            shown = {key: why[key] for key in ("cards", "predicted", "on")}
            found.append({"name": name, **shown, "graph": place_graph(why["edges"])})
    return found


def _cards(similar: SimilarExamples, dataset: Dataset, of_training: bool = False) -> list[dict[str, Any]]:
    """Of some rows of the data those whose labels were completed with the largest values."""
    train_set, names = similar.train_set, dataset.vocabulary
    rows = torch.linspace(0, len(dataset) - 1, min(_LOOKED_AT, len(dataset))).round().long()
    explanations = [why for _, why in similar.explain(dataset, rows, of_training=of_training)]
    filled = torch.stack([why.combination for why in explanations])
    if of_training:
        filled = filled.masked_fill(dataset.target[rows] != -1, -math.inf)
    best = filled.amax(1)
    chosen = [row for row in best.argsort(descending=True, stable=True).tolist() if best[row] > _WORTH_SHOWING]
    cards = []
    for place in chosen[:SHOWN]:
        why, row = explanations[place], int(rows[place])
        order = filled[place].argsort(descending=True, stable=True)[:_LABELS].tolist()
        because = zip(why.examples, why.label_coefficients, why.feature_coefficients, strict=True)
        cards.append(
            {
                **_picture(dataset, row),
                "present": _present(dataset, row),
                "filled": [
                    {"name": names[label], "value": f"{filled[place, label]:.2f}"}
                    for label in order
                    if filled[place, label] > _WORTH_SHOWING
                ],
                "because": [
                    _picture(train_set, other)
                    | {"present": _present(train_set, other), "labels": f"{labels:.2f}", "features": f"{features:.2f}"}
                    for other, labels, features in because
                ],
            }
        )
    return cards


def _present(dataset: Dataset, row: int) -> list[str]:
    """The labels that an example is known to have."""
    known = dataset.target[row]
    labels = [int(known)] if known.ndim == 0 else (known == 1).nonzero().flatten().tolist()
    return [dataset.vocabulary[label] for label in labels if label >= 0]


def _picture(dataset: Dataset, row: int) -> dict[str, Any]:
    return {
        "name": dataset.ids[row] if dataset.ids is not None else f"Example {row}",
        "image": None if dataset.images is None else image_uri(dataset.images.thumbnail(row)),
        "text": None if dataset.texts is None else shortened(dataset.texts.source[row]),
    }


def place_graph(edges: Sequence[tuple[str, str, float]]) -> dict[str, Any] | None:
    """Labels on a circle and curved arrows between them, the strongest edges first; None where there are none.

    >>> drawn = place_graph([("sofa", "chair", 0.5), ("car", "bus", -0.25)])
    >>> [node["name"] for node in drawn["nodes"]], [arrow["text"] for arrow in drawn["arrows"]]
    (['sofa', 'chair', 'car', 'bus'], ['sofa → chair: +0.50', 'car → bus: -0.25'])
    """
    nodes: list[str] = []
    kept = []
    for source, to, weight in edges:
        new = [name for name in dict.fromkeys((source, to)) if name not in nodes]
        if len(nodes) + len(new) <= _NODES:
            nodes += new
            kept.append((source, to, weight))
    if not kept:
        return None
    at = {}
    for place, name in enumerate(nodes):
        angle = 2 * math.pi * place / len(nodes)
        at[name] = (_RADIUS * math.cos(angle), _RADIUS * math.sin(angle))
    largest = max(abs(weight) for _, _, weight in kept)
    return {
        "nodes": [
            {
                "name": name,
                "x": round(1.08 * x, 1),
                "y": round(1.08 * y, 1),
                "dot": (round(x, 1), round(y, 1)),
                "anchor": "middle" if abs(x) < 0.2 * _RADIUS else "start" if x > 0 else "end",
            }
            for name, (x, y) in at.items()
        ],
        "arrows": [
            {
                "curve": _arc(at[source], at[to]),
                "width": round(0.5 + 1.7 * abs(weight) / largest, 2),  # narrower than the head
                "kind": "for" if weight > 0 else "against",
                "text": f"{source} → {to}: {weight:+.2f}",
            }
            for source, to, weight in kept
        ],
    }


def _arc(begin: tuple[float, float], end: tuple[float, float]) -> list[tuple[float, float]]:
    """Begin, bend and end of a curve that bends to one side, so that the two directions between two labels do not cover
    each other; it ends beside the dot, which would cover its tip."""
    (x0, y0), (x1, y1) = begin, end
    bend = (0.35 * (x0 + x1) + 0.12 * (y1 - y0), 0.35 * (y0 + y1) - 0.12 * (x1 - x0))
    before = _DOT / math.dist(bend, end)
    x1, y1 = x1 - before * (x1 - bend[0]), y1 - before * (y1 - bend[1])
    return [(x0, y0), bend, (x1, y1)]
