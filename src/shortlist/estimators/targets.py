"""The forms in which labels come as ``y`` -> the labels in order, and a target for the training loop.

The form is read off the type alone, never off the values: [[0, 1], [1, 0]] is always a label matrix.
"""

import warnings
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, column_or_1d
from torch import Tensor

from shortlist.data.cells import UNKNOWN
from shortlist.data.frame_columns import frame_of
from shortlist.data.label_concerns import joined_names, names_alike
from shortlist.errors import ShortlistError, ShortlistWarning
from shortlist.labels import LabelSets, SparseLabels, check_label_matrix
from shortlist.labels.counts import LARGE_MATRIX
from shortlist.labels.label_set_inputs import check_stored
from shortlist.labels.sparse_labels import is_sparse
from shortlist.optional import require

FORMS = (
    "one class label per example; a label matrix of 1 (present), 0 (absent) and -1 (unknown); "
    "one list of names per example; one set of labels per example; or LabelSets"
)

_NO_CLASS = UNKNOWN | {"", "nan", "none", "null", "na", "n/a", "<na>", "?", r"\n"}  # in small letters


def read_target(y: Any, classes: Any = None, *, new: bool = False) -> tuple[NDArray[Any], Any]:
    """The labels, and class indices (N,) or a label matrix (N, L) over them, sparse where it is large.

    ``classes``: the labels, where they are known already, and others are refused, or come after them if they may be
    ``new``; otherwise they are those that occur, sorted (the columns of a label matrix).

    >>> read_target(["owl", "cat", "owl"])
    (array(['cat', 'owl'], dtype='<U3'), tensor([1, 0, 1]))
    >>> read_target([["owl", "cat"], []])
    (array(['cat', 'owl'], dtype='<U3'), tensor([[1, 1], [0, 0]], dtype=torch.int8))
    >>> read_target([{3}, {3, 7}])
    (array([3, 7]), tensor([[1, 0], [1, 1]], dtype=torch.int8))
    >>> read_target([[1, 0], [0, -1]])
    (array([0, 1]), tensor([[ 1,  0], [ 0, -1]], dtype=torch.int8))
    """
    y = _plain(y)
    if is_sparse(y):
        return _sparse_target(y, getattr(y, "vocabulary", None), classes)
    check_stored(y, "y")
    rows = _collections(y)
    if rows is not None:
        return _collections_target(rows, classes, new)
    try:
        array = np.asarray(y)
    except ValueError:
        raise ShortlistError(f"y holds rows of different lengths: y is {FORMS}") from None
    if array.ndim == 2 and array.shape[1] != 1:
        if array.dtype == object and hasattr(y, "iloc") and all(map(_is_number_dtype, y.dtypes)):
            array = y.to_numpy(dtype=np.float64, na_value=np.nan)  # pandas' nullable types
        return _matrix_target(array, getattr(y, "columns", None), classes)
    return _class_target(column_or_1d(array, warn=True), classes, new)


def _is_number_dtype(kind: Any) -> bool:
    types = require("pandas").api.types
    return bool(types.is_numeric_dtype(kind) or types.is_bool_dtype(kind))


def _plain(y: Any) -> Any:
    """Tensors as arrays, frames and columns of Arrow and polars as what numpy and pandas have for them."""
    if isinstance(y, Tensor):
        return y.detach().cpu().numpy() if y.layout == torch.strided else y
    frame = frame_of(y)
    if frame is not None or hasattr(y, "iloc"):
        return y if frame is None else frame
    listed = getattr(y, "to_pylist", None) or getattr(y, "to_list", None)
    return y if listed is None else listed()


def _class_target(y: NDArray[Any], classes: Any, new: bool) -> tuple[NDArray[Any], Tensor]:
    if y.dtype.kind not in "biu":
        _check_none_missing(y.tolist(), "class")
    if y.dtype == object and all(isinstance(label, Real) for label in y.tolist()):
        y = np.array(y.tolist())  # numbers of a table that holds texts, too
    assert_all_finite(y, input_name="y")
    try:
        check_classification_targets(y)
        found, indices = np.unique(y, return_inverse=True)
    except TypeError:
        kinds = ", ".join(sorted({type(label).__name__ for label in y.tolist()}))
        raise ShortlistError(f"the classes of y must be all names or all numbers, got {kinds}") from None
    if classes is not None:
        known = _numbered(classes, found.tolist() if new else ())
        places = [known.get(label, -1) for label in found.tolist()]
        if -1 in places:
            raise ShortlistError(f"y holds {found.tolist()[places.index(-1)]!r}, which is not one of {_listed(known)}")
        found, indices = _with_new(classes, known), np.array(places)[indices]
    return found, torch.from_numpy(np.ascontiguousarray(indices, dtype=np.int64))


def _matrix_target(matrix: Any, names: Any, classes: Any) -> tuple[NDArray[Any], Tensor]:
    try:
        check_label_matrix(matrix)
    except ValueError as error:
        raise ShortlistError(f"y is read as a label matrix: {error}. Other forms of y: {FORMS}") from None
    dense = np.asarray(matrix)
    return _column_names(dense.shape[1], names, classes), torch.from_numpy(np.array(dense, dtype=np.int8, order="C"))


def _sparse_target(matrix: Any, names: Any, classes: Any) -> tuple[NDArray[Any], Tensor | SparseLabels]:
    """As it is where the whole matrix would be large."""
    try:
        stored = SparseLabels.of(matrix, "cpu")
    except ShortlistError as error:
        raise ShortlistError(f"y is read as a label matrix: {error}. Other forms of y: {FORMS}") from None
    labels = _column_names(stored.num_labels, names, classes)
    return labels, stored if stored.numel() >= LARGE_MATRIX else stored.to_dense()


