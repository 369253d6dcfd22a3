"""What LabelSets accepts: every check and conversion of its inputs, with errors that name the row and the value."""

from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from shortlist.checks import whole
from shortlist.errors import ShortlistError

Offsets = NDArray[np.int64]
Indices = NDArray[np.int32] | NDArray[np.int64]


def to_numpy(x: Any) -> NDArray[Any]:
    """A torch tensor on any device, or anything numpy understands, as an array."""
    if not isinstance(x, torch.Tensor):
        return np.asarray(x)
    x = x.detach()
    return np.asarray((x.float() if x.dtype == torch.bfloat16 else x).cpu())


def first_true(bad: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))


def as_offsets(sizes: NDArray[Any]) -> Offsets:
    if len(sizes) == 1:
        return np.array([0, sizes[0]], dtype=np.int64)
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


@lru_cache(256)
def offsets_of_one(size: int) -> Offsets:
    """The offsets of a single set, read-only: sets of one size share them."""
    offsets = np.array([0, size], dtype=np.int64)
    offsets.setflags(write=False)
    return offsets


# ---- num_labels and the vocabulary


def check_num_labels(num_labels: int | None, vocabulary: Sequence[str] | None) -> int:
    if num_labels is None:
        if vocabulary is None:
            raise ShortlistError("num_labels is needed when there is no vocabulary to count")
        num_labels = len(vocabulary)
    return whole(num_labels, "num_labels", 1)


def check_keys(examples: int, num_labels: int) -> None:
    """Sets are sorted and merged by one whole number for each example and label."""
    if examples * num_labels >= 2**63:
        raise ShortlistError(f"{examples} examples of {num_labels} labels are too many: their product must be < 2^63")


class Names(tuple[str, ...]):
    """Names of labels that ``check_vocabulary`` has seen: it need not look at them again."""

    __slots__ = ()


def check_vocabulary(vocabulary: Sequence[str] | None, num_labels: int) -> Names | None:
    """``num_labels`` different strings."""
    if vocabulary is None or (isinstance(vocabulary, Names) and len(vocabulary) == num_labels):
        return vocabulary
    if isinstance(vocabulary, str) or not isinstance(vocabulary, Iterable):
        raise ShortlistError(f"vocabulary must be a sequence of label names, got {vocabulary!r}")
    names = tuple(vocabulary)
    if len(names) != num_labels:
        raise ShortlistError(f"vocabulary has {len(names)} names for num_labels={num_labels}")
    seen: dict[str, int] = {}
    for label, name in enumerate(names):
        if not isinstance(name, str):
            raise ShortlistError(f"vocabulary[{label}] must be a string, got {name!r}")
        if name in seen:
            raise ShortlistError(f"vocabulary[{label}] is {name!r}, as is vocabulary[{seen[name]}]: names must differ")
        seen[name] = label
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise ShortlistError(f"vocabulary[{label}] is {name!r}, which is not valid unicode") from error
    return Names(map(str, names))  # numpy's strings become plain ones


# ---- the two arrays


def check_arrays(offsets: ArrayLike, indices: ArrayLike, num_labels: int) -> tuple[Offsets, Indices]:
    """Own, read-only copies of the two arrays, once they are known to be right."""
    starts = _whole_numbers(offsets, "offsets").astype(np.int64)
    given = _whole_numbers(indices, "indices")
    if not len(starts) or starts[0] != 0:
        raise ShortlistError(f"offsets must begin with 0, got {starts[:1].tolist()}")
    sizes = np.diff(starts)
    if (sizes < 0).any():
        row = int(np.argmax(sizes < 0))
        raise ShortlistError(
            f"offsets must not decrease: row {row} begins at {starts[row]} and ends at {starts[row + 1]}"
        )
    if starts[-1] != len(given):
        raise ShortlistError(f"the last offset must be the number of indices, {len(given)}, got {starts[-1]}")
    if len(given) and (given.min() < 0 or given.max() >= num_labels):
        raise_out_of_range(given, starts, num_labels)
    labels: Indices = given.astype(np.int32) if num_labels <= 2**31 else given.astype(np.int64)
    falls = labels[1:] <= labels[:-1]
    between = starts[1:-1]
    falls[between[(between > 0) & (between < len(labels))] - 1] = False  # a new set may begin lower
    if falls.any():
        at = int(np.argmax(falls))
        raise ShortlistError(
            f"row {row_of(at, starts)} holds label {labels[at]} and then {labels[at + 1]}: labels must increase within "
            f"a set (LabelSets.from_lists takes any order)"
        )
    starts.flags.writeable = labels.flags.writeable = False
    return starts, labels


