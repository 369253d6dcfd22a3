"""What the columns of a table are used for, as the options of the features reader say."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from shortlist.data.column_use import ColumnUse
from shortlist.data.readers._arff import names_in_xml
from shortlist.data.readers.arrays import ArrayFile

# options that name arrays or columns -> what these are
_OTHER_USES = {
    "labels_key": "labels",
    "unknown_key": "where labels are unknown",
    "vocabulary_key": "the labels' names",
    "groups_key": "the labels' groups",
    "group_names_key": "the groups' names",
    "ids_key": "ids",
    "side_key": "side labels",
    "truth_key": "all right labels",
}


def no_features(file: ArrayFile | None, options: Mapping[str, Any]) -> set[str]:
    """The columns that have another use, as the options of ``read_features`` say."""
    others = [name for option, name in options.items() if option.endswith("_key") and option != "inputs_key"]
    if options.get("label_columns") is None and "labels_key" not in options:
        others.append("y")
    return named_columns(file, options.get("label_columns"), others) | set(options.get("other_columns", ()))


def named_columns(file: ArrayFile | None, columns: Sequence[str] | None, keys: Iterable[str | None]) -> set[str]:
    """The columns of a table that are no features, as the options say what else they are."""
    named = set(columns or ())
    for key in keys:
        if key and file is not None:
            named |= {key, *(file.spread(key) or ())}
    return named


def use_of(file: ArrayFile, features: Sequence[str] | None, options: Mapping[str, Any]) -> ColumnUse | None:
    """What each column of a table is used for, as the options of ``read_features`` say; None of other files, and where
    one column holds all features."""
    if features is None or not file.is_table:
        return None
    others = dict.fromkeys(options.get("other_columns") or (), "named in other_columns")
    labels: list[str] = list(options.get("label_columns") or ())
    ids: list[str] = []
    apart = options.get("labels") is not None  # all else is in another file
    for option, what in {} if apart else _OTHER_USES.items():
        key = options.get(option, "y" if option == "labels_key" and not labels else None)
        columns = [] if key is None else [key] if file.spread(key) is None else file.spread(key) or []
        if option in ("labels_key", "ids_key"):
            (labels if option == "labels_key" else ids).extend(columns)
        else:
            others |= dict.fromkeys(columns, what)
    there = set(file.keys)
    used = {*features, *labels, *ids, *others}
    key, chosen = options.get("inputs_key", "X"), options.get("input_columns") is not None
    return ColumnUse(
        tuple(features),
        tuple(name for name in dict.fromkeys(labels) if name in there and not apart),
        tuple(name for name in ids if name in there),
        {name: what for name, what in others.items() if name in there},
        {name: file.why_no_feature(name, key, chosen) for name in file.keys if name not in used},
    )


def resolved(options: Mapping[str, Any], needed: bool = True) -> dict[str, Any]:
    """The options, with the label columns that Mulan's XML names; unless it is gone, and not ``needed``."""
    labels = options.get("labels")
    if labels is None or not str(labels).lower().endswith(".xml"):
        return dict(options)
    others = {name: value for name, value in options.items() if name != "labels"}
    if not needed and not Path(labels).exists():
        return others
    return {"label_columns": names_in_xml(labels), **others}


def label_columns_of(file: ArrayFile | None, columns: Sequence[str] | None, key: str) -> Sequence[str] | None:
    """The columns of a table that are one label each; None where one column, or an array, holds all of them."""
    if columns is not None or file is None or file.table is None:
        return columns
    return file.spread(key) or (file.table.label_names if key not in file.keys else None)


def names_of(labels_key: str, columns: Sequence[str]) -> Sequence[str]:
    """What the labels are called that have a column each."""
    return [name.removeprefix(f"{labels_key}_") for name in columns] if labels_key else columns
