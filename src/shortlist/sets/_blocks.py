"""Whatever holds scores, as blocks of rows: tensors, arrays, memory maps, iterables of batches.

A rule sees blocks of about a million scores, C-contiguous float32 (or float64 where the scores are), so that its own
memory is bounded whatever the size of the input.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shortlist.device_arrays import DeviceArray, stays
from shortlist.errors import ShortlistError
from shortlist.labels.label_set_inputs import check_stored
from shortlist.labels.sparse_labels import SparseLabels, is_sparse

BLOCK = 1 << 20  # scores per block: a few MB, near the caches

Scores = Tensor | NDArray[Any] | Iterable[Any] | Callable[[], Iterable[Any]]


class Block(NamedTuple):
    scores: NDArray[Any]  # (rows, labels)
    target: NDArray[Any] | None  # (rows,) or (rows, labels)
    first_row: int  # position in the whole input
    groups: NDArray[Any] | None = None  # (rows,): text, the group of each row
    weights: NDArray[Any] | None = None  # (rows,): how much each row counts


def is_array(source: Any) -> bool:
    return isinstance(source, Tensor | np.ndarray)


def can_repeat(source: Any) -> bool:
    """Can the scores be passed over again? Arrays, callables and collections can; generators and iterators cannot."""
    return not isinstance(source, Iterator)


def check_rows(scores: Any) -> None:
    """What is fitted learns from many rows, and N numbers would be one row of N labels."""
    if getattr(scores, "ndim", 2) == 1:
        count = len(scores)
        raise ShortlistError(
            f"scores to fit on have the shape (rows, labels), got ({count},): a single row is scores[None]; of one "
            f"label alone, yes or no, give scores.reshape({count}, 1), and its labels so, too"
        )


def read_blocks(
    source: Any, target: Any = None, size: int = BLOCK, groups: Any = None, weights: Any = None, host: bool = False
) -> Iterator[Block]:
    """The rows of ``source`` in order, about ``size`` scores at a time. Batches of an iterable are scores or
    (scores, target) pairs, or (scores, target, {"groups": ..., "weights": ...}). ``host``: scores that are on a device
    are copied from it, for whoever can work with nothing but numpy."""
    if isinstance(source, Tensor) and source.dtype is torch.float32 and source.is_cpu and not source.requires_grad:
        source = source.numpy()
    plain = target is None and groups is None and weights is None and type(source) is np.ndarray
    if plain and source.dtype == np.float32 and source.ndim == 2 and 0 < source.size <= size and source.flags.carray:
        yield Block(source, None, 0)  # a few rows are not kept waiting by what other inputs need
        return
    if hasattr(source, "to_numpy"):  # a data frame
        source = source.to_numpy()
    if is_array(source):
        yield from split_rows(source, target, 0, size, groups, weights, host)
        return
    for name, given in (("target", target), ("groups", groups), ("weights", weights)):
        if given is not None:
            example = "(scores, target)" if name == "target" else f'(scores, target, {{"{name}": ...}})'
            raise ShortlistError(f"a {name} argument goes with scores in one array; batches carry their own: {example}")
    batches = source() if callable(source) else source
    if not isinstance(batches, Iterable) or isinstance(batches, str | bytes):
        raise ShortlistError(
            "scores must be a torch.Tensor, a numpy array, an iterable of such batches or a function that returns one, "
            f"got {type(batches).__name__}"
        )
    row, num_labels = 0, None
    for i, batch in enumerate(batches):
        pair = isinstance(batch, tuple | list) and (len(batch) == 2 or (len(batch) == 3 and isinstance(batch[2], dict)))
        scores, batch_target, more = (*batch, {})[:3] if pair else (batch, None, {})
        if not is_array(scores):
            raise ShortlistError(
                f"batch {i} must be a torch.Tensor or numpy array of scores, got {type(scores).__name__}"
            )
        if scores.ndim and num_labels not in (None, scores.shape[-1]):
            raise ShortlistError(f"batch {i} has {scores.shape[-1]} labels, the batches before it {num_labels}")
        for block in split_rows(scores, batch_target, row, size, more.get("groups"), more.get("weights"), host):
            yield block
            row, num_labels = block.first_row + len(block.scores), scores.shape[-1]


def split_rows(
    scores: Any, target: Any, first_row: int, size: int, groups: Any = None, weights: Any = None, host: bool = False
) -> Iterator[Block]:
    """One array of any leading shape, flattened to rows and cut into blocks; an empty array gives one empty block."""
    host = host or not stays(scores)
    check_stored(scores, "scores")
    if isinstance(scores, Tensor):
        scores = _scores_array(scores.detach(), host)
    if scores.dtype.kind != "f":
        raise ShortlistError(f"scores must be floating point, got dtype {scores.dtype}")
    if scores.ndim == 0 or scores.shape[-1] == 0:
        raise ShortlistError(f"scores need a last dimension with at least one label, got shape {scores.shape}")
    if target is not None:
        target = _flat_target(target, scores.shape, host)
    rows = scores.reshape(-1, scores.shape[-1])
    groups = None if groups is None else _flat_groups(groups, scores.shape)
    weights = None if weights is None else _flat_weights(weights, scores.shape)
    dtype = np.float64 if rows.dtype.itemsize > 4 else np.float32
    step = max(1, size // rows.shape[1])
    for start in range(0, max(len(rows), 1), step):
        block = rows[start : start + step] if step < len(rows) else rows
        if isinstance(block, DeviceArray):
            block = DeviceArray(block.astype(dtype, copy=False).tensor.contiguous())
        elif block.dtype != dtype or not block.flags.carray:
            # torch wants memory it may write to (it does not); a read-only block is copied
            block = np.require(block, dtype=dtype, requirements=["C", "W"])
        part = None if target is None else target[start : start + step]
        yield Block(
            block,
            part.to_dense().numpy() if isinstance(part, SparseLabels) else part,
            first_row + start,
            None if groups is None else groups[start : start + step],
            None if weights is None else weights[start : start + step],
        )


def _scores_array(scores: Tensor, host: bool) -> Any:
    if not scores.is_floating_point():
        raise ShortlistError(f"scores must be floating point, got dtype {str(scores.dtype).removeprefix('torch.')}")
    if not host:
        return DeviceArray(scores)
    in_numpy = scores.dtype in (torch.float16, torch.float32, torch.float64)  # which has no bfloat16
    return (scores if in_numpy else scores.float()).cpu().numpy()


def _array(given: Any) -> NDArray[Any]:
    check_stored(given, "what is known of the rows")
    return given.detach().cpu().numpy() if isinstance(given, Tensor) else np.asarray(given)


def _flat_groups(groups: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """One group per row, a number or a name, as text; 1 and 1.0 are one group."""
    flat = _one_per_row(_array(groups), shape, "groups")
    if flat.dtype.kind != "f":
        return flat.astype(str)
    is_whole = (np.floor(flat) == flat) & (np.abs(flat) < 2**53)
    return np.where(is_whole, np.where(is_whole, flat, 0).astype(np.int64).astype(str), flat.astype(str))


def _flat_weights(weights: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """One weight per row: finite, and not negative."""
    given = _one_per_row(_array(weights), shape, "weights")
    if given.dtype.kind not in "biuf":
        raise ShortlistError(f"weights must be numbers, one for each row, got dtype {given.dtype}")
    flat = given.astype(np.float64)
    bad = ~((flat >= 0) & (flat < np.inf))
    if bad.any():
        row = int(np.argmax(bad))
        raise ShortlistError(f"weights must be finite and not negative: that of row {row} is {flat[row]}")
    return flat


def _one_per_row(array: NDArray[Any], shape: tuple[int, ...], name: str) -> NDArray[Any]:
    if array.shape != shape[:-1]:
        raise ShortlistError(f"{name} of shape {array.shape} do not fit scores of shape {shape}: one for each row")
    return array.reshape(-1)


def _flat_target(target: Any, shape: tuple[int, ...], host: bool) -> NDArray[Any] | SparseLabels:
    """Class indices, one per row, or a label matrix of the scores' shape: both flattened as the scores are. A label
    matrix that is on a device, as the scores are, stays there."""
    if not host and stays(target) and tuple(target.shape) == shape:
        return DeviceArray(target.detach().reshape(-1, shape[-1]))  # type: ignore[return-value]
    array = SparseLabels.of(target, "cpu") if is_sparse(target) else _array(target)
    if isinstance(array, SparseLabels):
        if tuple(array.shape) == shape:
            return array
        raise ShortlistError(f"sparse target of shape {tuple(array.shape)} does not fit scores of shape {shape}")
    if array.shape == shape[:-1]:
        return array.reshape(-1)
    if array.shape == shape:
        return array.reshape(-1, shape[-1])
    raise ShortlistError(
        f"target of shape {array.shape} does not fit scores of shape {shape}: "
        f"allowed are class indices of shape {shape[:-1]} or a label matrix of shape {shape}"
    )
