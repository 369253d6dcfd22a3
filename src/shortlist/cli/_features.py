"""Features with their labels as one .npz that the features reader reads."""

from pathlib import Path
from typing import Any

import numpy as np

from shortlist._files import written_whole
from shortlist.data import Dataset


def write_features(dataset: Dataset, path: Path) -> None:
    """Arrays X, y, names and, where there are any, groups, group_names and ids."""
    arrays: dict[str, Any] = {
        "X": np.asarray(dataset.inputs),
        "y": dataset.target.numpy(),
        "names": np.array(dataset.vocabulary),
    }
    if dataset.groups is not None:
        arrays["groups"] = dataset.groups.numpy()
    if dataset.group_names is not None:
        arrays["group_names"] = np.array(dataset.group_names)
    if dataset.ids is not None:
        arrays["ids"] = np.array(dataset.ids)
    with written_whole(path) as file:
        np.savez(file, **arrays)
