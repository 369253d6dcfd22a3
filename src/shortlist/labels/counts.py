"""How many labels an example has: as recorded, and where nothing is asked for."""

from torch import Tensor


def usual_k(num_labels: int) -> int:
    """Labels per set where nothing is asked for: 5, or half of them where there are fewer than ten.

    >>> usual_k(1000), usual_k(4), usual_k(3)
    (5, 2, 2)
    """
    return min(5, -(-num_labels // 2))


def cardinality(target: Tensor) -> float:
    """The mean number of present labels per example, each label's share taken over the rows that know it."""
    known = (target >= 0).sum(0).clamp(min=1)
    return float(((target == 1).sum(0) / known).sum())
