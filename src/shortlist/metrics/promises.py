"""CovGap and the expected calibration error over many batches."""

from typing import Any

import torch
from torch import Tensor

from shortlist.links import AnyLink, rule_link
from shortlist.metrics.functional.calibration_error import bin_counts, error_of
from shortlist.metrics.functional.label_sets import f_counts, predicted_and_truth
from shortlist.metrics.functional.promises import gap_of
from shortlist.metrics.states import CountMetric


class CoverageGap(CountMetric):
    """CovGap: by how much the coverage of a label differs from ``coverage``, on average over the labels that occur.

    >>> import torch
    >>> from shortlist.labels import LabelSets
    >>> metric = CoverageGap(coverage=0.5)
    >>> metric.update(LabelSets([0, 1, 2], [0, 0], num_labels=2), torch.tensor([0, 1]))
    >>> metric.compute()
    tensor(0.5000)
    """

    higher_is_better = False
    hits: Tensor
    present: Tensor

    def __init__(self, *, coverage: float = 0.9, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.coverage = coverage
        self._start("hits", "present")

    def update(self, sets: Any, target: Any) -> None:
        hits, _, present = f_counts(*predicted_and_truth(sets, target), by="class")
        self._add(hits=hits, present=present)

    def compute(self) -> Tensor:
        return gap_of(self.hits, self.present, self.coverage)


class CalibrationError(CountMetric):
    """The expected calibration error: how far probabilities are from the share that is right, over bins of equal width.

    >>> import torch
    >>> metric = CalibrationError(bins=10)
    >>> metric.update(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]))
    >>> metric.compute()
    tensor(0.2500)
    """

    higher_is_better = False
    rows: Tensor
    probability: Tensor
    right: Tensor

    def __init__(self, *, link: str | AnyLink = "softmax", bins: int = 15, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.link, self.bins = rule_link(link), bins
        self._start("rows", "probability", "right", default=torch.zeros(1, dtype=torch.float64))

    def update(self, scores: Any, target: Any) -> None:
        rows, probability, right = bin_counts(scores, target, self.link, self.bins)
        self._add(rows=rows, probability=probability, right=right)

    def compute(self) -> Tensor:
        return error_of(self.rows, self.probability, self.right)
