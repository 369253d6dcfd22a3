"""What is guessed of a folder of images: that it has a folder for each label, or else how to give it."""

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from shortlist.data.column_use import as_option, listed
from shortlist.data.readers.findings import Findings
from shortlist.data.readers.image_folder import images_under, label_folders
from shortlist.data.readers.tables import name_of, names_table, open_table
from shortlist.errors import ShortlistError
from shortlist.files import PathLike
from shortlist.runs.guess.guessed import PARTS, Guess
from shortlist.runs.written import how_written, is_text_table


def guess_folder(path: Path, images: PathLike | None, labels: Sequence[str], reader: str | None) -> Guess:
    if images is not None or labels:
        raise ShortlistError("in a folder of images the folders are the labels: --images and --labels go with a table")
    loose = images_under(path, deep=False)
    if loose or not images_under(path):
        found = f"{len(loose)} images that are in no label's folder" if loose else "no images"
        tables = _tables_in(path, path if loose else None)
        if not loose and next(path.rglob("*.txt"), None) is not None:
            tables += "; texts are read from a table, too, with a column of texts and one of labels"
        raise ShortlistError(
            f"{path}: there are {found}: sort them into a folder for each label, or give a table{tables}"
        )
    if reader != "image-folder":
        _check_labels(path)
    return Guess({"reader": "image-folder", "path": str(path)}, True, notes=["labels: the names of the folders"])


def _tables_in(path: Path, images: Path | None) -> str:
    """How to give a table that is in this folder, after the words "give a table"; images are in that one."""
    tables = {PARTS.get(name_of(file).lower(), ""): file for file in sorted(path.iterdir()) if names_table(file)}
    if not tables:
        return " that lists them"
    first = tables.pop("train") if "train" in tables else next(iter(tables.values()))
    labelled = {part: file for part, file in tables.items() if part and file != first and _alike(file, first)}
    given = [f"data.{part}={as_option(str(file))}" for part, file in labelled.items()]
    more = given if images is None else ["--images", shlex.quote(str(images))]
    return f": {' '.join([shlex.quote(str(first)), *more])}"


def _alike(*paths: Path) -> bool:
    """Whether tables have the same columns: a test table without labels cannot judge."""
    tables = [open_table(path, Findings(), **(how_written(path) if is_text_table(path) else {})) for path in paths]
    return len({None if table is None else frozenset(table.names) for table in tables}) == 1


def _check_labels(path: Path) -> None:
    """Raise a ShortlistError where the folders are parts of the data (train, test), and the labels are in them."""
    folders = {name: folder for name, folder in label_folders(path, Findings()).items() if images_under(folder)}
    if len(folders) == 1 and (alone := next(iter(folders.values()))) and images_under(alone, deep=False):
        raise ShortlistError(
            f"{path}: all images are in one folder, {alone.name!r}, and there is nothing to tell apart: sort them into "
            f"a folder for each label, or give a table{_tables_in(path, alone)}"
        )
    if any(images_under(folder, deep=False) for folder in folders.values()):
        return
    within = Counter(name for folder in folders.values() for name in label_folders(folder, Findings()))
    parts = {PARTS[name.lower()]: folder for name, folder in folders.items() if name.lower() in PARTS}
    if len(parts) < len(folders) and not any(count > 1 for count in within.values()):
        return  # kinds of a label, each in a folder of its own
    first = shlex.quote(str(parts.get("train", next(iter(folders.values())))))
    given = [f"data.{part}={as_option(str(folder))}" for part, folder in parts.items() if part != "train"]
    outer, inner = (listed([repr(name) for name in names], 5) for names in (folders, within))
    moved = f"give {' '.join([first, *given])}, or move the images into a folder for each label"
    if parts:
        raise ShortlistError(
            f"{path}: its folders are no labels, these lie one level deeper: {inner} in {outer}. Give{moved[4:]}"
        )
    raise ShortlistError(
        f"{path}: are the labels {outer}, or the folders in them, {inner}? If the first, give reader=image-folder; if "
        f"the second, {moved}"
    )
