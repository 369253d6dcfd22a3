"""Any number of labels for each example: lists of names, in a column or written in its cells, or names in several
columns."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch

from shortlist import labels
from shortlist.data.cells import NA_VALUES
from shortlist.data.dataset import default_names
from shortlist.data.readers._columns import Columns
from shortlist.data.readers._label_matrix import number_of
from shortlist.data.readers._label_names import are_numbers, by_index, may_be_left_out
from shortlist.data.readers._label_options import Given, Labels
from shortlist.data.readers.findings import LISTS, Findings
from shortlist.files import PathLike
from shortlist.labels.counts import LARGE_MATRIX
from shortlist.labels.sparse_labels import SparseLabels

_FEWEST_NAMES = 3  # in several columns that hold names
_TAG, _TAGS = re.compile("<([^<>]+)>"), re.compile("(<[^<>]+>)+")
_QUOTED = re.compile("'[^']*'|\"[^\"]*\"")
_WITHOUT_COMMAS = re.compile(rf"\[\s*(?:{_QUOTED.pattern})(?:\s+(?:{_QUOTED.pattern}))+\s*\]")
_NUMPY = re.compile(rf"\b(?:np|numpy)\.\w+\(({_QUOTED.pattern}|-?\d+)\)")  # np.str_('joy'), as NumPy 2 writes
_IN_BRACES = r'\s*"(?:[^"\\]|\\.)*"\s*|[^{},"\\:=]+'  # of an array of PostgreSQL's: objects have : or =
_ARRAY, _ITEM = re.compile(rf"\{{(?:{_IN_BRACES})(?:,(?:{_IN_BRACES}))*\}}"), re.compile(_IN_BRACES)
_GUID = re.compile(r"\{[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\}", re.IGNORECASE)
_BARE = re.compile(r"\[[^\[\]{}<>\"'=:,]+(,[^\[\]{}<>\"'=:,]+)+\]")  # [joy, love]
_ONE = re.compile(r"\[([^\[\]{}<>\"'=:,]+)\]")  # beside these a list, alone perhaps a name
_CHOICES = re.compile(r'\{\s*"choices"\s*:')  # Label Studio's, which writes one choice as its name alone


def split(cells: Sequence[Any], given: Given, file: PathLike, findings: Findings) -> list[list[str]]:
    """The names in each cell; of a blank one, where that is an unknown name, a list of it."""
    separator, unknown = given.separator or "", given.unknown_names
    lists = next((row for row, cell in enumerate(cells) if isinstance(cell, list)), None)
    if lists is not None:
        findings.add(file, f"separator={separator!r} is for names in a text, but the cell is a list", lists)
        return [[] for _ in cells]
    found = [[name.strip() for name in (cell or "").split(separator) if name.strip()] for cell in cells]
    return [names or [""] for names in found] if "" in unknown else found


def as_lists(
    cells: Sequence[Any], unknown: Sequence[str], file: PathLike, findings: Findings
) -> list[list[Any]] | None:
    """The lists that the cells hold, or that are written in them, empty where blank; None where they are none. A cell
    that is an unknown name is a list of it."""
    blank: list[Any] = [""] if "" in unknown else []
    if list in set(map(type, cells)):
        return [blank if cell is None else cell for cell in cells]
    there = set(cells) - {None, *unknown}
    found_in = {cell: written_list(cell) for cell in there}
    if any(found is not None and _CHOICES.match(cell) for cell, found in found_in.items()):
        found_in = {cell: [cell] if found is None and cell[0] != "{" else found for cell, found in found_in.items()}
    if any(_BARE.fullmatch(cell) for cell in there):
        one = {cell: found[1].strip() for cell in there if found_in[cell] is None and (found := _ONE.fullmatch(cell))}
        found_in |= {cell: [name] for cell, name in one.items() if name}
    written, decided = [found for found in found_in.values() if found is not None], LISTS.get()
    if not decided and (decided is False or 2 * len(written) <= len(there) or not any(written)):
        return None
    lists = [blank if cell is None else [cell] if cell in unknown else found_in[cell] for cell in cells]
    bad = [row for row, found in enumerate(lists) if found is None]
    findings.rows(file, bad, lambda row: f"the label is {cells[row]!r}: most others are lists, ['joy', 'love']")
    _check_no_matrix(lists, file, findings)
    return [found or [] for found in lists]


def _check_no_matrix(lists: Sequence[list[Any] | None], file: PathLike, findings: Findings) -> None:
    """Note lists that say 0 or 1 of each label, and do not name those that are present."""
    sizes = {len(found) for found in lists if found}
    answers = all(name in (0, 1) and not isinstance(name, str) for found in lists for name in found or ())
    again = next((row for row, found in enumerate(lists) if answers and len(set(found or ())) < len(found or ())), None)
    if len(sizes) == 1 and again is not None:
        what = f"the labels are {lists[again]}, and lists name the labels that are present: if it holds 0 or 1 for each"
        findings.add(file, f"{what} label, write a column for each", again)


def written_list(text: str) -> list[Any] | None:
    """A list as JSON writes it, Python (sets and tuples of texts, too), numpy, PostgreSQL, Label Studio, or as tags
    stand in one another's row, ``<python><c#>``; None of other texts.

    >>> written_list('["joy", "love"]'), written_list("['joy' 'love']"), written_list("<c#><.net>"), written_list("joy")
    (['joy', 'love'], ['joy', 'love'], ['c#', '.net'], None)
    >>> written_list('{joy,"true love"}'), written_list('{"choices": ["joy"]}'), written_list("[np.str_('joy')]")
    (['joy', 'true love'], ['joy'], ['joy'])
    >>> written_list("[joy, love]")
    ['joy', 'love']
    """
    ends = text[:1] + text[-1:]
    if ends == "<>":
        return _TAG.findall(text) if _TAGS.fullmatch(text) else None
    if ends not in ("[]", "{}", "()"):
        return None
    if _WITHOUT_COMMAS.fullmatch(text):  # Python would take these as one text
        return [inner[1:-1] for inner in _QUOTED.findall(text)]
    found = _parsed(text)
    if isinstance(found, dict):
        found = found.get("choices") if len(found) == 1 else None if found else []
    elif isinstance(found, set):
        found = sorted(found, key=str)
    elif isinstance(found, tuple):
        found = list(found) if all(isinstance(name, str) for name in found) else None
    return found if isinstance(found, list) else None


def _parsed(text: str) -> Any:
    """What is written in brackets; None where it is of no known form."""
    if text[1:2] != "'" and _ARRAY.fullmatch(text):
        return None if _GUID.fullmatch(text) else _of_array(text)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        try:
            return ast.literal_eval(_NUMPY.sub(r"\1", text))
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            is_bare = _BARE.fullmatch(text) is not None
            return [name for piece in text[1:-1].split(",") if (name := piece.strip())] if is_bare else None


def _of_array(text: str) -> list[str]:
    """The names in an array of PostgreSQL's, without its NULLs."""
    items = [item.strip() for item in _ITEM.findall(text[1:-1])]
    names = [item for item in items if item and item.upper() != "NULL"]
    return [re.sub(r"\\(.)", r"\1", name[1:-1]) if name[0] == '"' else name for name in names]


