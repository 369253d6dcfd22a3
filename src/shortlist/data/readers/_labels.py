"""Labels as files have them, by the same rules in every reader: classes, names, lists of names, a column per label."""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shortlist import labels
from shortlist.data.cells import NA_VALUES, NO, UNKNOWN, YES
from shortlist.data.column_use import as_option, listed
from shortlist.data.dataset import default_names
from shortlist.data.limits import check_unpacked
from shortlist.data.readers._columns import Columns
from shortlist.data.readers.findings import BY_NAME, Findings, PathLike
from shortlist.errors import ShortlistError, ShortlistWarning
from shortlist.labels.counts import LARGE_MATRIX
from shortlist.labels.sparse_labels import SparseLabels
from shortlist.optional import require

Coding = Literal["label-matrix", "signed", "nan", "marks", "chexpert", "one-hot"]
Known = Literal["present", "absent", "unknown"]
Uncertain = Known | Mapping[str, Known]
_QUANTITY = "; of a quantity, make classes first, such as low and high"
_CODINGS: Mapping[str, str] = {
    "label-matrix": "1 (present), 0 (absent), -1 (unknown)",
    "signed": "1 (present), -1 (absent), 0 (unknown)",
    "nan": "1 (present), 0 (absent), blank (unknown)",
    "marks": "any mark (present), blank or 0 (absent), -1 (unknown)",
    "chexpert": "1 (present), 0 (absent), -1 (uncertain), blank (unknown)",
    "one-hot": "1 (the label of the example), 0 (the others), -1 (unknown)",
}


_FEWEST_NAMES = 3  # in several columns that hold names
_TAG, _TAGS = re.compile("<([^<>]+)>"), re.compile("(<[^<>]+>)+")
_QUOTED = re.compile("'[^']*'|\"[^\"]*\"")
_WITHOUT_COMMAS = re.compile(rf"\[\s*(?:{_QUOTED.pattern})(?:\s+(?:{_QUOTED.pattern}))+\s*\]")


@dataclass(frozen=True)
class Given:
    """What the options of a reader say about its labels (see ``read_features``)."""

    vocabulary: Sequence[str] | None = None
    num_labels: int | None = None
    coding: Coding = "label-matrix"
    uncertain: Uncertain = "unknown"
    separator: str | None = None
    rest: Literal["absent", "unknown"] = "absent"
    unknown_names: Sequence[str] = ()
    numbers_are_indices: bool = False  # whatever the labels are called; otherwise 7 means the label '7' if there is one

    def __post_init__(self) -> None:
        if self.coding not in _CODINGS:
            raise ShortlistError(f"coding must be one of {', '.join(map(repr, _CODINGS))}, got {self.coding!r}")
        if self.rest not in ("absent", "unknown"):
            raise ShortlistError(f"rest must be 'absent' or 'unknown', got {self.rest!r}")
        if self.uncertain != "unknown" and self.coding != "chexpert":
            raise ShortlistError("uncertain says what -1 means in coding='chexpert': give both of them")
        if self.separator == "":
            raise ShortlistError("separator must be a text that stands between names, such as '|'")


@dataclass(frozen=True)
class Labels:
    target: Tensor | SparseLabels
    vocabulary: tuple[str, ...]
    notes: tuple[str, ...] = ()  # what was decided that the file does not say


def labels_of(written: Any, given: Given, file: PathLike, findings: Findings) -> Labels | None:
    """The target of what a file holds; None where something was noted.

    - A matrix (N, L), dense or sparse: ``coding`` says what its numbers mean.
    - Lists (N,), also those that are written in a text as JSON: the labels that are present.
    - Texts (N,): names, one for each example; several with a ``separator`` between.
    - Whole numbers (N,): classes; they are indices where names or their number are given, otherwise names.
    """
    found = _labels_of(written, given, file, findings)
    if found is not None and found.target.ndim == 2 and given.coding == "one-hot":
        found = _one_each(found, file, findings)
    unknown = 0 if found is None or found.target.ndim != 1 else int((found.target == -1).sum())
    if found is None or not unknown:
        return found
    note = f"{unknown} of {len(found.target)} examples {'has' if unknown == 1 else 'have'} no known label"
    return replace(found, notes=(*found.notes, note))


