"""Batches on the device, the next ones made ready while one computes."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as Readable

from shortlist.data import Dataset
from shortlist.errors import ShortlistError

Batch = tuple[Tensor, Tensor]


def loaded(dataset: Dataset, parts: Sequence[Tensor], device: torch.device, workers: int = 0) -> Iterator[Batch]:
    """Inputs and targets of the batches, on the device. Image files are decoded ahead of time, by a thread or by so
    many worker processes; the batches are the same."""
    pinned = device.type == "cuda"  # from pinned memory a graphics card fetches while it computes
    if dataset.kind == "features" or dataset.inputs.in_memory:
        found: Iterator[Batch] = map(dataset.batch, parts)
    elif workers:
        found = by_processes(dataset, parts, workers, pinned)
    else:
        found = ahead(dataset, parts, pinned)
    if device.type == "cpu":
        return found
    return (
        (inputs.to(device, non_blocking=pinned), target.to(device, non_blocking=pinned)) for inputs, target in found
    )


def ahead(dataset: Dataset, parts: Sequence[Tensor], pinned: bool) -> Iterator[Batch]:
    def fetched(rows: Tensor) -> Batch:
        inputs, target = dataset.batch(rows)
        return (inputs.pin_memory(), target.pin_memory()) if pinned else (inputs, target)

    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(fetched, parts[0])
        for following in [*parts[1:], None]:
            here = coming.result()
            if following is not None:
                coming = pool.submit(fetched, following)
            yield here


class _Batches(Readable[Batch | ShortlistError]):
    """What a worker process asks for: a batch by its number. An error meant for users travels as it is, or PyTorch
    would put the worker's traceback into its message."""

    def __init__(self, dataset: Dataset, parts: Sequence[Tensor]) -> None:
        self.dataset, self.parts = dataset, parts

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, number: int) -> Batch | ShortlistError:
        try:
            return self.dataset.batch(self.parts[number])
        except ShortlistError as error:
            return error


def by_processes(dataset: Dataset, parts: Sequence[Tensor], workers: int, pinned: bool) -> Iterator[Batch]:
    loader: DataLoader[Batch | ShortlistError] = DataLoader(
        _Batches(dataset, parts),
        batch_size=None,
        num_workers=min(workers, len(parts)),
        pin_memory=pinned,
        collate_fn=_as_it_is,
        generator=torch.Generator(),  # or it would draw from the one that training draws from
    )
    for batch in loader:
        if isinstance(batch, ShortlistError):
            raise batch
        yield batch


def _as_it_is(batch: Any) -> Any:
    return batch
