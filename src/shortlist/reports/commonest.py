"""Single labels: what always answering the commonest label would reach, and the labels that are never answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.reports.words import percent

_Z = 1.96
_CHANCE = 0.05
_FEW = 50  # fewer examples say too little of a model to advise another one


class FirstLabels:
    """Of examples with one known label each: how often each label is right, stands first, and is right to. Those of
    other examples are merged.

    >>> seen = FirstLabels()
    >>> seen.update(np.eye(3)[[0] * 9 + [1]], np.array([0] * 7 + [2] * 3))
    >>> found = seen.found(["ok", "odd", "fraud"])
    >>> found["commonest"]
    {'label': 'ok', 'accuracy': 0.7, 'model': 0.7, 'beaten': False, 'examples': 10}
    >>> found["never_first"]
    {'labels': 1, 'of': 2, 'such_as': ['fraud']}
    """

    def __init__(self) -> None:
        self.counts = np.zeros((3, 0), np.int64)  # of each label: examples, times first, and those that are right

    def update(self, scores: Any, target: Any) -> None:
        """Scores (rows, labels) and class indices, -1 for unknown."""
        known, num_labels = np.asarray(target) >= 0, scores.shape[1]
        first, right = np.asarray(scores.argmax(1))[known], np.asarray(target)[known]
        seen = (right, first, first[first == right])
        self._add(np.stack([np.bincount(labels, minlength=num_labels) for labels in seen]))

    def merge(self, other: FirstLabels) -> None:
        self._add(other.counts)

    def _add(self, counts: NDArray[np.int64]) -> None:
        self.counts = counts if not self.counts.size else self.counts + counts if counts.size else self.counts

    def found(self, names: Sequence[str] | None = None) -> dict[str, Any]:
        """The ``commonest`` label, how often it and the model's first label are right, and whether the model is
        clearly better (by the examples of which only one of them is right); the labels that are right somewhere and
        ``never_first``, but for those with so few examples that chance (5 %) would do that to a label which is found
        as often as all are. Nothing where nothing was seen."""
        examples, first, right = self.counts
        if not examples.any():
            return {}
        best, rows = int(examples.argmax()), int(examples.sum())
        won, lost = int(right.sum() - right[best]), int(examples[best] - right[best])
        by_chance = (1 - right.sum() / rows) ** examples > _CHANCE
        never = np.flatnonzero((examples > 0) & (first == 0) & ~by_chance).tolist()

        def name(label: int) -> str:
            return str(label) if names is None else names[label]

        shares = {"accuracy": int(examples[best]) / rows, "model": int(right.sum()) / rows}
        beaten = won - lost > _Z * (won + lost) ** 0.5
        return {
            "commonest": {"label": name(best), **shares, "beaten": beaten, "examples": rows},
            "never_first": {
                "labels": len(never),
                "of": int((examples > 0).sum()),
                "such_as": [name(label) for label in never[:3]],
            },
        }


def said_of_first(found: Mapping[str, Any], imbalance: str | None = None, backbone: str | None = None) -> list[str]:
    """What to be careful about, in sentences, with what a run could try: the settings it has are ``imbalance`` and
    ``backbone``; None where there is no run.

    >>> found = {"commonest": {"label": "ok", "accuracy": 0.985, "model": 0.985, "beaten": False, "examples": 200}}
    >>> said_of_first({**found, "never_first": {"labels": 0, "of": 2, "such_as": []}}, backbone="identity")
    ["The model's first label is right in 98.5\u202f%, ... always 'ok' ... in 98.5\u202f%: ... (backbone=mlp)."]
    """
    if not found.get("commonest"):
        return []
    said, commonest, never = [], found["commonest"], found["never_first"]
    if not commonest["beaten"]:
        tried = "; try a network (backbone=mlp)" if backbone == "identity" else ""
        tried = tried if commonest["examples"] >= _FEW else f", as far as {commonest['examples']} examples can tell"
        said.append(
            f"The model's first label is right in {percent(commonest['model'])}, and always {commonest['label']!r} "
            f"(the commonest label) would be in {percent(commonest['accuracy'])}: it is not clearly better than "
            f"that{tried}."
        )
    if never["labels"]:
        names = ", ".join(map(repr, never["such_as"])) + (", ..." if never["labels"] > len(never["such_as"]) else "")
        several = never["labels"] > 1
        tried = "; imbalance=balanced-sampling lets rare labels count more in training" if imbalance == "none" else ""
        said.append(
            f"{never['labels']} of the {never['of']} labels of these examples {'are' if several else 'is'} never the "
            f"model's first label ({names}): as good as the figures may be, {'these are' if several else 'it is'} not "
            f"found{tried}."
        )
    return said
