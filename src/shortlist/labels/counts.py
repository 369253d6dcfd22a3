"""How many labels an example has: as recorded, and where nothing is asked for."""

import torch
from torch import Tensor

from shortlist.labels.sparse_labels import SparseLabels

LARGE_MATRIX = 2**26  # entries: a sparse label matrix of so many stays one


def usual_k(num_labels: int) -> int:
    """Labels per set where nothing is asked for: 5, or half of them where there are fewer than ten.

    >>> usual_k(1000), usual_k(4), usual_k(3)
    (5, 2, 2)
    """
    return min(5, -(-num_labels // 2))


def present_pairs(target: Tensor | SparseLabels) -> tuple[Tensor, Tensor]:
    """Rows and labels of what is present in a label matrix, in order."""
    if isinstance(target, SparseLabels):
        return (target == 1).nonzero()
    rows, labels = (target == 1).nonzero(as_tuple=True)
    return rows, labels


def count_labels(target: Tensor | SparseLabels, num_labels: int) -> Tensor:
    """How many examples have each label: from class indices (-1 counts for none) or a label matrix.

    >>> count_labels(torch.tensor([2, 0, 2, -1]), num_labels=3)
    tensor([1, 0, 2])
    """
    if isinstance(target, Tensor) and target.ndim == 1:
        return torch.bincount(target[target >= 0].long(), minlength=num_labels)
    return (target == 1).sum(0)


class LabelCounts:
    """How often each label is present and known in targets of one kind (``ndim``: 1 of class indices, 2 of a label
    matrix) that are seen in many places: counts merge. Rules and metrics are chosen by it as by the targets themselves.

    >>> parts = [LabelCounts(2), LabelCounts(2)]
    >>> parts[0].see(torch.tensor([[1, 0], [1, 1]]))
    >>> parts[1].see(torch.tensor([[0, -1]]))
    >>> parts[0].merge(parts[1])
    >>> len(parts[0]), parts[0].several, cardinality(parts[0])
    (3, True, 1.166...)
    """

    def __init__(self, ndim: int) -> None:
        self.ndim, self.several, self._rows, self.judged = ndim, False, 0, 0  # the last: rows that know a label
        self.present = self.known = torch.zeros((), dtype=torch.int64)

    @classmethod
    def of(cls, target: "Tensor | SparseLabels | LabelCounts") -> "LabelCounts":
        """Of a label matrix; what is counted already stays."""
        if isinstance(target, LabelCounts):
            return target
        counts = cls(2)
        counts.see(target)
        return counts

    def see(self, target: Tensor | SparseLabels) -> None:
        self._rows += len(target)
        if self.ndim == 2:
            self.several = self.several or bool(((target == 1).sum(1) > 1).any())
            self.present = self.present + (target == 1).sum(0)
            self.known = self.known + (target >= 0).sum(0)
            self.judged += int((target >= 0).any(1).sum())

    def merge(self, other: "LabelCounts") -> None:
        self._rows += len(other)
        self.several = self.several or other.several
        self.present, self.known = self.present + other.present, self.known + other.known
        self.judged += other.judged

    def __len__(self) -> int:
        return self._rows


def knows_absent(target: Tensor | SparseLabels | LabelCounts) -> bool:
    """Whether absent labels of a label matrix were recorded as present ones were, so that known labels stand for
    unknown ones. It is not so where none is known, nor where few are because nearly all that was recorded is present:
    of the known entries more than two in three, while most are unknown (in rows that know any). What learns from the
    known ones alone then takes every label to be present nearly everywhere.

    >>> knows_absent(torch.tensor([[1, 0, -1], [1, 1, 0]])), knows_absent(torch.tensor([[1, -1, -1], [1, 1, -1]]))
    (True, False)
    >>> knows_absent(torch.tensor([[1, -1, -1, -1, -1], [1, -1, 0, -1, 1]]))
    False
    >>> knows_absent(torch.tensor([[1, 1, 1, 1, 0], [-1, -1, -1, -1, -1], [-1, -1, -1, -1, -1]]))
    True
    """
    counts = LabelCounts.of(target)
    present, known = int(counts.present.sum()), int(counts.known.sum())
    mostly_present = 3 * present > 2 * known and 2 * known < counts.judged * len(counts.known)
    return present < known and not mostly_present


def cardinality(target: Tensor | SparseLabels | LabelCounts) -> float:
    """The mean number of present labels per example, each label's share taken over the rows that know it. Where it
    is not known which are absent (`knows_absent`) these shares say nothing: then it is that of the rows that know any.

    >>> cardinality(torch.tensor([[1, 0, -1], [1, 1, 0]])), cardinality(torch.tensor([[1, -1, -1], [1, 1, -1]]))
    (1.5, 1.5)
    """
    counts = LabelCounts.of(target)
    if counts.judged and not knows_absent(counts):
        return float(counts.present.sum()) / counts.judged
    return float((counts.present / counts.known.clamp(min=1)).sum())
