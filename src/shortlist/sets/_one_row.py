"""The set of one row of float32 scores in as few steps as there can be: a row that waits alone is not kept waiting by
what blocks of rows need.

Everything here gives None where it does not serve: without native kernels, for rows that want a closer look (a NaN, a
tie that a hash breaks), for arrays and types that a model does not give. The rule then goes the way of blocks, which
finds the same set, to the bit, or says what is wrong.
"""

from typing import Any, TypeGuard

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shortlist.kernels.row_sets import rows_served
from shortlist.links import AnyLink, link_rows

Labels = NDArray[np.int32]  # of one set, increasing and read-only


def is_one_row(scores: Any) -> TypeGuard[Tensor]:
    """Whether these are scores as a model gives them for one input: (1, labels), float32, on the CPU."""
    return (
        type(scores) is Tensor
        and scores.dtype is torch.float32
        and len(shape := scores.shape) == 2
        and shape[0] == 1
        and 0 < shape[1] <= 2**31
        and scores.is_cpu
        and not scores.requires_grad
        and scores.is_contiguous()
    )


def best(scores: Tensor, k: int) -> Labels | None:
    """The k best labels."""
    native = rows_served()
    found = None if native is None else native.row_best(scores.data_ptr(), scores.shape[1], k)
    return None if found is None else np.frombuffer(found, np.int32)


def reaching(scores: Tensor, link: AnyLink, threshold: float, at_ties: bool = True) -> Labels | None:
    """The labels whose linked score is at least the threshold. ``at_ties``: also where one is the threshold itself."""
    native = rows_served()
    if native is None:
        return None
    row, _kept = _linked(scores, link)
    found = native.row_reaching(row, scores.shape[1], threshold, at_ties)
    return None if found is None else np.frombuffer(found, np.int32)


def reaching_each(scores: Tensor, link: AnyLink, thresholds: NDArray[np.float64]) -> Labels | None:
    """The labels whose linked score is at least their own threshold."""
    native = rows_served()
    if native is None or len(thresholds) != scores.shape[1]:
        return None
    row, _kept = _linked(scores, link)
    found = native.row_reaching_each(row, scores.shape[1], thresholds)
    return None if found is None else np.frombuffer(found, np.int32)


def first_ranks(
    scores: Tensor, link: AnyLink, before: str, steps: NDArray[np.float64] | None, limit: float
) -> Labels | None:
    """The labels up to the last rank whose score is at most the limit: see ``RankScore.before``."""
    native = rows_served()
    if native is None:
        return None
    row, _kept = _linked(scores, link)
    found = native.row_first_ranks(row, scores.shape[1], before, steps, limit)
    return None if found is None else np.frombuffer(found, np.int32)


def _linked(scores: Tensor, link: AnyLink) -> tuple[Any, Any]:
    """Linked scores as the native functions take them, and what has to live as long."""
    if link == "softmax":
        linked = scores.softmax(-1)
        return linked.data_ptr(), linked
    if link == "none":
        return scores.data_ptr(), scores
    row = scores.numpy()
    if np.isnan(row).any():  # which not every link keeps
        return np.full_like(row, np.nan), row
    made = link_rows(row, link)
    return made, made