def from_lists(lists: Sequence[Sequence[Any]], given: Given, file: PathLike, findings: Findings) -> Labels | None:
    """A label matrix of lists of names or of class numbers. An unknown name in a list says that the labels that are not
    in it are unknown."""
    names = given.vocabulary
    if names is None and given.num_labels is not None:
        names = default_names(given.num_labels)
    are_places = names is not None and by_index(names, given)
    rows: list[list[str]] = []
    for row, objects in enumerate(lists):
        # {"id": 18, "name": "Drama"} is Drama
        found = [name.get("name", name) if isinstance(name, dict) else name for name in objects]
        if not all(isinstance(name, str | int) and not isinstance(name, bool) for name in found):
            findings.add(file, f"the labels are {list(found)!r}: allowed in a list are names and whole numbers", row)
            rows.append([])
            continue
        texts = [str(name).strip() for name in found]
        if are_places and names is not None:
            texts = [names[int(text)] if text.isdecimal() and int(text) < len(names) else text for text in texts]
        rows.append(texts)
    unknown = set(given.unknown_names)
    unsure = [row for row, written in enumerate(rows) if unknown.intersection(written)]
    rows = [[name for name in row if name not in unknown] for row in rows] if unsure else rows
    occur = {name for row in rows for name in row}
    order = (lambda name: (int(name), name)) if are_numbers(occur) else None
    known = tuple(sorted(occur, key=order)) if names is None else tuple(names)
    number = {name: label for label, name in enumerate(known)}
    outside: dict[str, list[int]] = {}
    for row, written in enumerate(rows):
        for name in written:
            if name not in number:
                outside.setdefault(name, []).append(row)
    if may_be_left_out(outside, known, sum(map(bool, rows)), file):
        rows = [[name for name in row if name in number] for row in rows]
    else:
        findings.outside(file, outside, known)
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


def names_in_columns(table: Columns, columns: Sequence[str], vocabulary: Sequence[str] | None = None) -> Any:
    """The names that several columns hold, ``primary`` and ``secondary``, say: a list for each row (N,), None where all
    are blank. None where the columns say yes or no of one label each, or hold fewer than three names, none of
    which is known: these may be words for yes and no, or a mark for yes."""
    filled = [name for name in columns if not table.is_blank(name)]
    flat = all(table.is_flat(name) and not table.has_numbers(name) for name in filled)
    if len(columns) > 1 and not filled and LISTS.get() and not set(columns) & set(vocabulary or ()):
        return np.full(len(table.texts(columns[0])), None)
    if len(columns) < 2 or not filled or not flat:
        return None
    cells = [table.texts(name).tolist() for name in filled]
    found = {cell for column in cells for cell in column if cell is not None and cell not in NA_VALUES}
    if any(not isinstance(cell, str) or math.isfinite(number_of(cell, 0.0)) for cell in found):
        return None
    if len({cell.casefold() for cell in found}) < _FEWEST_NAMES and not found & set(vocabulary or ()):
        return None
    lists = np.empty(len(cells[0]), dtype=object)
    lists[:] = [[name for name in row if name in found] or None for row in zip(*cells, strict=True)]
    return lists


def column_of_labels(table: Columns, name: str) -> Any:
    """The labels of one column; lists of class numbers, though all are of one length, are no label matrix."""
    found = table.array(name)
    if found.ndim == 2 and found.dtype.kind in "iu" and not np.isin(found, (-1, 0, 1)).all():
        lists = np.empty(len(found), dtype=object)
        lists[:] = found.tolist()
        return lists
    return found
