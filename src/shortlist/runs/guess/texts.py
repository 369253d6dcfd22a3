"""Which columns of a table hold texts."""

from collections.abc import Sequence

from shortlist.data.cells import LONG, has_words, unit_of
from shortlist.data.column_use import listed
from shortlist.data.dates import are_dates
from shortlist.errors import ShortlistError
from shortlist.runs.guess.first_cells import FirstCells
from shortlist.runs.guess.ids import are_ids, are_numbered, is_called_id
from shortlist.runs.guess.image_paths import named_images
from shortlist.runs.guess.label_signs import LABELS, LIKELY, are_classes, comes_again, is_answer, separator

# what the one column of texts may be called, best first
_CALLED = ("text", "texts", "sentence", "review", "tweet", "headline", "abstract", "utterance", "document",
           "comment", "comments", "message", "post", "question", "content", "body")  # fmt: skip


def find_texts(cells: FirstCells, labels: Sequence[str], reader: str | None) -> list[str]:
    """All columns whose cells are of several words, or the one of them that a ``reader`` of texts takes; one of long
    texts that come again and again, where nothing else is there to learn from but labels and ids."""
    names = [name for name in cells.names if name not in labels and not is_called_id(name)]
    names = [name for name in names if not named_images(cells, name) and not are_numbered(cells, name)]
    found = [name for name in names if _has_words(cells, name, bool(labels))]
    long = [name for name in names if _has_long_texts(cells, name)]
    if not found and len(long) == 1:
        others = (name for name in names if name not in long)
        left = [name for name in others if not are_ids(cells, name) and not is_answer(cells, name)]
        found = long if len(left) <= (0 if labels else 1) else []  # the one other column holds the labels, unless named
    if reader != "text-table" or len(found) == 1:
        return found
    called = {name.lower(): name for name in reversed(found)}
    best = next((called[word] for word in _CALLED if word in called), None)
    if best is None:
        raise ShortlistError(
            f"{cells.path}: which column holds the texts? Name it with text_column=NAME; the columns are "
            f"{listed([repr(name) for name in names])}"
        )
    return [best]


def _has_words(cells: FirstCells, name: str, labels_are_named: bool) -> bool:
    """Whether most cells are of several words, and few come twice; not those of several labels."""
    found = [str(cell) for cell in cells.written(name)]
    if not found:
        return False
    lower = name.lower()
    called = lower in LABELS or (lower in LIKELY and (are_classes(cells, name) or comes_again(cells, name)))
    of_labels = not labels_are_named and (called or separator(found) is not None)
    of_dates = are_dates([cell.strip() for cell in found])
    return has_words(found) and not of_labels and not of_dates and unit_of(found) is None


def _has_long_texts(cells: FirstCells, name: str) -> bool:
    found = cells.written(name)
    return bool(found) and sum(len(str(cell)) > LONG for cell in found) > len(found) / 2
