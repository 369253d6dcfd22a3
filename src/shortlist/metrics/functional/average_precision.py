"""Average precision per class or per sample, and its mean; exact, or from histograms of the scores."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from shortlist.checks import check_choice, whole
from shortlist.errors import ShortlistError
from shortlist.links import link_tensor
from shortlist.metrics._truth import label_matrix
from shortlist.metrics.inputs import EMPTY, as_scores

AVERAGES = ("class", "sample")
_BLOCK = 1 << 20  # scores sorted at a time: small enough for the cache, large enough to hide the overhead


def mean_average_precision(
    scores: Any,
    target: Any,
    *,
    average: str = "class",
    empty: str = "skip",
    bins: int | None = None,
    link: str = "none",
) -> Tensor:
    """Mean of the average precision of every class (ranking the examples), or of every sample (ranking its labels).

    Average precision is the mean, over the present entries, of the share of present ones among all known entries that
    score as high or higher; equal scores are thus one step, as in scikit-learn. Unknown entries take no part.

    Args:
        scores: (..., L) raw scores.
        target: class indices (-1: unknown row), a label matrix of 1, 0, -1 (unknown), scipy CSR or LabelSets.
        average: "class" (mAP@class) or "sample" (mAP@sample).
        empty: a class or sample without a present label is left out ("skip") or counts as 0 ("zero"); a class or sample
            of which nothing is known is always left out.
        bins: None for the exact value; else linked scores are rounded down to this many equal steps of [0, 1] first.
        link: "none", "sigmoid" or "softmax", applied first. It matters for "class" with softmax, and for bins.

    >>> import torch
    >>> scores = torch.tensor([[0.9, 0.2], [0.6, 0.7], [0.3, 0.8]])
    >>> target = torch.tensor([[1, 0], [0, 1], [1, -1]])
    >>> mean_average_precision(scores, target)
    tensor(0.9167)
    >>> mean_average_precision(scores, target, average="sample")
    tensor(1.)
    """
    check_options(average, empty, bins)
    scores, matrix = linked_and_matrix(scores, target, link)
    if average == "sample":
        return mean_of(average_precision(scores, matrix), (matrix >= 0).any(1), empty)
    if bins is not None:
        return mean_of(*binned_average_precision(*score_histograms(scores, matrix, bins)), empty)
    return mean_of(average_precision(scores.t(), matrix.t()), (matrix >= 0).any(0), empty)


def average_precision(scores: Tensor, target: Tensor) -> Tensor:
    """Average precision of every row of (m, n) scores under an int8 target of 1, 0, -1; NaN where no 1 is present."""
    result = torch.full((len(scores),), float("nan"), dtype=torch.float64, device=scores.device)
    rows = (target == 1).any(1).nonzero()[:, 0]
    for block in rows.split(max(1, _BLOCK // max(1, scores.shape[1]))) if len(rows) else ():
        result[block] = _block_average_precision(_take(scores, block), _take(target, block))
    return result


def score_histograms(scores: Tensor, target: Tensor, bins: int) -> tuple[Tensor, Tensor]:
    """For every class, how many present and how many known scores fall in each of the bins of [0, 1]: two (L, bins)."""
    outside = ((scores < 0) | (scores > 1)).nonzero()
    if len(outside):
        row, label = outside[0].tolist()
        raise ShortlistError(
            f"bins divide [0, 1], but scores[{row}, {label}] is {scores[row, label].item():g} after the link: "
            f"for raw scores give link='sigmoid' (or 'softmax')"
        )
    num_labels = scores.shape[1]
    cell = (scores * bins).long().clamp(max=bins - 1) + torch.arange(num_labels, device=scores.device) * bins
    present, known = (
        torch.bincount(cell[chosen], minlength=num_labels * bins).view(num_labels, bins)
        for chosen in (target == 1, target >= 0)
    )
    return present, known


def binned_average_precision(present: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """Average precision of every class from its histograms (NaN without a present label), and whether it is known."""
    from_top = present.flip(-1).double()
    precision = from_top.cumsum(-1) / known.flip(-1).cumsum(-1).clamp(min=1)
    return (from_top * precision).sum(-1) / from_top.sum(-1), known.sum(-1) > 0


def mean_of(values: Tensor, known: Tensor, empty: str) -> Tensor:
    return fill_empty(values, known, empty).nanmean().float()


def fill_empty(values: Tensor, known: Tensor, empty: str) -> Tensor:
    """NaN (no present label) becomes 0 where that is asked for and anything is known."""
    return torch.where(known & values.isnan(), 0.0, values) if empty == "zero" else values


def linked_and_matrix(scores: Any, target: Any, link: str) -> tuple[Tensor, Tensor]:
    rows = as_scores(scores)
    return link_tensor(rows, link), label_matrix(target, tuple(scores.shape), rows.device)


def check_options(average: str, empty: str, bins: int | None) -> None:
    check_choice(average, "average", AVERAGES)
    check_choice(empty, "empty", EMPTY)
    if bins is not None:
        whole(bins, "bins", 1)
        if average == "sample":
            raise ShortlistError("bins are for average='class'; the sample average needs no memory and is always exact")


def _take(matrix: Tensor, rows: Tensor) -> Tensor:
    """These rows of a (possibly transposed) matrix, contiguous; neighbouring rows are read as one strip."""
    first, last = int(rows[0]), int(rows[-1])
    if last - first + 1 == len(rows):
        return matrix[first : last + 1].contiguous()
    return matrix[rows].contiguous()


def _block_average_precision(scores: Tensor, target: Tensor) -> Tensor:
    """Only the ranks of the present entries are needed: sort the scores alone, then look the present ones up."""
    rows, columns = (target == 1).nonzero(as_tuple=True)
    counts = torch.bincount(rows, minlength=len(scores))
    slots = torch.arange(len(rows), device=rows.device) - (counts.cumsum(0) - counts)[rows]
    present = scores.new_full((len(scores), int(counts.max())), float("inf"))
    present[rows, slots] = scores[rows, columns]
    present = _sorted(present)

    unknown = target < 0
    known = target.shape[1] - unknown.sum(1, keepdim=True)
    everything = _sorted(scores.masked_fill(unknown, float("inf")))  # at the end, an entry is below no other

    counts, slots = counts[:, None], torch.arange(present.shape[1], device=rows.device)
    same_as_previous = torch.nn.functional.pad(present[:, 1:] == present[:, :-1], (1, 0))
    first_of_tie = slots.masked_fill(same_as_previous, 0).cummax(1).values
    precision = (counts - first_of_tie) / (known - torch.searchsorted(everything, present)).double()
    return precision.masked_fill(slots >= counts, 0.0).sum(1) / counts[:, 0]


def _sorted(values: Tensor) -> Tensor:
    if values.device.type == "cpu":  # numpy sorts plain numbers several times faster than torch sorts them with indices
        return torch.from_numpy(np.sort(values.numpy(), axis=-1))
    return values.sort(dim=-1).values
