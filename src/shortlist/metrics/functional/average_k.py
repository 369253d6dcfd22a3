"""Average-K accuracy: is the label in its set, when one threshold gives sets of K labels on average?"""

from math import floor
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from shortlist.device_arrays import as_array
from shortlist.errors import ShortlistError
from shortlist.links import link_tensor
from shortlist.metrics._truth import scores_and_truth
from shortlist.metrics.inputs import as_scores


class Cut(NamedTuple):
    """Which linked scores are in: all above ``value``, and this ``share`` of those equal to it."""

    value: float
    share: float = 1.0


def average_k_accuracy(
    scores: Any,
    target: Any,
    k: float | None = None,
    *,
    calibration: Any = None,
    threshold: float | None = None,
    link: str = "softmax",
) -> Tensor:
    """Share of the examples whose label is in its set, the sets being the linked scores above one threshold.

    The threshold is the one given; or the one that gives sets of k labels on average on the ``calibration`` scores; or
    the one that does so on these very scores (rows of unknown label left out). Where scores equal to the threshold
    would make the sets too large on average, each of them counts by the share of them that fits, which is the accuracy
    expected when ties are broken at random.

    Args:
        scores: (..., L) raw scores.
        target: class indices (-1: unknown, ignored), or a label matrix with at most one present label per row (rows
            without one are ignored; unknown labels still take part in the sets).
        k: the average set size, 0 < k <= L, fractions allowed; not used with a given ``threshold``.
        calibration: (..., L) raw held-out scores; no labels are needed.
        threshold: a fitted threshold on linked scores; sets are the scores that reach it.
        link: "softmax", "sigmoid" or "none", applied to scores and calibration. On raw logits ("none") one threshold
            for all rows is worse than top-k.

    >>> import torch
    >>> scores = torch.tensor([[0.6, 0.3, 0.1], [0.9, 0.06, 0.04]]).log()
    >>> average_k_accuracy(scores, torch.tensor([1, 0]), k=1.5)  # three of six labels: 0.9, 0.6 and 0.3
    tensor(1.)
    """
    values, truth = scores_and_truth(scores, target)
    values = link_tensor(values, link)
    rows, labels = truth.single_labels()
    if threshold is not None or calibration is not None:
        cut = given_cut(k, calibration, threshold, link)
    else:
        cut = cut_at_average(values[rows], k)
    correct = inside(values[rows, labels], cut)
    return correct.mean().float()


def given_cut(k: float | None, calibration: Any, threshold: float | None, link: str) -> Cut:
    """The cut from a threshold or from calibration scores, whichever is given."""
    if threshold is None:
        return cut_at_average(link_tensor(as_scores(calibration), link), k)
    if calibration is not None:
        raise ShortlistError("give calibration scores or a threshold, not both")
    if not threshold == threshold:
        raise ShortlistError("threshold must be a number, got NaN")
    return Cut(float(threshold))


def cut_at_average(values: Tensor, k: float | None) -> Cut:
    """The cut that lets in exactly M = floor(k n + 1/2) of the (n, L) linked scores, by selection.

    It stands midway between the M-th and the (M+1)-th largest; where they are equal, at them, with the share that fits.
    """
    n, num_labels = values.shape
    k = checked_average(k)
    if k > num_labels:
        raise ShortlistError(f"k must be at most {num_labels} (the number of labels), got {k}")
    flat = as_array(values).reshape(-1)
    wanted = floor(k * n + 0.5)
    if wanted >= len(flat):
        return Cut(float("-inf"))
    if wanted == 0:
        return Cut(float("inf"), 0.0)
    place = len(flat) - wanted
    lower, upper = map(float, np.partition(flat, [place - 1, place])[[place - 1, place]])
    if lower == upper:
        above = int((flat > upper).sum())
        return Cut(upper, (wanted - above) / int((flat == upper).sum()))
    middle = float(flat.dtype.type((lower + upper) / 2))
    return Cut(middle if lower < middle < upper else upper)


def inside(values: Tensor, cut: Cut) -> Tensor:
    """1 for linked scores above the cut, its share for those at it, 0 below."""
    return (values > cut.value).double() + (values == cut.value) * cut.share


def checked_average(k: float | None) -> float:
    if k is None or isinstance(k, bool | str) or not hasattr(k, "__float__") or not 0 < float(k) < float("inf"):
        raise ShortlistError(f"k must be a positive number (the average set size), got {k!r}")
    return float(k)


def average_k_counts(values: Tensor, labels: Tensor, cut: Cut) -> tuple[Tensor, Tensor]:
    """For every label: how many of its examples have it in their set, and how many it has; (n, L) linked scores."""
    num_labels = values.shape[1]
    correct = inside(values.gather(1, labels[:, None])[:, 0], cut)
    return torch.bincount(labels, correct, minlength=num_labels), torch.bincount(labels, minlength=num_labels)