def _labels_of(written: Any, given: Given, file: PathLike, findings: Findings) -> Labels | None:
    if written.ndim == 2 and written.shape[1] == 1 and written.dtype.kind in "iu" and bool((written > 1).any()):
        written = written[:, 0]  # as Keras has classes
    if written.ndim == 2:
        return _matrix(written, given, file, findings)
    if written.ndim != 1:
        findings.add(file, f"labels must be classes (N,) or a label matrix (N, L), got shape {written.shape}")
        return None
    if written.dtype.kind in "if" and has_negatives(given.vocabulary):
        cells = [None if number != number else _digits(number) for number in written.tolist()]
        return _names(cells, given, file, findings)
    if written.dtype.kind in "OU":
        cells = written.tolist()
        if written.dtype.kind == "U":
            cells = [cell or None for cell in cells]
        kinds = set(map(type, cells))  # far quicker than asking each of a million cells
        if bool in kinds:
            cells = [str(cell).lower() if isinstance(cell, bool) else cell for cell in cells]
        if not all(issubclass(kind, bool | str | list | None) for kind in kinds):
            other = next(cell for cell in cells if not isinstance(cell, str | list | None))
            findings.add(file, f"labels must be whole numbers, names or lists, got {other!r}")
            return None
        if given.separator is not None:
            return _listed(_split(cells, given, file, findings), given, file, findings)
        lists = _as_lists(cells, given.unknown_names, file, findings)
        if given.unknown_names and lists is None:
            cells = [None if cell in given.unknown_names else cell for cell in cells]
        if lists is None:
            return _names(cells, given, file, findings)
        found = _listed(lists, given, file, findings)
        blank = 0 if found is None or "" in given.unknown_names else cells.count(None)
        if found is None or not blank:
            return found
        is_one = "is blank: an example" if blank == 1 else "are blank: examples"
        note = (
            f"{blank} of {len(cells)} lists {is_one} without labels; give unknown_names='[\"\"]' if these are unknown"
        )
        return replace(found, notes=(*found.notes, note))
    if given.separator is not None:
        # a column of single numbers: every example has one label
        cells = [None if number != number else _digits(number) for number in written.tolist()]
        return _listed(_split(cells, given, file, findings), given, file, findings)
    return _classes(written, given, file, findings)


# ---- one column per label


def columns_as_numbers(table: Columns, names: Sequence[str], coding: str, file: PathLike, findings: Findings) -> Any:
    """A matrix (N, L) of a column per label, in the coding's numbers, NaN where blank; every wrong cell is noted."""
    absent = -1.0 if coding == "signed" else 0.0
    found = [_column_as_numbers(table.array(name), name, absent, coding, file, findings) for name in names]
    return np.stack(found, axis=1)


def names_in_columns(table: Columns, columns: Sequence[str], vocabulary: Sequence[str] | None = None) -> Any:
    """The names that several columns hold, ``primary`` and ``secondary``, say: a list for each row (N,), None where all
    are blank. None where the columns say yes or no of one label each, or hold fewer than three names, none of
    which is known: these may be words for yes and no, or a mark for yes."""
    if len(columns) < 2 or not all(table.is_flat(name) and not table.has_numbers(name) for name in columns):
        return None
    cells = [table.texts(name).tolist() for name in columns]
    found = {cell for column in cells for cell in column if cell is not None and cell not in NA_VALUES}
    if any(not isinstance(cell, str) or math.isfinite(_number_of(cell, 0.0)) for cell in found):
        return None
    if len({cell.casefold() for cell in found}) < _FEWEST_NAMES and not found & set(vocabulary or ()):
        return None
    lists = np.empty(len(cells[0]), dtype=object)
    lists[:] = [[name for name in row if name in found] or None for row in zip(*cells, strict=True)]
    return lists


def in_order(columns: Sequence[str], names: Sequence[str], vocabulary: Sequence[str] | None) -> Sequence[str]:
    """Columns of labels that are called so, in the order of the vocabulary where it has the same names.

    >>> in_order(["y_cat", "y_dog"], ["cat", "dog"], ["dog", "cat"])
    ['y_dog', 'y_cat']
    """
    column = dict(zip(names, columns, strict=True))
    if vocabulary is None or set(vocabulary) != set(column):
        return columns
    return [column[name] for name in vocabulary]


