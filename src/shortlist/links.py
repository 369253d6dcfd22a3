"""Links: what makes the scores of different rows comparable.

A threshold over raw logits compares numbers that mean nothing across rows; after softmax (one label per example) or
sigmoid (any number of labels) they mean the same in every row.
"""

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shortlist.errors import ShortlistError

Link = Literal["softmax", "sigmoid", "none"]
LINKS = ("softmax", "sigmoid", "none")


def check_link(link: str, name: str = "link") -> Link:
    if link not in LINKS:
        raise ShortlistError(f"{name} must be one of {', '.join(map(repr, LINKS))}, got {link!r}")
    return link  # type: ignore[return-value]


def usual_link(single: bool) -> Link:
    """The link where nothing else is known: softmax for class indices, sigmoid for a label matrix."""
    return "softmax" if single else "sigmoid"


def link_tensor(scores: Tensor, link: str, first_row: int = 0) -> Tensor:
    """Linked scores on their own device, and differentiable; ``first_row`` is where these rows stand in the input.

    >>> link_tensor(torch.zeros(1, 4), "softmax")
    tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """
    check_link(link)
    if link == "none":
        return scores
    if link == "sigmoid":
        return scores.sigmoid()
    linked = scores.softmax(-1)
    bad = torch.isnan(linked).any(-1)
    if bool(bad.any()):
        _raise_undefined(scores[bad][0].detach().cpu().numpy(), first_row + int(bad.nonzero()[0, 0]))
    return linked


def link_rows(scores: NDArray[Any], link: Link, first_row: int = 0) -> NDArray[Any]:
    """Linked scores of a block of rows, in its own type (float32 or float64), without NaN.

    A row's result is the same, bit for bit, in any block: a prediction must not depend on the rest of its batch.
    """
    if link == "softmax":
        linked = torch.from_numpy(scores).softmax(-1).numpy()
    elif link == "sigmoid":
        linked = _sigmoid(scores)
    else:
        linked = scores
    if linked.size and (largest := linked.max()) != largest:
        row = int(np.isnan(linked).any(-1).argmax())
        _raise_undefined(scores[row], first_row + row)
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
    raise ShortlistError(f"scores must not hold NaN: row {first_row + row}, label {label} is NaN")


def _raise_undefined(row: NDArray[Any], number: int) -> None:
    """Why this row is NaN after its link."""
    if np.isnan(row).any():
        raise_nan(row[None], number)
    held = "+inf" if np.isposinf(row).any() else "-inf for every label"
    raise ShortlistError(f"softmax of scores row {number} is undefined: it holds {held}")
