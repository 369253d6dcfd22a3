"""States for many batches and many workers: counts per label, and lists of rows.

The number of labels is known only with the first batch. A count therefore starts as one zero, which broadcasts against
whatever that batch brings; a worker that saw no batch still holds the zero when the states are gathered.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities.distributed import gather_all_tensors

from shortlist.errors import ShortlistError

Result = TypeVar("Result")


def synced(method: Callable[..., Result]) -> Callable[..., Result]:
    """Run a method on the states of all workers together, as torchmetrics does for ``compute`` only."""

    @wraps(method)
    def on_all_states(self: Metric, *args: Any) -> Result:
        if self._is_synced:
            return method(self, *args)
        with self.sync_context(dist_sync_fn=self.dist_sync_fn, should_sync=self.sync_on_compute):
            return method(self, *args)

    return on_all_states


class CountMetric(Metric):
    """A metric whose states are counts, added up over batches and workers."""

    is_differentiable = False
    full_state_update = False
    higher_is_better: bool | None = True

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"dist_sync_fn": gather_counts, **kwargs})

    def _start(self, *names: str, default: Tensor | None = None) -> None:
        default = torch.zeros(1, dtype=torch.int64) if default is None else default
        for name in names:
            self.add_state(name, default.clone(), dist_reduce_fx="sum")

    def _add(self, **counts: Tensor) -> None:
        for name, more in counts.items():
            state: Tensor = getattr(self, name)
            if state.shape != more.shape and bool(state.any()):
                raise ShortlistError(
                    f"the number of labels changed between batches: {name} has shape {tuple(state.shape)} so far, "
                    f"and {tuple(more.shape)} in this batch"
                )
            more = more.to(state.device)
            setattr(self, name, state + more if state.shape == more.shape else more.to(state.dtype))

    @staticmethod
    def _check_labels(earlier: list[Tensor], rows: Tensor) -> None:
        if earlier and earlier[0].shape[1] != rows.shape[1]:
            raise ShortlistError(f"this batch has {rows.shape[1]} labels, earlier ones had {earlier[0].shape[1]}")


class RowMean(CountMetric):
    """A metric that is a mean over rows: the sum and the number of rows are all it keeps."""

    total: Tensor
    count: Tensor

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._start("total", default=torch.zeros((), dtype=torch.float64))
        self._start("count", default=torch.zeros((), dtype=torch.int64))

    def _add_rows(self, rows: Tensor) -> None:
        self._add(total=rows.sum(), count=torch.tensor(len(rows)))

    def compute(self) -> Tensor:
        return (self.total / self.count).float()


def gather_counts(state: Tensor, group: Any = None) -> list[Tensor]:
    """The counts of all workers, those that saw no batch as zeros of everyone's shape."""
    return [counts.contiguous() for counts in torch.broadcast_tensors(*gather_all_tensors(state, group))]


def gather_rows(state: Tensor, group: Any = None) -> list[Tensor]:
    """The rows of all workers; one that saw no batch takes the row shape and type of the others."""
    shapes: list[Any] = [None] * torch.distributed.get_world_size(group)
    torch.distributed.all_gather_object(shapes, (tuple(state.shape), state.dtype), group=group)
    seen = [(shape, dtype) for shape, dtype in shapes if shape[0]]
    if seen and not len(state):
        (_, *row), dtype = seen[0]
        state = torch.zeros(0, *row, dtype=dtype, device=state.device)
    return gather_all_tensors(state, group)
