"""How far probabilities are from what happens: the reliability of each bin, and the expected calibration error."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from shortlist.checks import whole
from shortlist.device_arrays import as_array, as_torch
from shortlist.links import AnyLink, link_rows, rule_link
from shortlist.metrics._truth import label_matrix
from shortlist.metrics.functional.set_summary import Estimate, share_interval
from shortlist.metrics.inputs import as_scores


class Bin(NamedTuple):
    """Predictions of similar probability: their mean probability, and how often they were right, with its interval."""

    rows: int
    probability: float
    right: Estimate


def calibration_error(scores: Any, target: Any, *, link: str | AnyLink = "softmax", bins: int = 15) -> Tensor:
    """The expected calibration error: how far probabilities are from the share that is right, on average over bins of
    equal width, each weighted by its rows.

    With class indices, of the best label's probability; with a label matrix, of the probability of every known entry.

    >>> calibration_error(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]), bins=10)
    tensor(0.2500)
    """
    return error_of(*bin_counts(scores, target, link, bins))


def reliability(scores: Any, target: Any, *, link: str | AnyLink = "softmax", bins: int = 15) -> list[Bin]:
    """The bins of `calibration_error` that have rows.

    >>> found = reliability(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]))
    >>> [(one.rows, one.probability, one.right.value) for one in found]
    [(4, 0.5, 0.75)]
    """
    found = []
    for rows, total, right in zip(*(column.tolist() for column in bin_counts(scores, target, link, bins)), strict=True):
        if rows:
            share = right / rows
            found.append(Bin(int(rows), total / rows, Estimate(share, *share_interval(share, rows))))
    return found


def bin_counts(scores: Any, target: Any, link: str | AnyLink, bins: int) -> tuple[Tensor, Tensor, Tensor]:
    """Of each bin: predictions, the sum of their probabilities, and how many were right."""
    rows = as_scores(scores).float()
    matrix = label_matrix(target, tuple(rows.shape), rows.device)
    p = as_torch(link_rows(as_array(rows), rule_link(link))).double()
    if (target.ndim if hasattr(target, "ndim") else 2) == 1:
        known = (matrix >= 0).any(-1)
        best = rows.argmax(-1, keepdim=True)  # the first of equal ones, as the model's answer
        values, right = p.gather(1, best)[known, 0], (matrix.gather(1, best) == 1)[known, 0]
    else:
        values, right = p[matrix >= 0], (matrix == 1)[matrix >= 0]
    place = (values * whole(bins, "bins", 1)).long().clamp(0, bins - 1)
    counts = torch.bincount(place, minlength=bins).double()
    return counts, torch.bincount(place, values, bins), torch.bincount(place, right.double(), bins)


def error_of(rows: Tensor, probability: Tensor, right: Tensor) -> Tensor:
    """`calibration_error` of counts."""
    return ((probability - right).abs().sum() / rows.sum()).float()
