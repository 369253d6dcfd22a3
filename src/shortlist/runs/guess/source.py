"""Which reader reads some files, by what they are: a folder of images, arrays or a table."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shortlist.data.readers.coco import is_coco
from shortlist.data.readers.tables import TABLE_ENDINGS, names_table
from shortlist.errors import MissingFileError, ShortlistError
from shortlist.files import PathLike
from shortlist.runs.guess.arrays import ARRAYS, guess_arrays
from shortlist.runs.guess.folders import guess_folder
from shortlist.runs.guess.guessed import Guess
from shortlist.runs.guess.tables import guess_table

_PACKED = (".zip", ".bz2", ".xz", ".zst", ".7z", ".tar", ".tgz", ".rar")
_SHEETS = (".xlsx", ".xls", ".xlsm", ".ods")


def guess_source(
    path: PathLike,
    images: PathLike | None = None,
    labels: Sequence[str] = (),
    options: Sequence[str] = (),
    reader: str | None = None,
    text: str | None = None,
    column_names: Sequence[str] | None = None,
    taken: Sequence[str] = (),
    written: Mapping[str, Any] | None = None,
) -> Guess:
    """The reader for a table, a folder of images or a file of arrays.

    ``images`` is the folder that the paths in a table of images start from; ``labels`` are the columns of the labels,
    and so are those of a table that ``options`` of its reader name. ``reader`` and ``text``, the column of texts, are
    given where the user has chosen; ``column_names`` where the first line of the table does not name them; columns
    that are ``taken`` have another use already; ``written`` are the options that say how a table of text is written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(f"{folder}/leaves.csv").write_text("leaf_id,length,species\\na1,9.5,oak\\na2,8,elm\\na3,5,oak\\n")
    ...     guess = guess_source(f"{folder}/leaves.csv")
    >>> guess.source["labels_key"], guess.source["ids_key"]
    ('species', 'leaf_id')
    >>> for note in guess.notes:
    ...     print(note)
    labels: the last column, 'species' (another one: --labels COLUMN)
    ids: the column 'leaf_id' (none: data.train.ids_key=null)
    """
    place = Path(path)
    if not place.exists():
        raise MissingFileError(f"there is no file or folder {os.fspath(path)}")
    if place.is_dir():
        return guess_folder(place, images, labels, reader)
    if reader == "coco" or (reader is None and is_coco(place)):
        return _guess_coco(place, images, labels)
    if place.suffix.lower() == ".txt" and not _is_sparse_text(place):
        raise ShortlistError(
            f"{place}: its first line is no sparse text (3,17 0:0.5 42:1), as a .txt holds; if it is a table, rename "
            f"it, so that its name ends in .csv"
        )
    if place.suffix.lower() in ARRAYS:
        return guess_arrays(place, images, labels)
    if place.suffix.lower() in _SHEETS:
        raise ShortlistError(f"{place}: workbooks are not read: in Excel or LibreOffice, save the sheet as CSV UTF-8")
    if place.suffix.lower() in _PACKED:
        raise ShortlistError(f"{place}: it is packed: unpack it, and give what is in it; .csv.gz is read as it is")
    if not names_table(place):
        raise ShortlistError(
            f"{place}: what it holds is not told by its ending. Give a folder of images, a table "
            f"({', '.join(TABLE_ENDINGS)}) or arrays ({', '.join(ARRAYS)}); if it is a table of text, rename it, so "
            f"that its name ends in .csv"
        )
    return guess_table(place, images, labels, options, reader, text, column_names, taken, written)


def _guess_coco(path: Path, images: PathLike | None, labels: Sequence[str]) -> Guess:
    if labels:
        raise ShortlistError(f"{path}: it has no columns for --labels: the labels are COCO's categories")
    if images is None:
        raise ShortlistError(
            f"{path}: it holds COCO's annotations: give the folder of the images, --images FOLDER (of data check: "
            f"images=FOLDER); to read it as a table: data.train.reader=features"
        )
    notes = ["labels: COCO's categories"]
    return Guess({"reader": "coco", "path": str(path), "images": os.fspath(images)}, True, notes=notes)


def _is_sparse_text(path: Path) -> bool:
    """Whether the first line holds nothing but numbers, with commas and colons between, or it is a comment."""
    with open(path, "rb") as file:
        first = file.readline(1 << 16)
    return first.startswith(b"#") or not first.translate(None, b"0123456789.,:+-eE \t\r\n")
