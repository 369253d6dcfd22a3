"""Which one column of a table holds the labels."""

import re
import shlex
from collections.abc import Sequence

from shortlist.data.column_use import is_nameless, listed
from shortlist.errors import ShortlistError
from shortlist.runs.guess.first_cells import FirstCells
from shortlist.runs.guess.ids import is_called_id
from shortlist.runs.guess.label_signs import (
    LABELS,
    LIKELY,
    MOST_CLASSES,
    are_classes,
    comes_again,
    is_answer,
    may_be_called,
)


def one_column(cells: FirstCells, names: Sequence[str], notes: list[str]) -> str:
    """By its name, or the last one; else the only one of names."""
    names = [name for name in names if not is_called_id(name) and not is_nameless(name)]
    called = {name.lower(): name for name in reversed(names)}
    for word in LABELS:
        if word in called and not (word == "y" and _is_measured(cells, called[word], names)):
            notes.append(f"labels: the column {called[word]!r}, by its name (another one: --labels COLUMN)")
            return called[word]
    likely = [called[word] for word in LIKELY if word in called]
    likely += [name for name in names if may_be_called(name)]
    for name in (name for name in likely if are_classes(cells, name) or comes_again(cells, name)):
        if name == names[-1] and are_classes(cells, name):
            break
        notes.append(f"labels: the column {name!r}, by its name (another one: --labels COLUMN)")
        return name
    if _is_first_alone(cells, names):
        notes.append(
            f"labels: the first column, {names[0]!r}, as only it holds names, and the last, {names[-1]!r}, is a number "
            f"like the others (another one: --labels COLUMN)"
        )
        return names[0]
    if names and are_classes(cells, names[-1]):
        notes.append(f"labels: the last column, {names[-1]!r} (another one: --labels COLUMN)")
        return names[-1]
    of_names = [name for name in names if not cells.has_numbers(name)]
    likely = [name for name in of_names if are_classes(cells, name)]
    if not likely and len(of_names) == 1 and comes_again(cells, of_names[0]):  # of many classes
        likely = of_names
    if len(likely) == 1:
        last = _why_no_label(cells, names[-1])
        notes.append(f"labels: the only column of names, {likely[0]!r} (another one: --labels COLUMN){last}")
        return likely[0]
    if len(cells.names) == 1:
        remedy = "if something else stands between its cells, give delimiter"
        if re.search(r"\S\s\s+\S", cells.names[0]):
            written = r"pandas.read_csv(path, sep=r'\s+').to_csv(new, index=False)"
            remedy = f"if blanks stand between its cells, write commas: {written}"
        raise ShortlistError(
            f"{cells.path}: there is one column alone, {cells.names[0]!r}, and labels need others to be told by; "
            f"{remedy}"
        )
    such = f", such as --labels {shlex.quote(likely[-1])}" if likely else ""
    last = _why_no_label(cells, names[-1]) if names else ""
    raise ShortlistError(
        f"{cells.path}: which columns are labels? Name them with --labels{such}; the columns are "
        f"{listed([repr(name) for name in cells.names])}{last}"
    )


def _is_first_alone(cells: FirstCells, names: Sequence[str]) -> bool:
    """Whether the first column holds a few names, and all others, at least three, are numbers, of which the last is no
    more a label than any other: it is no yes or no, and has half as many different values as they, or more."""
    first, others = names[:1], names[1:]
    if len(others) < 3 or not all(map(cells.is_number, others)) or cells.is_number(first[0]):
        return False
    kinds = [len(cells.kinds(name)) for name in others]
    alike = not is_answer(cells, others[-1]) and 2 * kinds[-1] >= max(kinds)
    return alike and are_classes(cells, first[0]) and comes_again(cells, first[0])


def _why_no_label(cells: FirstCells, last: str) -> str:
    """Of the last column, where the labels often are, why they are not."""
    kinds = set(map(str, cells.flat(last)))
    if len(kinds) == 1 and not cells.has_numbers(last):
        return f"; the last one, {last!r}, always holds {cells.flat(last)[0]!r}: there is nothing to tell apart"
    if len(kinds) > MOST_CLASSES and cells.has_numbers(last):
        return f"; the last one, {last!r}, is a quantity: to predict it, make classes of it first (low, high)"
    return ""


def _is_measured(cells: FirstCells, y: str, names: Sequence[str]) -> bool:
    """Whether a column called y holds fractions, or is a place: x is there too, and the last column, the only one
    of names, says what is there."""
    if not cells.has_numbers(y):
        return False
    if any(isinstance(cell, float) and not cell.is_integer() for cell in cells.flat(y)):
        return True
    of_names = [name for name in names if cells.table.is_flat(name) and not cells.has_numbers(name)]
    has_x = any(name.lower() == "x" for name in names)
    return has_x and of_names == [names[-1]] and are_classes(cells, names[-1])
