"""Features and labels from arrays in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from operator import lt
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from shortlist.data.column_use import ColumnUse, listed
from shortlist.data.dataset import Dataset
from shortlist.data.encoder import Encoder, TextEncoder, read_encoder
from shortlist.data.images import Images
from shortlist.data.readers._checked_inputs import checked_inputs
from shortlist.data.readers._columns import notes_of
from shortlist.data.readers._label_lists import column_of_labels, names_in_columns
from shortlist.data.readers._label_matrix import blanks_are_unknown, columns_as_numbers, in_order
from shortlist.data.readers._label_options import Coding, Given, Uncertain
from shortlist.data.readers._labels import labels_of
from shortlist.data.readers._table_use import label_columns_of, named_columns, names_of, no_features, resolved, use_of
from shortlist.data.readers._targets import dataset_of, side_of, truth_of
from shortlist.data.readers.arrays import ArrayFile, get_array, open_arrays, widened
from shortlist.data.readers.findings import BY_NAME, REPEATED, Findings
from shortlist.data.readers.tables import name_of
from shortlist.errors import MissingFileError, ShortlistError, errors_name
from shortlist.files import PathLike, parse_json
from shortlist.labels.sparse_labels import SparseLabels

# of an .npz that `shortlist data features` wrote: what made the features, and of which files they are
ENCODER_KEY, FILES_KEY = "encoder", "files"


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
    num_features: int | None = None,
    coding: Coding = "label-matrix",
    uncertain: Uncertain = "unknown",
    separator: str | None = None,
    rest: Literal["absent", "unknown"] = "absent",
    unknown_names: Sequence[str] = (),
    decimal: Literal[".", ","] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    column_names: Sequence[str] | None = None,
    as_table: bool = False,
    name_columns: Sequence[str] = (),
    memory_map: bool = False,
) -> Dataset:
    """Features with labels, from arrays (.npz, .npy), tables (.csv, .tsv, .jsonl, .json, also .gz; .parquet, .feather,
    .arrow, .arff) or sparse text (.svm, .svmlight, .libsvm; .txt as in the extreme classification repository, XMC).

    In a table a key is a column (in parquet and JSON lines perhaps of lists) or stands for all columns ``KEY_*``; the
    labels are then called what follows ``KEY_``. Of an object in JSON lines or parquet each field is a column, such as
    ``size.width``. Where there are no columns ``X_*``, the features are all columns of
    numbers that have a name and no other use.

    Labels are read as they come, by the same rules from every table and array:

    - names, ``owl``: classes. Blank is unknown. Where all are true or false, TRUE and True are true;
    - whole numbers: classes; -1 and blank are unknown. They are indices where ``num_labels`` or names are given;
      otherwise the numbers that occur are the labels' names, and it is said which these are;
    - names with a ``separator`` between, ``joy|love``: a label matrix. Blank is an example without labels;
    - lists of names or of class numbers, in parquet and JSON lines, or written in a cell, ``["joy", "love"]``,
      ``[joy, love]``, ``['joy' 'love']`` or ``<joy><love>``: a label matrix. Of objects it is what they hold as
      ``name``. Blank is an example without labels;
    - one column per label (``label_columns``), or a matrix: a label matrix; ``coding`` says what its numbers mean.
      true, yes, t, y, ja, oui and si are present; false, no, f, n, nein and non absent; blank, NA, ? and the like
      unknown. A sparse one of more than 67 million entries stays sparse;
    - several columns that hold names, ``label_columns=["primary", "secondary"]``: a label matrix of the names that a
      row has in any of them. Blank, NA and the like are none.

    A line of sparse text is ``3,17 0:0.5 42:1``, labels and then features by number. Where each has exactly one label,
    and no first line counts examples, features and labels, labels are classes; otherwise a label matrix.

    Args:
        path: the file with the features: an array (N, D), or a table. Text begins with a line of column names. Of a
            sparse .arff the features stay sparse.
        labels: the file with the labels and everything else; the same file when not given. An .xml beside Mulan's .arff
            names the columns that are labels; MEKA's .arff says so itself.
        inputs_key, labels_key: what the arrays are called in an .npz. In it, a scipy CSR matrix is either four arrays
            ``KEY_data``, ``KEY_indices``, ``KEY_indptr`` and ``KEY_shape``, or the whole file, as written by
            ``scipy.sparse.save_npz``. A .npy needs no key.
        input_columns, label_columns: of a table, the columns that are features, and those that are one label each,
            instead of the keys. Features that are not named are taken in the file's order; in all other files of a run
            they are then found by their names.
        other_columns: of a table, columns that are neither, such as those that ``data.groups`` and ``data.time`` name.
        unknown_key: an array (N, L), not 0 where the label matrix is unknown whatever it says.
        vocabulary_key, groups_key, group_names_key, ids_key: arrays with the labels' names (L,), the coarse group of
            each label (L,), the groups' names, and the examples' names (N,).
        side_key: side labels (N,): classes by number, -1 for unknown, or by name. They help some objectives (imcl) and
            are not predicted.
        truth_key: all right labels of each example, for evaluation only: a matrix of 0 and 1 (N, L), dense or CSR, or
            names, ``cat|dog`` (N,).
        vocabulary: the labels' names, instead of ``vocabulary_key``. Where one is a whole number itself, and not its
            own index, numbers in the file are names too; with ["-1", "0", "1"], -1 is a class.
        num_labels: how many labels there are, where neither names nor a label matrix tell and not all occur.
        num_features: of svmlight, how many features there are, where the last do not occur.
        coding: what the numbers of a label matrix mean: "label-matrix" (1 present, 0 absent, -1 unknown), "signed"
            (1 present, -1 absent, 0 unknown), "nan" (1 present, 0 absent, NaN unknown), "marks" (of a table, any mark
            such as 1 or x present, blank absent), "chexpert" (1 present, 0 absent, -1 uncertain, blank unknown) or
            "one-hot" (a single 1 in each row: the target is class indices).
        uncertain: in CheXpert's coding, what -1 becomes: "unknown", "present" or "absent"; or for each label by name.
        separator: of a column of names, what stands between several labels of one example.
        rest: of lists and names with a separator, what the labels are that are not listed: "absent" or "unknown".
        unknown_names: of a column of names, those that mean that the label is unknown, as blank does; of a column per
            label, further cells that mean it, such as "refused" or 99. In a list, or
            between separators, such a name says that all labels that are not beside it are unknown; "" says so of blank
            cells, which otherwise are examples without labels.
        decimal: of numbers in texts, what stands before the digits of a fraction; if nothing is given, the point in
            .csv and .tsv, and in columns of texts in other tables what their cells tell. The other mark may stand
            between thousands: with "," 1.234,5 is a number, and with "." 1,500 is fifteen hundred, which otherwise
            needs a cell that tells, such as 1,234.5.
        delimiter: of .csv and .tsv, what stands between cells, if it is neither the comma or the tab nor named by a
            first line for Excel, ``sep=;``.
        encoding: of .csv and .tsv, how text is written that is neither UTF-8 nor UTF-16 with its mark: "cp1252" is what
            Excel calls CSV. UTF-8 is read as that whatever is given here.
        column_names: of .csv and .tsv whose first line is a row already, what the columns are called.
        as_table: of a table, take columns of names as features too and leave everything as it is written, blanks
            included: inputs are ``TableRows``, of which ``Dataset.preprocessed`` makes numbers. Runs read tables so,
            unless ``data.preprocess`` is none.
        name_columns: with ``as_table``, features that are names (categories) also where every cell is a number, such as
            zip codes, or holds several choices, ``Python;R;SQL``, each of which is a feature otherwise. 01001 is a name
            in any case, and so are pandas' categories and parquet's dictionaries. Runs add those whose names they have
            learnt.
        memory_map: leave the features of a .npy on disk and read only the rows asked for.

    >>> import pathlib, tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/all.npz", X=np.eye(3, dtype="f4"), y=[[1, 0], [0, 1], [0, -1]], names=["cat", "dog"])
    ...     data = read_features(f"{folder}/all.npz", vocabulary_key="names")
    ...     _ = pathlib.Path(f"{folder}/all.csv").write_text("id,weight,tail,cat,dog\\na,4.5,30,1,0\\nb,9,25,,1\\n")
    ...     table = read_features(f"{folder}/all.csv", label_columns=["cat", "dog"], ids_key="id")
    >>> data
    Dataset('all': 3 examples, 3 features, any of 2 labels)
    >>> table.inputs, table.target
    (tensor([[ 4.5000, 30.0000], [ 9.0000, 25.0000]]), tensor([[ 1, 0], [-1, 1]], dtype=torch.int8))

    Comments with their moods in a list, a table with a semicolon and decimal commas, and integer classes:

    >>> def read(content, **options):
    ...     with tempfile.TemporaryDirectory() as folder:
    ...         _ = pathlib.Path(f"{folder}/all.csv").write_text(content)
    ...         data = read_features(f"{folder}/all.csv", **options)
    ...     return data.vocabulary, data.target.tolist()
    >>> read('length,mood\\n12,"[""joy"", ""love""]"\\n7,"[""joy""]"\\n', labels_key="mood")
    (('joy', 'love'), [[1, 1], [1, 0]])
    >>> read("length;mood\\n1,2;joy/love\\n0,7;joy\\n", labels_key="mood", delimiter=";", decimal=",", separator="/")
    (('joy', 'love'), [[1, 1], [1, 0]])
    >>> read("length,stars\\n12,5\\n7,3\\n", labels_key="stars")
    (('3', '5'), [1, 0])
    >>> read("age,Edema,Fracture\\n50,1.0,-1.0\\n60,,0.0\\n", label_columns=["Edema", "Fracture"], coding="chexpert",
    ...      uncertain="present")
    (('Edema', 'Fracture'), [[1, 1], [-1, 0]])
    """
    if labels is not None and not Path(labels).suffix and not Path(labels).exists():
        raise MissingFileError(
            f"there is no file {labels}: labels is a file; a column of the table is named by labels_key={labels}"
        )
    if unknown_key is not None and coding == "one-hot":
        raise ShortlistError("coding='one-hot' makes classes of the label matrix: unknown_key does not go with it")
    if name_columns and not as_table:
        raise ShortlistError("name_columns goes with as_table=True, of a run with data.preprocess=auto")
    given = resolved({key: value for key, value in locals().items() if value is not None})
    labels, label_columns = given.get("labels"), given.get("label_columns")
    labels_key = labels_key if label_columns is None else ""
    findings = Findings()
    keys: dict[str, str | None] = {
        "unknown": unknown_key,
        "names": vocabulary_key,
        "groups": groups_key,
        "group_names": group_names_key,
        "ids": ids_key,
        "side": side_key,
        "truth": truth_key,
    }
    how = decimal, delimiter, encoding, column_names
    inputs_file = open_arrays(path, findings, memory_map, *how)
    labels_file = inputs_file if labels is None else open_arrays(labels, findings, False, *how)
    label_columns = label_columns_of(labels_file, label_columns, labels_key)
    if label_columns is not None:
        label_columns = in_order(label_columns, names_of(labels_key, label_columns), vocabulary)
    named = named_columns(labels_file, label_columns, (labels_key, *keys.values())) if labels is None else set()
    named |= set(other_columns)
    inputs = get_array(
        inputs_file,
        inputs_key,
        findings,
        columns=input_columns,
        named=named,
        as_table=as_table,
        names=name_columns,
    )
    inputs = widened(inputs, inputs_file, num_features, findings)
    written = _labels(labels_file, labels_key, label_columns, coding, vocabulary, findings, unknown_names)
    written = widened(written, labels_file, num_labels, findings)
    found = {what: get_array(labels_file, key, findings, as_text=what == "ids") for what, key in keys.items()}
    findings.stop_if_any()
    if inputs_file is None or labels_file is None:
        raise AssertionError("a file that cannot be opened is a problem, and was raised")

    features = input_columns or inputs_file.spread(inputs_key, named, with_names=as_table)
    inputs = checked_inputs(inputs, inputs_file, features, findings)
    one_each = label_columns is not None and written.ndim == 2  # or they hold names
    if one_each and BY_NAME.get() and not set(vocabulary or ()) & set(names_of(labels_key, label_columns or ())):
        vocabulary = None
    if vocabulary is None:
        vocabulary = names_of(labels_key, label_columns or ()) if one_each else None
        vocabulary = vocabulary if found["names"] is None else tuple(map(str, found["names"].tolist()))
    in_file = found["names"] is not None
    of_table = labels_file.table is not None
    said = Given(vocabulary, num_labels, coding, uncertain, separator, rest, unknown_names, in_file, of_table)
    answer = labels_of(written, said, labels_file.path, findings)
    per_example = {labels_key or "labels": written}
    per_example |= {keys[what] or what: found[what] for what in ("unknown", "ids", "side", "truth")}
    for key, array in per_example.items():
        if array is not None and array.shape[0] != inputs.shape[0]:
            rows = f"{array.shape[0]} rows, but {inputs_file.path} has {inputs.shape[0]} inputs"
            findings.add(labels_file.path, f"{key!r} has {rows}")
    if found["unknown"] is not None and found["unknown"].shape != written.shape:
        shapes = f"shape {found['unknown'].shape}, the label matrix {written.shape}"
        findings.add(labels_file.path, f"{unknown_key!r} has {shapes}")
    if not REPEATED.get():
        _check_ids(found["ids"], labels_file, findings)
    side = None if found["side"] is None else side_of(found["side"], labels_file.path, findings)
    truth = None
    if found["truth"] is not None and answer is not None:
        truth = truth_of(found["truth"], answer.vocabulary, labels_file.path, findings)
    findings.stop_if_any()
    assert answer is not None, "labels that cannot be used are a problem, and were raised"
    return dataset_of(
        labels_file.path,
        inputs,
        _marked_unknown(answer.target, found["unknown"]),
        answer.vocabulary,
        groups=found["groups"],
        group_names=found["group_names"],
        ids=found["ids"],
        side=side,
        truth=truth,
        encoder=_encoder_in(inputs_file),
        name=name_of(path),
        columns=use_of(inputs_file, features, given | {"label_columns": label_columns}),
        notes=(*answer.notes, *notes_of(inputs_file.table)),
        pictures=_pictures_in(inputs_file, inputs.shape[0]),
    )


def read_inputs(path: PathLike, options: Mapping[str, Any]) -> tuple[Any, tuple[str, ...] | None, ColumnUse | None]:
    """The features of a file like one that ``read_features`` reads with these options, what the examples are called
    where the file says so, and what the columns of a table are used for; labels need not be there, and are not read.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(f"{folder}/new.csv").write_text("id,weight,tail\\na,4.5,30\\n")
    ...     inputs, ids, use = read_inputs(f"{folder}/new.csv", {"label_columns": ["cat", "dog"], "ids_key": "id"})
    >>> inputs, ids, use.features
    (tensor([[ 4.5000, 30.0000]]), ('a',), ('weight', 'tail'))
    """
    findings = Findings()
    options = resolved(options, needed=False)
    how = (options.get(key) for key in ("decimal", "delimiter", "encoding", "column_names"))
    file = open_arrays(path, findings, bool(options.get("memory_map")), *how)
    labels_key = options.get("labels_key", "y")
    options["label_columns"] = label_columns_of(file, options.get("label_columns"), labels_key)
    key, columns = options.get("inputs_key", "X"), options.get("input_columns")
    named = no_features(file, options)
    as_table = bool(options.get("as_table"))
    names = options.get("name_columns") or ()
    inputs = get_array(file, key, findings, columns=columns, named=named, as_table=as_table, names=names)
    inputs = widened(inputs, file, options.get("num_features"), findings)
    findings.stop_if_any()
    assert file is not None, "a file that cannot be opened is a problem, and was raised"
    features = columns or file.spread(key, named, with_names=as_table)
    inputs = checked_inputs(inputs, file, features, findings)
    findings.stop_if_any()
    ids = file.get(options["ids_key"], as_text=True) if options.get("ids_key") in file.keys else None
    return inputs, None if ids is None else tuple(map(str, ids.tolist())), use_of(file, features, options)


def _pictures_in(file: ArrayFile, rows: int) -> Images | None:
    """The images that the features of an .npz are of; None where it does not say."""
    written = _text_in(file, FILES_KEY)
    return None if written is None or written.shape != (rows,) else Images(tuple(map(str, written.tolist())))


def _text_in(file: ArrayFile, key: str) -> Any:
    """An array of text of an .npz; None where it has none of this name, or something of the user's own."""
    written = file.get(key) if file.path.suffix.lower() == ".npz" and key in file.keys else None
    return None if written is None or written.dtype.kind != "U" else written


