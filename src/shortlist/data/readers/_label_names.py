"""One label for each example: a name, or the number of a class."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from shortlist.data.column_use import as_option, listed
from shortlist.data.dataset import default_names
from shortlist.data.readers._label_options import Given, Labels
from shortlist.data.readers.findings import BY_NAME, Findings
from shortlist.errors import ShortlistError, ShortlistWarning
from shortlist.files import PathLike

_QUANTITY = "; of a quantity, make classes first, such as low and high"


def from_classes(found: Any, given: Given, file: PathLike, findings: Findings) -> Labels | None:
    """Whole numbers; -1 and blank are unknown."""
    if found.dtype.kind == "b":
        return from_names([str(value).lower() for value in found.tolist()], given, file, findings)
    is_blank = np.zeros(len(found), dtype=bool)
    if found.dtype.kind == "f":
        if given.of_table or given.coding == "nan":
            is_blank = np.isnan(found)
            found = np.where(is_blank, -1, found)
        broken = np.flatnonzero(found % 1 != 0).tolist()
        blank = "; coding='nan' takes NaN as unknown" if np.isnan(found).any() else ""
        allowed = f"allowed are whole numbers, names and lists{blank}"
        if broken:
            findings.together(file, broken, found, "the label is no whole number", allowed + _QUANTITY)
            return None
    if found.dtype.kind not in "iuf":
        findings.add(file, f"labels must be whole numbers, names or a label matrix, got {found.dtype}")
        return None
    found = found.astype(np.int64)
    names = given.vocabulary
    if given.num_labels is not None:
        if names is not None and len(names) != given.num_labels:
            raise ShortlistError(f"num_labels={given.num_labels} was given, but there are {len(names)} names")
        names = default_names(given.num_labels) if names is None else names
    if names is not None and by_index(names, given):
        bad = np.flatnonzero((found < -1) | (found >= len(names))).tolist()
        allowed = f"allowed are 0..{len(names) - 1}, -1 or blank (unknown)"
        findings.rows(file, bad, lambda row: f"label {found[row]} is outside the vocabulary: {allowed}")
        return None if bad else Labels(torch.from_numpy(found), tuple(names))
    occur = np.unique(found[~is_blank]).tolist()
    if names is None and occur == [1] and is_blank.any() and given.of_table:
        findings.add(
            file,
            "the labels are 1 and blank, and blank means unknown: for one label that is present (1) or absent (blank) "
            "name its column in label_columns and give coding='marks'",
        )
        return None
    classes = f"give vocabulary={as_option(list(map(str, occur)))} if these are the classes"
    if names is None and occur == [-1, 1]:
        findings.add(
            file,
            "the labels are 1 and -1, and -1 means unknown: for one label that is present (1) or absent (-1) name its "
            f"column in label_columns and give coding='signed'; {classes}",
        )
        return None
    if names is None and occur == [-1, 0, 1]:
        unknown = "give num_labels=2 if -1 means unknown, as usual"
        findings.add(file, f"the labels are -1, 0 and 1: {classes}; {unknown}")
        return None
    negative = np.flatnonzero(found < -1).tolist()
    few = f"; {classes}" if len(occur) <= 20 else _QUANTITY
    if negative:
        allowed = f"allowed are 0, 1, ..., -1 (unknown){few if names is None else ''}"
        findings.together(file, negative, found, "the label is negative", allowed)
        return None
    known = tuple(str(value) for value in occur if value >= 0) if names is None else tuple(names)
    if BY_NAME.get() and not {str(value) for value in occur if value >= 0} & set(known) and occur not in ([], [-1]):
        option = f"vocabulary={as_option(list(known))}" if len(known) <= 5 else "all names in vocabulary"
        findings.add(
            file,
            f"the labels are numbers, {listed(list(map(str, occur)), 5)}, and those of the training data are names, "
            f"{listed(list(map(repr, known)), 5)}: write the names, or give {option} if the numbers count them from 0",
        )
        return None
    cells = [None if value == -1 else str(value) for value in found.tolist()]
    result = from_names(cells, Given(vocabulary=known), file, findings)
    if result is None or names is not None or not known:
        return result
    occurring = f"{len(known)} class{'es' * (len(known) > 1)} occur{'s' * (len(known) == 1)}, {listed(known, 5)}"
    note = f"the labels are whole numbers: {occurring}; give num_labels if there are more"
    return Labels(result.target, result.vocabulary, (note,))


def from_names(cells: Sequence[Any], given: Given, file: PathLike, findings: Findings) -> Labels | None:
    found, known = indices_of_names(_one_spelling(cells, given.vocabulary), given.vocabulary, file, findings)
    if given.num_labels not in (None, len(known)):
        raise ShortlistError(f"num_labels={given.num_labels} was given, but there are {len(known)} names")
    return None if findings.problems else Labels(torch.from_numpy(found), known)


def _one_spelling(cells: Sequence[Any], vocabulary: Sequence[str] | None) -> Sequence[Any]:
    """True, TRUE and true are one label, where all are that or false: spelt as in the vocabulary, else true."""
    if not {cell.lower() for cell in set(cells) - {None}} <= {"true", "false"}:
        return cells
    spelt = {name.lower(): name for name in vocabulary or ()} | {name: name for name in vocabulary or ()}
    return [None if cell is None else spelt.get(cell) or spelt.get(cell.lower(), cell.lower()) for cell in cells]


def indices_of_names(
    names: Sequence[Any], vocabulary: Sequence[str] | None, file: PathLike, findings: Findings
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Class indices of labels written as names; without a vocabulary it is the names that occur, sorted."""
    known = tuple(sorted({*names} - {None})) if vocabulary is None else tuple(vocabulary)
    number: dict[Any, int] = defaultdict(lambda: -2, {name: label for label, name in enumerate(known)} | {None: -1})
    found = np.fromiter(map(number.__getitem__, names), dtype=np.int64, count=len(names))
    outside: dict[str, list[int]] = {}
    for row in np.flatnonzero(found == -2).tolist():
        outside.setdefault(names[row], []).append(row)
    if not may_be_left_out(outside, known, int((found != -1).sum()), file):
        findings.outside(file, outside, known)
    return np.maximum(found, -1), known


