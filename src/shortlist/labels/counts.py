"""How many labels an example has: as recorded, and where nothing is asked for."""

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


def cardinality(target: Tensor | SparseLabels) -> float:
    """The mean number of present labels per example, each label's share taken over the rows that know it."""
    known = (target >= 0).sum(0).clamp(min=1)
    return float(((target == 1).sum(0) / known).sum())
