"""What a user's files probably are: which reader reads them, which columns are labels, ids or images. Every guess is
told, with the option that changes it."""

import os
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from shortlist.data.cells import DATE, LONG, NA_VALUES, NO, THOUSANDS, UNKNOWN, YES, has_words, is_number, unit_of
from shortlist.data.column_use import as_option, listed
from shortlist.data.readers.findings import Findings
from shortlist.data.readers.image_folder import IMAGE_ENDINGS, images_under, label_folders
from shortlist.data.readers.image_table import most_are_missing, place_of
from shortlist.data.readers.tables import (
    SPARSE_TEXT,
    TABLE_ENDINGS,
    name_of,
    names_in_columns,
    names_table,
    open_table,
    written_list,
)
from shortlist.errors import MissingFileError, ShortlistError, nearest
from shortlist.files import PathLike
from shortlist.runs.written import DAMAGED, ENCODING, how_written, is_text_table

_LABELS = ("label", "labels", "class", "classes", "target", "targets", "category", "categories", "tag", "tags", "y")
# of the tables that people try first
_LIKELY = ("species", "genre", "genres", "sentiment", "emotion", "emotions", "topic", "topics", "diagnosis", "outcome",
           "survived", "churn", "intent")  # fmt: skip
_LABEL_IDS = ("label_id", "class_id", "target_id")
_LAST_WORD = re.compile(r"(.*[_\-. ])?(labels?|target)", re.IGNORECASE)  # Finding Labels, emotion_label
_TEXTS = ("text", "texts", "sentence", "review", "tweet", "headline", "abstract", "utterance", "document")
_REMARKS = ("comment", "comments", "message", "post", "question", "content", "body")
# folders that are parts of the data -> what fit calls them
_PARTS = {"train": "train", "training": "train", "val": "calibration", "valid": "calibration",
          "validation": "calibration", "dev": "calibration", "test": "test", "testing": "test"}  # fmt: skip
# what the arrays of an .npz are called: as the reader has it, and as others have it
_KEYS = {"inputs_key": ("X", "features", "x", "data", "embeddings", "x_train", "train_x"),
         "labels_key": ("y", "labels", "label", "target", "targets", "y_train", "train_y"),
         "vocabulary_key": ("names", "target_names", "label_names", "class_names")}  # fmt: skip
_HELD_OUT = {"test": ("test",), "calibration": ("val", "valid", "calibration")}  # x_test, y_test; test_x, test_y
_ARRAYS = (".npz", ".npy", *SPARSE_TEXT)
_PACKED = (".zip", ".bz2", ".xz", ".zst", ".7z", ".tar", ".tgz", ".rar")
_SHEETS = (".xlsx", ".xls", ".xlsm", ".ods")
_ID = re.compile("[a-z]I[dD]$")
_LOOKED_AT = 1000  # cells of a column
_MARK = 2  # letters, at most
_MOST_CLASSES = 50  # of a last column that is called nothing in particular
_NUMBERED = re.compile(r"(.*?[^\W\d_])[_\-. ]?\d+")  # label1, tag_2
_FIRST_WORD = re.compile(r"([^_\-.:/ ]+)[_\-.:/ ]")  # of a name of several
_ANSWERS = YES | NO | {"1", "0", "-1", "1.0", "0.0", "-1.0"}  # cells of a label's column


