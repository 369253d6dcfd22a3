"""Which column of a table has the ids of its rows."""

import re
from collections.abc import Sequence

from shortlist.data.cells import LONG, is_number, unit_of
from shortlist.data.column_use import as_option, is_nameless
from shortlist.data.dates import DATE
from shortlist.data.written_numbers import may_be_number
from shortlist.runs.guess.first_cells import FirstCells
from shortlist.runs.guess.image_paths import named_images
from shortlist.runs.guess.label_signs import LABEL_IDS

_ID = re.compile("[a-z]I[dD]$")
_CALLED = ("id", "index", "unnamed: 0", "__index_level_0__")
_NUMBERED = re.compile(r"(\D{1,30}) #?\d+")  # leaf 12, Ticket #17
_FEW = 50  # rows, in which all cells may differ by chance


def find_ids(cells: FirstCells, names: Sequence[str], notes: list[str]) -> str | None:
    """The first column that is called an id and differs in every row, or the first one of all, where it has no name, as
    R and pandas write the names of rows; or else one of words, numbered words or images that all differ, or the
    first one, where it counts the rows."""
    for name in sorted(filter(is_called_id, names), key=is_nameless):  # what has a name of its own before pandas' index
        if cells.flat(name) and _is_unique(cells, name):
            notes.append(f"ids: the column {name!r} (none: data.train.ids_key=null)")
            return name
        if is_nameless(name):
            continue  # the reader leaves it out
        notes.append(
            f"the column {name!r} is called an id and repeats: if its rows belong together, "
            f"data.groups={as_option(name)} data.train.other_columns={as_option([name])}"
        )
    if list(cells.table.names[:1]) == [""] and _is_unique(cells, ""):
        notes.append("ids: the first column, which has no name (none: data.train.ids_key=null)")
        return ""
    are_known = _are_codes, are_numbered, named_images
    codes = [name for name in names if any(known(cells, name) for known in are_known)]
    codes = codes or [name for name in names[:1] if _counts(cells, name)]
    if codes and _is_unique(cells, codes[0]):
        notes.append(f"ids: the column {codes[0]!r}, which differs in every row (none: data.train.ids_key=null)")
        return codes[0]
    return None


def are_ids(cells: FirstCells, name: str) -> bool:
    """Whether a column has other cells in every row, such as ids have, as far as its first ones show."""
    return _counts(cells, name) or _are_codes(cells, name) or are_numbered(cells, name)


def are_numbered(cells: FirstCells, name: str) -> bool:
    """Whether these are the same words with another number behind them in every row, which is no amount."""
    words = {str(cell).strip() for cell in cells.written(name)}
    found = {match and match[1] for match in map(_NUMBERED.fullmatch, words)}
    return _FEW < len(words) == cells.rows and None not in found and len(found) == 1 and unit_of(words) is None


def is_called_id(name: str) -> bool:
    """Whether it is called an id, or as pandas calls the numbers of rows that it wrote, to text or parquet."""
    lower = name.lower()
    if lower in LABEL_IDS:
        return False
    return lower in _CALLED or lower.endswith(("_id", " id")) or _ID.search(name) is not None


def _is_unique(cells: FirstCells, name: str) -> bool:
    """Whether each row has a cell, and none comes twice."""
    found = cells.table.array(name).tolist()
    return len(set(found) - {None, ""}) == len(found)


def _counts(cells: FirstCells, name: str) -> bool:
    """Whether these are the whole numbers from the first one on, one after the other."""
    found = cells.flat(name) if cells.has_numbers(name) else []
    return (
        _FEW < cells.rows == len(found)
        and all(cell == found[0] + place for place, cell in enumerate(found) if isinstance(cell, int | float))
        and not isinstance(found[0], str)
    )


def _are_codes(cells: FirstCells, name: str) -> bool:
    """Whether these are words, no numbers and no dates, of which none comes twice."""

    def is_other(word: str) -> bool:
        of_digits = is_number(word) or DATE.fullmatch(word) or may_be_number(word)
        return len(word.split()) > 1 or len(word) > LONG or bool(of_digits)

    words = {str(cell).strip() for cell in cells.written(name)}
    return _FEW < len(words) == cells.rows and not any(map(is_other, words)) and unit_of(words) is None
