"""Columns of texts beside numbers and categories, counted word by word.

Where there are several, each column is counted alone, and all of them once more as one text: a word may mean the same
in a title and in a description, and not in what people praise and what they blame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from shortlist.data.cells import has_words
from shortlist.data.frame_columns import MISSING
from shortlist.data.tf_idf import TfIdf
from shortlist.errors import ShortlistError


@dataclass(frozen=True)
class CountedTexts:
    """The texts of one column, or of several below one another: what counts their words."""

    columns: tuple[int, ...]
    counted: TfIdf

    @property
    def width(self) -> int:
        return self.counted.width

    def transform(self, cells: Mapping[int, NDArray[Any]]) -> Any:
        """Features, a CSR matrix, of the cells of these columns; a blank is an empty text."""
        return self.counted.transform(_texts([cells[column] for column in self.columns]))


def fit_texts(cells: Mapping[int, NDArray[Any]]) -> list[CountedTexts]:
    """What counts the words of these columns, of those that hold texts."""
    alone = ((column, _counted(values)) for column, values in cells.items())
    found = [CountedTexts((column,), counted) for column, counted in alone if counted is not None]
    if len(found) > 1:
        columns = tuple(one.columns[0] for one in found)
        found.append(CountedTexts(columns, TfIdf.fit(_texts([cells[column] for column in columns]))))
    return found


def tell_apart(texts: Sequence[str]) -> bool:
    """Whether the words of a column tell its texts apart, so that `fit_texts` counts them.

    >>> tell_apart(["a red leaf", "a green leaf", "red and green"] * 3), tell_apart(["leaf 12", "leaf 13", "leaf 14"])
    (True, False)
    """
    return _fit(texts) is not None


def _counted(values: NDArray[Any]) -> TfIdf | None:
    """What counts the words of a column of texts; None for names, and for ids."""
    if not has_words([value for value in values.tolist() if value != MISSING]):
        return None
    return _fit(_texts([values]))


def _fit(texts: Sequence[str]) -> TfIdf | None:
    """What counts their words; None for ids, such as "leaf 12": no word is in some of them, and not in others."""
    try:
        counted = TfIdf.fit(texts)
    except ShortlistError:
        return None
    return counted if counted.idf.max() > 1 else None  # that of a word in every text


def _texts(columns: Sequence[NDArray[Any]]) -> list[str]:
    rows = zip(*(values.tolist() for values in columns), strict=True)
    return ["\n".join(cell for cell in row if cell != MISSING) for row in rows]