@dataclass
class Guess:
    """A reader with its options, whether it reads images or texts, and what was guessed, to be told; of the parts that
    are in the same file (``x_test``), the options that are others."""

    source: dict[str, Any]
    images: bool = False
    texts: bool = False
    notes: list[str] = field(default_factory=list)
    parts: dict[str, dict[str, str]] = field(default_factory=dict)


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
        return _folder(place, images, labels, reader)
    if place.suffix.lower() == ".txt" and not _is_sparse_text(place):
        raise ShortlistError(
            f"{place}: its first line is no sparse text (3,17 0:0.5 42:1), as a .txt holds; if it is a table, rename "
            f"it, so that its name ends in .csv"
        )
    if place.suffix.lower() in _ARRAYS:
        return _arrays(place, images, labels)
    if place.suffix.lower() in _SHEETS:
        raise ShortlistError(f"{place}: workbooks are not read: in Excel or LibreOffice, save the sheet as CSV UTF-8")
    if place.suffix.lower() in _PACKED:
        raise ShortlistError(f"{place}: it is packed: unpack it, and give what is in it; .csv.gz is read as it is")
    if not names_table(place):
        raise ShortlistError(
            f"{place}: what it holds is not told by its ending. Give a folder of images, a table "
            f"({', '.join(TABLE_ENDINGS)}) or arrays ({', '.join(_ARRAYS)}); if it is a table of text, rename it, so "
            f"that its name ends in .csv"
        )
    return _Table(place, images, labels, options, reader, text, column_names, taken, written).guess()


def _is_sparse_text(path: Path) -> bool:
    """Whether the first line holds nothing but numbers, with commas and colons between, or it is a comment."""
    with open(path, "rb") as file:
        first = file.readline(1 << 16)
    return first.startswith(b"#") or not first.translate(None, b"0123456789.,:+-eE \t\r\n")


def _folder(path: Path, images: PathLike | None, labels: Sequence[str], reader: str | None) -> Guess:
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
    tables = {_PARTS.get(name_of(file).lower(), ""): file for file in sorted(path.iterdir()) if names_table(file)}
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
    parts = {_PARTS[name.lower()]: folder for name, folder in folders.items() if name.lower() in _PARTS}
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


def _arrays(path: Path, images: PathLike | None, labels: Sequence[str]) -> Guess:
    if images is not None:
        raise ShortlistError("--images goes with a table of images")
    source: dict[str, Any] = {"reader": "features", "path": str(path)}
    if len(labels) > 1:
        raise ShortlistError(f"{path}: arrays have one array of labels, got --labels {', '.join(labels)}")
    if labels:
        source["labels_key"] = labels[0]
    there: list[str] = []
    if path.suffix.lower() == ".npz":
        with suppress(*DAMAGED), np.load(path, allow_pickle=False) as arrays:
            there = arrays.files
    known = {"vocabulary_key": "names", "ids_key": "ids"}  # as `shortlist data features` calls them
    source |= {option: name for option, name in known.items() if name in there}
    notes = []
    for option, names in _KEYS.items():
        found = next((name for name in there if name.lower() in names), None)
        if option not in source and found is not None and not {names[0], f"{names[0]}_data"} & set(there):
            source[option] = found
            what = "names of the labels" if option == "vocabulary_key" else names[1]
            notes.append(f"{what}: the array {found!r} (another one: data.train.{option}=NAME)")
    parts: dict[str, dict[str, str]] = {}
    keys = [str(source.get(option, "")) for option in ("inputs_key", "labels_key")]
    for part, words in _HELD_OUT.items():
        for word in words:
            both = [key.replace("train", word) for key in keys]
            if all("train" in key and name in there for key, name in zip(keys, both, strict=True)):
                parts[part] = dict(zip(("inputs_key", "labels_key"), both, strict=True))
    return Guess(source, notes=notes, parts=parts)