def column_of_labels(table: Columns, name: str) -> Any:
    """The labels of one column; lists of class numbers, though all are of one length, are no label matrix."""
    found = table.array(name)
    if found.ndim == 2 and found.dtype.kind in "iu" and not np.isin(found, (-1, 0, 1)).all():
        lists = np.empty(len(found), dtype=object)
        lists[:] = found.tolist()
        return lists
    return found


def _column_as_numbers(
    cells: NDArray[Any], name: str, absent: float, coding: str, file: PathLike, findings: Findings
) -> NDArray[np.float64]:
    if cells.ndim != 1:
        findings.add(file, f"the column {name!r} holds lists: a column per label holds {_CODINGS[coding]}")
        return np.full(len(cells), np.nan)
    if cells.dtype.kind == "b":
        return np.where(cells, 1.0, absent)
    if cells.dtype.kind in "iuf":
        return cells.astype(np.float64)
    meaning = {cell: _number_of(cell, absent) for cell in set(map(_hashable, cells.tolist()))}
    found = np.array([meaning[_hashable(cell)] for cell in cells.tolist()])
    if coding == "marks":
        found = np.where(np.isinf(found), 1.0, found)
        found[[str(cell).strip().lower() in UNKNOWN for cell in cells.tolist()]] = -1.0
    bad = np.flatnonzero(np.isinf(found)).tolist()
    words = "true/false, yes/no, ja/nein, oui/non, blank, unknown"
    allowed = f"{_CODINGS[coding]}, {words}; label_columns names the columns that are labels"
    findings.rows(file, bad, lambda row: f"the column {name!r} is {cells[row]!r}: allowed are {allowed}")
    return np.where(np.isinf(found), np.nan, found)


def _hashable(cell: Any) -> Any:
    return str(cell) if isinstance(cell, list | dict) else cell


def _number_of(cell: Any, absent: float) -> float:
    """What a cell of text says of a label; infinity where it says nothing."""
    if cell is None or (isinstance(cell, str) and cell in NA_VALUES):
        return math.nan
    if isinstance(cell, bool):
        return 1.0 if cell else absent
    word = str(cell).strip().lower()
    if word in UNKNOWN:
        return math.nan
    if word in YES or word in NO:
        return 1.0 if word in YES else absent
    try:
        return float(word)
    except ValueError:
        return math.inf


def _matrix(found: Any, given: Given, file: PathLike, findings: Findings) -> Labels | None:
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

    def message(row: int) -> str:
        value = dense[row, first[row]]
        blank = "; coding='nan' takes NaN as unknown (labels.from_nan)" if value != value else ""
        return f"label {names[first[row]]} is {value}: allowed are {_CODINGS[given.coding]}{blank}"

    findings.rows(file, bad, message)
    if bad:
        return None
    return Labels(torch.from_numpy(_recoded(dense, names, given)), names)


def _one_each(found: Labels, file: PathLike, findings: Findings) -> Labels | None:
    """Class indices of a label matrix; rows that have no 1, and where something is unknown, are unknown."""
    target = found.target if isinstance(found.target, Tensor) else found.target.to_dense()
    present = (target == 1).sum(1)
    unknown = (present == 0) & (target == -1).any(1)
    bad = ((present != 1) & ~unknown).nonzero()[:, 0].tolist()
    allowed = "coding='one-hot' takes rows with one; 'label-matrix' any number"
    findings.rows(file, bad, lambda row: f"{int(present[row])} labels are present: {allowed}")
    return None if bad else replace(found, target=torch.where(unknown, -1, (target == 1).int().argmax(1)))


def _recoded(dense: NDArray[Any], names: tuple[str, ...], given: Given) -> NDArray[np.int8]:
    if given.coding == "chexpert":
        frame = require("pandas").DataFrame(dense, columns=list(names))
        return labels.from_chexpert(frame, list(names), uncertain=given.uncertain)
    convert = {"signed": labels.from_signed, "nan": labels.from_nan}.get(given.coding, np.asarray)
    return np.ascontiguousarray(convert(dense)).astype(np.int8)


