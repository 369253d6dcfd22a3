"""Image paths and labels from a table."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from os.path import isfile  # a name that is too long is none, where Path.is_file raises an error
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shortlist.checks import check_choice
from shortlist.data.column_use import ColumnUse, listed
from shortlist.data.dataset import Dataset
from shortlist.data.images import Images
from shortlist.data.readers._columns import Columns, notes_of
from shortlist.data.readers._label_lists import column_of_labels, names_in_columns
from shortlist.data.readers._label_matrix import blanks_are_unknown, columns_as_numbers, in_order
from shortlist.data.readers._label_options import Coding, Given, Uncertain
from shortlist.data.readers._labels import labels_of
from shortlist.data.readers.findings import DataError, Findings, is_thorough
from shortlist.data.readers.image_folder import IMAGE_ENDINGS
from shortlist.data.readers.tables import name_of, open_table
from shortlist.errors import ShortlistError, ShortlistWarning, nearest
from shortlist.files import PathLike
from shortlist.labels.converters import CHEXPERT_OTHER

_ENDINGS = (".jpg", ".png", *sorted(IMAGE_ENDINGS - {".jpg", ".png"}))
_ELSEWHERE = re.compile(r"/|[a-zA-Z]:/|.*\\|[a-z]+://")  # what whole paths, Windows' and web addresses begin with
_SOME = 20  # of the missing images, so many are looked for nearby
_FORMS = ("auto", "index", "name", "list", "columns")
Form = Literal["auto", "index", "name", "list", "columns"]


def read_image_table(
    path: PathLike,
    *,
    labels: Form = "auto",
    path_column: str = "path",
    label_column: str = "label",
    label_columns: Sequence[str] | None = None,
    coding: Coding = "label-matrix",
    uncertain: Uncertain = "unknown",
    separator: str | None = None,
    rest: Literal["absent", "unknown"] = "absent",
    unknown_names: Sequence[str] = (),
    vocabulary: Sequence[str] | None = None,
    num_labels: int | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    root: PathLike | None = None,
    size: int = 224,
    crop: bool = False,
) -> Dataset:
    """Images listed in a table (.csv, .tsv, .jsonl or .json, also packed, .gz; .parquet, .feather, .arrow), with their
    labels.

    A file that is not there is like one that cannot be decoded, and commands leave it out; where most are not there, it
    is an error that says where they were looked for. An image that is listed again with the same labels is taken once,
    with a warning; with other labels it is an error.

    Args:
        path: the table. A .csv (commas) or .tsv (tabs) begins with a line of column names.
        labels: how labels are written: "index" (a column of class indices), "name" (a column of names), "list" (a
            column of any number of names, ``cat|dog`` or ``["cat", "dog"]``) or "columns" (one column per label).
            "auto" finds out as ``read_features`` does: columns if ``label_columns`` are given, otherwise numbers, names
            or lists, as the cells are. A blank number or name, or the number -1, means unknown; a blank list means
            that no label is there.
        path_column: the column with the images' paths, which may lack their endings.
        label_column: the column with the labels, unless they are in columns of their own.
        label_columns: the columns that are labels; for "columns", when not given, all but ``path_column``, and in
            CheXpert's coding all but those that its tables use for other things.
        coding, uncertain, separator, rest, unknown_names, vocabulary, num_labels: what the labels mean, as for
            ``read_features``; for "list" the separator is ``|`` when not given.
        delimiter, encoding: how the table is written, as for ``read_features``.
        root: the folder that paths start from; the table's own when not given.
        size, crop: how images are resized, as for ``read_image_folder``.

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (8, 8)).save(f"{folder}/a.png")
    ...     _ = Path(f"{folder}/all.csv").write_text("path,label\\na.png,cat|dog\\n")
    ...     data = read_image_table(f"{folder}/all.csv", labels="list")
    >>> data.vocabulary, data.target
    (('cat', 'dog'), tensor([[1, 1]], dtype=torch.int8))
    """
    check_choice(labels, "labels", _FORMS)
    findings = Findings()
    table = open_table(path, findings, delimiter=delimiter, encoding=encoding)
    if table is None:
        raise DataError(findings.problems)
    ids, paths = _image_paths(table, path, path_column, root, findings)
    columns = _label_columns(table, labels, label_columns, path_column, coding)
    columns = None if columns is None else in_order(columns, columns, vocabulary)
    used = [label_column] if columns is None else list(columns)
    absent = [name for name in used if name not in table.names]
    again = set() if absent else _listed_again(table, paths, used)
    _check_images(ids, path, _start(path, root), findings, again)
    if absent:
        findings.add(path, _no_column(table, absent[0], "label_column, or label_columns with one column per label,"))
        findings.stop_if_any()
    names = None if columns is None else names_in_columns(table, columns, vocabulary)
    if names is not None:
        written = names
    elif columns is not None:
        vocabulary = columns if vocabulary is None else vocabulary
        written = columns_as_numbers(table, columns, coding, path, findings, unknown_names)
    else:
        written = column_of_labels(table, label_column)
        if labels == "name" and written.dtype.kind in "biuf":
            written = table.texts(label_column)
        if labels == "list" and separator is None and not _has_lists(written):
            separator = "|"
    if labels == "index" and (written.ndim != 1 or written.dtype.kind not in "iuf"):
        written = _indices(written, path, findings)
    given = Given(vocabulary, num_labels, coding, uncertain, separator, rest, unknown_names, of_table=True)
    answer = labels_of(blanks_are_unknown(written, coding), given, path, findings)
    findings.stop_if_any()
    assert answer is not None, "labels that cannot be used are a problem, and were raised"
    ignored = {name: "it is neither the images' path nor a label" for name in table.names}
    data = Dataset(
        Images.from_files(paths, size, crop),
        answer.target,
        answer.vocabulary,
        ids=tuple(ids),
        name=name_of(path),
        columns=ColumnUse(
            (),
            tuple(used),
            others={path_column: "the images' paths"},
            ignored={name: why for name, why in ignored.items() if name not in {path_column, *used}},
        ),
        notes=(*answer.notes, *_moved(ids, paths), *notes_of(table)),
    )
    if not again:
        return data
    rows = "1 row lists" if len(again) == 1 else f"{len(again)} rows list"
    shown = listed([repr(ids[row]) for row in sorted(again)], 3)
    said = f"{rows} an image again, with the same labels: {shown}: each image is taken once"
    warnings.warn(f"{path}: {said}", ShortlistWarning, stacklevel=2)
    return data.subset([row for row in range(len(ids)) if row not in again])


def listed_images(
    path: PathLike,
    path_column: str = "path",
    root: PathLike | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
) -> tuple[list[str], list[Path]]:
    """The images that a table lists, as it names them, and where they are, whatever else is in it; arguments as in
    `read_image_table`. Most of them are there; who decodes them will see of each one, and they may be listed twice."""
    names, paths = _listed(path, path_column, root, delimiter, encoding)
    message = most_are_missing(names, _start(path, root))
    if message:
        raise ShortlistError(f"{path}: {message}")
    return names, paths


def _listed(path: PathLike, path_column: str, root: PathLike | None, *how: Any) -> tuple[list[str], list[Path]]:
    findings = Findings()
    table = open_table(path, findings, delimiter=how[0], encoding=how[1])
    found = ([], []) if table is None else _image_paths(table, path, path_column, root, findings)
    findings.stop_if_any()
    return found


def root_of_new(path: PathLike, options: Mapping[str, Any]) -> PathLike | None:
    """The folder that the paths of a new table start from, where these options are those of the training data: its own,
    as ``root`` is None, where one of the first images is beside it; else the training images', which is told."""
    root = options.get("root")
    if root is None or Path(root).resolve() == Path(path).resolve().parent:
        return root
    how = options.get("path_column", "path"), None, options.get("delimiter"), options.get("encoding")
    files = _listed(path, *how)[1][:10]
    if not files or any(isfile(file) for file in files):
        return None
    said = f"{path}: the images are not beside it, and read from {root}, as those of the training data"
    warnings.warn(f"{said}: give root=FOLDER (predict: --images FOLDER) if they are elsewhere", ShortlistWarning, 3)
    return str(root)