class _Table:
    def __init__(
        self,
        path: Path,
        images: PathLike | None,
        labels: Sequence[str],
        options: Sequence[str] = (),
        reader: str | None = None,
        text: str | None = None,
        column_names: Sequence[str] | None = None,
        taken: Sequence[str] = (),
        written: Mapping[str, Any] | None = None,
    ) -> None:
        self.path, self.images, self.reader, self.text = path, images, reader, text
        self.notes: list[str] = []
        self._cells: dict[str, list[Any]] = {}
        self.written = {**how_written(path, written), **(written or {})} if is_text_table(path) else {}
        if "encoding" in self.written:
            self.notes.append(f"text: it is not UTF-8, and read as {ENCODING} (another one: data.train.encoding=NAME)")
        findings = Findings()
        table = open_table(path, findings, column_names=column_names, **self.written)
        findings.stop_if_any()
        assert table is not None, "a table that cannot be read is a problem, and was raised"
        self.table, self.names = table, [name for name in table.names if name and name not in taken]
        known = set(self.names)
        labels = labels or [name for name in options if name in known]
        self.labels = [part for name in labels for part in ([name] if name in known else name.split(","))]

    def guess(self) -> Guess:
        for name in [*self.labels, *([] if self.text is None else [self.text])]:
            if name not in self.names:
                there = listed([repr(column) for column in self.names])
                raise ShortlistError(
                    f"{self.path}: there is no column {name!r}{nearest(name, self.names)}; the columns are {there}"
                )
        pictures = self._pictures()
        texts = self._texts() if pictures is None else []
        rest = [name for name in self.names if name not in (pictures, *texts)]
        source: dict[str, Any] = {"path": str(self.path), **self.written}
        others = [name for name in rest if not self._names_parts(name)] if not self.labels else rest
        key, columns = self._label_options(others, pictures is not None, bool(texts))
        source |= columns
        if pictures is not None:
            if key is not None:
                source["label_column"] = key
            source.pop("decimal", None)  # only paths and labels are read
            source |= {"path_column": pictures, **({} if self.images is None else {"root": os.fspath(self.images)})}
            self.notes.append(f"images: the column {pictures!r}; other columns than it and the labels are not used")
            return Guess({"reader": "image-table", **source}, True, notes=self.notes)
        if key is not None:
            source["labels_key"] = key
        parts = [] if self.labels else [name for name in rest if self._names_parts(name)]
        if parts:
            source["other_columns"] = parts
            self.notes.append(
                f"left out: {listed(list(map(repr, parts)))}, which names parts of the data; rows of the test part are "
                f"trained on, too, unless they are in a table of their own: data.test=FILE"
            )
        of_labels = [name for name in rest if name.startswith(f"{key}_")] if key not in rest else []
        used = {key, *columns.get("label_columns", ()), *of_labels, *parts}
        self._ids(source, [name for name in rest if name not in used])
        others = [name for name in rest if name not in {*used, source.get("ids_key")}]
        of_text = self.text is not None or self.reader == "text-table"
        if len(texts) == 1 and self.reader != "features" and (of_text or not others):
            source.pop("decimal", None)  # only texts and labels are read
            more = f"; not used: {listed([repr(name) for name in others])}" if others else ""
            numbers = " (all columns: data.train.reader=features)" if others else ""
            self.notes.append(f"texts: the column {texts[0]!r}{more}{numbers}")
            return Guess({"reader": "text-table", "text_column": texts[0], **source}, False, True, self.notes)
        if texts:
            beside = ", beside the other columns" if others else ""
            self.notes.append(
                f"texts: {listed([repr(name) for name in texts])}, counted word by word{beside} (one text alone: "
                f"data.train.text_column={as_option(texts[0])}; without it: "
                f"data.train.other_columns={as_option(texts[:1])})"
            )
        self._embedding(source, others)
        if "decimal" not in source and self._has_thousands(others):
            source["decimal"] = "."  # for new files, in which 1,500 may stand alone
        some = [name for name in (*others, *texts) if name.startswith("X_")]  # which else would be all features
        if some and len(some) < len(others) + len(texts):
            left_out = {*used, source.get("ids_key")}
            source["input_columns"] = [name for name in self.names if name not in left_out and self.table.is_flat(name)]
            self.notes.append("features: all columns (those called X_* alone: data.train.input_columns=null)")
        return Guess({"reader": "features", **source}, notes=self.notes)

    def cells(self, name: str) -> list[Any]:
        """The first cells that are not blank."""
        if name not in self._cells:
            found = self.table.array(name)[:_LOOKED_AT].tolist()
            self._cells[name] = [cell for cell in found if cell is not None and cell == cell and cell != ""]
        return self._cells[name]

    # ---- labels

    def _label_options(self, names: Sequence[str], images: bool, texts: bool) -> tuple[str | None, dict[str, Any]]:
        """The one column of labels, or none; and further options."""
        if len(self.labels) > 1:
            if names_in_columns(self.table, self.labels) is not None:
                shown = listed([repr(name) for name in self.labels])
                self.notes.append(f"labels: the names that a row has in any of the columns {shown}")
            return None, {"label_columns": self.labels}
        said = getattr(self.table, "label_names", None)
        beside = None if self.labels or said else self._mulan_names()
        if beside is not None:
            self.notes.append(f"labels: the columns that {beside} names (others: --labels COLUMN)")
            return None, {"labels": str(beside)}
        if not self.labels and said:
            self.notes.append(f"labels: the columns that the file names, {listed(list(map(repr, said)))}")
            return None, {"label_columns": list(said)}
        for prefix in () if self.labels else ("y", "label"):
            columns = [name for name in names if name.startswith(f"{prefix}_")]
            if len(columns) > 1 and prefix not in names and all(map(self._is_answer, columns)):
                self.notes.append(f"labels: the columns {prefix}_* (others: --labels COLUMN)")
                return prefix, {}
        called = self.labels or any(name.lower() in _LABELS for name in names)
        answers = [] if called else self._answers(names, images, texts)
        if len(answers) > 1:
            shown = listed([repr(name) for name in answers])
            unsure = "; blanks and -1 are unknown" if any(map(self._leaves_open, answers)) else ""
            if unsure and all(self._kinds(name) <= YES | {"1", "1.0"} for name in answers):
                self.notes.append("no label is ever absent: if a blank means that, data.train.coding=marks says so")
            self.notes.append(f"labels: the columns of yes or no, {shown}{unsure} (others: --labels COLUMN,COLUMN)")
            return None, {"label_columns": answers}
        marked = [] if called else self._marked(names)
        if marked:
            shown, mark = listed([repr(name) for name in marked]), self.cells(marked[0])[0]
            self.notes.append(
                f"labels: the columns that hold {mark!r} or nothing, {shown}; blanks are absent (unknown ones: write 1 "
                f"in place of {mark!r}; others: --labels COLUMN,COLUMN)"
            )
            return None, {"label_columns": marked, "coding": "marks"}
        slots = [] if called else self._slots(names)
        if slots:
            shown = listed([repr(name) for name in slots])
            self.notes.append(
                f"labels: the names that a row has in any of the columns {shown} (another one: --labels COLUMN)"
            )
            return None, {"label_columns": slots}
        key = self.labels[0] if self.labels else self._label_column(names)
        cells = self.cells(key) if self.table.is_flat(key) else []
        mark = _separator(cells) or (" " if _has_spaces_between(cells) else None)
        if mark is not None:
            self.notes.append(
                f"several labels in a cell of {key!r}, with {mark!r} between (one label: data.train.separator=null)"
            )
            all_cells = self.table.array(key).tolist()
            blank = sum(cell is None or not str(cell).strip() for cell in all_cells)
            if blank:
                self.notes.append(
                    f"{blank} of {len(all_cells)} cells of {key!r} are blank: examples without labels "
                    f"""(unknown ones: data.train.unknown_names='[""]')"""
                )
        return key, {} if mark is None else {"separator": mark}

    def _kinds(self, name: str) -> set[str]:
        return {str(cell).strip().lower() for cell in self.cells(name)}

    def _marked(self, names: Sequence[str]) -> list[str]:
        """The last columns, where they hold one and the same mark, such as x, or nothing."""
        kinds = self._kinds(names[-1]) if names and self.table.is_flat(names[-1]) else set()
        if len(kinds) != 1 or len(min(kinds)) > _MARK or kinds & _ANSWERS or self.table.has_numbers(names[-1]):
            return []
        found = list(takewhile(lambda name: self.table.is_flat(name) and self._kinds(name) == kinds, reversed(names)))
        return found[::-1] if len(found) > 1 and all(map(self._leaves_open, found)) else []

    def _slots(self, names: Sequence[str]) -> list[str]:
        """Several columns for the names of labels: label1, label2, or the last ones, where they are numbered, too, and
        hold the same names, or one name each."""
        numbered = [(name, match.group(1).lower()) for name in names if (match := _NUMBERED.fullmatch(name))]
        words = [*_LABELS, *(word for name, word in numbered if name == names[-1])]
        for word in words:
            found = [name for name, stem in numbered if stem == word]
            cells = [list(map(str, self._written_cells(name))) for name in found]
            kinds = len({cell for column in cells for cell in column})
            shared = kinds < sum(len(set(column)) for column in cells) or kinds == len(found)
            if len(found) > 1 and all(cells) and shared and 2 * kinds <= sum(map(len, cells)):
                return [] if names_in_columns(self.table, found) is None else found
        return []

    def _mulan_names(self) -> Path | None:
        """The .xml beside Mulan's .arff: scene.xml for scene.arff and for scene-train.arff."""
        if self.path.suffix.lower() != ".arff":
            return None
        whole = self.path.stem
        stems = [whole, *(whole[: mark.start()] for mark in reversed(list(re.finditer("[-_.]", whole))))]
        return next((file for stem in stems if (file := self.path.with_name(f"{stem}.xml")).is_file()), None)

    def _answers(self, names: Sequence[str], images: bool, texts: bool) -> list[str]:
        """The columns that say yes or no of one label each: of a table of images all such columns, as nothing else can
        be of use, and of texts where nothing else is there but ids; of other tables, where they may be features, the
        last ones, if their names begin with one word or if each leaves rows open, some by -1 or "unknown" (as
        CheXpert's do): features hardly say that."""
        found = [name for name in names if self._is_answer(name)]
        others = [name for name in names if name not in found]
        if images or (texts and all(_is_called_id(name) or self._are_ids(name) for name in others)):
            return found
        found = self._last_answers(names)
        for place in range(len(found) - 1):
            first = {word.group(1) if (word := _FIRST_WORD.match(name)) else None for name in found[place:]}
            if len(first) == 1 and None not in first:
                return found[place:]
        open_ones = found[len(found) - len(list(takewhile(self._leaves_open, reversed(found)))) :]
        if len(open_ones) > 1 and any(self._leaves_open(name, blank=False) for name in open_ones):
            return open_ones
        if len(found) > 1:
            shown = listed([repr(name) for name in found[:-1]])
            self.notes.append(
                f"yes or no as well, and features: {shown}; if they are labels, name all: "
                f"--labels {shlex.quote(','.join(found))}"
            )
        return []

    def _last_answers(self, names: Sequence[str]) -> list[str]:
        others = [place for place, name in enumerate(names) if not self._is_answer(name)]
        return list(names[others[-1] + 1 if others else 0 :])

    def _leaves_open(self, name: str, blank: bool = True) -> bool:
        """Whether some cells of a column of answers say that nothing is known, be it by a ``blank``."""
        open_answers = UNKNOWN | {"-1", "-1.0"}
        cells = self._kinds(name)
        rows = min(_LOOKED_AT, len(self.table.array(name)))
        return bool(cells & open_answers) or (blank and len(self.cells(name)) < rows)

    def _is_answer(self, name: str) -> bool:
        cells = self.cells(name) if self.table.is_flat(name) else []
        known = {str(cell).strip().lower() for cell in cells if str(cell) not in NA_VALUES} - UNKNOWN
        return bool(known) and known <= _ANSWERS

    def _label_column(self, names: Sequence[str]) -> str:
        names = [name for name in names if not _is_called_id(name)]
        called = {name.lower(): name for name in reversed(names)}
        for word in _LABELS:
            if word in called and not (word == "y" and self._is_measured(called[word], names)):
                self.notes.append(f"labels: the column {called[word]!r}, by its name (another one: --labels COLUMN)")
                return called[word]
        likely = [called[word] for word in _LIKELY if word in called]
        likely += [name for name in names if _LAST_WORD.fullmatch(name) or name.lower() in _LABEL_IDS]
        for name in filter(self._are_classes, likely):
            if name == names[-1]:
                break
            self.notes.append(f"labels: the column {name!r}, by its name (another one: --labels COLUMN)")
            return name
        if names and self._are_classes(names[-1]):
            self.notes.append(f"labels: the last column, {names[-1]!r} (another one: --labels COLUMN)")
            return names[-1]
        likely = [name for name in names if self._are_classes(name) and not self.table.has_numbers(name)]
        if len(likely) == 1:
            last = self._why_no_label(names[-1])
            self.notes.append(f"labels: the only column of names, {likely[0]!r} (another one: --labels COLUMN){last}")
            return likely[0]
        if len(self.names) == 1:
            raise ShortlistError(
                f"{self.path}: there is one column alone, {self.names[0]!r}, and labels need others to be told by; if "
                f"something else stands between its cells, give delimiter"
            )
        if len(names) == 1 and self._comes_again(names[0]):
            self.notes.append(f"labels: the only other column, {names[0]!r}")
            return names[0]
        such = f", such as --labels {shlex.quote(likely[-1])}" if likely else ""
        last = self._why_no_label(names[-1]) if names else ""
        raise ShortlistError(
            f"{self.path}: which columns are labels? Name them with --labels{such}; the columns are "
            f"{listed([repr(name) for name in names])}{last}"
        )

    def _comes_again(self, name: str) -> bool:
        """Whether it holds names, each of them twice on average, or more often."""
        cells = self.table.texts(name).tolist() if self._written_cells(name) else []
        return 2 < 2 * len(set(cells)) <= len(cells)

    def _why_no_label(self, last: str) -> str:
        """Of the last column, where the labels often are, why they are not."""
        cells = self.cells(last) if self.table.is_flat(last) else []
        if len(set(map(str, cells))) == 1 and not self.table.has_numbers(last):
            return f"; the last one, {last!r}, always holds {cells[0]!r}: there is nothing to tell apart"
        if len(set(map(str, cells))) > _MOST_CLASSES and self.table.has_numbers(last):
            return f"; the last one, {last!r}, is a quantity: to predict it, make classes of it first (low, high)"
        return ""

    def _names_parts(self, name: str) -> bool:
        """Whether it says of each row of which part of the data it is: train, test."""
        kinds = {str(cell).strip().lower() for cell in self._written_cells(name)}
        return len(kinds) > 1 and kinds <= _PARTS.keys()

    def _is_measured(self, y: str, names: Sequence[str]) -> bool:
        """Whether a column called y holds fractions, or is a place: x is there too, and the last column, the only one
        of names, says what is there."""
        if not self.table.is_flat(y) or not self.table.has_numbers(y):
            return False
        if any(isinstance(cell, float) and not cell.is_integer() for cell in self.cells(y)):
            return True
        of_names = [name for name in names if self.table.is_flat(name) and not self.table.has_numbers(name)]
        has_x = any(name.lower() == "x" for name in names)
        return has_x and of_names == [names[-1]] and self._are_classes(names[-1])

    def _are_classes(self, name: str) -> bool:
        """Whether the cells are of a few kinds, which come again and again, or lists."""
        cells = self.cells(name)
        if not self.table.is_flat(name):
            return any(isinstance(cell, list | np.ndarray) for cell in cells)
        lists = [names for cell in cells if (names := written_list(str(cell))) is not None]
        if 2 * len(lists) > len(cells):
            return True
        mark = _separator(cells)
        kinds = {piece.strip() for cell in cells for piece in (str(cell).split(mark) if mark else [str(cell)])}
        whole = all(not isinstance(cell, float) or cell.is_integer() for cell in cells)
        return whole and 2 <= len(kinds) <= max(2, min(_MOST_CLASSES, len(cells) - 1))

    # ---- images, ids, text

    def _pictures(self) -> str | None:
        """The column with the paths of images."""
        root, missing = self.path.parent if self.images is None else Path(self.images), ""
        for name in self.names:
            cells = self.cells(name) if self.table.is_flat(name) and not self.table.has_numbers(name) else []
            named = [str(cell) for cell in cells if Path(str(cell)).suffix.lower() in IMAGE_ENDINGS]
            if name in self.labels or not cells or 10 * len(named) < 9 * len(cells):
                continue
            if any(place_of(cell, root).is_file() for cell in named):
                return name
            missing = missing or f"the column {name!r} names images: {most_are_missing(named, root)}"
        if missing:
            raise ShortlistError(f"{self.path}: {missing}")
        if self.images is not None:
            for name in self.names:  # a name without its ending is none of an image's
                cells = list(map(str, self.table.texts(name)[:_LOOKED_AT])) if self.table.is_flat(name) else []
                if any(place_of(cell, root).is_file() for cell in cells[:10]):
                    return name
            raise ShortlistError(
                f"{self.path}: no column names images (endings: {', '.join(sorted(IMAGE_ENDINGS))}), "
                f"the columns are {listed([repr(name) for name in self.names])}"
            )
        return None

    def _ids(self, source: dict[str, Any], names: Sequence[str]) -> None:
        """The first column that is called an id and differs in every row, or else one of words that all differ."""
        unique = []
        for name in names:
            cells = self.cells(name) if self.table.is_flat(name) else []
            if self._are_codes(name, cells):
                unique.append(name)
            if _is_called_id(name):
                if cells and self._is_unique(name):
                    source["ids_key"] = name
                    self.notes.append(f"ids: the column {name!r} (none: data.train.ids_key=null)")
                    return
                self.notes.append(
                    f"the column {name!r} is called an id and repeats: if its rows belong together, "
                    f"data.groups={as_option(name)} data.train.other_columns={as_option([name])}"
                )
        unique = [name for name in unique or names[:1] if name in unique or self._counts(name)][:1]
        if unique and self._is_unique(unique[0]):
            source["ids_key"] = unique[0]
            self.notes.append(
                f"ids: the column {unique[0]!r}, which differs in every row (none: data.train.ids_key=null)"
            )

    def _is_unique(self, name: str) -> bool:
        """Whether each row has a cell, and none comes twice."""
        cells = self.table.array(name).tolist()
        return len(set(cells) - {None, ""}) == len(cells)

    def _embedding(self, source: dict[str, Any], names: Sequence[str]) -> None:
        """Where all features are in one column, lists of numbers of one length, it is that one."""
        if len(names) == 1 and not self.table.is_flat(names[0]) and self.table.array(names[0]).ndim == 2:
            source["inputs_key"] = names[0]
            self.notes.append(f"features: the numbers in the lists of {names[0]!r}")

    def _has_thousands(self, names: Sequence[str]) -> bool:
        """Whether numbers have commas between thousands, for certain."""
        for name in names:
            self.table.values(name)
        return bool(getattr(self.table, "has_thousands", False))

    def _counts(self, name: str) -> bool:
        """Whether these are the whole numbers from the first one on, one after the other."""
        cells = self.cells(name) if self.table.is_flat(name) and self.table.has_numbers(name) else []
        rows = min(_LOOKED_AT, len(self.table.array(name)))
        return (
            _MOST_CLASSES < rows == len(cells)
            and all(cell == cells[0] + place for place, cell in enumerate(cells) if isinstance(cell, int | float))
            and not isinstance(cells[0], str)
        )

    def _are_codes(self, name: str, cells: Sequence[Any]) -> bool:
        """Whether these are words, no numbers and no dates, of which none comes twice."""
        rows = min(_LOOKED_AT, len(self.table.array(name)))
        if rows <= _MOST_CLASSES or len(cells) < rows or self.table.has_numbers(name):
            return False
        words = {str(cell).strip() for cell in cells}
        return len(words) == rows and not any(
            " " in word or len(word) > LONG or is_number(word) or DATE.fullmatch(word) or THOUSANDS["."].fullmatch(word)
            for word in words
        ) and unit_of(words) is None

    def _texts(self) -> list[str]:
        """The columns of texts: the one that is named, or all whose cells are of several words; of long ones that come
        again and again, where nothing else is there to learn from but labels and ids."""
        if self.text is not None:
            return [self.text]
        names = [name for name in self.names if name not in self.labels and not _is_called_id(name)]
        found = [name for name in names if self._has_words(name)]
        long = [name for name in names if self._has_long_texts(name)]
        others = [name for name in names if name not in long and not self._are_ids(name) and not self._is_answer(name)]
        if not found and len(long) == 1 and len(others) <= (0 if self.labels else 1):
            found = long  # the one other column holds the labels, unless they are named
        if self.reader != "text-table" or len(found) == 1:
            return found
        called = {name.lower(): name for name in reversed(found)}
        best = next((called[word] for word in (*_TEXTS, *_REMARKS) if word in called), None)
        if best is None:
            raise ShortlistError(
                f"{self.path}: which column holds the texts? Name it with text_column=NAME; the columns are "
                f"{listed([repr(name) for name in names])}"
            )
        return [best]

    def _has_words(self, name: str) -> bool:
        """Whether most cells are of several words, and few come twice; not those of several labels."""
        cells = [str(cell) for cell in self._written_cells(name)]
        called = name.lower() in (*_LABELS, *_LIKELY) and (name.lower() in _LABELS or self._are_classes(name))
        of_labels = not self.labels and (called or _separator(cells) is not None)
        are_dates = 2 * sum(map(_is_date, cells)) > len(cells)
        return has_words(cells) and not of_labels and not are_dates and unit_of(cells) is None

    def _has_long_texts(self, name: str) -> bool:
        cells = self._written_cells(name)
        return bool(cells) and sum(len(str(cell)) > LONG for cell in cells) > len(cells) / 2

    def _written_cells(self, name: str) -> list[Any]:
        """Of a column without numbers, the first cells."""
        return self.cells(name) if self.table.is_flat(name) and not self.table.has_numbers(name) else []

    def _are_ids(self, name: str) -> bool:
        return self._counts(name) or (self.table.is_flat(name) and self._are_codes(name, self.cells(name)))