def _encoder_in(file: ArrayFile) -> Encoder | TextEncoder | None:
    """What made the features of an .npz; None where it does not say."""
    written = _text_in(file, ENCODER_KEY)
    if written is None or written.ndim:
        return None
    with errors_name(file.path):
        return read_encoder(parse_json(str(written)))


def _labels(
    file: ArrayFile | None,
    key: str,
    columns: Sequence[str] | None,
    coding: Coding,
    vocabulary: Sequence[str] | None,
    findings: Findings,
    unknown: Sequence[str],
) -> Any:
    """What a file holds of labels: an array, or a column, or numbers of a column for each."""
    if file is None or file.table is None:
        return get_array(file, key, findings, columns=columns)
    try:
        if columns is not None:
            file.check_columns(columns)
            names = names_in_columns(file.table, columns, vocabulary)
            if names is not None:
                return names
            return blanks_are_unknown(
                columns_as_numbers(file.table, columns, coding, file.path, findings, unknown), coding
            )
        if key in file.keys:
            return blanks_are_unknown(column_of_labels(file.table, key), coding)
    except ShortlistError as error:
        findings.add(file.path, str(error))
        return None
    have = listed([repr(name) for name in file.keys])
    xml = ", or labels=NAME.xml, the file beside Mulan's .arff" if file.path.suffix.lower() == ".arff" else ""
    asked = f"there is no column {key!r} and no column '{key}_*': give labels_key or label_columns{xml}"
    findings.add(file.path, f"{asked}; the columns are {have}")
    return None


def _marked_unknown(target: Tensor | SparseLabels, unknown: Any) -> Tensor | SparseLabels:
    """-1 in the label matrix wherever this array is not 0."""
    if unknown is None:
        return target
    target = target if isinstance(target, Tensor) else target.to_dense()
    dense = unknown.toarray() if hasattr(unknown, "toarray") else unknown
    return target.masked_fill(torch.from_numpy(dense != 0), -1)


def _check_ids(ids: Any, file: ArrayFile, findings: Findings) -> None:
    names = [] if ids is None else ids.tolist()
    if set(map(type, names)) == {str} and all(map(lt, names, islice(names, 1, None))):
        return  # in order, which is found sooner
    if len(set(names)) == len(names):
        return
    first: dict[Any, int] = {}
    for row, name in enumerate(names):
        if first.setdefault(name, row) != row:
            before = findings.place(file.path, first[name])
            findings.add(file.path, f"the id {name!r} is a duplicate, seen before in {before}", row)
