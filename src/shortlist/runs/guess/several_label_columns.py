"""Labels that several columns of a table hold: one that says yes or no for each label, or places for names."""

import re
import shlex
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from shortlist.data.cells import YES
from shortlist.data.column_use import listed
from shortlist.data.readers.tables import names_in_columns
from shortlist.runs.guess.first_cells import FirstCells
from shortlist.runs.guess.ids import are_ids, is_called_id
from shortlist.runs.guess.label_signs import ANSWERS, LABELS, is_answer, leaves_open

_MARK = 2  # letters, at most
_NUMBERED = re.compile(r"(.*?[^\W\d_])[_\-. ]?\d+")  # label1, tag_2
_FIRST_WORD = re.compile(r"([^_\-.:/ ]+)[_\-.:/ ]")  # of a name of several


def several_columns(
    cells: FirstCells, names: Sequence[str], notes: list[str], images: bool, texts: bool
) -> dict[str, Any] | None:
    """Options that name the columns of the labels; None where no columns seem to be labels together."""
    answers = _answers(cells, names, notes, images, texts)
    if len(answers) > 1:
        shown = listed([repr(name) for name in answers])
        unsure = "; blanks and -1 are unknown" if any(leaves_open(cells, name) for name in answers) else ""
        if unsure and all(cells.kinds(name) <= YES | {"1", "1.0"} for name in answers):
            notes.append("no label is ever absent: if a blank means that, data.train.coding=marks says so")
        notes.append(f"labels: the columns of yes or no, {shown}{unsure} (others: --labels COLUMN,COLUMN)")
        return {"label_columns": answers}
    marked = _marked(cells, names)
    if marked:
        return of_marks(cells, marked, notes)
    slots = _slots(cells, names)
    if slots:
        shown = listed([repr(name) for name in slots])
        notes.append(f"labels: the names that a row has in any of the columns {shown} (another one: --labels COLUMN)")
        return {"label_columns": slots}
    return None


def of_marks(cells: FirstCells, marked: Sequence[str], notes: list[str]) -> dict[str, Any]:
    """Options that name columns of labels; their coding is marks where all hold one and the same mark, or nothing."""
    if _marked(cells, marked) != list(marked):
        return {"label_columns": marked}
    shown, mark = listed([repr(name) for name in marked]), cells.of(marked[0])[0]
    notes.append(
        f"labels: the columns that hold {mark!r} or nothing, {shown}; blanks are absent (unknown ones: write 1 "
        f"in place of {mark!r}; others: --labels COLUMN,COLUMN)"
    )
    return {"label_columns": marked, "coding": "marks"}


def _answers(cells: FirstCells, names: Sequence[str], notes: list[str], images: bool, texts: bool) -> list[str]:
    """The columns that say yes or no of one label each: of a table of images all such columns, as nothing else can
    be of use, and of texts where nothing else is there but ids; of other tables, where they may be features, the
    last ones, if their names begin with one word, are numbered as labels are (Class1, Class2), or if each leaves rows
    open, some by -1 or "unknown" (as CheXpert's do): features hardly say that."""
    found = [name for name in names if is_answer(cells, name)]
    others = [name for name in names if name not in found]
    if images or (texts and all(is_called_id(name) or are_ids(cells, name) for name in others)):
        return found
    found = list(takewhile(found.__contains__, reversed(names)))[::-1]
    for place in range(len(found) - 1):
        first = {word.group(1) if (word := _FIRST_WORD.match(name)) else None for name in found[place:]}
        if len(first) == 1 and None not in first:
            return found[place:]
    numbered = numbered_alike(found, found[-1]) if found else []
    if numbered and numbered == found[-len(numbered) :]:
        return numbered
    open_ones = list(takewhile(lambda name: leaves_open(cells, name), reversed(found)))[::-1]
    if len(open_ones) > 1 and any(leaves_open(cells, name, blank=False) for name in open_ones):
        return open_ones
    if len(found) > 1:
        shown = listed([repr(name) for name in found[:-1]])
        notes.append(
            f"yes or no as well, and features: {shown}; if they are labels, name all: "
            f"--labels {shlex.quote(','.join(found))}"
        )
    return []


def _marked(cells: FirstCells, names: Sequence[str]) -> list[str]:
    """The last columns, where they hold one and the same mark, such as x, or nothing."""
    kinds = cells.kinds(names[-1]) if names else set()
    if len(kinds) != 1 or len(min(kinds)) > _MARK or kinds & ANSWERS or cells.has_numbers(names[-1]):
        return []
    found = list(takewhile(lambda name: cells.kinds(name) == kinds, reversed(names)))
    return found[::-1] if len(found) > 1 and all(leaves_open(cells, name) for name in found) else []


def numbered_alike(names: Sequence[str], key: str) -> list[str]:
    """The columns that are numbered as labels are, label_1, label_2, where this is one of them."""
    match = _NUMBERED.fullmatch(key)
    word = match.group(1).lower() if match else ""
    found = [name for name in names if (one := _NUMBERED.fullmatch(name)) and one.group(1).lower() == word]
    return found if word in LABELS and len(found) > 1 else []


def _slots(cells: FirstCells, names: Sequence[str]) -> list[str]:
    """Several columns for the names of labels: label1, label2, or the last ones, where they are numbered, too, and
    hold the same names, or one name each; those called labels also where fewer and fewer are filled. Some may be
    blank throughout."""
    numbered = [(name, match.group(1).lower()) for name in names if (match := _NUMBERED.fullmatch(name))]
    words = [*LABELS, *(word for name, word in numbered if name == names[-1])]
    for word in words:
        found = [name for name, stem in numbered if stem == word]
        columns = [column for name in found if (column := list(map(str, cells.written(name))))]
        if len(columns) < 2 or not all(cells.written(name) or not cells.of(name) for name in found):
            continue
        kinds = len({cell for column in columns for cell in column})
        shared = kinds < sum(len(set(column)) for column in columns) or kinds == len(columns)
        filled = list(map(len, columns))
        fewer = word in LABELS and filled == sorted(filled, reverse=True) and filled[-1] < filled[0]
        if (shared or fewer) and 2 * kinds <= sum(filled):
            return [] if names_in_columns(cells.table, found) is None else found
    return []
