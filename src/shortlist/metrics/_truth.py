"""The true labels in one form, whatever the target: class indices, a label matrix, scipy CSR or LabelSets."""

from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor

from shortlist.checks import check_indices, check_label_matrix
from shortlist.errors import ShortlistError
from shortlist.labels.sparse_labels import SparseLabels, is_sparse
from shortlist.metrics.inputs import as_scores, as_tensor


@dataclass(frozen=True)
class Truth:
    """Which labels are present, absent and unknown in ``num_rows`` rows of ``num_labels`` labels."""

    num_rows: int
    num_labels: int
    present: Tensor  # flat positions row * num_labels + label of the present labels, ascending
    known_per_row: Tensor
    unknown: Tensor | None = None  # (n, L) bool; None where only whole rows are unknown

    @classmethod
    def of(cls, target: Any, shape: tuple[int, ...], device: torch.device | str = "cpu") -> "Truth":
        """The target of scores (or sets) of this shape (..., labels), as rows."""
        n, num_labels = prod(shape[:-1]), shape[-1]
        if is_sparse(target):
            stored = _stored(target, shape, device)
            rows, labels = (stored == 1).nonzero()
            unknown = stored.to_dense() == -1 if bool((stored == -1).any()) else None
            return cls(n, num_labels, rows * num_labels + labels, (stored != -1).sum(1), unknown)
        target = _as_target(target).to(device)
        if _is_index(target, shape):
            labels = target.reshape(n).long()
            rows = (labels >= 0).nonzero()[:, 0]
            return cls(n, num_labels, rows * num_labels + labels[rows], (labels >= 0) * num_labels)
        matrix = target.reshape(n, num_labels)
        present = (matrix == 1).flatten().nonzero()[:, 0]
        unknown = None if matrix.dtype == torch.bool else matrix == -1
        if unknown is None or not bool(unknown.any()):
            return cls(n, num_labels, present, torch.full((n,), num_labels, device=device))
        return cls(n, num_labels, present, num_labels - unknown.sum(1), unknown)

    @property
    def rows(self) -> Tensor:
        """The row of each present label."""
        return self.present // self.num_labels

    @property
    def labels(self) -> Tensor:
        """The label of each present label."""
        return self.present % self.num_labels

    @property
    def present_per_row(self) -> Tensor:
        return torch.bincount(self.rows, minlength=self.num_rows)

    def is_present(self, rows: Tensor, labels: Tensor) -> Tensor:
        wanted = rows * self.num_labels + labels
        found = torch.zeros_like(wanted, dtype=torch.bool)
        if not len(self.present) or not len(wanted):
            return found
        if wanted.ndim == 1 and 8 * len(self.present) < len(wanted) and bool((wanted[1:] > wanted[:-1]).all()):
            # sets that are much larger than the truth: the few are sought among the many
            at = torch.searchsorted(wanted, self.present).clamp(max=len(wanted) - 1)
            found[at[wanted[at] == self.present]] = True
            return found
        at = torch.searchsorted(self.present, wanted).clamp(max=len(self.present) - 1)
        return self.present[at] == wanted

    @property
    def is_all_known(self) -> bool:
        return self.unknown is None and bool((self.known_per_row > 0).all())

    def is_known(self, rows: Tensor, labels: Tensor) -> Tensor:
        known = self.known_per_row[rows] > 0
        return known if self.unknown is None else known & ~self.unknown[rows, labels]

    def single_labels(self) -> tuple[Tensor, Tensor]:
        """Rows that have a label, and that label; more than one in a row is an error."""
        rows = self.rows
        twice = (rows[1:] == rows[:-1]).nonzero()
        if len(twice):
            raise ShortlistError(
                f"target row {int(rows[twice[0, 0]])} has more than one present label: allowed are class indices, "
                f"or at most one present label per row (for several: RecallAtK, MeanAveragePrecision)"
            )
        return rows, self.labels


def scores_and_truth(scores: Any, target: Any) -> tuple[Tensor, Truth]:
    """Scores as rows (n, L), as `as_scores` gives them, and what is true of these."""
    rows = as_scores(scores)
    return rows, Truth.of(target, tuple(scores.shape), rows.device)


def label_matrix(target: Any, shape: tuple[int, ...], device: torch.device | str = "cpu") -> Tensor:
    """Any target as an int8 label matrix (n, L); an unknown class index makes its whole row unknown."""
    if is_sparse(target):
        return _stored(target, shape, device).to_dense()
    target = _as_target(target).to(device)
    if not _is_index(target, shape):
        return target.reshape(-1, shape[-1]).to(torch.int8)
    truth = Truth.of(target, shape, device)
    matrix = torch.zeros(truth.num_rows, truth.num_labels, dtype=torch.int8, device=device)
    matrix.view(-1)[truth.present] = 1
    matrix[truth.known_per_row == 0] = -1
    return matrix


def _as_target(target: Any) -> Tensor:
    given = as_tensor(target, "target")
    return given.short() if given.dtype == torch.uint8 else given  # -1 would wrap around to 255


def _is_index(target: Tensor, shape: tuple[int, ...]) -> bool:
    """True for class indices, False for a label matrix; both with their values checked."""
    shape_only = torch.empty((), device=target.device).expand(shape)  # takes no memory
    if target.shape == shape[:-1]:
        small = target.dtype in (torch.int8, torch.int16)  # the number of labels would wrap around
        check_indices(shape_only, target.long() if small else target, wait=True)
        return True
    if target.shape == shape:
        check_label_matrix(shape_only, target, wait=True)
        return False
    raise ShortlistError(
        f"target of shape {tuple(target.shape)} does not fit predictions of shape {tuple(shape)}: allowed are class "
        f"indices of shape {tuple(shape[:-1])} or a label matrix of shape {tuple(shape)}"
    )


def _stored(target: Any, shape: tuple[int, ...], device: torch.device | str) -> SparseLabels:
    labels = SparseLabels.of(target, device)
    if tuple(labels.shape) != tuple(shape):
        raise ShortlistError(f"sparse target of shape {tuple(labels.shape)} does not fit predictions of shape {shape}")
    return labels
