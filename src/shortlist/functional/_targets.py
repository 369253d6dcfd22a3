"""What losses take as targets: a reader for each kind checks it and makes it the plain tensors that kernels read.

``reader(scores, target, (mask, weight, sample_weight), native)`` returns the scores, the target, and the weight of each
row (or None). ``native``: a kernel will check the target's values on its way; else they are checked here.

A label matrix of which only some entries are stored comes as `SparseLabels`, and stays one where a kernel reads it. It
becomes a whole one where a mask, which is a whole matrix too, changes it, and for the twin.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from shortlist import checks, device_flags
from shortlist.checks import is_wrapped
from shortlist.errors import ShortlistError
from shortlist.kernels import native_serves, ops
from shortlist.labels.sparse_labels import SparseLabels, is_sparse

Rows = tuple[Tensor, Tensor | SparseLabels, Tensor | None]
Counted = tuple[Tensor | None, Tensor | None, Tensor | None]  # the mask, the weight of classes, the weight of rows
Reader = Callable[[Tensor, Any, Counted, bool], Rows]


def is_plain(read: Reader, scores: Tensor, target: Any) -> bool:
    """Whether ``read`` hands this target of (N, L) scores on a CPU to a native kernel as it is, nothing else given."""
    if type(target) is not Tensor or not target.is_cpu or target.layout != torch.strided or target.is_nested:
        return False
    if is_wrapped(target):
        return False
    if target.ndim == 1:
        of_rows = read is indices or read is indices_or_matrix
        return of_rows and target.dtype == torch.int64 and target.shape[0] == scores.shape[0]
    of_labels = read is label_matrix or (read is indices_or_matrix and not target.is_floating_point())
    return of_labels and target.dtype in ops.LABEL_TYPES and target.shape == scores.shape


def at_the_door(scores: Tensor, target: Any) -> Any:
    """Labels that are sparse in one of their forms as `SparseLabels`, of the scores' shape and where they are."""
    if (isinstance(target, Tensor) and target.layout == torch.strided) or not is_sparse(target):
        return target  # its reader says what is wrong with it
    given = target.device if isinstance(target, Tensor | SparseLabels) else None
    labels = SparseLabels.of(target, scores.device if given is None else None)
    if labels.device != scores.device:
        raise ShortlistError(
            f"target is on device {labels.device}, the scores are on {scores.device}: move one of them with .to(device)"
        )
    if labels.shape != scores.shape:
        raise ShortlistError(
            f"sparse target of shape {tuple(labels.shape)} does not fit scores of shape {tuple(scores.shape)}: "
            f"a label matrix has the shape of the scores"
        )
    return labels


def _for_kernel(scores: Tensor, target: Any, mask: Tensor | None, native: bool) -> Any:
    """The same, as a whole matrix where no kernel reads what is stored."""
    target = at_the_door(scores, target)
    if not isinstance(target, SparseLabels):
        return target
    stays = native and ops.READS_SPARSE and mask is None and not checks.transforms_active()
    return target if stays else target.to_dense()


def indices(scores: Tensor, target: Any, counted: Counted, native: bool) -> Rows:
    """Class indices, -1 for an unknown row. A label that the mask takes out has the score -inf."""
    mask, weight, sample_weight = counted
    checks.check_index_shape(scores, target)
    if mask is not None or weight is not None or not native or not checks.values_visible(target):
        hold = mask is not None or weight is not None  # they are looked up by them
        target = checks.check_indices(scores, target, hold=hold)
    if mask is None and weight is None and sample_weight is None:
        return scores, target if target.dtype == torch.int64 else target.long(), None
    weight, rows = checks.check_class_weight(scores, weight), checks.check_sample_weight(scores, sample_weight)
    if weight is not None:
        weight = weight[target.clamp(min=0)]
        rows = weight if rows is None else checks.without_denormals(weight * rows)
    if mask is not None:
        scores, target = checks.apply_mask(scores, mask), checks.mask_indices(scores, target, mask)
    return scores, target.long(), rows


def indices_or_matrix(scores: Tensor, target: Any, counted: Counted, native: bool) -> Rows:
    """Class indices, or a label matrix of which only the present labels count. What the mask takes out is at -inf."""
    mask, weight, sample_weight = counted
    target = _for_kernel(scores, target, mask, native)
    sparse = isinstance(target, SparseLabels)
    if not sparse and checks.is_index_target(scores, target):
        return indices(scores, target, counted, native)
    if weight is not None:
        raise ShortlistError("weight (one per class) goes with class indices; a label matrix takes sample_weight")
    if sparse:
        return scores, target, checks.check_sample_weight(scores, sample_weight)
    checks.check_label_matrix(scores, target, values=mask is not None or not native)
    if mask is not None:
        target = torch.where(mask, target, 0)
    rows = checks.check_sample_weight(scores, sample_weight)
    return checks.apply_mask(scores, mask), ops.in_kernel_type(target), rows


def label_matrix(scores: Tensor, target: Any, counted: Counted, native: bool) -> Rows:
    """A label matrix: 1 present, 0 absent, -1 unknown. Labels that the mask takes out become unknown."""
    mask, _, sample_weight = counted
    target = _for_kernel(scores, target, mask, native)
    if isinstance(target, SparseLabels):
        return scores, target, checks.check_sample_weight(scores, sample_weight)
    checks.check_label_matrix(scores, target, values=mask is not None or not native)
    if mask is not None:
        checks.check_mask(scores, mask)
        target = torch.where(mask, target.to(torch.int8), -1)
    return scores, ops.in_kernel_type(target), checks.check_sample_weight(scores, sample_weight)


