"""Features and labels from arrays in files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from shortlist.data.column_use import ColumnUse
from shortlist.data.dataset import Dataset, default_names
from shortlist.data.encoder import Encoder
from shortlist.data.mapped_rows import MappedRows
from shortlist.data.readers._arrays import ArrayFile, get_array, open_arrays
from shortlist.data.readers._targets import (
    Coding,
    blanks_are_unknown,
    dataset_of,
    indices_of_names,
    matrix_of_names,
    side_of,
    target_of,
    truth_of,
)
from shortlist.data.readers.findings import Findings, PathLike, is_thorough
from shortlist.data.table_rows import TableRows
from shortlist.errors import ShortlistError, errors_name
from shortlist.files import parse_json

ENCODER_KEY = "encoder"  # of an .npz: what made the features, where `shortlist data features` did
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


def read_features(
    path: PathLike,
    *,
    labels: PathLike | None = None,
    inputs_key: str = "X",
    labels_key: str = "y",
    input_columns: Sequence[str] | None = None,
    label_columns: Sequence[str] | None = None,
    other_columns: Sequence[str] = (),
    unknown_key: str | None = None,
    vocabulary_key: str | None = None,
    groups_key: str | None = None,
    group_names_key: str | None = None,
    ids_key: str | None = None,
    side_key: str | None = None,
    truth_key: str | None = None,
    vocabulary: Sequence[str] | None = None,
    num_labels: int | None = None,
    coding: Coding = "label-matrix",
    separator: str | None = None,
    decimal: Literal[".", ","] = ".",
    as_table: bool = False,
    memory_map: bool = False,
) -> Dataset:
    """Features with labels, from .npz, .npy, .parquet, .csv or .tsv files.

    In a table (.parquet, .csv, .tsv) a key is a column (in parquet of lists, for features or a label matrix) or stands
    for all columns ``KEY_*``; the labels are then called what follows ``KEY_``. A blank label is unknown. Where there
    are no columns ``X_*``, the features are all columns of numbers that have a name and no other use.

    Args:
        path: the file with the features: an array (N, D), or a table. Text begins with a line of column names.
        labels: the file with the labels and everything else; the same file when not given.
        inputs_key, labels_key: what the arrays are called in an .npz. In it, a scipy CSR matrix is either four arrays
            ``KEY_data``, ``KEY_indices``, ``KEY_indptr`` and ``KEY_shape``, or the whole file, as written by
            ``scipy.sparse.save_npz``. A .npy needs no key. Labels are class indices (N,), -1 for unknown; names (N,);
            or a label matrix (N, L).
        input_columns, label_columns: of a table, the columns that are features, and those that are labels (1 present,
            0 absent, blank unknown), instead of the keys. Features that are not named are taken in the file's order;
            in all other files of a run they are then found by their names.
        other_columns: of a table, columns that are neither, such as those that ``data.groups`` and ``data.time`` name.
        unknown_key: an array (N, L), not 0 where the label matrix is unknown whatever it says.
        vocabulary_key, groups_key, group_names_key, ids_key: arrays with the labels' names (L,), the coarse group of
            each label (L,), the groups' names, and the examples' names (N,).
        side_key: side labels (N,): classes by number, -1 for unknown, or by name. They help some objectives (imcl) and
            are not predicted.
        truth_key: all right labels of each example, for evaluation only: a matrix of 0 and 1 (N, L), dense or CSR, or
            names, ``cat|dog`` (N,).
        vocabulary: the labels' names, instead of ``vocabulary_key``.
        num_labels: how many labels there are, where neither names nor a label matrix tell.
        coding: what the numbers of a label matrix mean: "label-matrix" (1 present, 0 absent, -1 unknown), "signed"
            (1 present, -1 absent, 0 unknown) or "nan" (1 present, 0 absent, NaN or blank unknown).
        separator: of a column of names, what stands between several labels of one example (``joy|love``); a blank is
            then an example without labels.
        decimal: of .csv and .tsv, what stands before the digits of a fraction.
        as_table: of a table, take columns of names as features too and leave everything as it is written, blanks
            included: inputs are ``TableRows``, of which ``Dataset.preprocessed`` makes numbers. Runs read tables so,
            unless ``data.preprocess`` is none.
        memory_map: leave the features of a .npy on disk and read only the rows asked for.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/all.npz", X=np.eye(3, dtype="f4"), y=[[1, 0], [0, 1], [0, -1]], names=["cat", "dog"])
    ...     data = read_features(f"{folder}/all.npz", vocabulary_key="names")
    ...     _ = Path(f"{folder}/all.csv").write_text("id,weight,tail,cat,dog\\na,4.5,30,1,0\\nb,9,25,,1\\n")
    ...     table = read_features(f"{folder}/all.csv", label_columns=["cat", "dog"], ids_key="id")
    >>> data
    Dataset('all': 3 examples, 3 features, any of 2 labels)
    >>> table.inputs, table.target
    (tensor([[ 4.5000, 30.0000], [ 9.0000, 25.0000]]), tensor([[ 1, 0], [-1, 1]], dtype=torch.int8))
    """
    given: dict[str, Any] = {key: value for key, value in locals().items() if value is not None}
    findings = Findings()
    if label_columns is not None:
        labels_key, vocabulary = "", label_columns if vocabulary is None else vocabulary
    keys: dict[str, str | None] = {
        "unknown": unknown_key,
        "names": vocabulary_key,
        "groups": groups_key,
        "group_names": group_names_key,
        "ids": ids_key,
        "side": side_key,
        "truth": truth_key,
    }
    if decimal not in (".", ","):
        raise ShortlistError(f"decimal must be '.' or ',', got {decimal!r}")
    inputs_file = open_arrays(path, findings, memory_map, decimal)
    labels_file = inputs_file if labels is None else open_arrays(labels, findings, decimal=decimal)
    named = _named(labels_file, label_columns, (labels_key, *keys.values())) if labels is None else set()
    named |= set(other_columns)
    inputs = get_array(inputs_file, inputs_key, findings, columns=input_columns, named=named, as_table=as_table)
    written = _labels(labels_file, labels_key, label_columns, findings)
    found = {what: get_array(labels_file, key, findings, as_text=what == "ids") for what, key in keys.items()}
    findings.stop_if_any()
    if inputs_file is None or labels_file is None:
        raise AssertionError("a file that cannot be opened is a problem, and was raised")

    features = input_columns or inputs_file.spread(inputs_key, named, with_names=as_table)
    inputs = _checked_inputs(inputs, inputs_file, features, findings)
    if vocabulary is None:
        vocabulary = _names_in_file(labels_file, labels_key, written, found["names"])
    if separator is not None:
        written, vocabulary = matrix_of_names(written, separator, vocabulary, labels_file.path, findings)
    elif written.ndim == 1 and written.dtype.kind in "OU":
        written, vocabulary = indices_of_names(written.tolist(), vocabulary, labels_file.path, findings)
    vocabulary = _checked_names(vocabulary, written, num_labels, labels_file, labels_key)
    if labels_file.is_table:
        written, coding = blanks_are_unknown(written, coding)
    target = target_of(written, vocabulary, coding, labels_file.path, findings)
    per_example = {labels_key: written} | {keys[what]: found[what] for what in ("unknown", "ids", "side", "truth")}
    for key, array in per_example.items():
        if array is not None and array.shape[0] != inputs.shape[0]:
            rows = f"{array.shape[0]} rows, but {inputs_file.path} has {inputs.shape[0]} inputs"
            findings.add(labels_file.path, f"{key!r} has {rows}")
    if found["unknown"] is not None and found["unknown"].shape != written.shape:
        shapes = f"shape {found['unknown'].shape}, the label matrix {written.shape}"
        findings.add(labels_file.path, f"{unknown_key!r} has {shapes}")
    _check_ids(found["ids"], labels_file, findings)
    side = None if found["side"] is None else side_of(found["side"], labels_file.path, findings)
    truth = None if found["truth"] is None else truth_of(found["truth"], vocabulary, labels_file.path, findings)
    findings.stop_if_any()
    if target is None:
        raise AssertionError("labels that cannot be used are a problem, and were raised")
    return dataset_of(
        labels_file.path,
        inputs,
        _marked_unknown(target, found["unknown"]),
        vocabulary,
        groups=found["groups"],
        group_names=found["group_names"],
        ids=found["ids"],
        side=side,
        truth=truth,
        name=Path(path).stem,
        columns=_use(inputs_file, features, given),
        encoder=_encoder_in(inputs_file),
    )


def read_inputs(path: PathLike, options: Mapping[str, Any]) -> tuple[Any, tuple[str, ...] | None, ColumnUse | None]:
    """The features of a file like one that ``read_features`` reads with these options, what the examples are called
    where the file says so, and what the columns of a table are used for; labels need not be there, and are not read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(f"{folder}/new.csv").write_text("id,weight,tail\\na,4.5,30\\n")
    ...     inputs, ids, use = read_inputs(f"{folder}/new.csv", {"label_columns": ["cat", "dog"], "ids_key": "id"})
    >>> inputs, ids, use.features
    (tensor([[ 4.5000, 30.0000]]), ('a',), ('weight', 'tail'))
    """
    findings = Findings()
    file = open_arrays(path, findings, bool(options.get("memory_map")), options.get("decimal", "."))
    key, columns = options.get("inputs_key", "X"), options.get("input_columns")
    named = _no_features(file, options)
    as_table = bool(options.get("as_table"))
    inputs = get_array(file, key, findings, columns=columns, named=named, as_table=as_table)
    findings.stop_if_any()
    if file is None:
        raise AssertionError("a file that cannot be opened is a problem, and was raised")
    features = columns or file.spread(key, named, with_names=as_table)
    inputs = _checked_inputs(inputs, file, features, findings)
    findings.stop_if_any()
    ids = file.get(options["ids_key"], as_text=True) if options.get("ids_key") in file.keys else None
    return inputs, None if ids is None else tuple(map(str, ids.tolist())), _use(file, features, options)


def _encoder_in(file: ArrayFile) -> Encoder | None:
    """What made the features of an .npz; None where it does not say."""
    written = file.get(ENCODER_KEY) if file.path.suffix.lower() == ".npz" and ENCODER_KEY in file.keys else None
    if written is None or written.ndim or written.dtype.kind != "U":  # not a text: something of the user's own
        return None
    with errors_name(file.path):
        return Encoder.from_json(parse_json(str(written)))


def _no_features(file: ArrayFile | None, options: Mapping[str, Any]) -> set[str]:
    """The columns that have another use, as the options of ``read_features`` say."""
    others = [name for option, name in options.items() if option.endswith("_key") and option != "inputs_key"]
    if options.get("label_columns") is None and "labels_key" not in options:
        others.append("y")
    return _named(file, options.get("label_columns"), others) | set(options.get("other_columns", ()))


def _named(file: ArrayFile | None, columns: Sequence[str] | None, keys: Iterable[str | None]) -> set[str]:
    """The columns of a table that are no features, as the options say what else they are."""
    named = set(columns or ())
    for key in keys:
        if key and file is not None:
            named |= {key, *(file.spread(key) or ())}
    return named


def _use(file: ArrayFile, features: Sequence[str] | None, options: Mapping[str, Any]) -> ColumnUse | None:
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
        tuple(name for name in labels if name in there and not apart),
        tuple(name for name in ids if name in there),
        {name: what for name, what in others.items() if name in there},
        {name: file.why_no_feature(name, key, chosen) for name in file.keys if name not in used},
    )


def _labels(file: ArrayFile | None, key: str, columns: Sequence[str] | None, findings: Findings) -> Any:
    if file is None or columns is not None or file.spread(key) != []:
        return get_array(file, key, findings, columns=columns)
    findings.add(
        file.path,
        f"there is no column {key!r} and no column '{key}_*': give labels_key or label_columns; "
        f"the columns are {', '.join(map(repr, file.keys))}",
    )
    return None


def _checked_inputs(inputs: Any, file: ArrayFile, columns: Sequence[str] | None, findings: Findings) -> Any:
    """A tensor, memory map or CSR matrix of finite numbers; the rows of a table as they are."""
    if isinstance(inputs, TableRows):
        return inputs
    if inputs.ndim != 2 or inputs.dtype.kind not in "biuf":
        findings.add(file.path, f"features must be numbers (N, D), got shape {inputs.shape} of {inputs.dtype}")
        findings.stop_if_any()
    if hasattr(inputs, "tocsr"):
        bad = np.unique(np.searchsorted(inputs.indptr, np.flatnonzero(~np.isfinite(inputs.data)), side="right") - 1)
        inputs = inputs.astype(np.float32)
    elif isinstance(inputs, np.memmap):
        # reading all of it is what a memory map is there to avoid
        bad = _rows_not_finite(inputs) if is_thorough() else np.empty(0, dtype=np.int64)
        inputs = MappedRows(inputs)
    else:
        bad = _rows_not_finite(inputs)
        kept = inputs.dtype if inputs.dtype in (np.float16, np.float32) else np.float32
        inputs = torch.from_numpy(np.require(inputs, dtype=kept, requirements="W"))

    def message(row: int) -> str:
        if columns is None:
            return "a feature is not a finite number"
        column = columns[int(np.argmin(np.isfinite(np.asarray(inputs[row]))))]
        return f"the column {column!r} is blank or not finite: a feature must be a finite number"

    findings.rows(file.path, bad.tolist(), message)
    return inputs


def _rows_not_finite(inputs: Any) -> Any:
    step = 65536
    pieces = [np.isfinite(inputs[begin : begin + step]).all(1) for begin in range(0, len(inputs), step)]
    return np.flatnonzero(~np.concatenate(pieces)) if pieces else np.empty(0, dtype=np.int64)


def _names_in_file(file: ArrayFile, labels_key: str, written: Any, names: Any) -> Sequence[str] | None:
    """The labels' names as an array has them, or as the columns of a table are called."""
    if names is not None:
        return tuple(map(str, names.tolist()))
    columns = file.spread(labels_key) if written.ndim == 2 else None
    return [name.removeprefix(f"{labels_key}_") for name in columns] if columns else None


