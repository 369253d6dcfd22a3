"""A label matrix of which only some entries are stored, as plain tensors: where N x L entries are too many."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from shortlist.checks import bad_label, values_visible, whole
from shortlist.errors import ShortlistError
from shortlist.labels.label_set_inputs import as_positions, check_arrays
from shortlist.labels.label_sets import LabelSets


class ScipyMatrix(Protocol):
    """A sparse matrix or array of scipy."""

    def tocsr(self) -> Any: ...


class SparseLabels:
    """A label matrix (N, L) of 1, 0 and -1: what is stored of each row, and one value for all the rest.

    Losses, data sets and training take it wherever they take a label matrix; `LabelSets` and scipy matrices become one
    on their way in. Three tensors, so that it compiles, and moves to a device.

    Args:
        offsets: int64 (N + 1,): the entries of row i are those from ``offsets[i]`` to ``offsets[i + 1]``.
        indices: int32 or int64: their labels, increasing within a row.
        values: int8: 1 (present), 0 (absent) or -1 (unknown) of each entry; then, last, what all others are, 0 or -1.
        num_labels: L.

    Comparisons with a number give something that counts: ``(labels == 1).sum(0)``, ``(labels == -1).any()``.

    >>> labels = SparseLabels(torch.tensor([0, 2, 3]), torch.tensor([0, 3, 1]), torch.tensor([1, -1, 1, 0]), 4)
    >>> labels
    SparseLabels(2 rows of 4 labels, 3 entries stored, the rest 0)
    >>> labels.to_dense(), (labels == 1).sum(0)
    (tensor([[ 1,  0,  0, -1], [ 0,  1,  0,  0]], dtype=torch.int8), tensor([1, 1, 0, 0]))
    >>> labels[torch.tensor([1, 1])].to_dense()
    tensor([[0, 1, 0, 0], [0, 1, 0, 0]], dtype=torch.int8)
    """

    offsets: Tensor
    indices: Tensor
    values: Tensor
    num_labels: int

    ndim, dtype = 2, torch.int8

    def __init__(self, offsets: Tensor, indices: Tensor, values: Tensor, num_labels: int) -> None:
        for name, given in (("offsets", offsets), ("indices", indices), ("values", values)):
            if not isinstance(given, Tensor) or given.ndim != 1 or given.is_floating_point():
                raise ShortlistError(f"{name} must be a tensor of whole numbers in one dimension, got {given!r}")
        if len(values) != len(indices) + 1:
            raise ShortlistError(
                f"values must be one for each of the {len(indices)} indices, and one for the rest; got {len(values)}"
            )
        if values_visible(offsets, indices, values):
            num_labels = whole(num_labels, "num_labels", 0)
            check_arrays(offsets, indices, num_labels)
            _check_values(values, offsets, indices)
        self.offsets = offsets.long()
        self.indices = indices if indices.dtype == torch.int32 else indices.long()
        self.values = values.to(torch.int8)
        self.num_labels = num_labels

    # ---- ways in

    @classmethod
    def made(cls, offsets: Tensor, indices: Tensor, values: Tensor, num_labels: int) -> SparseLabels:
        """From tensors of the right types by a program that knows that they are right: nothing is checked."""
        labels = cls.__new__(cls)
        labels.offsets, labels.indices, labels.values, labels.num_labels = offsets, indices, values, num_labels
        return labels

    @classmethod
    def of(cls, labels: Any, device: torch.device | str | None = None) -> SparseLabels:
        """From ``LabelSets``, a scipy sparse matrix or a sparse tensor, in which what is not stored is absent.

        >>> from scipy.sparse import csr_array
        >>> SparseLabels.of(csr_array([[0, 1, -1], [0, 0, 0]])).to_dense()
        tensor([[ 0,  1, -1], [ 0,  0,  0]], dtype=torch.int8)
        """
        if isinstance(labels, SparseLabels):
            return labels if device is None else labels.to(device)
        if isinstance(labels, Tensor):
            return cls.of(_of_tensor(labels), device)
        if hasattr(labels, "tocsr"):
            labels = LabelSets.from_sparse(labels)
        values = np.ones(len(labels.indices) + 1, dtype=np.int8)
        if labels.values is not None:
            values[:-1] = labels.values
        values[-1] = labels.rest
        # copies: what belongs to LabelSets cannot be written to, and tensors can
        parts = (torch.from_numpy(part) for part in (labels.offsets.copy(), labels.indices.copy(), values))
        offsets, indices, stored = (part if device is None else part.to(device) for part in parts)
        return cls.made(offsets, indices, stored, labels.num_labels)

    @classmethod
    def from_dense(cls, matrix: Tensor, rest: int = 0) -> SparseLabels:
        """What differs from ``rest`` in a label matrix (N, L).

        >>> SparseLabels.from_dense(torch.tensor([[1, -1], [-1, -1]]), rest=-1)
        SparseLabels(2 rows of 2 labels, 1 entry stored, the rest -1)
        """
        stored = matrix != rest
        rows, labels = stored.nonzero(as_tuple=True)
        values = torch.cat([matrix[rows, labels], matrix.new_full((1,), rest)]).to(torch.int8)
        return cls.made(_offsets(stored.sum(1)), labels.int(), values, matrix.shape[1])

    @classmethod
    def concatenate(cls, parts: list[SparseLabels]) -> SparseLabels:
        """The rows of all parts, one after the other; what is not stored must be the same in all.

        >>> one = SparseLabels(torch.tensor([0, 1]), torch.tensor([2]), torch.tensor([1, 0]), 3)
        >>> SparseLabels.concatenate([one, one]).to_dense()
        tensor([[0, 0, 1], [0, 0, 1]], dtype=torch.int8)
        """
        first = parts[0]
        for part in parts:
            if part.num_labels != first.num_labels or part.rest != first.rest:
                raise ShortlistError(f"label matrices of one kind are put together, got {first} and {part}")
        sizes = torch.cat([part.offsets.diff() for part in parts])
        values = torch.cat([*[part.values[:-1] for part in parts], first.values[-1:]])
        return cls.made(_offsets(sizes), torch.cat([part.indices for part in parts]), values, first.num_labels)

    # ---- like a tensor of shape (N, L)

    @property
    def shape(self) -> torch.Size:
        return torch.Size((len(self), self.num_labels))

    @property
    def device(self) -> torch.device:
        return self.offsets.device

    @property
    def rest(self) -> int:
        """What entries are that are not stored: 0 (absent) or -1 (unknown)."""
        return int(self.values[-1])

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """What the kernels read."""
        return self.offsets, self.indices, self.values

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def numel(self) -> int:
        return len(self) * self.num_labels

    def to(self, device: Any, **options: Any) -> SparseLabels:
        offsets, indices, values = (part.to(device, **options) for part in self.tensors)
        return SparseLabels.made(offsets, indices, values, self.num_labels)

    def pin_memory(self) -> SparseLabels:
        offsets, indices, values = (part.pin_memory() for part in self.tensors)
        return SparseLabels.made(offsets, indices, values, self.num_labels)

    def __getitem__(self, key: Any) -> SparseLabels:
        """Rows by a slice, a bool mask or positions; ``[:, slice]`` a range of labels."""
        if isinstance(key, tuple):
            every, labels = key if len(key) == 2 else (None, None)
            if not isinstance(every, slice) or every != slice(None):
                raise ShortlistError("rows and labels of sparse labels are chosen one after the other")
            if not isinstance(labels, slice) or labels.step not in (None, 1):
                raise ShortlistError(f"labels of sparse labels are chosen by a range, as in [:, 2:5], got {labels!r}")
            return self._columns(*labels.indices(self.num_labels)[:2])
        if isinstance(key, int) or getattr(key, "shape", None) == ():
            raise ShortlistError(
                f"rows of sparse labels are chosen by a slice, a mask or positions: [[{key}]], not [{key}]"
            )
        if isinstance(key, slice) and key.step in (None, 1):
            begin, end, _ = key.indices(len(self))
            offsets = self.offsets[begin : max(begin, end) + 1]
            first, last = int(offsets[0]), int(offsets[-1])
            values = torch.cat([self.values[first:last], self.values[-1:]])
            return SparseLabels.made(offsets - first, self.indices[first:last], values, self.num_labels)
        rows = torch.from_numpy(as_positions(key, len(self), "row")).to(self.device)
        sizes = self.offsets.diff()[rows]
        offsets = _offsets(sizes)
        # the j-th entry of a chosen row stands j places after that row's old beginning
        places = torch.repeat_interleave(self.offsets[rows] - offsets[:-1], sizes)
        places += torch.arange(len(places), device=self.device)
        values = torch.cat([self.values[places], self.values[-1:]])
        return SparseLabels.made(offsets, self.indices[places], values, self.num_labels)

    def _columns(self, begin: int, end: int) -> SparseLabels:
        inside = (self.indices >= begin) & (self.indices < end)
        sizes = torch.bincount(self.rows()[inside], minlength=len(self))
        values = torch.cat([self.values[:-1][inside], self.values[-1:]])
        return SparseLabels.made(_offsets(sizes), self.indices[inside] - begin, values, max(0, end - begin))

    def __eq__(self, value: Any) -> Where:  # type: ignore[override]
        return Where(self, torch.eq(self.values, value))

    def __ne__(self, value: Any) -> Where:  # type: ignore[override]
        return Where(self, torch.ne(self.values, value))

    def __ge__(self, value: int) -> Where:
        return Where(self, self.values >= value)

    __hash__ = None  # type: ignore[assignment]

    # ---- ways out

    def rows(self) -> Tensor:
        """The row of each stored entry."""
        places = torch.arange(len(self.indices), device=self.device)
        return torch.searchsorted(self.offsets, places, right=True) - 1

    def to_dense(self) -> Tensor:
        """The whole matrix, int8 (N, L)."""
        dense = self.values[-1].expand(self.offsets.shape[0] - 1, self.num_labels).clone()
        return dense.index_put_((self.rows(), self.indices.long()), self.values[:-1])

    def to_sets(self) -> LabelSets:
        """The same as ``LabelSets``.

        >>> SparseLabels(torch.tensor([0, 1]), torch.tensor([2]), torch.tensor([1, -1]), 3).to_sets()
        LabelSets(1 set over 3 labels, mean size 1: {2}; the rest unknown)
        """
        parts = [part.cpu().numpy() for part in self.tensors]
        return LabelSets(parts[0], parts[1], self.num_labels, values=parts[2][:-1], rest=self.rest)

    def map(self, recode: Any) -> SparseLabels:
        """With other values: ``recode`` of the tensor that holds those stored and, last, that of the rest."""
        return SparseLabels.made(self.offsets, self.indices, recode(self.values).to(torch.int8), self.num_labels)

    def __repr__(self) -> str:
        count = f"{len(self.indices)} entr{'y' if len(self.indices) == 1 else 'ies'} stored"
        rows = f"{len(self)} row{'' if len(self) == 1 else 's'} of {self.num_labels} labels"
        return f"SparseLabels({rows}, {count}, the rest {self.rest})"


class Where:
    """Which entries of sparse labels are meant: counted, never made. As of a bool tensor (N, L)."""

    def __init__(self, labels: SparseLabels, chosen: Tensor) -> None:
        self.labels, self.stored, self.rest = labels, chosen[:-1], bool(chosen[-1])

    def sum(self, dim: int | None = None) -> Tensor:
        labels = self.labels
        if dim is None:
            others = self.rest * (labels.numel() - len(labels.indices))
            return self.stored.sum() + others
        of_stored, size = (labels.indices, labels.num_labels) if dim == 0 else (labels.rows(), len(labels))
        found = torch.bincount(of_stored[self.stored], minlength=size)
        if not self.rest:
            return found
        each = len(labels) if dim == 0 else labels.num_labels
        return found + (each - torch.bincount(of_stored, minlength=size))

    def any(self, dim: int | None = None) -> Tensor:
        return self.sum(dim) > 0

    def all(self) -> Tensor:
        return self.sum() == self.labels.numel()

    def nonzero(self) -> tuple[Tensor, Tensor]:
        """Rows and labels of what is meant, in order; only of what is stored."""
        if self.rest:
            raise ShortlistError("what is not stored is meant too: it can be counted, not listed")
        return self.labels.rows()[self.stored], self.labels.indices[self.stored].long()


Target = Tensor | SparseLabels | LabelSets | ScipyMatrix  # what losses and data sets take


def is_sparse(target: Any) -> bool:
    """Whether these are labels that `SparseLabels.of` takes."""
    if isinstance(target, Tensor):
        return target.layout != torch.strided
    return isinstance(target, SparseLabels | LabelSets) or hasattr(target, "tocsr")


def dense_labels(target: Any) -> Any:
    """The whole label matrix of labels that are sparse, for what cannot do without; other targets as they are."""
    return SparseLabels.of(target).to_dense() if is_sparse(target) else target


def joined(parts: list[Any]) -> Any:
    """The rows of several targets of one kind, one after the other.

    >>> joined([torch.tensor([1]), torch.tensor([2])])
    tensor([1, 2])
    """
    return SparseLabels.concatenate(parts) if isinstance(parts[0], SparseLabels) else torch.cat(parts)


def _offsets(sizes: Tensor) -> Tensor:
    return torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])


def _check_values(values: Tensor, offsets: Tensor, indices: Tensor) -> None:
    bad = ((values != 0) & (values != 1) & (values != -1)).nonzero()
    if len(bad) and int(bad[0]) < len(indices):
        at = int(bad[0])
        row = int(torch.searchsorted(offsets, at, right=True)) - 1
        raise bad_label(f"[{row}, {int(indices[at])}]", values[at].item())
    if values[-1] not in (0, -1):
        raise ShortlistError(f"the rest must be 0 (absent) or -1 (unknown), got {values[-1].item()}")


def _of_tensor(matrix: Tensor) -> SparseLabels:
    """torch's own sparse matrices neither compile nor can be indexed."""
    if matrix.layout != torch.sparse_csr or matrix.ndim != 2:
        raise ShortlistError(
            f"target must be a dense tensor, or a sparse one of layout torch.sparse_csr in two dimensions "
            f"(.to_sparse_csr() makes one), got {matrix.layout} of shape {tuple(matrix.shape)}"
        )
    offsets, indices, stored = matrix.crow_indices(), matrix.col_indices(), matrix.values().detach()
    _check_values(torch.cat([stored, stored.new_zeros(1)]), offsets, indices)
    values = torch.cat([stored, stored.new_zeros(1)]).to(torch.int8)
    return SparseLabels(offsets, indices, values, matrix.shape[1])
