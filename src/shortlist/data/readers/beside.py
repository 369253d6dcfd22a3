"""A value of each example that stands beside the data: a column of groups or of dates."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.data.dataset import Dataset
from shortlist.data.readers.arrays import get_array, open_arrays
from shortlist.data.readers.findings import Findings
from shortlist.errors import ShortlistError
from shortlist.files import PathLike


def read_beside(
    path: PathLike,
    key: str,
    dataset: Dataset,
    *,
    ids_key: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    column_names: Sequence[str] | None = None,
) -> NDArray[Any]:
    """One value for each example of a data set, from a .npy or .npz file or a table.

    Args:
        path: the file.
        key: the column of the table, or the array of the .npz.
        dataset: whose examples they are.
        ids_key: the column with the examples' names, by which their rows are found; without it the rows are in the data
            set's order.
        delimiter, encoding, column_names: how a table is written, as for ``read_features``.

    >>> import pathlib, tempfile, torch
    >>> data = Dataset(torch.eye(2), torch.tensor([0, 1]), ("cat", "dog"), ids=("b.png", "a.png"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(f"{folder}/owners.csv").write_text("image,owner\\na.png,Ann\\nb.png,Bob\\n")
    ...     read_beside(f"{folder}/owners.csv", "owner", data, ids_key="image").tolist()
    ['Bob', 'Ann']
    """
    findings = Findings()
    file = open_arrays(path, findings, delimiter=delimiter, encoding=encoding, column_names=column_names)
    values = get_array(file, key, findings)
    names = get_array(file, ids_key, findings, as_text=True)
    findings.stop_if_any()
    if values.ndim != 1:
        raise ShortlistError(f"{path}: {key!r} must be one value per example, got shape {values.shape}")
    if names is None:
        if len(values) != len(dataset):
            raise ShortlistError(f"{path}: {key!r} has {len(values)} rows for the {len(dataset)} examples of the data")
        return np.asarray(values)
    if dataset.ids is None:
        raise ShortlistError(f"{path}: the data has no names by which the rows of {ids_key!r} could be found")
    row_of = {str(name): row for row, name in enumerate(names.tolist())}
    unknown = next((name for name in dataset.ids if name not in row_of), None)
    if unknown is not None:
        raise ShortlistError(f"{path}: the example {unknown!r} is not in the column {ids_key!r}")
    return np.asarray(values)[[row_of[name] for name in dataset.ids]]