def _image_paths(
    table: Columns,
    path: PathLike,
    path_column: str,
    root: PathLike | None,
    findings: Findings,
) -> tuple[list[str], list[Path]]:
    """The images as the table names them, and where they are."""
    if path_column not in table.names:
        findings.add(path, _no_column(table, path_column, "path_column"))
        return [], []
    cells = table.texts(path_column).tolist()
    blank = [row for row, cell in enumerate(cells) if not isinstance(cell, str)]
    findings.rows(path, blank, lambda row: f"the column {path_column!r} is blank or no path")
    names = [cell if isinstance(cell, str) else "" for cell in cells]
    return names, [place_of(name, _start(path, root)) for name in names]


def _moved(names: Sequence[str], paths: Sequence[Path]) -> list[str]:
    """What to say of images that are elsewhere than the table says."""
    moved = [(name, place) for name, place in zip(names, paths, strict=True) if _ELSEWHERE.match(name)]
    moved = [(name, place) for name, place in moved if place != Path(name) and isfile(place)]
    return [f"{len(moved)} paths are of another place: {moved[0][0]} is read from {moved[0][1]}"] if moved else []


def _start(path: PathLike, root: PathLike | None) -> Path:
    """The folder that paths start from."""
    return Path(path).parent if root is None else Path(root)


def _listed_again(table: Columns, paths: Sequence[Path], labels: Sequence[str]) -> set[int]:
    """The rows of images that an earlier row lists with the same labels."""
    first: dict[Path, int] = {}
    again = [(row, first[place]) for row, place in enumerate(paths) if first.setdefault(place, row) != row]
    cells = [table.texts(name).tolist() for name in labels] if again else []
    return {row for row, before in again if all(str(column[row]) == str(column[before]) for column in cells)}


