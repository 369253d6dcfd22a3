"""The converters from other codings to the label matrix.

A label matrix holds 1 (present), 0 (absent) and -1 (unknown). Files code the same three facts in many ways, and a guess
would be wrong in silence: each converter is named after the coding it reads and accepts nothing else. Torch tensors
come back as torch tensors on their device, everything else as numpy arrays; always int8.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shortlist.checks import check_choice
from shortlist.errors import ShortlistError
from shortlist.labels.label_set_inputs import check_num_labels, check_rest, first_true
from shortlist.labels.label_sets import LabelSets
from shortlist.labels.sparse_labels import SparseLabels
from shortlist.optional import require

LabelMatrix = NDArray[np.int8]
Known = Literal["present", "absent", "unknown"]
_LABEL = {"present": 1, "absent": 0, "unknown": -1}
_NAN = float("nan")
_OTHER = -2  # marks, for a moment, a value that is not in the coding
# what the CheXpert and MIMIC-CXR tables say about an image besides its labels
CHEXPERT_OTHER = ("Path", "Sex", "Age", "Frontal/Lateral", "AP/PA", "subject_id", "study_id", "dicom_id", "split")


def check_label_matrix(x: Any) -> None:
    """Raise a ``ValueError`` naming the first entry that is not 1 (present), 0 (absent) or -1 (unknown).

    Takes torch, numpy or scipy sparse matrices of bools, integers or floats.

    >>> check_label_matrix(np.array([[1, 0, -1]]))
    >>> check_label_matrix(torch.tensor([[1, 0, 2]]))
    Traceback (most recent call last):
    shortlist.ShortlistError: x[0, 2] is 2: allowed are 1 (present), 0 (absent), -1 (unknown)
    """
    _recode(x, {1: "present", 0: "absent", -1: "unknown"})


@overload
def from_signed(x: Tensor) -> Tensor: ...
@overload
def from_signed(x: Any) -> LabelMatrix: ...
def from_signed(x: Any) -> Any:
    """The label matrix of signed labels: 1 present, -1 absent, 0 unknown.

    >>> from_signed(np.array([[1, -1, 0]]))
    array([[ 1,  0, -1]], dtype=int8)
    """
    if getattr(x, "dtype", None) in (torch.bool, np.dtype(bool)):
        raise ShortlistError("x is bool, which has no -1: it is a label matrix already, not a signed one")
    return _recode(x, {1: "present", -1: "absent", 0: "unknown"})


@overload
def from_nan(x: Tensor) -> Tensor: ...
@overload
def from_nan(x: Any) -> LabelMatrix: ...
def from_nan(x: Any) -> Any:
    """The label matrix of NaN-coded labels: 1 present, 0 absent, NaN unknown.

    >>> from_nan(torch.tensor([[1.0, 0.0, float("nan")]]))
    tensor([[ 1,  0, -1]], dtype=torch.int8)
    """
    return _recode(x, {1: "present", 0: "absent", _NAN: "unknown"})


@overload
def from_indices(y: Tensor, num_labels: int) -> Tensor: ...
@overload
def from_indices(y: Any, num_labels: int) -> LabelMatrix: ...
def from_indices(y: Any, num_labels: int) -> Any:
    """The label matrix of class indices: the row's own label present, the others absent; -1 or -100: all unknown.

    >>> from_indices([2, -1], num_labels=3)
    array([[ 0,  0,  1], [-1, -1, -1]], dtype=int8)
    """
    num_labels = check_num_labels(num_labels, None)
    if isinstance(y, Tensor):
        whole = not (y.is_floating_point() or y.is_complex() or y.dtype == torch.bool)
        y = y.long() if whole else y
    else:
        y = np.asarray(y)
        y = y if y.size else y.astype(np.int64)  # an empty list has no integer type of its own
        whole = y.dtype.kind in "iu"
    if not whole or y.ndim == 0:
        raise ShortlistError(f"y must hold class indices of an integer type, got shape {tuple(y.shape)} of {y.dtype}")
    unknown = (y == -1) | (y == -100)  # what PyTorch and Hugging Face write
    bad = ~unknown & ((y < 0) | (y >= num_labels))
    if bool(bad.any()):
        at = first_true(_on_cpu(bad))
        raise _bad_entry("y", at, y[at], f"0..{num_labels - 1}, or -1 (or -100) for an unknown row")
    if isinstance(y, Tensor):
        own = y.unsqueeze(-1) == torch.arange(num_labels, device=y.device)
        return own.to(torch.int8).masked_fill_(unknown.unsqueeze(-1), -1)
    own = (y[..., None] == np.arange(num_labels)).astype(np.int8)
    own[unknown] = -1
    return own


def from_sets(
    sets: LabelSets | Iterable[Any],
    num_labels: int | None = None,
    *,
    vocabulary: Sequence[str] | None = None,
    rest: Literal[0, -1] | None = None,
) -> Any:
    """The label matrix in which the labels of each set are present, and the rest absent (0, usually) or unknown (-1).

    ``sets`` holds one collection per example, of label indices or of names from ``vocabulary``; or it is a
    ``LabelSets`` (one that says what is absent, unknown and the rest gives the matrix of that), or a scipy sparse
    matrix of 0 and 1. ``num_labels`` is needed where none of these tells it. A list of tensors gives a tensor.

    >>> from_sets([[0, 2], []], num_labels=3)
    array([[1, 0, 1], [0, 0, 0]], dtype=int8)
    >>> from_sets([["cat"]], vocabulary=["cat", "dog"], rest=-1)  # only some of what is there was written down
    array([[ 1, -1]], dtype=int8)
    """
    if rest is not None:
        check_rest(rest)
    device = None
    if isinstance(sets, LabelSets):
        found = sets
    elif hasattr(sets, "tocsr"):
        found = LabelSets.from_sparse(sets, vocabulary)
    else:
        sets = list(sets)
        device = sets[0].device if sets and isinstance(sets[0], Tensor) else None
        found = LabelSets.from_lists(sets, num_labels, vocabulary)
    if num_labels not in (None, found.num_labels):
        raise ShortlistError(f"num_labels={num_labels} was given, but the sets have {found.num_labels} labels")
    if vocabulary is not None and found.vocabulary != tuple(vocabulary):
        raise ShortlistError("the sets have a vocabulary of their own, and it differs from the one given")
    if found.values is not None or found.rest != 0:
        if rest not in (None, found.rest):
            raise ShortlistError(f"the sets themselves say what the rest is, {found.rest}: rest={rest} was given")
        return SparseLabels.of(found).to_dense().numpy()
    matrix = np.where(found.to_dense(), np.int8(1), np.int8(rest or 0))
    return matrix if device is None else torch.from_numpy(matrix).to(device)


def from_chexpert(
    df: Any,
    labels: Sequence[str] | None = None,
    *,
    uncertain: Known | Mapping[str, Known] = "unknown",
    blank: Known = "unknown",
) -> LabelMatrix:
    """The label matrix of a CheXpert-style table: 1 positive, 0 negative, -1 uncertain, blank not mentioned.

    Args:
        df: a pandas frame with one row per image.
        labels: the label columns, in the order wanted; all columns but those that CheXpert and MIMIC-CXR use for other
            things (``Path``, ``Sex``, ``subject_id``, ...) when not given.
        uncertain: what -1 becomes: "unknown", "present" or "absent"; or a mapping from columns to these, in which the
            columns left out stay unknown.
        blank: what an empty cell becomes; "absent" is what much published work assumes.

    >>> import pandas as pd
    >>> df = pd.DataFrame({"Path": ["a.jpg", "b.jpg"], "Edema": [1.0, None], "Fracture": [-1.0, 0.0]})
    >>> from_chexpert(df)
    array([[ 1, -1], [-1,  0]], dtype=int8)
    >>> from_chexpert(df, uncertain={"Fracture": "present"}, blank="absent")
    array([[1, 1], [0, 0]], dtype=int8)
    """
    pd = require("pandas")
    if not isinstance(df, pd.DataFrame):
        raise ShortlistError(f"df must be a pandas DataFrame, got {type(df).__name__}")
    columns = [c for c in df.columns if c not in CHEXPERT_OTHER] if labels is None else list(labels)
    policy = dict(uncertain) if isinstance(uncertain, Mapping) else dict.fromkeys(columns, uncertain)
    _check_columns("labels", columns, list(df.columns))
    _check_columns("uncertain", policy, columns)
    for name, known in [("blank", blank), *((f"uncertain for {column!r}", known) for column, known in policy.items())]:
        check_choice(known, name, _LABEL)
    matrix = np.empty((len(df), len(columns)), dtype=np.int8)
    for j, column in enumerate(columns):
        matrix[:, j] = _chexpert_column(pd, df[column], policy.get(column, "unknown"), blank)
    return matrix


def _check_columns(name: str, given: Iterable[str], allowed: list[str]) -> None:
    for column in given:
        if column not in allowed:
            raise ShortlistError(f"{name} names {column!r}, which is not one of the columns {allowed}")


def _chexpert_column(pd: Any, cells: Any, uncertain: Known, blank: Known) -> LabelMatrix:
    if cells.ndim != 1:
        raise ShortlistError(f"there are several columns {cells.columns[0]!r}: column names must differ")
    numbers = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64, na_value=_NAN)
    empty = (cells.isna() | (cells == "")).to_numpy(dtype=np.bool_, na_value=True)
    bad = np.where(np.isnan(numbers), ~empty, ~np.isin(numbers, (-1.0, 0.0, 1.0)))
    if bad.any():
        row = int(np.argmax(bad))
        raise ShortlistError(
            f"column {cells.name!r} is {cells.tolist()[row]!r} in row {row}: allowed are 1 (positive), 0 (negative), "
            f"-1 (uncertain), and blank; if it is not a label, name the label columns with labels=[...]"
        )
    return _recode(numbers, {1: "present", 0: "absent", -1: uncertain, _NAN: blank})


def _recode(x: Any, coding: Mapping[float, Known]) -> Any:
    """The label matrix of values that mean what ``coding`` says; any other value is an error naming its position."""
    sparse = x.tocsr().tocoo() if hasattr(x, "tocsr") else None
    values = x if isinstance(x, Tensor) else np.asarray(x if sparse is None else sparse.data)
    kind = values.dtype
    if values.ndim == 0 or (kind.is_complex if isinstance(kind, torch.dtype) else kind.kind not in "biuf"):
        raise ShortlistError(f"x must hold bools or numbers, one per label, got shape {tuple(values.shape)} of {kind}")
    labels: Any
    if isinstance(values, Tensor):
        values = values.short() if kind == torch.uint8 else values  # torch takes 255 for -1 in this type
        labels = torch.full(values.shape, _OTHER, dtype=torch.int8, device=values.device)
    else:
        labels = np.full(values.shape, _OTHER, dtype=np.int8)
    for value, known in coding.items():
        labels[values != values if value != value else values == value] = _LABEL[known]
    other = labels == _OTHER
    if bool(other.any()):
        at = first_true(_on_cpu(other))
        position = at if sparse is None else (int(sparse.row[at]), int(sparse.col[at]))
        allowed = ", ".join(f"{v:g} ({known})" for v, known in coding.items())
        blank = bool(values[at] != values[at])
        raise _bad_entry("x", position, values[at], allowed + "; labels.from_nan takes NaN as unknown" * blank)
    if sparse is None:
        return labels
    matrix = np.full(sparse.shape, _LABEL[coding[0]], dtype=np.int8)
    matrix[sparse.row, sparse.col] = labels
    return matrix


def _bad_entry(name: str, position: tuple[int, ...], value: Any, allowed: str) -> ShortlistError:
    return ShortlistError(f"{name}{list(position)} is {value.item()}: allowed are {allowed}")


def _on_cpu(x: Any) -> NDArray[Any]:
    return x.cpu().numpy() if isinstance(x, Tensor) else np.asarray(x)