def chances(scores: Tensor, target: Tensor, counted: Counted, native: bool) -> Rows:
    """The probability by which each label is present, -1 where it is unknown. What the mask takes out is unknown."""
    mask, _, sample_weight = counted
    check_chances(scores, target, values=mask is not None or not native)
    if mask is not None:
        checks.check_mask(scores, mask)
        target = torch.where(mask, target, -1)
    return scores, target, checks.check_sample_weight(scores, sample_weight)


def holds_chances(target: Any) -> bool:
    """Whether there are fractions between 0 and 1 in a dense matrix of floats."""
    if not isinstance(target, Tensor) or not target.is_floating_point() or target.itemsize < 2:  # float8 has no order
        return False
    return target.layout == torch.strided and bool(((target > 0) & (target < 1)).any())


def check_chances(scores: Tensor, target: Tensor, *, values: bool = True) -> None:
    """A matrix of the scores' shape: from 0 to 1, or -1 (unknown)."""
    checks.check_label_matrix_shape(scores, target)
    if not values:
        return
    if checks.values_visible(target) and target.is_floating_point():
        bad = (target.clamp(0, 1) != target) & (target != -1)
        checks.refuse(bad, device_flags.TARGET, lambda flat: checks.bad_label_at(target, flat))
    else:
        checks.check_label_matrix(scores, target)


def single_positive(scores: Tensor, target: Any, counted: Counted, native: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Class indices, also from a label matrix with at most one present label per row. The scores stay as they are.

    -1 marks a row that is not observed, and has weight 0: an unknown index, no present label, or one that is masked.
    """
    scores, index, rows = single_positive_rows(scores, target, counted, native)
    observed = index.new_empty(index.shape, dtype=checks.compute_type(scores.dtype))
    observed = (index >= 0).to(observed.dtype) if checks.transforms_active() else torch.ge(index, 0, out=observed)
    return scores, index, observed if rows is None else observed * rows


def single_positive_rows(
    scores: Tensor, target: Any, counted: Counted, native: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The same with no weights where none are given. Only if ``native`` is an index surely held within the labels."""
    mask, weight, sample_weight = counted
    target = at_the_door(scores, target)
    if isinstance(target, SparseLabels):
        index = _stored_label(target)
    elif checks.is_index_target(scores, target):
        index = checks.check_indices(scores, target, hold=native or mask is not None or weight is not None)
    elif native_serves(scores) and checks.values_visible(scores, target):
        index = _present_label(scores, target)
    else:
        checks.check_label_matrix(scores, target)
        present = target == 1
        count = present.sum(-1)
        checks.refuse(count > 1, device_flags.SEVERAL, lambda row: _several(row, int(count.flatten()[row])))
        index = torch.where(count > 0, present.to(torch.uint8).argmax(-1), -1)
    index = checks.mask_indices(scores, index, mask)
    weight, sample_weight = checks.check_class_weight(scores, weight), checks.check_sample_weight(scores, sample_weight)
    if weight is not None:
        weight = weight[index.clamp(min=0)]
        sample_weight = weight if sample_weight is None else checks.without_denormals(weight * sample_weight)
    return scores, index, sample_weight


def shares(scores: Tensor, target: Tensor, counted: Counted) -> tuple[Tensor, Tensor]:
    """The share of every label in its row, and what that share weighs: 0 in an unknown row, and where the mask takes
    the label out (the others then share the row)."""
    mask, weight, sample_weight = counted
    given = checks.check_shares(scores, target).clamp(min=0)
    if mask is not None:
        checks.check_mask(scores, mask)
        given = torch.where(mask, given, 0.0)
    total = given.sum(-1, keepdim=True)
    weight, sample_weight = checks.check_class_weight(scores, weight), checks.check_sample_weight(scores, sample_weight)
    weights = given if weight is None else given * weight
    weights = weights if sample_weight is None else weights * sample_weight.unsqueeze(-1)
    return given / torch.where(total > 0, total, 1.0), checks.without_denormals(weights)


def _present_label(scores: Tensor, target: Tensor) -> Tensor:
    """The present label of each row in one pass over the matrix, its values checked on the way."""
    checks.check_label_matrix(scores, target, values=False)
    try:
        index = ops.single_positive(ops.in_kernel_type(target).reshape(-1, scores.shape[-1]))
    except ops.BadTarget as bad:
        raise checks.bad_label_at(target, bad.position) from None
    checks.refuse(index < -1, device_flags.SEVERAL, lambda row: _several(row, -int(index[row])))
    return index.reshape(scores.shape[:-1])


def _stored_label(target: SparseLabels) -> Tensor:
    """The same of what is stored."""
    offsets, labels, values = target.tensors
    present = values[:-1] == 1
    before = torch.cat([offsets.new_zeros(1), present.cumsum(0)])[offsets]  # of each row, and of all
    count = before.diff()
    checks.refuse(count > 1, device_flags.SEVERAL, lambda row: _several(row, int(count[row])))
    index = labels.new_full((len(count) + 1,), -1, dtype=torch.int64)
    return index.scatter(0, torch.where(present, target.rows(), len(count)), labels.long())[:-1]


def _several(row: int, count: int) -> ShortlistError:
    return ShortlistError(
        f"row {row} of target holds {count} present labels: "
        f"this loss takes class indices, or a label matrix with at most one present label per row"
    )