def _check_images(
    names: Sequence[str], path: PathLike, root: Path, findings: Findings, again: Collection[int]
) -> None:
    """Note images that are listed twice (but in the rows ``again``, which are left out), and in a check what else is
    wrong with them; otherwise only where most are missing: a few are left out later, as those that cannot be decoded
    are."""
    message = most_are_missing(names, root)
    if message:
        findings.add(path, message)
    for row, name in enumerate(names):
        if name and row not in again and (is_thorough() or isfile(place_of(name, root))):
            findings.image(place_of(name, root), path, row)


def place_of(name: str, root: Path) -> Path:
    """Where an image is; its name may lack the ending. Of a path that begins on another machine, the longest end that
    is there."""
    place = root / name
    if _ELSEWHERE.match(name) and not isfile(place):
        parts = re.split(r"[/\\]+", name)
        ends = (root.joinpath(*parts[start:]) for start in range(len(parts)))
        return next((end for end in ends if isfile(end)), place)
    if not name or place.suffix.lower() in IMAGE_ENDINGS or isfile(place):
        return place
    others = (place.with_name(f"{place.name}{ending}") for ending in (*_ENDINGS, *map(str.upper, _ENDINGS)))
    return next((other for other in others if isfile(other)), place)


def most_are_missing(names: Sequence[str], root: Path) -> str:
    """Where images of these names were looked for, and the likely mistake, if more than half are not there."""
    missing = [name for name in names if name and not isfile(place_of(name, root))]
    if 2 * len(missing) <= len(names):
        return ""
    told = f"{len(missing)} of the {len(names)} images that it lists are not there, such as {missing[0]}"
    return f"{told}; looked for in the folder {root}: {_likely_mistake(missing, root)}"


def _likely_mistake(names: Sequence[str], root: Path) -> str:
    """Why there are no images of these names in this folder."""
    name, some = names[0], names[:: max(1, len(names) // _SOME)]
    if "://" in name:
        return f"images are not fetched from the web: download them, and give their folder, {_root('FOLDER')}"
    if root.is_dir():
        near = [root.parent, *sorted(folder for folder in root.iterdir() if folder.is_dir())]
        for folder in near:
            there = [isfile(place_of(name, folder)) for name in some]
            if all(there):
                return f"they are in {folder}, so give {_root(folder)}"
            if any(there):
                found = folder.name + "/" + some[there.index(True)]
                return f"some are in {folder}, but not all: write the names with their folders, such as {found}"
        if like := _written_otherwise(root / name):
            return f"{like} is there: write the names, with their endings, as the files are called, or without endings"
        if isfile(root / Path(name).name):
            return f"{root / Path(name).name} is there: write the names without their folders"
    what = "give the folder that they are in" if root.is_dir() else "there is no such folder: give that of the images"
    return f"{what}, {_root('FOLDER')}"


def _written_otherwise(place: Path) -> Path | None:
    """The image that is called so but for its ending, or for small and capital letters."""
    there = sorted(place.parent.iterdir()) if place.parent.is_dir() else []
    alike = (file for file in there if file.stem.casefold() == place.stem.casefold())
    return next((file for file in alike if file.suffix.lower() in IMAGE_ENDINGS), None)


def _root(folder: object) -> str:
    return f"root={folder} (of fit and predict: --images {folder})"


def _no_column(table: Columns, name: str, option: str) -> str:
    have = listed([repr(column) for column in table.names])
    return f"there is no column {name!r}{nearest(name, table.names)}; give {option} of the columns {have}"


def _label_columns(
    table: Columns, labels: Form, given: Sequence[str] | None, path_column: str, coding: str
) -> Sequence[str] | None:
    """The columns that are one label each; None where one column holds all of them."""
    if given is not None or (labels != "columns" and coding != "chexpert"):
        return given
    others = {path_column, *(CHEXPERT_OTHER if coding == "chexpert" else ())}
    return [name for name in table.names if name not in others]


def _has_lists(written: NDArray[Any]) -> bool:
    cells = [cell for cell in written.tolist() if cell is not None]
    return any(isinstance(cell, list) or str(cell).startswith("[") for cell in cells)


def _indices(written: NDArray[Any], path: PathLike, findings: Findings) -> NDArray[np.int64]:
    """Class indices of texts; those that are none are noted, and unknown."""
    cells = ["-1" if cell is None else str(cell) for cell in written.tolist()]
    bad = [row for row, cell in enumerate(cells) if cell != "-1" and not cell.isdecimal()]
    allowed = "allowed are 0, 1, ..., -1 or blank (unknown)"
    findings.rows(path, bad, lambda row: f"label {cells[row]!r} is no class index: {allowed}")
    return np.array([int(cell) if cell.isdecimal() else -1 for cell in cells])
