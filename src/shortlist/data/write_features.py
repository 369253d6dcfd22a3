"""Features with their labels as one .npz that the features reader reads."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from shortlist.data import Dataset
from shortlist.data.readers.features import ENCODER_KEY, FILES_KEY
from shortlist.files import written_whole
from shortlist.labels.sparse_labels import SparseLabels, dense_labels


def write_features(dataset: Dataset, path: Path) -> dict[str, str]:
    """Arrays X, y, names and, where there are any, groups, group_names, ids, side and truth (CSR in pieces).

    Where the features are of images, ``encoder`` says as JSON what made them, and ``files`` which files these are; the
    features reader finds both by itself.
    Returns the options with which the features reader reads all else.
    """
    arrays: dict[str, Any] = {"X": np.asarray(dataset.inputs), "names": np.array(dataset.vocabulary)}
    target = dataset.target
    if isinstance(target, SparseLabels) and target.rest == 0:
        pieces = {"indptr": target.offsets, "indices": target.indices, "data": target.values[:-1]}
        arrays |= {f"y_{name}": piece.numpy() for name, piece in pieces.items()}
        arrays["y_shape"] = np.array(target.shape)
    else:
        arrays["y"] = dense_labels(target).numpy()
    options = {"vocabulary_key": "names"}
    for name in ("groups", "group_names", "ids", "side", "truth"):
        value = getattr(dataset, name)
        if value is None:
            continue
        options[f"{name}_key"] = name
        if name == "truth":
            ones, shape = np.ones(len(value.indices), dtype=np.uint8), (len(value), value.num_labels)
            arrays |= {"truth_data": ones, "truth_indices": value.indices, "truth_indptr": value.offsets}
            arrays["truth_shape"] = np.array(shape)
        else:
            arrays[name] = np.asarray(value)
    if dataset.encoder is not None:
        arrays[ENCODER_KEY] = np.array(json.dumps(dataset.encoder.to_json()))
    if dataset.pictures is not None and not dataset.pictures.in_memory:
        arrays[FILES_KEY] = np.array([os.path.abspath(file) for file in dataset.pictures.source])
    with written_whole(path) as file:
        np.savez(file, **arrays)
    return options
