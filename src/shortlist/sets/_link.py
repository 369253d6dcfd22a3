"""Links: what makes the scores of different rows comparable before a rule looks at them."""

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

Link = Literal["softmax", "sigmoid", "none"]
LINKS = ("softmax", "sigmoid", "none")


def check_link(link: str) -> Link:
    if link not in LINKS:
        raise ValueError(f"link must be one of {', '.join(map(repr, LINKS))}, got {link!r}")
    return link  # type: ignore[return-value]


def apply_link(scores: NDArray[Any], link: Link, first_row: int = 0) -> NDArray[Any]:
    """Linked scores of a block of rows, in its own type (float32 or float64). A row's result is the same, bit for bit,
    in any block. ``first_row`` is where the block stands in the whole input, for the error message."""
    if link == "softmax":
        linked = torch.softmax(torch.from_numpy(scores), dim=-1).numpy()
    elif link == "sigmoid":
        # numpy's exp, because torch.sigmoid rounds differently at the end of a tensor: a row would depend on its batch
        e = np.exp(-np.abs(scores))
        linked = np.where(scores >= 0, 1, e) / (1 + e)
    else:
        linked = scores
    if linked.size and np.isnan(linked.max()):
        _raise_bad_row(scores, linked, first_row)
    return linked


def raise_nan(scores: NDArray[Any], first_row: int) -> None:
    row, label = np.argwhere(np.isnan(scores))[0]
    raise ValueError(f"scores must not hold NaN: row {first_row + row}, label {label} is NaN")


def _raise_bad_row(scores: NDArray[Any], linked: NDArray[Any], first_row: int) -> None:
    if np.isnan(scores).any():
        raise_nan(scores, first_row)
    row = int(np.argwhere(np.isnan(linked))[0, 0])
    held = "+inf" if np.isposinf(scores[row]).any() else "-inf for every label"
    raise ValueError(f"softmax of scores row {first_row + row} is undefined: it holds {held}")
