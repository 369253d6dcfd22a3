"""Texts and their labels from a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from shortlist.data.column_use import ColumnUse
from shortlist.data.dataset import Dataset
from shortlist.data.readers._label_options import Coding, Uncertain
from shortlist.data.readers.features import read_features, read_inputs
from shortlist.data.readers.findings import DataError, Findings, Problem
from shortlist.data.readers.tables import TABLE_ENDINGS, names_table, open_table
from shortlist.data.readers.text_lines import text_lines
from shortlist.data.table_rows import TableRows
from shortlist.data.texts import Texts
from shortlist.files import PathLike


def read_text_table(
    path: PathLike,
    *,
    text_column: str = "text",
    labels_key: str = "label",
    label_columns: Sequence[str] | None = None,
    ids_key: str | None = None,
    side_key: str | None = None,
    truth_key: str | None = None,
    vocabulary: Sequence[str] | None = None,
    num_labels: int | None = None,
    coding: Coding = "label-matrix",
    uncertain: Uncertain = "unknown",
    separator: str | None = None,
    rest: Literal["absent", "unknown"] = "absent",
    unknown_names: Sequence[str] = (),
    delimiter: str | None = None,
    encoding: str | None = None,
    column_names: Sequence[str] | None = None,
    other_columns: Sequence[str] = (),
) -> Dataset:
    """Texts with labels, from a table (.csv, .tsv, .jsonl, .json, also packed, .gz; .parquet, .feather, .arrow,
    .arff).

    Labels are read as ``read_features`` reads them: names, whole numbers, names with a separator between, lists, or a
    column per label. A blank text is an empty one; a note says how many there are.

    Args:
        path: the table.
        text_column: the column with the texts.
        labels_key: the column with the labels, or what stands for all columns ``KEY_*``, one per label.
        label_columns: the columns that are one label each, instead.
        ids_key: the column with the examples' names.
        side_key, truth_key, vocabulary, num_labels, coding, uncertain, separator, rest, unknown_names: what the labels
            mean, as for ``read_features``.
        delimiter, encoding, column_names: how the table is written, as for ``read_features``.
        other_columns: columns that are neither, such as those that ``data.groups`` and ``data.time`` name.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(f"{folder}/all.csv").write_text("text,label\\nso happy,joy|love\\n,joy\\n")
    ...     data = read_text_table(f"{folder}/all.csv", separator="|")
    >>> data, data.inputs.source, data.target.tolist(), data.notes
    (Dataset('all': 2 examples, a text each, any of 2 labels), ('so happy', ''), [[1, 1], [1, 0]],
     ('1 of 2 texts is blank',))
    """
    options = {name: value for name, value in locals().items() if name not in ("path", "text_column")}
    _check_kind(path)
    if text_column in (label_columns if label_columns is not None else [labels_key]):
        problem = f"the column {text_column!r} cannot be the text and a label: name another one for either"
        raise DataError([Problem(str(path), None, problem)])
    found = read_features(path, input_columns=[text_column], name_columns=[text_column], as_table=True, **options)
    texts = _texts(found.inputs, text_column)
    blank = sum(not text for text in texts.source)
    notes = (f"{blank} of {len(texts)} texts {'is' if blank == 1 else 'are'} blank",) if blank else ()
    return replace(found, inputs=texts, columns=_use(found.columns), notes=(*found.notes, *notes))


def read_texts(path: PathLike, options: Mapping[str, Any]) -> tuple[Texts, tuple[str, ...] | None, ColumnUse | None]:
    """The texts of a table like one that ``read_text_table`` reads with these options, what they are called where the
    table says so, and what its columns are used for; labels need not be there. A table of one column needs no name for
    it, and of a .txt every line that is not blank is a text.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(f"{folder}/new.csv").write_text("comment\\nwhat a day\\n")
    ...     read_texts(f"{folder}/new.csv", {"text_column": "text"})[0].source
    ('what a day',)
    """
    findings, column = Findings(), options.get("text_column", "text")
    if str(path).lower().endswith(".txt"):
        lines = tuple(line for _, line in text_lines(path, findings))
        findings.stop_if_any()
        return Texts(lines), None, None
    _check_kind(path)
    table = open_table(path, findings, **{key: options.get(key) for key in ("delimiter", "encoding", "column_names")})
    findings.stop_if_any()
    names = [] if table is None else [name for name in table.names if name]
    if column not in names and len(names) == 1:
        column = names[0]
    chosen = {"labels_key": "label", **options, "input_columns": [column], "name_columns": [column], "as_table": True}
    chosen.pop("text_column", None)
    inputs, ids, use = read_inputs(path, chosen)
    return _texts(inputs, column), ids, _use(use)


def _check_kind(path: PathLike) -> None:
    findings = Findings()
    findings.file(path)
    findings.stop_if_any()
    if not names_table(path):
        endings = ", ".join(TABLE_ENDINGS)
        raise DataError([Problem(str(path), None, f"a table of texts must be one of {endings}, by its name")])


def _texts(rows: TableRows, column: str) -> Texts:
    cells = rows.frame[column].tolist()
    return Texts(tuple("" if cell is None or cell != cell else _written(cell) for cell in cells))


def _written(cell: Any) -> str:
    """A cell as it is written: where all cells are numbers, the table has made some of them."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _use(use: ColumnUse | None) -> ColumnUse | None:
    why = "it is neither the text nor a label"
    return None if use is None else replace(use, ignored=dict.fromkeys(use.ignored, why))