def check_rest(rest: Any) -> None:
    if isinstance(rest, bool) or rest not in (0, -1):
        raise ShortlistError(f"rest must be 0 (labels outside the set are absent) or -1 (unknown), got {rest!r}")


def check_values(
    values: ArrayLike, offsets: Offsets, indices: Indices, rest: int
) -> tuple[Offsets, Indices, NDArray[np.int8] | None]:
    """The arrays without what equals the rest, and the values as int8; None where all are 1."""
    given = to_numpy(values)
    if given.shape != indices.shape or given.dtype.kind not in "biuf":
        raise ShortlistError(
            f"values must be numbers, one for each of the {len(indices)} indices, got shape {given.shape} of "
            f"{given.dtype}"
        )
    bad = (given != 1) & (given != 0) & (given != -1)
    if bad.any():
        at = int(np.argmax(bad))
        raise_bad_member((row_of(at, offsets), int(indices[at])), given[at])
    kept = given != rest
    if not kept.all():
        offsets, indices, given = as_offsets(kept)[offsets], indices[kept], given[kept]
    found = None if (given == 1).all() else given.astype(np.int8)
    for part in (offsets, indices, *([] if found is None else [found])):
        part.flags.writeable = False
    return offsets, indices, found


def row_of(position: int, offsets: Offsets) -> int:
    return int(np.searchsorted(offsets, position, side="right")) - 1


def raise_out_of_range(labels: NDArray[Any], offsets: Offsets, num_labels: int) -> NoReturn:
    at = int(np.argmax((labels < 0) | (labels >= num_labels)))
    raise ShortlistError(f"row {row_of(at, offsets)} holds label {labels[at]}: allowed are 0..{num_labels - 1}")


def _whole_numbers(values: ArrayLike, name: str) -> NDArray[Any]:
    found = to_numpy(values)
    if found.size == 0 and found.ndim == 1:
        return found.astype(np.int64)  # an empty list has no integer type of its own
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise ShortlistError(f"{name} must be whole numbers in one dimension, got shape {found.shape} of {found.dtype}")
    return found


# ---- lists


def flatten_lists(
    lists: Iterable[Any], num_labels: int, vocabulary: tuple[str, ...] | None
) -> tuple[Offsets, NDArray[np.int64]]:
    """Offsets, and all labels one after the other in the order given."""
    if isinstance(lists, str | dict):
        raise ShortlistError(f"lists must hold one collection of labels per example, got a {type(lists).__name__}")
    rows = [row.tolist() if hasattr(row, "tolist") else row for row in lists]
    for i, row in enumerate(rows):
        if isinstance(row, str | bytes | dict) or not hasattr(row, "__len__"):
            raise ShortlistError(f"row {i} must be a collection of labels, got {row!r}")
    offsets = as_offsets(np.fromiter(map(len, rows), dtype=np.int64, count=len(rows)))
    kinds = set(map(type, chain.from_iterable(rows)))
    if kinds and all(issubclass(kind, str) for kind in kinds):
        labels = _look_up(rows, vocabulary)
    elif all(map(_is_whole, kinds)):
        labels = _read_integers(rows, num_labels)
    else:
        _raise_bad_kind(rows)
    if len(labels) and (labels.min() < 0 or labels.max() >= num_labels):
        raise_out_of_range(labels, offsets, num_labels)
    return offsets, labels