def _column_names(count: int, names: Any, classes: Any) -> NDArray[Any]:
    """The labels of so many columns."""
    if getattr(names, "nlevels", 1) > 1:
        names = names.map(str)  # names of several levels, which no file holds
    labels = np.arange(count) if names is None else np.asarray(names)
    if classes is not None:
        if len(classes) != count:
            raise ShortlistError(f"y has {count} columns for {len(classes)} labels")
        if names is not None and labels.tolist() != np.asarray(classes).tolist():
            raise ShortlistError(f"the columns of y are {_listed(labels.tolist())}; expected {_listed(classes)}")
        labels = np.asarray(classes)
    return labels


def _collections(y: Any) -> list[Any] | None:
    """The rows of ``y``, where they are sets, or lists of names."""
    if getattr(y, "ndim", 1) == 2 and getattr(y, "dtype", np.dtype(int)).kind == "U" and y.shape[1] > 1:
        rows: list[Any] = y.tolist()
    elif isinstance(y, Sequence) or (getattr(y, "ndim", 0) == 1 and y.dtype == object):
        rows = list(y)
    else:
        return None
    if rows and all(isinstance(row, set | frozenset) for row in rows):
        return rows
    if any(isinstance(row, list | set | frozenset) for row in rows):
        _check_none_missing(rows, "list of labels (one without any is [])")
    if rows and all(isinstance(row, list | tuple | np.ndarray) for row in rows):
        return rows if any(isinstance(label, str) for row in rows for label in row) else None
    return None


def _collections_target(rows: list[Iterable[Any]], classes: Any, new: bool) -> tuple[NDArray[Any], Any]:
    if classes is None:
        found = {label for row in rows for label in row}
        if not all(isinstance(x, str) for x in found) and not all(isinstance(x, int | np.integer) for x in found):
            kinds = ", ".join(sorted({type(label).__name__ for label in found}))
            raise ShortlistError(f"the labels of y must be all names or all whole numbers, got {kinds}")
        classes = np.array(sorted(found)) if found else np.arange(0)
    known = _numbered(classes, [label for row in rows for label in row] if new else ())
    labels = _with_new(classes, known)
    for number, row in enumerate(rows):
        for label in row:
            if label not in known:
                raise ShortlistError(f"y[{number}] holds {label!r}, which is not one of {_listed(known)}")
    if not known:
        return labels, torch.zeros(len(rows), 0, dtype=torch.int8)
    present = LabelSets.from_lists([[known[label] for label in row] for row in rows], len(known))
    return labels, _sparse_target(present, None, None)[1]


def _numbered(classes: Any, new: Iterable[Any]) -> dict[Any, int]:
    """The place of each label, and of new ones after them."""
    return {label: place for place, label in enumerate(dict.fromkeys([*np.asarray(classes).tolist(), *new]))}


def _with_new(classes: Any, known: dict[Any, int]) -> NDArray[Any]:
    labels = np.asarray(classes)
    return labels if len(known) == len(labels) else np.array(list(known), dtype=object)


def warn_of_unknown(labels: NDArray[Any], target: Any) -> None:
    """Of classes that may stand for an unknown one, of labels that are unknown in every row of a label matrix, and of
    names that are nearly the same."""
    for said in names_alike(name for name in labels.tolist() if isinstance(name, str)):
        warnings.warn(f"y: {said}", ShortlistWarning, stacklevel=5)
    if target.ndim == 1:
        names = labels.tolist()
        wrong = [x for x in names if (x == -1 and 0 in names) or (isinstance(x, str) and x.lower() in _NO_CLASS)]
        said = "is taken as a class of its own: if it stands for an unknown one, leave its rows out of X and y"
        lists = [name for name in names if isinstance(name, str) and name[:1] + name[-1:] in ("[]", "{}")]
        if 2 * len(lists) > len(names) and any("," in name for name in lists):
            remedy = "if these are lists of labels, give lists: [ast.literal_eval(name) for name in y]"
            warnings.warn(f"{_listed(lists, 3)} in y is taken as one class: {remedy}", ShortlistWarning, stacklevel=5)
            names = [name for name in names if name not in lists]
        mark, joined = joined_names([name for name in names if isinstance(name, str)])
        if joined:
            remedy = f"if these are several labels, give lists: [name.split({mark!r}) for name in y]"
            warnings.warn(f"{_listed(joined)} in y is taken as one class: {remedy}", ShortlistWarning, stacklevel=5)
    else:
        wrong = [] if isinstance(target, SparseLabels) else labels[(target == -1).all(0).numpy()].tolist()
        said = "is a label of which nothing is known in any row (-1), and which is not learnt: leave its column out"
    if wrong:
        warnings.warn(f"{_listed(wrong)} in y {said}", ShortlistWarning, stacklevel=5)


def _is_missing(label: Any) -> bool:
    return label is None or type(label).__name__ == "NAType" or (isinstance(label, float) and label != label)


def _check_none_missing(rows: Sequence[Any], what: str) -> None:
    missing = [row for row, label in enumerate(rows) if _is_missing(label)]
    if missing:
        raise ShortlistError(
            f"y[{missing[0]}] is {rows[missing[0]]}, and {len(missing)} of {len(rows)} examples have no {what}: y "
            f"contains NaN or None. Leave these rows out of X and y; in a label matrix an unknown label is -1 "
            f"(labels.from_nan writes that)"
        )


def _listed(labels: Iterable[Any], most: int = 10) -> str:
    """The first few labels, as text for a message."""
    shown = list(labels)
    return ", ".join(map(repr, shown[:most])) + (f", ... ({len(shown)} labels)" if len(shown) > most else "")