def blanks_are_unknown(found: Any, coding: str, vocabulary: Sequence[str] | None) -> Any:
    """Labels of a table, where blanks are NaN, in the numbers of their coding."""
    if found.ndim == 2 and coding == "marks":
        return np.where(np.isnan(found), 0.0, found)
    if found.dtype.kind != "f" or (found.ndim == 2 and coding in ("nan", "chexpert")):
        return found
    if found.ndim == 1 and has_negatives(vocabulary):
        return found  # -1 is a label
    if found.ndim == 1:
        return np.where(np.isnan(found), -1, found)
    return np.where(np.isnan(found), 0.0 if coding == "signed" else -1.0, found)


# ---- one column of classes or names


def has_negatives(vocabulary: Sequence[str] | None) -> bool:
    """Whether a label is called by a number below 0, so that numbers are names: -1 is not unknown then."""
    return any(name[:1] == "-" and name[1:].isdecimal() for name in vocabulary or ())


def _classes(found: Any, given: Given, file: PathLike, findings: Findings) -> Labels | None:
    """Whole numbers; -1 and blank are unknown."""
    if found.dtype.kind == "b":
        return _names([str(value).lower() for value in found.tolist()], given, file, findings)
    if found.dtype.kind == "f":
        found = np.where(np.isnan(found), -1, found) if given.coding == "nan" else found
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
    if names is not None and _by_index(names, given):
        bad = np.flatnonzero((found < -1) | (found >= len(names))).tolist()
        allowed = f"allowed are 0..{len(names) - 1}, -1 or blank (unknown)"
        findings.rows(file, bad, lambda row: f"label {found[row]} is outside the vocabulary: {allowed}")
        return None if bad else Labels(torch.from_numpy(found), tuple(names))
    occur = np.unique(found).tolist()
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
    if BY_NAME.get() and not {str(value) for value in occur if value >= 0} & set(known) and occur != [-1]:
        option = f"vocabulary={as_option(list(known))}" if len(known) <= 5 else "all names in vocabulary"
        findings.add(
            file,
            f"the labels are numbers, {listed(list(map(str, occur)), 5)}, and those of the training data are names, "
            f"{listed(list(map(repr, known)), 5)}: write the names, or give {option} if the numbers count them from 0",
        )
        return None
    cells = [None if value == -1 else str(value) for value in found.tolist()]
    result = _names(cells, Given(vocabulary=known), file, findings)
    if result is None or names is not None or not known:
        return result
    occurring = f"{len(known)} class{'es' * (len(known) > 1)} occur{'s' * (len(known) == 1)}, {listed(known, 5)}"
    note = f"the labels are whole numbers: {occurring}; give num_labels if there are more"
    return Labels(result.target, result.vocabulary, (note,))


def _by_index(names: Sequence[str], given: Given) -> bool:
    """Whether numbers in the file are places among the names that are given."""
    return given.numbers_are_indices or not (_number_elsewhere(names) or BY_NAME.get())


def _number_elsewhere(names: Sequence[str]) -> bool:
    """Whether a name is a whole number, and not its own index: numbers in the file are then names."""
    return any(_are_numbers([name]) and int(name) != place for place, name in enumerate(names))


def _are_numbers(names: Iterable[str]) -> bool:
    """Whether all names are whole numbers as Python writes them."""
    return all(name.isdecimal() and str(int(name)) == name for name in names)


def _digits(number: float) -> str:
    return str(int(number)) if number == int(number) else str(number)


def _names(cells: Sequence[Any], given: Given, file: PathLike, findings: Findings) -> Labels | None:
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
    if not _may_be_left_out(outside, known, int((found != -1).sum()), file):
        findings.outside(file, outside, known, "row")
    return np.maximum(found, -1), known


def _may_be_left_out(outside: Mapping[str, Sequence[int]], known: Sequence[str], rows: int, file: PathLike) -> bool:
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


# ---- lists


def _split(cells: Sequence[Any], given: Given, file: PathLike, findings: Findings) -> list[list[str]]:
    """The names in each cell; of a blank one, where that is an unknown name, a list of it."""
    separator, unknown = given.separator or "", given.unknown_names
    lists = next((row for row, cell in enumerate(cells) if isinstance(cell, list)), None)
    if lists is not None:
        findings.add(file, f"separator={separator!r} is for names in a text, but the cell is a list", lists)
        return [[] for _ in cells]
    found = [[name.strip() for name in (cell or "").split(separator) if name.strip()] for cell in cells]
    return [names or [""] for names in found] if "" in unknown else found


