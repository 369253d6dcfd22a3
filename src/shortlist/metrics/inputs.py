"""What a metric accepts: scores and options, with errors that say what was given, what is allowed, and where."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from shortlist.checks import check_scores, in_compute_type
from shortlist.errors import ShortlistError

EMPTY = ("skip", "zero")


def as_tensor(value: Any, name: str) -> Tensor:
    """A torch tensor or a numpy array (memory-mapped too) as a tensor."""
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value if value.flags.writeable else np.array(value))  # torch warns of read-only memory
    raise ShortlistError(f"{name} must be a torch tensor or a numpy array, got {type(value).__name__}")


def as_scores(scores: Any) -> Tensor:
    """Scores as an (n, L) float32 or float64 tensor without NaN; leading dimensions become rows."""
    scores = as_tensor(scores, "scores")
    check_scores(scores)
    if scores.shape[-1] == 0:
        raise ShortlistError(f"scores of shape {tuple(scores.shape)} have no labels")
    if scores.device.type == "mps":
        scores = scores.cpu()  # it has no float64, which metrics compute in
    rows = in_compute_type(scores).reshape(-1, scores.shape[-1])
    if rows.numel() and bool(rows.amax().isnan()):  # a NaN is the largest; quicker than to look at each
        bad = torch.isnan(rows)
        row, label = bad.nonzero()[0].tolist()
        raise ShortlistError(
            f"scores have NaN in {int(bad.any(1).sum())} of {len(rows)} rows, first at [{row}, {label}]"
        )
    return rows