def _is_called_id(name: str) -> bool:
    """Whether it is called an id, or as pandas calls the numbers of rows that it wrote."""
    lower = name.lower()
    if lower in _LABEL_IDS:
        return False
    return lower in ("id", "index", "unnamed: 0") or lower.endswith(("_id", " id")) or _ID.search(name) is not None


def _is_date(cell: str) -> bool:
    return DATE.fullmatch(cell.strip()) is not None


def _separator(cells: Sequence[Any]) -> str | None:
    """What stands between several labels in one cell: the pieces are then fewer than the cells that differ, or some
    are cells of their own; of the marks that hardly stand in a name, some pieces come again."""
    texts = {cell for cell in cells if isinstance(cell, str)}
    for mark in ("|", ";#", ";", ",", "\n"):  # ;# is SharePoint's
        several = [text for text in texts if mark in text and not text.startswith(("[", "{", "<"))]
        pieces = Counter(piece.strip() for text in several for piece in text.split(mark))
        again = mark in "|;#" and len(pieces) < pieces.total()
        if several and (again or any(piece in texts for piece in pieces) or len(pieces) < len(several)):
            return mark
    several = [text for text in texts if "/" in text]
    names = {piece.strip() for text in several for piece in text.split("/")}
    if len(names) < len(several) and names & texts and not any(map(is_number, names)):
        return "/"  # of n/a, he/him and dates it is a part
    return None


def _has_spaces_between(cells: Sequence[Any]) -> bool:
    """Whether cells hold several names with spaces between (haze primary), or class numbers (0 3): words are few beside
    the cells that differ, and some are cells of their own."""
    texts = {cell.strip() for cell in cells if isinstance(cell, str) and written_list(cell) is None}
    words = {word for text in texts for word in text.split(" ")}
    of_one_kind = all(map(str.isdecimal, words)) or not any(map(is_number, words))
    return 2 < 2 * len(words) <= len(texts) and bool(words & texts) and of_one_kind
