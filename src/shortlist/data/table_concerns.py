"""What is allowed in a table and will hardly do what is wanted: each with the option that mends it."""

from __future__ import annotations

import torch
from torch import Tensor

from shortlist.data.cells import NA_VALUES, have_decimal_commas, is_number
from shortlist.data.column_use import DECIMAL_COMMAS, NO_NUMBERS, listed
from shortlist.data.dataset import Dataset
from shortlist.data.table_rows import TableRows

_SEPARATORS = "|;,"
_ROWS = 20  # with fewer, whole numbers differ by chance
_ONCE = 100  # classes that occur once, and most of them do


def table_concerns(dataset: Dataset) -> list[str]:
    """What to look at again, where the data was read from a table; nothing of other data.

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
    return found + _names(dataset, use.features) + ids + _labels(dataset, use.labels)


def _names(dataset: Dataset, features: tuple[str, ...]) -> list[str]:
    """Features that are taken as names, and look like numbers."""
    found = []
    for name in features if isinstance(dataset.inputs, TableRows) else ():
        values = dataset.inputs.frame[name]
        if values.dtype.kind != "O":
            continue
        cells = [cell for cell in values.tolist() if isinstance(cell, str) and cell.strip() not in NA_VALUES]
        others = [cell for cell in cells if not is_number(cell)]
        if have_decimal_commas(cells):
            found.append(f"the column {name!r} holds numbers with decimal commas, taken as names: give decimal=','")
        elif others and 2 * len(others) < len(cells):
            found.append(
                f"the column {name!r} is taken as names, because {len(others)} of {len(cells)} cells are no numbers: "
                f"{listed([repr(cell) for cell in dict.fromkeys(others)], 3)}: mend them, or name those that mean "
                f"blank in data.na_values"
            )
    return found


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
