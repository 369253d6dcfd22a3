"""Explanations of predicted labels, written to a file: which training examples speak for each of them, and how much."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from shortlist.data import Dataset
from shortlist.errors import MissingFileError, ShortlistError
from shortlist.files import written_whole
from shortlist.labels import LabelSets
from shortlist.optional import require
from shortlist.runs.run import Run
from shortlist.training.similar_examples import SimilarExamples

ENDINGS = (".jsonl", ".parquet")
_AT_ONCE = 10_000  # rows of a file


def check_place(place: Path, sets: Path | None = None) -> None:
    """Raise a ShortlistError where explanations cannot be written, or would replace the file of the ``sets``."""
    if place.suffix not in ENDINGS:
        raise ShortlistError(f"--explain {place}: explanations are written as {' or '.join(ENDINGS)}")
    if place.is_dir():
        raise ShortlistError(f"--explain {place}: is a folder, not a file")
    if not place.resolve().parent.is_dir():
        raise MissingFileError(f"--explain {place}: there is no folder {place.parent}")
    if sets is not None and place.resolve() == sets.resolve():
        raise ShortlistError(f"--explain {place}: that is where the sets go (-o); name another file")


def check_has_labels(run: Run) -> None:
    """Raise a ShortlistError where a run answers with something else than labels."""
    if run.task is not None:
        objective = run.config.objective.name
        raise ShortlistError(f"--explain is for labels: the answers of {objective!r} are not explained by examples")


def write_explanations(
    place: Path, similar: SimilarExamples, dataset: Dataset, sets: LabelSets, of_training: bool
) -> None:
    """A row for every label of the sets that is completed (of training examples: that was unknown): the example's id,
    the label, its combined value, and lists of the same length: the training examples, the weight of each one's labels,
    the share of the value that it brings, and the weight of its features."""
    if not similar.ready:
        raise ShortlistError("there is nothing to explain with: no label of the training data is known to be present")
    rows = explained_labels(similar, dataset, sets, of_training)
    if place.suffix == ".parquet":
        _write_parquet(place, rows)
        return
    with written_whole(place) as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def explained_labels(
    similar: SimilarExamples, dataset: Dataset, sets: LabelSets, of_training: bool
) -> Iterator[dict[str, Any]]:
    names = dataset.vocabulary if sets.vocabulary is None else sets.vocabulary
    known = dataset.target if of_training and dataset.target.ndim == 2 else None
    for row, why in similar.explain(dataset, of_training=of_training):
        for label in sets[row]:
            if known is not None and known[row, label] != -1:
                continue
            yield {
                "id": dataset.ids[row] if dataset.ids is not None else str(row),
                "label": names[label],
                "value": round(float(why.combination[label]), 6),
                "examples": [similar.name(example) for example in why.examples],
                "weights": [round(weight, 6) for weight in why.label_coefficients],
                "shares": [round(share, 6) for share in why.shares[:, label].tolist()],
                "feature_weights": [round(weight, 6) for weight in why.feature_coefficients],
            }


def _write_parquet(place: Path, rows: Iterator[dict[str, Any]]) -> None:
    pa, parquet = require("pyarrow"), require("pyarrow.parquet")
    text, number = pa.string(), pa.float32()
    lists = {"examples": text, "weights": number, "shares": number, "feature_weights": number}
    columns = {"id": text, "label": text, "value": number} | {name: pa.list_(kind) for name, kind in lists.items()}
    schema = pa.schema(list(columns.items()))
    with written_whole(place) as file, parquet.ParquetWriter(file, schema) as writer:
        while waiting := list(islice(rows, _AT_ONCE)):
            writer.write_table(pa.Table.from_pylist(waiting, schema))
