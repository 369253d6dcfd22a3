"""Label graphs by name: of labels that occur together, or from a file of edges, word vectors or a matrix."""

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from shortlist.errors import MissingFileError, ShortlistError, nearest
from shortlist.files import PathLike
from shortlist.imcl.label_graph import LabelGraph
from shortlist.labels.word_vectors import label_vectors

_MOST = 1e30  # that a weight of a file may be: sums of them stay finite in 32 bits
GRAPHS = ("edges", "vectors", "matrix")  # those that come from a file


def make_graph(
    name: str,
    train_target: Tensor,
    file: str | None = None,
    label_names: Sequence[str] | None = None,
    neighbours: int = 10,
    *,
    given: bool = False,
) -> LabelGraph:
    """The graph that `Imcl.Config` names, for a training set's label matrix; ``given``: weights start at the file's.

    >>> make_graph("none", torch.tensor([[1, 0], [0, 1]]))
    LabelGraph(2 labels, 0 edges)
    """
    num_labels = train_target.shape[1]
    if name == "co-occurrence":
        return LabelGraph.from_co_occurrence(train_target, neighbours)
    if name == "none" or file is None:
        return LabelGraph(num_labels, torch.empty((2, 0), dtype=torch.int64))
    if name == "edges":
        return read_edges(file, _needed(label_names, file), given)
    if Path(file).suffix == ".npy":
        array = _rows_of(file, num_labels)
        if name == "matrix":
            return LabelGraph.from_matrix(array, given)
    elif name == "matrix":
        raise ShortlistError(f"{file}: a matrix of labels by labels is a .npy file")
    else:
        array = label_vectors(file, _needed(label_names, file))
    return LabelGraph.from_vectors(array, neighbours, given)


def _rows_of(file: str, num_labels: int) -> Tensor:
    """The array of a .npy file, a row for each label."""
    if not Path(file).is_file():
        raise MissingFileError(f"{file}: there is no such file of a label graph")
    try:
        array = np.load(file, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise ShortlistError(f"{file} cannot be read as an array of numbers: {error}") from None
    if array.dtype.kind not in "biuf":
        raise ShortlistError(f"{file} must hold numbers, got {array.dtype}")
    if array.ndim != 2 or len(array) != num_labels:
        raise ShortlistError(f"{file} must hold a row for each of the {num_labels} labels, got the shape {array.shape}")
    if not array.shape[1] or not (np.abs(array.astype(np.float64)) <= np.finfo(np.float32).max).all():
        raise ShortlistError(f"{file} must hold finite numbers of 32 bits in every row, got the shape {array.shape}")
    return torch.from_numpy(np.ascontiguousarray(array))


def read_edges(path: PathLike, label_names: Sequence[str], given: bool = True) -> LabelGraph:
    """A graph from a .csv (or .tsv) with the columns ``source`` and ``to``, which hold labels, and ``weight``, which is
    1 where there is none. ``given``: the weights start there, and not at 0.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(f"{folder}/words.csv").write_text("source,to,weight\\nsofa,chair,3\\n")
    ...     graph = read_edges(f"{folder}/words.csv", ["chair", "sofa"])
    >>> graph.weights().to_dense()
    tensor([[0.2500, 0.7500], [0.0000, 1.0000]])
    """
    file = Path(path)
    if not file.is_file():
        raise MissingFileError(f"{file}: there is no such file of edges between labels")
    place = {name: number for number, name in enumerate(label_names)}
    found: dict[tuple[int, int], float] = {}
    with open(file, encoding="utf-8-sig", newline="") as text, _no_table(file):
        rows = csv.DictReader(text, delimiter="\t" if file.suffix == ".tsv" else ",", strict=True)
        columns = list(rows.fieldnames or ())
        for wanted in ("source", "to"):
            if wanted not in columns:
                raise ShortlistError(f"{file} has no column {wanted!r}; its columns are {', '.join(columns) or 'none'}")
        if len({*columns}) < len(columns):
            raise ShortlistError(f"{file} has columns of one name: {', '.join(columns)}")
        for row in rows:
            where = f"{file}, line {rows.line_num}"
            if None in row:
                raise ShortlistError(f"{where}: there are more cells than the {len(columns)} columns")
            for end in ("source", "to"):
                if row[end] not in place:
                    close = nearest(str(row[end]), place)
                    raise ShortlistError(f"{where}: {end} is {row[end]!r}, which is none of the labels{close}")
            weight = _weight(row.get("weight", "1"), where)
            edge = place[row["source"]], place[row["to"]]
            if edge in found:
                raise ShortlistError(f"{where}: the edge from {row['source']!r} to {row['to']!r} is a duplicate")
            if edge[0] != edge[1] and weight:  # a label speaks for itself with weight 1 in any case
                found[edge] = weight
    edges = torch.tensor(list(found), dtype=torch.int64).reshape(-1, 2).T
    return LabelGraph(len(label_names), edges, torch.tensor(list(found.values())) if given else None)


@contextmanager
def _no_table(file: Path) -> Iterator[None]:
    """Within this block, what is no text, or no table, is a ShortlistError."""
    try:
        yield
    except (UnicodeDecodeError, csv.Error) as error:
        raise ShortlistError(f"{file} is no table of edges in UTF-8: {error}") from None


def _weight(text: str | None, where: str) -> float:
    try:
        weight = float(text or "")
    except ValueError:
        weight = -1.0
    if not 0 <= weight <= _MOST:
        raise ShortlistError(f"{where}: a weight is a number from 0 to {_MOST:g}, got {text!r}")
    return weight


def _needed(label_names: Sequence[str] | None, file: str) -> Sequence[str]:
    if label_names is None:
        raise ShortlistError(f"{file} speaks of labels by name: pass label_names when the objective is built")
    return label_names
