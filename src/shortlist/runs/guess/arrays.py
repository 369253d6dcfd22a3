"""What is guessed of a file of arrays: which of them are inputs, labels and names, and which are held out."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from shortlist.data.readers.tables import SPARSE_TEXT
from shortlist.errors import ShortlistError
from shortlist.files import PathLike
from shortlist.runs.guess.guessed import Guess
from shortlist.runs.written import DAMAGED

ARRAYS = (".npz", ".npy", *SPARSE_TEXT)
# what the arrays of an .npz are called: as the reader has it, and as others have it
_KEYS = {"inputs_key": ("X", "features", "x", "data", "embeddings", "x_train", "train_x"),
         "labels_key": ("y", "labels", "label", "target", "targets", "y_train", "train_y"),
         "vocabulary_key": ("names", "target_names", "label_names", "class_names")}  # fmt: skip
_HELD_OUT = {"test": ("test",), "calibration": ("val", "valid", "calibration")}  # x_test, y_test; test_x, test_y


def guess_arrays(path: Path, images: PathLike | None, labels: Sequence[str]) -> Guess:
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
