"""Mean average precision over many batches."""

from typing import Any

import torch
from torch import Tensor
from torchmetrics.utilities import dim_zero_cat

from shortlist.errors import ShortlistError
from shortlist.links import check_link
from shortlist.metrics.functional.average_precision import (
    average_precision,
    binned_average_precision,
    check_options,
    fill_empty,
    linked_and_matrix,
    mean_of,
    score_histograms,
)
from shortlist.metrics.states import CountMetric, gather_rows, synced


class MeanAveragePrecision(CountMetric):
    """Mean average precision over classes (mAP@class) or over samples (mAP@sample).

    Equal scores are one step, as in scikit-learn; unknown entries take no part. A class or sample without a present
    label is left out (``empty="skip"``) or counts as 0 (``"zero"``). The sample average keeps two numbers. The exact
    class average keeps all scores; with ``bins`` it keeps two histograms of that many bins per class instead, and a
    score counts as rounded down to a multiple of 1/bins: scores must lie in [0, 1] after the ``link`` ("none",
    "sigmoid", "softmax").

    >>> import torch
    >>> scores = torch.tensor([[2.0, -1.0], [0.5, 1.0], [-1.0, 3.0]])
    >>> target = torch.tensor([[1, 0], [0, 1], [1, -1]])
    >>> metric = MeanAveragePrecision(average="class")
    >>> metric.update(scores, target)
    >>> metric.compute()
    tensor(0.9167)
    >>> metric.per_class()
    tensor([0.8333, 1.0000])
    >>> binned = MeanAveragePrecision(bins=256, link="sigmoid")
    >>> binned.update(scores, target)
    >>> binned.compute()
    tensor(0.9167)
    """

    scores: list[Tensor]
    targets: list[Tensor]
    present: Tensor
    known: Tensor
    total: Tensor
    count: Tensor

    def __init__(
        self, average: str = "class", empty: str = "skip", *, bins: int | None = None, link: str = "none", **kwargs: Any
    ) -> None:
        check_options(average, empty, bins)
        check_link(link)
        self._keeps_scores = average == "class" and bins is None
        super().__init__(**({"dist_sync_fn": gather_rows, **kwargs} if self._keeps_scores else kwargs))
        self.average, self.empty, self.bins, self.link = average, empty, bins, link
        if average == "sample":
            self._start("total", default=torch.zeros((), dtype=torch.float64))
            self._start("count", default=torch.zeros((), dtype=torch.int64))
        elif bins is not None:
            self._start("present", "known", default=torch.zeros(1, bins, dtype=torch.int64))
        else:
            self.add_state("scores", [], dist_reduce_fx="cat")
            self.add_state("targets", [], dist_reduce_fx="cat")

    def update(self, scores: Any, target: Any) -> None:
        rows, matrix = linked_and_matrix(scores, target, self.link)
        if self.average == "sample":
            values = fill_empty(average_precision(rows, matrix), (matrix >= 0).any(1), self.empty)
            self._add(total=values.nansum(), count=values.isfinite().sum())
        elif self.bins is not None:
            present, known = score_histograms(rows, matrix, self.bins)
            self._add(present=present, known=known)
        else:
            self._check_labels(self.scores, rows)
            self.scores.append(rows)
            self.targets.append(matrix)

    def compute(self) -> Tensor:
        if self.average == "sample":
            return (self.total / self.count).float()
        return mean_of(*self._classes(), self.empty)

    @synced
    def per_class(self) -> Tensor:
        """Average precision of every class; NaN for a class that is left out."""
        if self.average == "sample":
            raise ShortlistError("average precision per class needs average='class', this metric has average='sample'")
        return fill_empty(*self._classes(), self.empty).float()

    def _classes(self) -> tuple[Tensor, Tensor]:
        """Average precision of every class (NaN without a present label), and whether anything is known of it."""
        if self.bins is not None:
            return binned_average_precision(self.present, self.known)
        if not len(self.scores):
            return torch.zeros(0), torch.zeros(0, dtype=torch.bool)
        scores, targets = dim_zero_cat(self.scores), dim_zero_cat(self.targets)
        return average_precision(scores.t(), targets.t()), (targets >= 0).any(0)
