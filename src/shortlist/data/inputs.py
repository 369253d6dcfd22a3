"""What a data set asks of its inputs, whatever they are: rows of numbers, images, or what a vertical room brings."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from shortlist.data.mapped_rows import MappedRows
from shortlist.data.table_rows import TableRows
from shortlist.errors import ShortlistError
from shortlist.labels.label_set_inputs import as_positions, check_stored

_WIDE, _THIN = 1024, 0.05  # columns, and share of their entries that is stored


@runtime_checkable
class Inputs(Protocol):
    """N inputs of one kind. Images and the inputs of vertical rooms have these methods; `Rows` gives them to features.

    Inputs whose answers are more than the labels of each example (scenes: relations) bring these along: ``batch`` and
    ``answers`` return them in place of the target.
    """

    kind: ClassVar[str]

    def __len__(self) -> int: ...

    @property
    def rows_each(self) -> int:
        """About how many rows of features the work on one input is like."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one input."""

    def with_target(self, index: Tensor, target: Tensor) -> tuple[Any, Any]:
        """The inputs at these positions as a backbone takes them, and what their loss is measured against."""

    def subset(self, rows: Any) -> Any:
        """The inputs at these positions, in this order."""

    def answers_or(self, target: Tensor) -> Any:
        """What the scores of all inputs are measured against."""

    def facts(self) -> dict[str, Any] | None:
        """What prediction has to know of the training data, as JSON."""

    def counts(self) -> dict[str, int]:
        """What there is to say of them in numbers."""

    def in_words(self, num_labels: int, single: bool) -> str:
        """What a data set of them is, in a line."""


class OwnTarget:
    """Inputs whose answers are the target of their data set."""

    rows_each: ClassVar[int] = 1

    def answers_or(self, target: Tensor) -> Any:
        return target

    def facts(self) -> dict[str, Any] | None:
        return None

    def counts(self) -> dict[str, int]:
        return {}

    def in_words(self, num_labels: int, single: bool) -> str:
        target = f"one of {num_labels} labels each" if single else f"any of {num_labels} labels"
        return f"{len(self)} examples, {self.each_in_words()}, {target}"

    def __len__(self) -> int:
        raise NotImplementedError

    def each_in_words(self) -> str:
        raise NotImplementedError


class Rows(OwnTarget):
    """Features, one row each: a tensor, ``MappedRows``, a scipy CSR matrix or ``TableRows``."""

    kind: ClassVar[str] = "features"

    def __init__(self, values: Any) -> None:
        if len(values.shape) != 2:
            raise ShortlistError(f"inputs must be features of shape (N, D) or Images, got shape {tuple(values.shape)}")
        check_stored(values, "inputs")
        self.values = values
        stored, (rows, columns) = getattr(values, "nnz", None), values.shape
        # where products of what is stored are quicker than those of whole rows
        self.are_sparse = stored is not None and columns >= _WIDE and stored <= _THIN * rows * columns

    def __len__(self) -> int:
        return int(self.values.shape[0])

    @property
    def shape(self) -> tuple[int, ...]:
        return (int(self.values.shape[1]),)

    def with_target(self, index: Tensor, target: Any) -> tuple[Any, Any]:
        if isinstance(self.values, Tensor):
            return self.values[index].to(torch.float32), target[index]
        rows = self.values[as_positions(index, len(self), "example")]
        if self.are_sparse:
            return _sparse_tensor(rows), target[index]
        rows = rows.toarray() if hasattr(rows, "toarray") else rows
        return torch.from_numpy(np.asarray(rows, dtype=np.float32)), target[index]

    def subset(self, rows: Any) -> Any:
        if isinstance(self.values, MappedRows | TableRows):
            return self.values.subset(rows)
        return self.values[torch.from_numpy(rows) if isinstance(self.values, Tensor) else rows]

    def each_in_words(self) -> str:
        return f"{self.shape[0]} features"


def _sparse_tensor(rows: Any) -> Tensor:
    """Rows of a CSR matrix as a sparse tensor, float32: linear layers take it, and never make whole rows of it."""
    rows.sum_duplicates()
    of_each = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    places = torch.from_numpy(np.stack([of_each, rows.indices]).astype(np.int64))
    values = torch.from_numpy(np.asarray(rows.data, dtype=np.float32))
    return torch.sparse_coo_tensor(places, values, tuple(rows.shape), is_coalesced=True, check_invariants=False)


def as_inputs(values: Any) -> Inputs:
    """Inputs as they are; features with the methods of inputs."""
    return values if isinstance(values, Inputs) else Rows(values)
