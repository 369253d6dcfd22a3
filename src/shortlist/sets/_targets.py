"""The target of a block of calibration rows, checked: class indices or a label matrix."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.checks import IGNORE_INDEX
from shortlist.device_arrays import beside
from shortlist.errors import ShortlistError
from shortlist.sets._blocks import Block


def class_indices(block: Block) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows whose label is known, and their label."""
    target, num_labels = block.target, block.scores.shape[1]
    if target is None or target.ndim != 1 or target.dtype.kind not in "iu":
        given = "none" if target is None else f"{target.dtype} {target.shape}"
        raise ShortlistError(f"labels='single' takes class indices, one whole number per row, got {given}")
    target = np.where(target == IGNORE_INDEX, -1, target.astype(np.int64))
    bad = (target < -1) | (target >= num_labels)
    if bad.any():
        row = int(np.argmax(bad))
        raise ShortlistError(
            f"target row {block.first_row + row} is {target[row]}: "
            f"allowed are 0..{num_labels - 1}, or -1 (or {IGNORE_INDEX}) for an unknown row"
        )
    rows = np.flatnonzero(target >= 0)
    return rows, target[rows].astype(np.int64)


def vote_shares(block: Block) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], int]:
    """Rows, labels and shares of the votes, and how many rows have any; a row of zeros or of -1 has none."""
    target = block.target
    if target is None or target.ndim != 2 or target.dtype.kind not in "biuf":
        given = "none" if target is None else f"{target.dtype} {target.shape}"
        raise ShortlistError(
            f"labels='votes' takes votes (counts or shares) of the scores' shape, {block.scores.shape}, got {given}"
        )
    votes = target.astype(np.float64)
    votes[(votes == -1).all(-1)] = 0
    bad = ~((votes >= 0) & (votes < np.inf))
    if bad.any():
        row, label = np.argwhere(bad)[0].tolist()
        raise ShortlistError(
            f"target row {block.first_row + row}, label {label} is {target[row, label].item()}: "
            "votes are finite numbers that are not negative, or -1 in a whole row without any"
        )
    total = votes.sum(-1)
    rows, labels = np.nonzero(votes)
    return rows, labels, votes[rows, labels] / total[rows], int((total > 0).sum())


def any_labels(block: Block) -> Any:
    """Class indices or a label matrix as a label matrix of int8, where the scores are."""
    if block.target is None or block.target.ndim != 1:
        return beside(label_matrix(block), block.scores).astype(np.int8)
    row, label = class_indices(block)
    target = np.full(block.scores.shape, -1, np.int8)
    target[row] = 0
    target[row, label] = 1
    return beside(target, block.scores)


def label_matrix(block: Block) -> NDArray[Any]:
    """The label matrix: 1 present, 0 absent, -1 unknown."""
    target = block.target
    if target is None or target.ndim != 2:
        given = "none" if target is None else f"shape {target.shape}"
        raise ShortlistError(f"labels='multi' takes a label matrix of the scores' shape, got {given}")
    bad = (target != 1) & (target != 0) & (target != -1)
    if bad.any():
        row, label = np.argwhere(bad)[0].tolist()
        raise ShortlistError(
            f"target row {block.first_row + row}, label {label} is {target[row, label].item()}: "
            "a label matrix holds 1 (present), 0 (absent) and -1 (unknown)"
        )
    return target
