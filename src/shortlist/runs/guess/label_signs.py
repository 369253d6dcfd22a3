"""By what the labels of a table are recognised: how columns are called, and how cells look."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from shortlist.data.cells import NA_VALUES, NO, UNKNOWN, UNSURE, YES, is_number
from shortlist.data.readers.tables import written_list
from shortlist.runs.guess.first_cells import FirstCells

LABELS = ("label", "labels", "class", "classes", "target", "targets", "category", "categories", "tag", "tags", "y")
# of the tables that people try first
LIKELY = ("species", "genre", "genres", "sentiment", "emotion", "emotions", "topic", "topics", "diagnosis", "outcome",
          "survived", "churn", "intent")  # fmt: skip
LABEL_IDS = ("label_id", "class_id", "target_id")
MOST_CLASSES = 50  # of a column that is called nothing in particular
ANSWERS = YES | NO | {"1", "0", "-1", "1.0", "0.0", "-1.0"}  # cells of a label's column
_LAST_WORD = re.compile(r"(.*[_\-. ])?(labels?|target)", re.IGNORECASE)  # Finding Labels, emotion_label


def may_be_called(name: str) -> bool:
    """Whether a column of labels may be called so."""
    return name.lower() in LABEL_IDS or _LAST_WORD.fullmatch(name) is not None


def are_classes(cells: FirstCells, name: str) -> bool:
    """Whether the cells are of a few kinds, which come again and again, or lists, but not of measures."""
    found = cells.of(name)
    if not cells.table.is_flat(name):
        lists = [cell for cell in found if isinstance(cell, list | np.ndarray)]
        return bool(lists) and not any(isinstance(one, float) and one % 1 for cell in lists for one in cell)
    lists = [names for cell in found if (names := written_list(str(cell))) is not None]
    if 2 * len(lists) > len(found):
        return True
    mark = separator(found)
    kinds = {piece.strip() for cell in found for piece in (str(cell).split(mark) if mark else [str(cell)])}
    whole = all(not isinstance(cell, float) or cell.is_integer() for cell in found)
    return whole and 2 <= len(kinds) <= max(2, min(MOST_CLASSES, len(found) - 1))


def comes_again(cells: FirstCells, name: str) -> bool:
    """Whether it holds names, each of them twice on average, or more often."""
    found = cells.table.texts(name).tolist() if cells.written(name) else []
    return 2 < 2 * len(set(found)) <= len(found)


def is_answer(cells: FirstCells, name: str) -> bool:
    """Whether each cell says yes or no of one label."""
    known = (str(cell).strip().lower() for cell in cells.flat(name) if str(cell) not in NA_VALUES)
    said = (word for word in known if word not in UNKNOWN and word not in UNSURE)
    return next(said, "") in ANSWERS and all(word in ANSWERS for word in said)  # most columns end with the first cell


def leaves_open(cells: FirstCells, name: str, blank: bool = True) -> bool:
    """Whether some cells of a column of answers say that nothing is known, be it by a ``blank``."""
    return bool(cells.kinds(name) & (UNKNOWN | UNSURE | {"-1", "-1.0"})) or (blank and not cells.are_full(name))


def separator(cells: Sequence[Any]) -> str | None:
    """What stands between several labels in one cell: the pieces are then fewer than the cells that differ, or some
    are cells of their own, and half of them come again (not so in China; Macao, China; Korea, Rep.); of the marks that
    hardly stand in a name, some pieces come again."""
    texts = {cell for cell in cells if isinstance(cell, str)}
    for mark in ("|", ";#", ";", ",", "\n"):  # ;# is SharePoint's
        several = [text for text in texts if mark in text and not text.startswith(("[", "{", "<", "('", '("'))]
        pieces = Counter(piece.strip() for text in several for piece in text.split(mark))
        again = mark in "|;#" and len(pieces) < pieces.total()
        known = [piece in texts for piece in pieces]
        come = sum(own or count > 1 for own, count in zip(known, pieces.values(), strict=True))
        if several and (again or (any(known) and 2 * come >= len(pieces)) or len(pieces) < len(several)):
            return mark
    several = [text for text in texts if "/" in text]
    names = {piece.strip() for text in several for piece in text.split("/")}
    if len(names) < len(several) and names & texts and not any(map(is_number, names)):
        return "/"  # of n/a, he/him and dates it is a part
    return None


def has_spaces_between(cells: Sequence[Any]) -> bool:
    """Whether cells hold several names with spaces between (haze primary), or class numbers (0 3): words are few beside
    the cells that differ, and some are cells of their own."""
    texts = {cell.strip() for cell in cells if isinstance(cell, str) and written_list(cell) is None}
    words = {word for text in texts for word in text.split(" ")}
    of_one_kind = all(map(str.isdecimal, words)) or not any(map(is_number, words))
    return 2 < 2 * len(words) <= len(texts) and bool(words & texts) and of_one_kind