def _checked_names(
    vocabulary: Sequence[str] | None, written: Any, num_labels: int | None, file: ArrayFile, labels_key: str
) -> Sequence[str]:
    """The labels' names; where there are none, their numbers."""
    if vocabulary is not None:
        if num_labels not in (None, len(vocabulary)):
            raise ShortlistError(f"num_labels={num_labels} was given, but there are {len(vocabulary)} names")
        return vocabulary
    if written.ndim == 2:
        return default_names(int(written.shape[1]))
    if num_labels is None:
        raise ShortlistError(
            f"{file.path}: {labels_key!r} holds class indices, which do not say how many labels there are: "
            f"give vocabulary, vocabulary_key or num_labels"
        )
    return default_names(num_labels)


def _marked_unknown(target: Tensor, unknown: Any) -> Tensor:
    """-1 in the label matrix wherever this array is not 0."""
    if unknown is None:
        return target
    dense = unknown.toarray() if hasattr(unknown, "toarray") else unknown
    return target.masked_fill(torch.from_numpy(dense != 0), -1)


def _check_ids(ids: Any, file: ArrayFile, findings: Findings) -> None:
    first: dict[Any, int] = {}
    for row, name in enumerate([] if ids is None else ids.tolist()):
        if first.setdefault(name, row) != row:
            before = findings.place(file.path, first[name])
            findings.add(file.path, f"the id {name!r} is a duplicate, seen before in {before}", row)