def _look_up(rows: list[Any], vocabulary: tuple[str, ...] | None) -> NDArray[np.int64]:
    if vocabulary is None:
        raise ShortlistError("the labels are given by name: vocabulary=[...] is needed to know their indices")
    index = {name: label for label, name in enumerate(vocabulary)}
    try:
        return np.fromiter(map(index.__getitem__, chain.from_iterable(rows)), dtype=np.int64)
    except KeyError as error:
        name = error.args[0]
        row = next(i for i, names in enumerate(rows) if name in names)
        raise ShortlistError(
            f"row {row} holds {name!r}, which is not in the vocabulary of {len(index)} names"
        ) from None


def _read_integers(rows: list[Any], num_labels: int) -> NDArray[np.int64]:
    try:
        return np.frombuffer(array("q", chain.from_iterable(rows)), dtype=np.int64)
    except OverflowError:
        row, label = next((i, x) for i, row in enumerate(rows) for x in row if not -(2**63) <= x < 2**63)
        raise ShortlistError(f"row {row} holds label {label}: allowed are 0..{num_labels - 1}") from None


def _is_whole(kind: type) -> bool:
    return issubclass(kind, int | np.integer) and kind is not bool


def _raise_bad_kind(rows: list[Any]) -> NoReturn:
    by_name = isinstance(next(chain.from_iterable(rows)), str)
    row, label = next(
        (i, x) for i, row in enumerate(rows) for x in row if not (isinstance(x, str) if by_name else _is_whole(type(x)))
    )
    raise ShortlistError(
        f"row {row} holds {label!r} ({type(label).__name__}): labels are all whole numbers, or all names; "
        f"for a matrix of 0 and 1 use from_dense"
    )


# ---- matrices


def as_members(matrix: Any) -> NDArray[np.bool_]:
    """An (N, L) bool array from bools, or from numbers that are exactly 0 and 1."""
    if hasattr(matrix, "tocsr"):
        raise ShortlistError("the matrix is sparse: use from_sparse")
    found: NDArray[Any] = _two_dimensions(to_numpy(matrix), "matrix")
    if found.dtype == np.bool_:
        return found
    _check_numbers(found, "matrix")
    bad = (found != 0) & (found != 1)
    if bad.any():
        raise ShortlistError(
            f"matrix{list(first_true(bad))} is {found[first_true(bad)]}: allowed are True and False, or 1 and 0; "
            f"a set has no unknown labels (from_dense(matrix == 1) takes the present ones)"
        )
    return np.asarray(found != 0)


def sparse_parts(matrix: Any) -> tuple[Offsets, Indices, int, NDArray[Any]]:
    """Offsets, indices, the number of labels and the values of a scipy sparse matrix."""
    if not hasattr(matrix, "tocsr"):
        raise ShortlistError(
            f"matrix must be a scipy sparse one, got {type(matrix).__name__}; for others use from_dense"
        )
    check_stored(matrix, "matrix")
    csr = _two_dimensions(matrix, "matrix").tocsr()
    if csr is matrix:
        csr = csr.copy()  # the next line works in place
    csr.sum_duplicates()
    _check_numbers(csr.data, "matrix")
    return csr.indptr.astype(np.int64), csr.indices, int(csr.shape[1]), csr.data


def check_stored(matrix: Any, name: str) -> None:
    """Raise where a sparse matrix's own arrays do not fit together: scipy would read past their ends. And where a
    masked array hides something, which all that is read from it would show again."""
    if np.ma.is_masked(matrix):
        raise ShortlistError(
            f"{name} is a masked array, which hides {np.ma.count_masked(matrix)} of {matrix.size}: say what they are, "
            "by its filled(...), or leave their rows out"
        )
    try:
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
    except ValueError as error:
        raise ShortlistError(f"{name} is damaged, its arrays do not fit together: {error}") from None


