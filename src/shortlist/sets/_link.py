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
        linked = _sigmoid(scores)
    else:
        linked = scores
    if linked.size and np.isnan(linked.max()):
        _raise_bad_row(scores, linked, first_row)
    return linked


def _sigmoid(x: NDArray[Any]) -> NDArray[Any]:
    """1 / (1 + e^-x) for x >= 0 and e^x / (1 + e^x) below: no overflow, and small probabilities keep their digits.

    In numpy, because torch.sigmoid rounds differently at the end of a tensor: a row would depend on its batch.
    In place, because fresh memory costs more than the arithmetic.
    """
    e = np.abs(x)
    np.exp(np.negative(e, out=e), out=e)
    result = (x >= 0).astype(x.dtype)
    np.maximum(result, e, out=result)  # 1 or e, as e <= 1
    e += 1
    result /= e
    return result


def raise_nan(scores: NDArray[Any], first_row: int) -> None:
    row, label = np.argwhere(np.isnan(scores))[0]
    raise ValueError(f"scores must not hold NaN: row {first_row + row}, label {label} is NaN")


def _raise_bad_row(scores: NDArray[Any], linked: NDArray[Any], first_row: int) -> None:
    if np.isnan(scores).any():
        raise_nan(scores, first_row)
    row = int(np.argwhere(np.isnan(linked))[0, 0])
    held = "+inf" if np.isposinf(scores[row]).any() else "-inf for every label"
    raise ValueError(f"softmax of scores row {first_row + row} is undefined: it holds {held}")