def _as_lists(
    cells: Sequence[Any], unknown: Sequence[str], file: PathLike, findings: Findings
) -> list[list[Any]] | None:
    """The lists that the cells hold, or that are written in them, empty where blank; None where they are none. A cell
    that is an unknown name is a list of it."""
    blank: list[Any] = [""] if "" in unknown else []
    if list in set(map(type, cells)):
        return [blank if cell is None else cell for cell in cells]
    there = set(cells) - {None, *unknown}
    written = [found for cell in there if (found := written_list(cell)) is not None]
    if 2 * len(written) <= len(there) or not any(written):
        return None
    lists = [blank if cell is None else [cell] if cell in unknown else written_list(cell) for cell in cells]
    bad = [row for row, found in enumerate(lists) if found is None]
    findings.rows(file, bad, lambda row: f"the label is {cells[row]!r}: most others are lists, ['joy', 'love']")
    return [found or [] for found in lists]


def written_list(text: str) -> list[Any] | None:
    """A list as JSON writes it, Python, numpy, or as tags stand in one another's row, ``<python><c#>``; None of other
    texts.

    >>> written_list('["joy", "love"]'), written_list("['joy' 'love']"), written_list("<c#><.net>"), written_list("joy")
    (['joy', 'love'], ['joy', 'love'], ['c#', '.net'], None)
    """
    if text[:1] + text[-1:] not in ("[]", "<>"):
        return None
    if text[0] == "<":
        return _TAG.findall(text) if _TAGS.fullmatch(text) else None
    if _WITHOUT_COMMAS.fullmatch(text):  # Python would take these as one text
        return [inner[1:-1] for inner in _QUOTED.findall(text)]
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        try:
            found = ast.literal_eval(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return None
    return found if isinstance(found, list) else None


def _listed(lists: Sequence[Sequence[Any]], given: Given, file: PathLike, findings: Findings) -> Labels | None:
    """A label matrix of lists of names or of class numbers. An unknown name in a list says that the labels that are not
    in it are unknown."""
    names = given.vocabulary
    if names is None and given.num_labels is not None:
        names = default_names(given.num_labels)
    by_index = names is not None and _by_index(names, given)
    rows: list[list[str]] = []
    for row, objects in enumerate(lists):
        # {"id": 18, "name": "Drama"} is Drama
        found = [name.get("name", name) if isinstance(name, dict) else name for name in objects]
        if not all(isinstance(name, str | int) and not isinstance(name, bool) for name in found):
            findings.add(file, f"the labels are {list(found)!r}: allowed in a list are names and whole numbers", row)
            rows.append([])
            continue
        texts = [str(name).strip() for name in found]
        if by_index and names is not None:
            texts = [names[int(text)] if text.isdecimal() and int(text) < len(names) else text for text in texts]
        rows.append(texts)
    unknown = set(given.unknown_names)
    unsure = [row for row, written in enumerate(rows) if unknown.intersection(written)]
    rows = [[name for name in row if name not in unknown] for row in rows] if unsure else rows
    occur = {name for row in rows for name in row}
    order = (lambda name: (int(name), name)) if _are_numbers(occur) else None
    known = tuple(sorted(occur, key=order)) if names is None else tuple(names)
    number = {name: label for label, name in enumerate(known)}
    outside: dict[str, list[int]] = {}
    for row, written in enumerate(rows):
        for name in written:
            if name not in number:
                outside.setdefault(name, []).append(row)
    if _may_be_left_out(outside, known, sum(map(bool, rows)), file):
        rows = [[name for name in row if name in number] for row in rows]
    else:
        findings.outside(file, outside, known, "row")
    if findings.problems:
        return None
    present = labels.LabelSets.from_lists([[number[name] for name in row] for row in rows], len(known))
    rest: Literal[0, -1] = 0 if given.rest == "absent" else -1
    if len(rows) * len(known) >= LARGE_MATRIX and not unsure:
        sparse = SparseLabels.of(present)
        sparse.values[-1] = rest
        return Labels(sparse, known)
    matrix = labels.from_sets(present, rest=rest)
    matrix[unsure] = np.where(matrix[unsure] == 1, 1, -1)
    return Labels(torch.from_numpy(matrix), known)
