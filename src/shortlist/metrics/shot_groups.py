"""Any per-class metric by the number of training examples of the class."""

from typing import Any

from torch import Tensor
from torchmetrics import Metric
from torchmetrics.wrappers.abstract import WrapperMetric

from shortlist.errors import ShortlistError
from shortlist.metrics.functional.shot_groups import shot_group_of, shot_groups


class ShotGroups(WrapperMetric):
    """A per-class metric averaged over the classes with few, medium and many training examples.

    Few is fewer than ``few`` training examples, many is more than ``many``, medium is the rest. Takes any metric with a
    ``per_class()`` (TopKAccuracy, AverageKAccuracy, MeanAveragePrecision, SetSize, SetCoverage, SetFScore), or any
    torchmetrics metric that computes one value per class (``average=None``). Classes without test examples (NaN) are
    left out; a group without classes is NaN.

    >>> import torch
    >>> from shortlist.metrics import TopKAccuracy
    >>> metric = ShotGroups(TopKAccuracy(k=1), train_counts=torch.tensor([5, 50, 500]))
    >>> metric.update(torch.eye(3), torch.tensor([0, 2, 2]))
    >>> metric.compute()
    {'few': tensor(1.), 'medium': tensor(nan), 'many': tensor(0.5000)}
    """

    def __init__(self, metric: Metric, train_counts: Any, *, few: float = 20, many: float = 100) -> None:
        super().__init__()
        if not isinstance(metric, Metric):
            raise ShortlistError(f"metric must be a torchmetrics Metric, got {type(metric).__name__}")
        shot_group_of(train_counts, few=few, many=many)
        self.metric, self.train_counts, self.few, self.many = metric, train_counts, few, many

    def update(self, *args: Any, **kwargs: Any) -> None:
        self.metric.update(*args, **kwargs)

    def compute(self) -> dict[str, Tensor]:
        return self._groups_of(self.metric)

    def forward(self, *args: Any, **kwargs: Any) -> dict[str, Tensor]:
        """Add a batch; returns the groups' values of this batch alone."""
        batch = self.metric.clone()
        batch.reset()
        batch.sync_on_compute = batch._to_sync = False
        batch.update(*args, **kwargs)
        self.update(*args, **kwargs)
        return self._groups_of(batch)

    def reset(self) -> None:
        self.metric.reset()

    def _groups_of(self, metric: Metric) -> dict[str, Tensor]:
        values = getattr(metric, "per_class", metric.compute)()
        return shot_groups(values, self.train_counts, few=self.few, many=self.many)
