"""Labels in a column each, or in a label matrix: what its numbers, words and blanks say of each label."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shortlist import labels
from shortlist.data.cells import NA_VALUES, NO, UNKNOWN, UNSURE, YES, is_number
from shortlist.data.column_use import as_option
from shortlist.data.dataset import default_names
from shortlist.data.limits import check_unpacked
from shortlist.data.readers._columns import Columns
from shortlist.data.readers._label_options import CODINGS, Given, Labels
from shortlist.data.readers.findings import Findings
from shortlist.errors import ShortlistError
from shortlist.files import PathLike
from shortlist.labels.counts import LARGE_MATRIX
from shortlist.labels.sparse_labels import SparseLabels
from shortlist.optional import require


def columns_as_numbers(
    table: Columns,
    names: Sequence[str],
    coding: str,
    file: PathLike,
    findings: Findings,
    unknown: Sequence[str] = (),
) -> Any:
    """A matrix (N, L) of a column per label, in the coding's numbers, NaN where blank; every wrong cell is noted.
    ``unknown``: cells that say that nothing is known."""
    absent = -1.0 if coding == "signed" else 0.0
    found = [_column_as_numbers(table.array(name), name, absent, coding, file, findings, unknown) for name in names]
    return np.stack(found, axis=1)


def _column_as_numbers(
    cells: NDArray[Any],
    name: str,
    absent: float,
    coding: str,
    file: PathLike,
    findings: Findings,
    unknown: Sequence[str],
) -> NDArray[np.float64]:
    if cells.ndim != 1:
        findings.add(file, f"the column {name!r} holds lists: a column per label holds {CODINGS[coding]}")
        return np.full(len(cells), np.nan)
    if cells.dtype.kind == "b":
        return np.where(cells, 1.0, absent)
    if cells.dtype.kind in "iuf":
        codes = [float(word) for word in unknown if is_number(word)]
        return np.where(np.isin(cells, codes), _nothing_known(coding), cells.astype(np.float64))
    meaning = {cell: number_of(cell, absent) for cell in set(map(_hashable, cells.tolist()))}
    found = np.array([meaning[_hashable(cell)] for cell in cells.tolist()])
    if coding == "marks":
        found = np.where(np.isinf(found), 1.0, found)
        found[[str(cell).strip().lower() in UNKNOWN | UNSURE for cell in cells.tolist()]] = -1.0
    found[[str(cell).strip() in unknown for cell in cells.tolist()]] = _nothing_known(coding)
    bad = np.flatnonzero(np.isinf(found)).tolist()
    words = "true/false, yes/no, ja/nein, oui/non, blank, unknown, uncertain"
    marks = "coding=marks takes any mark as present and blanks as absent"
    wrong = sorted({str(cells[row]) for row in bad})
    taken = f"; give unknown_names={as_option(wrong)} if that means that nothing is known"
    allowed = f"{CODINGS[coding]}, {words}; label_columns names the columns that are labels; {marks}"
    allowed += taken if len(wrong) <= 5 else ""
    findings.rows(file, bad, lambda row: f"the column {name!r} is {cells[row]!r}: allowed are {allowed}")
    return np.where(np.isinf(found), np.nan, found)


def _nothing_known(coding: str) -> float:
    return -1.0 if coding == "marks" else math.nan  # where a blank is absent


def _hashable(cell: Any) -> Any:
    return str(cell) if isinstance(cell, list | dict) else cell


def number_of(cell: Any, absent: float) -> float:
    """What a cell of text says of a label; infinity where it says nothing."""
    if cell is None or (isinstance(cell, str) and cell in NA_VALUES):
        return math.nan
    if isinstance(cell, bool):
        return 1.0 if cell else absent
    word = str(cell).strip().lower()
    if word in UNKNOWN or word in UNSURE:
        return math.nan
    if word in YES or word in NO:
        return 1.0 if word in YES else absent
    try:
        return float(word)
    except ValueError:
        return math.inf


def in_order(columns: Sequence[str], names: Sequence[str], vocabulary: Sequence[str] | None) -> Sequence[str]:
    """Columns of labels that are called so, in the order of the vocabulary where it has the same names.

    >>> in_order(["y_cat", "y_dog"], ["cat", "dog"], ["dog", "cat"])
    ['y_dog', 'y_cat']
    """
    column = dict(zip(names, columns, strict=True))
    if vocabulary is None or set(vocabulary) != set(column):
        return columns
    return [column[name] for name in vocabulary]


def blanks_are_unknown(found: Any, coding: str) -> Any:
    """Labels of a table, where blanks are NaN, in the numbers of their coding; classes (N,) as they are."""
    if found.ndim == 2 and coding == "marks":
        return np.where(np.isnan(found), 0.0, found)
    if found.dtype.kind != "f" or found.ndim == 1 or coding in ("nan", "chexpert"):
        return found
    return np.where(np.isnan(found), 0.0 if coding == "signed" else -1.0, found)


def from_matrix(found: Any, given: Given, file: PathLike, findings: Findings) -> Labels | None:
    names = default_names(int(found.shape[1])) if given.vocabulary is None else tuple(given.vocabulary)
    if given.num_labels not in (None, len(names)):
        raise ShortlistError(f"num_labels={given.num_labels} was given, but there are {len(names)} labels")
    if found.shape[1] != len(names):
        findings.add(file, f"the label matrix has {found.shape[1]} columns for {len(names)} labels")
        return None
    if hasattr(found, "toarray"):
        try:
            if given.coding == "label-matrix" and math.prod(found.shape) >= LARGE_MATRIX:
                return Labels(SparseLabels.of(found), names)
            check_unpacked(file, math.prod(found.shape) * found.dtype.itemsize)
        except ShortlistError as error:
            findings.add(file, f"the sparse label matrix: {error}")
            return None
        found = found.toarray()
    dense = np.asarray(found)
    if dense.dtype.kind not in "biuf":
        findings.add(file, f"the label matrix must hold numbers, got {dense.dtype}")
        return None
    right = np.isin(dense, (0, 1) if dense.dtype.kind in "bu" or given.coding == "nan" else (-1, 0, 1))
    if given.coding in ("nan", "chexpert") and dense.dtype.kind == "f":
        right |= np.isnan(dense)
    bad = np.flatnonzero(~right.all(1)).tolist()
    first = (~right).argmax(1)  # of each row, the first label that is wrong
    codes = [{*np.unique(column).tolist()} & {0, 1, 2} for column in dense.T] if bad else []

    def message(row: int) -> str:
        value = dense[row, first[row]]
        blank = "; coding='nan' takes NaN as unknown (labels.from_nan)" if value != value else ""
        if value == 2 and codes[first[row]] == {1, 2}:
            blank = "; where 1 is yes and 2 no, or 1 no and 2 yes, write 1 for yes and 0 for no"
        elif given.of_table:
            blank = f"; give unknown_names={as_option([f'{value:g}'])} if that means that nothing is known"
        return f"label {names[first[row]]} is {value}: allowed are {CODINGS[given.coding]}{blank}"

    findings.rows(file, bad, message)
    if bad:
        return None
    return Labels(torch.from_numpy(_recoded(dense, names, given)), names)


def _recoded(dense: NDArray[Any], names: tuple[str, ...], given: Given) -> NDArray[np.int8]:
    if given.coding == "chexpert":
        frame = require("pandas").DataFrame(dense, columns=list(names))
        return labels.from_chexpert(frame, list(names), uncertain=given.uncertain)
    convert = {"signed": labels.from_signed, "nan": labels.from_nan}.get(given.coding, np.asarray)
    return np.ascontiguousarray(convert(dense)).astype(np.int8)


def one_each(found: Labels, file: PathLike, findings: Findings) -> Labels | None:
    """Class indices of a label matrix; rows that have no 1, and where something is unknown, are unknown."""
    target = found.target if isinstance(found.target, Tensor) else found.target.to_dense()
    present = (target == 1).sum(1)
    unknown = (present == 0) & (target == -1).any(1)
    bad = ((present != 1) & ~unknown).nonzero()[:, 0].tolist()
    allowed = "coding='one-hot' takes rows with one; 'label-matrix' any number"
    findings.rows(file, bad, lambda row: f"{int(present[row])} labels are present: {allowed}")
    return None if bad else replace(found, target=torch.where(unknown, -1, (target == 1).int().argmax(1)))
