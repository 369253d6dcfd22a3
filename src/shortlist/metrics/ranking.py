"""Top-k accuracy, precision, recall and NDCG at k over many batches."""

from typing import Any

from torch import Tensor

from shortlist.checks import check_choice, whole
from shortlist.metrics.functional.ranking import ndcg_rows, precision_rows, recall_rows, top_k_counts
from shortlist.metrics.inputs import EMPTY
from shortlist.metrics.states import CountMetric, RowMean, synced


class TopKAccuracy(CountMetric):
    """Share of the examples whose label is among the k best scores; ``per_class()`` gives it for every class.

    Targets are class indices (-1: unknown, ignored) or a label matrix with at most one present label per row. Equal
    scores are ranked by label number, the lower first. Keeps two counts per label.

    >>> import torch
    >>> metric = TopKAccuracy(k=2)
    >>> metric.update(torch.tensor([[3.0, 2.0, 1.0], [1.0, 3.0, 2.0]]), torch.tensor([1, 0]))
    >>> metric.compute()
    tensor(0.5000)
    >>> metric.per_class()
    tensor([0., 1., nan])
    """

    correct: Tensor
    total: Tensor

    def __init__(self, k: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.k = whole(k, "k", 1)
        self._start("correct", "total")

    def update(self, scores: Any, target: Any) -> None:
        correct, total = top_k_counts(scores, target, self.k)
        self._add(correct=correct, total=total)

    def compute(self) -> Tensor:
        return (self.correct.sum() / self.total.sum()).float()

    @synced
    def per_class(self) -> Tensor:
        """Accuracy of the examples of every class; NaN for a class without examples."""
        return (self.correct / self.total).float()


class PrecisionAtK(RowMean):
    """Mean over rows of the share of present labels among the k best.

    Unknown labels occupy no rank; a row that knows fewer than k labels is judged on those. Targets may be scipy CSR.

    >>> import torch
    >>> metric = PrecisionAtK(k=2)
    >>> metric.update(torch.tensor([[4.0, 3.0, 2.0, 1.0]]), torch.tensor([[1, 0, 0, 1]]))
    >>> metric.compute()
    tensor(0.5000)
    """

    def __init__(self, k: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.k = whole(k, "k", 1)

    def update(self, scores: Any, target: Any) -> None:
        self._add_rows(precision_rows(scores, target, self.k))


class RecallAtK(RowMean):
    """Mean over rows of the share of a row's present labels that are among its k best.

    Unknown labels occupy no rank. Rows without a present label are left out (``empty="skip"``) or count as 0
    (``"zero"``). Targets may be scipy CSR.

    >>> import torch
    >>> metric = RecallAtK(k=2)
    >>> metric.update(torch.tensor([[4.0, 3.0, 2.0, 1.0]]), torch.tensor([[1, 1, 0, 1]]))
    >>> metric.compute()
    tensor(0.6667)
    """

    def __init__(self, k: int, *, empty: str = "skip", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_choice(empty, "empty", EMPTY)
        self.k, self.empty = whole(k, "k", 1), empty

    def update(self, scores: Any, target: Any) -> None:
        self._add_rows(recall_rows(scores, target, self.k, self.empty))


class NDCGAtK(RecallAtK):
    """Mean over rows of the discounted gain of the k best labels, over the best possible one.

    A present label at rank r gains 1 / log2(1 + r). Options as in `RecallAtK`.

    >>> import torch
    >>> metric = NDCGAtK(k=2)
    >>> metric.update(torch.tensor([[4.0, 3.0, 2.0, 1.0]]), torch.tensor([[0, 1, 0, 0]]))
    >>> metric.compute()
    tensor(0.6309)
    """

    def update(self, scores: Any, target: Any) -> None:
        self._add_rows(ndcg_rows(scores, target, self.k, self.empty))
