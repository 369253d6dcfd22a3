"""Average-K accuracy over many batches."""

from typing import Any

import torch
from torch import Tensor
from torchmetrics.utilities import dim_zero_cat

from shortlist.links import check_link, link_tensor
from shortlist.metrics._truth import scores_and_truth
from shortlist.metrics.functional.average_k import average_k_counts, checked_average, cut_at_average, given_cut
from shortlist.metrics.states import CountMetric, gather_rows, synced


class AverageKAccuracy(CountMetric):
    """Share of the examples whose label is in its set, where one threshold gives sets of k labels on average.

    The threshold is the one given, or the one that fits the ``calibration`` scores (two counts per label are kept), or
    the one that fits the very scores seen (all of them are kept, as it is known only at the end). All are taken after
    the ``link``; raw logits of different rows are not comparable, hence softmax unless told otherwise. Ties at the
    threshold count by the share of them that fits. Targets are class indices (-1: unknown, ignored), or a label matrix
    with at most one present label per row. ``per_class()`` gives the accuracy of every class.

    >>> import torch
    >>> scores = torch.tensor([[0.6, 0.3, 0.1], [0.9, 0.06, 0.04]]).log()
    >>> metric = AverageKAccuracy(k=1.5)
    >>> metric.update(scores, torch.tensor([1, 0]))
    >>> metric.compute()
    tensor(1.)
    >>> calibrated = AverageKAccuracy(k=1, calibration=scores)  # lets in 0.9 and 0.6: two labels for two rows
    >>> calibrated.update(scores, torch.tensor([1, 0]))
    >>> calibrated.compute()
    tensor(0.5000)
    """

    correct: Tensor
    total: Tensor
    values: list[Tensor]
    labels: list[Tensor]

    def __init__(
        self,
        k: float | None = None,
        *,
        calibration: Any = None,
        threshold: float | None = None,
        link: str = "softmax",
        **kwargs: Any,
    ) -> None:
        check_link(link)
        fitted = calibration is not None or threshold is not None
        super().__init__(**(kwargs if fitted else {"dist_sync_fn": gather_rows, **kwargs}))
        self.k, self.link = k, link
        self.cut = given_cut(k, calibration, threshold, link) if fitted else None
        if fitted:
            self._start("correct", default=torch.zeros(1, dtype=torch.float64))
            self._start("total")
        else:
            checked_average(k)
            self.add_state("values", [], dist_reduce_fx="cat")
            self.add_state("labels", [], dist_reduce_fx="cat")

    def update(self, scores: Any, target: Any) -> None:
        values, truth = scores_and_truth(scores, target)
        values = link_tensor(values, self.link)
        rows, labels = truth.single_labels()
        if self.cut is not None:
            correct, total = average_k_counts(values[rows], labels, self.cut)
            self._add(correct=correct, total=total)
            return
        self._check_labels(self.values, values)
        self.values.append(values if len(rows) == len(values) else values[rows])
        self.labels.append(labels)

    def compute(self) -> Tensor:
        correct, total = self._counts()
        return (correct.sum() / total.sum()).float()

    @synced
    def per_class(self) -> Tensor:
        """Accuracy of the examples of every class; NaN for a class without examples."""
        correct, total = self._counts()
        return (correct / total).float()

    def _counts(self) -> tuple[Tensor, Tensor]:
        if self.cut is not None:
            return self.correct, self.total
        if not len(self.values):
            return torch.zeros(0), torch.zeros(0)
        values = dim_zero_cat(self.values)
        return average_k_counts(values, dim_zero_cat(self.labels), cut_at_average(values, self.k))
