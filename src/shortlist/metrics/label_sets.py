"""Size, coverage, F-score and exact match of predicted sets over many batches."""

from typing import Any

import torch
from torch import Tensor

from shortlist.errors import ShortlistError
from shortlist.metrics._truth import Truth
from shortlist.metrics.functional.label_sets import (
    check_f_options,
    coverage_rows,
    exact_rows,
    f_counts,
    f_mean,
    f_values,
    predicted_and_truth,
    set_sizes,
    size_histogram,
    vote_rows,
)
from shortlist.metrics.inputs import as_tensor
from shortlist.metrics.states import CountMetric, RowMean, synced


class SetSize(CountMetric):
    """Mean number of labels per set; also its histogram, and both by the group of the true class.

    The target is needed only for ``per_class()`` and for ``groups``: one group number 0, 1, ... per class, such as
    `shot_group_of` gives. There a row counts once for each of its present labels,
    and a row of unknown label not at all; the mean and the histogram are over all sets.

    >>> import torch
    >>> from shortlist.labels import LabelSets
    >>> sets = LabelSets([0, 2, 3, 4], [0, 1, 1, 2], num_labels=3)
    >>> metric = SetSize(groups=torch.tensor([0, 0, 1]))
    >>> metric.update(sets, torch.tensor([0, 1, 2]))
    >>> metric.compute()
    tensor(1.3333)
    >>> metric.histogram()
    tensor([0, 2, 1, 0])
    >>> metric.by_group()
    tensor([1.5000, 1.0000])
    """

    higher_is_better = None
    sizes: Tensor
    size_by_class: Tensor
    rows_by_class: Tensor
    sizes_by_group: Tensor

    def __init__(self, *, groups: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._start("sizes", "size_by_class", "rows_by_class")
        self.groups = None if groups is None else _checked_groups(groups)
        if self.groups is not None:
            self._start("sizes_by_group", default=torch.zeros(int(self.groups.max()) + 1, 1, dtype=torch.int64))

    def update(self, sets: Any, target: Any = None) -> None:
        sizes = set_sizes(sets)
        num_labels = int(sets.num_labels)
        if self.groups is not None and (target is None or len(self.groups) != num_labels):
            raise ShortlistError(
                f"groups need a target and one group for each of the {num_labels} labels, "
                f"got {len(self.groups)} groups and {'no' if target is None else 'a'} target"
            )
        self._add(sizes=size_histogram(sizes, num_labels))
        if target is None:
            return
        truth = Truth.of(target, (len(sizes), num_labels))
        of_present, labels = sizes[truth.rows], truth.labels
        self._add(
            size_by_class=torch.bincount(labels, of_present.double(), minlength=num_labels).long(),
            rows_by_class=torch.bincount(labels, minlength=num_labels),
        )
        if self.groups is not None:
            width = num_labels + 1
            cells = self.groups[labels] * width + of_present
            count = torch.bincount(cells, minlength=(int(self.groups.max()) + 1) * width)
            self._add(sizes_by_group=count.view(-1, width))

    def compute(self) -> Tensor:
        return _mean_size(self.sizes)

    @synced
    def histogram(self) -> Tensor:
        """How many sets have 0, 1, ..., L labels: (L + 1,)."""
        return self.sizes.clone()

    @synced
    def per_class(self) -> Tensor:
        """Mean size of the sets of every true class; NaN for a class without examples."""
        return (self.size_by_class / self.rows_by_class).float()

    @synced
    def by_group(self) -> Tensor:
        """Mean size of the sets of every group of true classes."""
        self._need_groups()
        return _mean_size(self.sizes_by_group)

    @synced
    def group_histogram(self) -> Tensor:
        """How many sets of every group have 0, 1, ..., L labels: (groups, L + 1)."""
        self._need_groups()
        return self.sizes_by_group.clone()

    def _need_groups(self) -> None:
        if self.groups is None:
            raise ShortlistError("this SetSize has no groups: give SetSize(groups=...) one group number per class")


class SetCoverage(RowMean):
    """Mean share of a row's present labels that are in its set: with one label, how often the set holds it.

    Rows known to have no present label count as 1, unknown rows are left out. ``per_class()`` gives, for every class,
    how often it is in the set where it is present.

    >>> import torch
    >>> from shortlist.labels import LabelSets
    >>> metric = SetCoverage()
    >>> metric.update(LabelSets([0, 2, 3], [0, 1, 1], num_labels=3), torch.tensor([1, 2]))
    >>> metric.compute()
    tensor(0.5000)
    """

    hits: Tensor
    present: Tensor

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._start("hits", "present")

    def update(self, sets: Any, target: Any) -> None:
        predicted, truth = predicted_and_truth(sets, target)
        self._add_rows(coverage_rows(predicted, truth))
        hits, _, present = f_counts(predicted, truth, by="class")
        self._add(hits=hits, present=present)

    @synced
    def per_class(self) -> Tensor:
        """Share of the examples of every class whose set holds it; NaN for a class without examples."""
        return (self.hits / self.present).float()


class VoteCoverage(RowMean):
    """Mean share of a row's votes that are for labels in its set. Rows without a vote are left out.

    >>> import torch
    >>> from shortlist.labels import LabelSets
    >>> metric = VoteCoverage()
    >>> metric.update(LabelSets([0, 2, 3], [0, 1, 1], num_labels=3), torch.tensor([[3, 1, 0], [1, 0, 1]]))
    >>> metric.compute()
    tensor(0.5000)
    """

    def update(self, sets: Any, votes: Any) -> None:
        self._add_rows(vote_rows(sets, votes))


class SetFScore(RowMean):
    """F-score of the sets, averaged over rows ("sample"), over classes ("class"), or of all counts together ("all").

    A row or class with nothing present and nothing predicted is left out (``empty="skip"``), or counts "zero" or "one".

    >>> import torch
    >>> from shortlist.labels import LabelSets
    >>> metric = SetFScore()
    >>> metric.update(LabelSets([0, 2, 3], [0, 1, 1], num_labels=3), torch.tensor([[1, 0, 0], [0, 1, 0]]))
    >>> metric.compute()
    tensor(0.8333)
    >>> metric.per_class()
    tensor([1.0000, 0.6667, nan])
    """

    hits: Tensor
    predicted: Tensor
    present: Tensor

    def __init__(self, beta: float = 1.0, *, average: str = "sample", empty: str = "skip", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_f_options(beta, average, empty)
        self.beta, self.average, self.empty = beta, average, empty
        self._start("hits", "predicted", "present")

    def update(self, sets: Any, target: Any) -> None:
        members = predicted_and_truth(sets, target)
        if self.average == "sample":
            values = f_values(*f_counts(*members, by="sample"), self.beta, self.empty)
            self._add_rows(values[~values.isnan()])
        hits, predicted, present = f_counts(*members, by="class")
        self._add(hits=hits, predicted=predicted, present=present)

    def compute(self) -> Tensor:
        if self.average == "sample":
            return super().compute()
        return f_mean(self.hits, self.predicted, self.present, self.beta, self.average, self.empty)

    @synced
    def per_class(self) -> Tensor:
        """F-score of every class; a class with nothing present and nothing predicted as ``empty`` says."""
        return f_values(self.hits, self.predicted, self.present, self.beta, self.empty).float()


class ExactMatch(RowMean):
    """Share of the rows whose set is exactly the set of present labels (unknown labels do not count).

    >>> import torch
    >>> from shortlist.labels import LabelSets
    >>> metric = ExactMatch()
    >>> metric.update(LabelSets([0, 2, 3], [0, 1, 1], num_labels=3), torch.tensor([[1, 1, 0], [0, 1, 1]]))
    >>> metric.compute()
    tensor(0.5000)
    """

    def update(self, sets: Any, target: Any) -> None:
        self._add_rows(exact_rows(*predicted_and_truth(sets, target)))


def _mean_size(histogram: Tensor) -> Tensor:
    sizes = torch.arange(histogram.shape[-1], device=histogram.device)
    return ((histogram * sizes).sum(-1) / histogram.sum(-1)).float()


def _checked_groups(groups: Any) -> Tensor:
    numbers = as_tensor(groups, "groups").cpu()
    if numbers.ndim != 1 or numbers.is_floating_point() or not len(numbers) or bool((numbers < 0).any()):
        raise ShortlistError(f"groups must be one group number 0, 1, ... per class, got {numbers}")
    return numbers.long()
