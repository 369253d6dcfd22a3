"""What is allowed in a table and will hardly do what is wanted: each with the option that mends it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from shortlist.data.cells import DATE, NA_VALUES, have_decimal_commas, is_number
from shortlist.data.column_use import DECIMAL_COMMAS, NO_NUMBERS, listed
from shortlist.data.dataset import Dataset
from shortlist.data.table_rows import TableRows

_SEPARATORS = "|;,"
_ROWS = 20  # with fewer, whole numbers differ by chance
_ONCE = 100  # classes that occur once, and most of them do


def table_concerns(dataset: Dataset, na_values: Sequence[str] = NA_VALUES) -> list[str]:
    """What to look at again, where the data was read from a table; nothing of other data. ``na_values``: the cells that
    mean blank.

    >>> from shortlist.data.column_use import ColumnUse
    >>> use = ColumnUse(("x",), ("mood",), ignored={"note": "it holds no numbers"})
    >>> data = Dataset(torch.rand(3, 1), torch.tensor([0, 1, 2]), ("joy", "joy|love", "love"), columns=use)
    >>> for concern in table_concerns(data):
    ...     print(concern)
    1 column is left out, because it holds no numbers: 'note': write it as numbers, or name it in other_columns
    1 of 3 labels holds '|': 'joy|love': give separator='|' if these are several labels in one cell
    """
    use = dataset.columns
    if use is None:
        return []
    found = []
    for why in dict.fromkeys(use.ignored.values()):
        names = [name for name, reason in use.ignored.items() if reason == why and name]
        if names and why in (NO_NUMBERS, DECIMAL_COMMAS):
            one = len(names) == 1
            it, them = ("it holds", "it") if one else ("they hold", "them")
            remedy = "give decimal=','" if why == DECIMAL_COMMAS else f"write {them} as numbers"
            found.append(
                f"{len(names)} column{'' if one else 's'} {'is' if one else 'are'} left out, because "
                f"{why.replace('it holds', it)}: {listed([repr(name) for name in names], 3)}: {remedy}, or name {them} "
                f"in other_columns"
            )
    ids = _ids(dataset, use.features, not use.ids)
    return found + _names(dataset, use.features, na_values) + ids + _labels(dataset, use.labels)


def _names(dataset: Dataset, features: tuple[str, ...], na_values: Sequence[str]) -> list[str]:
    """Features that are taken as names, and look like numbers or dates."""
    if not isinstance(dataset.inputs, TableRows):
        return []
    found, commas, dates, blanks = [], [], [], set()
    counted: dict[str, dict[str, int]] = {}  # column -> cell -> how often
    for name in features:
        values = dataset.inputs.frame[name]
        if values.dtype.kind == "O":
            counts = values.map(lambda cell: str(cell).strip(), na_action="ignore").value_counts().to_dict()
            blanks |= counts.keys() & set(na_values)
            counted[name] = {str(cell): int(often) for cell, often in counts.items() if cell not in na_values}
    for name, cells in counted.items():
        total = sum(cells.values())
        others = [cell for cell in cells if not is_number(cell)]
        if have_decimal_commas(cells):
            commas.append(name)
        elif 2 * sum(DATE.fullmatch(cell) is not None for cell in cells) > len(cells):
            dates.append(name)
        elif others and 2 * (wrong := sum(cells[cell] for cell in others)) < total:
            known = listed([*others, *sorted(blanks)], 20)
            found.append(
                f"the column {name!r} is taken as names, because {wrong} of {total} cells are no numbers: "
                f"{listed([repr(cell) for cell in others], 3)}: mend them, or give data.na_values=[{known}] if they "
                f"mean blank"
            )
    if commas:
        found.append(f"{_columns(commas)} numbers with decimal commas, taken as names: give decimal=','")
    if dates:
        found.append(
            f"{_columns(dates)} dates, taken as names: write their year, month or age as numbers, or name them in "
            f"other_columns; data.time cuts parts by a column of dates"
        )
    return found


def _columns(names: Sequence[str]) -> str:
    """How a sentence on what they hold begins."""
    begin, verb = ("the column", "holds") if len(names) == 1 else (f"{len(names)} columns", "hold")
    return f"{begin} {listed([repr(name) for name in names], 3)} {verb}"


def _ids(dataset: Dataset, features: tuple[str, ...], no_ids: bool) -> list[str]:
    """Features that are a different whole number in every row."""
    inputs, total = dataset.inputs, len(dataset)
    if total < _ROWS or not isinstance(inputs, Tensor | TableRows):
        return []
    found = []
    for place, name in enumerate(features):
        if isinstance(inputs, Tensor):
            values = inputs[:, place]
        elif inputs.frame[name].dtype.kind in "iuf":
            values = torch.from_numpy(inputs.frame[name].to_numpy(dtype="f8", copy=True))
        else:
            continue
        if bool((values % 1 == 0).all()) and len(torch.unique(values)) == total:
            remedy = f"ids_key={name} or other_columns=[{name}]" if no_ids else f"other_columns=[{name}]"
            found.append(f"the feature {name!r} is another whole number in every row: if it is an id, give {remedy}")
    return found


def _labels(dataset: Dataset, columns: tuple[str, ...]) -> list[str]:
    """Of one column of names: several of them in a cell, or texts that are no labels."""
    if not dataset.is_single or len(columns) != 1:
        return []
    found, names = [], set(dataset.vocabulary)
    for mark in _SEPARATORS:
        several = [name for name in dataset.vocabulary if mark in name]
        if any(piece.strip() in names for name in several for piece in name.split(mark)):
            found.append(
                f"{len(several)} of {len(names)} labels hold{'s' * (len(several) == 1)} {mark!r}: "
                f"{listed([repr(name) for name in several], 3)}: give separator={mark!r} if these are several labels "
                f"in one cell"
            )
            return found
    once = int((dataset.label_counts() == 1).sum())
    if once >= _ONCE and 2 * once > len(names):
        found.append(
            f"{once} of {len(names)} labels occur once: is {columns[0]!r} a text or an id? The column of the labels is "
            f"named by labels_key"
        )
    return found
