"""What is told of sets that are written: how many there are, how large, and the first of them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from shortlist.labels import LabelSets
from shortlist.labels.label_set_files import Beside, best_first

_SHOWN = 5  # examples


class Told:
    """Sees sets batch by batch; merges with what has seen the next ones."""

    def __init__(self) -> None:
        self.examples = self.labels = self.empty = 0
        self.first: list[dict[str, Any]] = []

    def see(self, sets: LabelSets, ids: Sequence[str] | None, beside: Beside, first_row: int) -> None:
        self.first += _as_written(sets[: _SHOWN - len(self.first)], ids, beside, first_row)
        self.examples += len(sets)
        self.labels += len(sets.indices)
        self.empty += int((sets.sizes == 0).sum())

    def merge(self, other: "Told") -> None:
        self.first = [*self.first, *other.first][:_SHOWN]
        self.examples += other.examples
        self.labels += other.labels
        self.empty += other.empty

    def in_numbers(self) -> dict[str, Any]:
        mean = self.labels / self.examples if self.examples else 0.0
        return {"examples": self.examples, "mean size": mean, "empty": self.empty, "first": self.first}


def _as_written(sets: LabelSets, ids: Sequence[str] | None, beside: Beside, first_row: int) -> list[dict[str, Any]]:
    what, numbers = beside[0], beside[1][: len(sets.indices)]
    order = best_first(sets, (what, numbers))
    labels = [str(label) if sets.vocabulary is None else sets.vocabulary[label] for label in sets.indices[order]]
    rounded = [round(float(number), 4) for number in numbers[order]]
    return [
        {"id": first_row + row if ids is None else ids[row], "labels": labels[a:b], what: rounded[a:b]}
        for row, (a, b) in enumerate(pairwise(sets.offsets.tolist()))
    ]
