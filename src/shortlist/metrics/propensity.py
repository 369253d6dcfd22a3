"""Propensity-scored precision and NDCG at k over many batches."""

from typing import Any

import torch
from torch import Tensor

from shortlist.checks import whole
from shortlist.metrics.functional.propensity import checked_propensities, propensity_sums
from shortlist.metrics.states import CountMetric


class PropensityPrecisionAtK(CountMetric):
    """Propensity-scored precision: the sum of 1 / p over the right ones of each row's k best labels, over the largest
    sum possible. Rare labels, which are often missing from the record, count more.

    ``propensities`` (L,) in (0, 1], as `metrics.functional.label_propensities` gives them from the training labels.
    Keeps two sums.

    >>> import torch
    >>> metric = PropensityPrecisionAtK(k=1, propensities=torch.tensor([0.5, 0.5, 0.5, 0.125]))
    >>> metric.update(torch.tensor([[4.0, 3.0, 2.0, 1.0]]), torch.tensor([[1, 0, 0, 1]]))
    >>> metric.compute()
    tensor(0.2500)
    """

    sums: Tensor
    discounted = False

    def __init__(self, k: int, propensities: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.k = whole(k, "k", 1)
        given = torch.as_tensor(propensities, dtype=torch.float64)
        self.propensities = checked_propensities(given, given.numel())
        self._start("sums", default=torch.zeros(2, dtype=torch.float64))

    def update(self, scores: Any, target: Any) -> None:
        self._add(sums=propensity_sums(scores, target, self.k, self.propensities, self.discounted))

    def compute(self) -> Tensor:
        return (self.sums[0] / self.sums[1]).float()


class PropensityNDCGAtK(PropensityPrecisionAtK):
    """Propensity-scored NDCG: a right label at rank r gains 1 / (p log2(1 + r)), and each row is divided by the gain of
    its right labels at the first ranks without propensities. Otherwise as `PropensityPrecisionAtK`.

    >>> import torch
    >>> metric = PropensityNDCGAtK(k=2, propensities=torch.full((4,), 0.5))
    >>> metric.update(torch.tensor([[4.0, 3.0, 2.0, 1.0]]), torch.tensor([[0, 1, 0, 0]]))
    >>> metric.compute()
    tensor(0.6309)
    """

    discounted = True