def may_be_left_out(outside: Mapping[str, Sequence[int]], known: Sequence[str], rows: int, file: PathLike) -> bool:
    """Of data that a run is to be judged by, whether labels that it does not know are left out, which is told: unless
    most rows have some, or they are known ones in another spelling."""
    plain = {" ".join(name.casefold().split()) for name in known}
    wrong = {row for places in outside.values() for row in places}
    slips = any(" ".join(name.casefold().split()) in plain for name in outside)
    if not BY_NAME.get() or not wrong or slips or 2 * len(wrong) > rows:
        return False
    shown = listed(list(map(repr, outside)), 3)
    warnings.warn(
        f"{file}: {len(wrong)} of {rows} rows have labels that the training data does not have, {shown}: these labels "
        f"are not judged, though no set will ever hold them",
        ShortlistWarning,
        stacklevel=2,
    )
    return True


def has_negatives(vocabulary: Sequence[str] | None) -> bool:
    """Whether a label is called by a number below 0, so that numbers are names: -1 is not unknown then."""
    return any(name[:1] == "-" and name[1:].isdecimal() for name in vocabulary or ())


def by_index(names: Sequence[str], given: Given) -> bool:
    """Whether numbers in the file are places among the names that are given."""
    return given.numbers_are_indices or not (_number_elsewhere(names) or BY_NAME.get())


def _number_elsewhere(names: Sequence[str]) -> bool:
    """Whether a name is a whole number, and not its own index: numbers in the file are then names."""
    return any(are_numbers([name]) and int(name) != place for place, name in enumerate(names))


def are_numbers(names: Iterable[str]) -> bool:
    """Whether all names are whole numbers as Python writes them."""
    return all(name.isdecimal() and str(int(name)) == name for name in names)


def digits(number: float) -> str:
    return str(int(number)) if number == int(number) else str(number)