def raise_bad_member(position: tuple[int, ...], value: Any) -> NoReturn:
    raise ShortlistError(
        f"matrix{list(position)} is {value}: allowed are True and False, or 1 (present), 0 (absent) and -1 (unknown)"
    )


def _check_numbers(values: NDArray[Any], name: str) -> None:
    if values.dtype.kind not in "biuf":
        raise ShortlistError(f"{name} must hold bools or numbers, got dtype {values.dtype}")


def _two_dimensions(matrix: Any, name: str) -> Any:
    if matrix.ndim != 2 or matrix.shape[1] < 1:
        raise ShortlistError(
            f"{name} must have shape (examples, labels), at least one label, got {tuple(matrix.shape)}"
        )
    return matrix


def reaches(scores: Any, threshold: Any) -> NDArray[np.bool_]:
    """``scores >= threshold`` with both checked; computed in the scores' own type, where the scores are."""
    if isinstance(scores, torch.Tensor):
        scores = scores.detach() if scores.is_floating_point() else scores.double()
    else:
        scores = np.asarray(scores)
        scores = scores if scores.dtype.kind == "f" else scores.astype(np.float64)
    _two_dimensions(scores, "scores")
    limit = np.asarray(to_numpy(threshold), dtype=np.float64)
    if limit.shape not in ((), (scores.shape[1],)) or np.isnan(limit).any():
        raise ShortlistError(
            f"threshold must be one number or one per label ({scores.shape[1]}), without NaN, got shape {limit.shape}"
            + (" with NaN" if np.isnan(limit).any() else "")
        )
    missing = to_numpy(scores != scores)
    if missing.any():
        raise ShortlistError(f"scores{list(first_true(missing))} is NaN: every score must be a number")
    if isinstance(scores, torch.Tensor):
        return to_numpy(scores >= torch.as_tensor(limit, dtype=scores.dtype, device=scores.device))
    return np.asarray(scores >= limit.astype(scores.dtype))


# ---- questions about examples


def one_label_each(labels: ArrayLike, count: int, num_labels: int) -> NDArray[Any]:
    found = to_numpy(labels)
    if found.dtype.kind not in "iu" and found.size:
        raise ShortlistError(f"labels must be whole numbers, got dtype {found.dtype}")
    if found.shape not in ((), (count,)):
        raise ShortlistError(
            f"labels must be one label, or one for each of the {count} examples, got shape {found.shape}"
        )
    bad = (found < -1) | (found >= num_labels)
    if bad.any():
        at, value = int(np.argmax(bad)), found.flat[np.argmax(bad)]
        raise ShortlistError(f"labels[{at}] is {value}: allowed are 0..{num_labels - 1}, or -1 for unknown")
    return np.broadcast_to(found, (count,))


def as_positions(key: Any, count: int, what: str = "set") -> NDArray[np.int64]:
    """Positions 0..count-1 from a whole number, a slice, a bool mask, or (possibly negative) positions.

    ``what`` is the word for one of the things that are chosen.
    """
    if isinstance(key, slice):
        return np.arange(*key.indices(count), dtype=np.int64)
    found = to_numpy(key)
    if found.dtype == np.bool_ and found.ndim == 1:
        if len(found) != count:
            raise IndexError(f"the mask has {len(found)} entries for {count} {what}s")
        return np.flatnonzero(found)
    if found.size == 0 and found.ndim == 1:
        return np.empty(0, dtype=np.int64)
    if found.dtype.kind not in "iu" or found.ndim > 1:
        raise IndexError(
            f"{what}s are chosen by a whole number, a slice, a bool mask or positions in one dimension, got {key!r}"
        )
    bad = (found < -count) | (found >= count)
    if bad.any():
        raise IndexError(f"there is no {what} {np.atleast_1d(found)[np.argmax(bad)]}: there are {count}")
    return np.where(found < 0, found + count, found).astype(np.int64)
