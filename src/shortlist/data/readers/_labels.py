"""Labels as files have them, by the same rules in every reader: classes, names, lists of names, a label matrix."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from shortlist.data.readers._label_lists import as_lists, from_lists, split
from shortlist.data.readers._label_matrix import from_matrix, one_each
from shortlist.data.readers._label_names import digits, from_classes, from_names, has_negatives
from shortlist.data.readers._label_options import Given, Labels
from shortlist.data.readers.findings import Findings
from shortlist.errors import ShortlistWarning
from shortlist.files import PathLike

# what spreadsheets call their last row, in small letters
_TOTALS = {"total", "totals", "grand total", "subtotal", "sum", "average", "mean", "gesamt", "gesamtsumme", "insgesamt",
           "summe", "mittelwert", "durchschnitt", "somme", "total général", "moyenne", "totale", "suma"}  # fmt: skip


def labels_of(written: Any, given: Given, file: PathLike, findings: Findings) -> Labels | None:
    """The target of what a file holds; None where something was noted.

    - A matrix (N, L), dense or sparse: ``coding`` says what its numbers mean.
    - Lists (N,), also those that are written in a text as JSON: the labels that are present.
    - Texts (N,): names, one for each example; several with a ``separator`` between.
    - Whole numbers (N,): classes; they are indices where names or their number are given, otherwise names.
    """
    found = _labels_of(written, given, file, findings)
    if found is not None and found.target.ndim == 2 and given.coding == "one-hot":
        found = one_each(found, file, findings)
    unknown = 0 if found is None or found.target.ndim != 1 else int((found.target == -1).sum())
    if found is None or not unknown:
        return found
    note = f"{unknown} of {len(found.target)} examples {'has' if unknown == 1 else 'have'} no known label"
    return replace(found, notes=(*found.notes, note))


def _labels_of(written: Any, given: Given, file: PathLike, findings: Findings) -> Labels | None:
    if written.ndim == 2 and written.shape[1] == 1 and written.dtype.kind in "iu" and bool((written > 1).any()):
        written = written[:, 0]  # as Keras has classes
    if written.ndim == 2:
        return from_matrix(written, given, file, findings)
    if written.ndim != 1:
        findings.add(file, f"labels must be classes (N,) or a label matrix (N, L), got shape {written.shape}")
        return None
    if written.dtype.kind in "if" and has_negatives(given.vocabulary):
        cells = [None if number != number else digits(number) for number in written.tolist()]
        return from_names(cells, given, file, findings)
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
        if given.vocabulary is None:
            _tell_totals(cells, file, findings)
        if given.separator is not None:
            return from_lists(split(cells, given, file, findings), given, file, findings)
        lists = as_lists(cells, given.unknown_names, file, findings)
        if given.unknown_names and lists is None:
            cells = [None if cell in given.unknown_names else cell for cell in cells]
        if lists is None:
            return from_names(cells, given, file, findings)
        found = from_lists(lists, given, file, findings)
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
        cells = [None if number != number else digits(number) for number in written.tolist()]
        return from_lists(split(cells, given, file, findings), given, file, findings)
    return from_classes(written, given, file, findings)


def _tell_totals(cells: Sequence[Any], file: PathLike, findings: Findings) -> None:
    """Warn where the last label is that of a row of totals."""
    row = next((row for row in reversed(range(len(cells))) if cells[row] is not None), None)
    last = "" if row is None else cells[row]
    if row is None or not isinstance(last, str) or last.strip(" :").casefold() not in _TOTALS or cells.count(last) > 1:
        return
    warnings.warn(
        f"{file}, {findings.place(file, row)}: the last row is the only one with the label {last!r}: delete it if it "
        f"holds totals, it is learnt like an example",
        ShortlistWarning,
        stacklevel=2,
    )
