"""Metrics of predicted sets (LabelSets): size, coverage, F-score, exact match.

Labels whose truth is unknown take no part: predicting one is neither right nor wrong. Rows of which nothing is known
are left out.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from shortlist.checks import check_choice, check_positive
from shortlist.errors import ShortlistError
from shortlist.labels.label_sets import LabelSets
from shortlist.labels.votes import check_votes
from shortlist.metrics._truth import Truth
from shortlist.metrics.inputs import as_tensor

F_AVERAGES = ("sample", "class", "all")
F_EMPTY = ("skip", "zero", "one")


def set_size(sets: Any) -> Tensor:
    """Mean number of labels per set.

    >>> from shortlist.labels import LabelSets
    >>> set_size(LabelSets([0, 2, 3], [0, 1, 1], num_labels=3))
    tensor(1.5000)
    """
    return set_sizes(sets).double().mean().float()


def set_coverage(sets: Any, target: Any) -> Tensor:
    """Mean over rows of the share of present labels that are in the set: with one label, how often the set holds it.

    A row known to have no present label misses nothing and counts as 1, as in conformal risk control.

    >>> import torch
    >>> from shortlist.labels import LabelSets
    >>> set_coverage(LabelSets([0, 2, 3], [0, 1, 1], num_labels=3), torch.tensor([1, 2]))
    tensor(0.5000)
    """
    return coverage_rows(*predicted_and_truth(sets, target)).mean().float()


def vote_coverage(sets: Any, votes: Any) -> Tensor:
    """Mean over rows of the share of the votes that are for labels in the set: how likely the set holds the label that
    somebody who voted has given.

    ``votes`` are counts or shares, (rows, labels); rows without a vote (zeros, or -1 throughout) are left out.

    >>> import torch
    >>> from shortlist.labels import LabelSets
    >>> vote_coverage(LabelSets([0, 2, 3], [0, 1, 1], num_labels=3), torch.tensor([[3, 1, 0], [1, 0, 1]]))
    tensor(0.5000)
    """
    return vote_rows(sets, votes).mean().float()


def set_f_score(sets: Any, target: Any, *, beta: float = 1.0, average: str = "sample", empty: str = "skip") -> Tensor:
    """F-score of the sets: (1 + beta^2) hits / ((1 + beta^2) hits + beta^2 missed + extra).

    Args:
        sets: LabelSets.
        target: class indices (-1: unknown row), a label matrix of 1, 0, -1 (unknown), scipy CSR or LabelSets.
        beta: how many times more a missed label weighs than an extra one, squared.
        average: the mean over rows ("sample") or over classes ("class"), or one score of all counts together ("all").
        empty: a row or class with nothing present and nothing predicted is left out ("skip") or counts "zero" or "one".

    >>> import torch
    >>> from shortlist.labels import LabelSets
    >>> set_f_score(LabelSets([0, 2, 3], [0, 1, 1], num_labels=3), torch.tensor([[1, 0, 0], [0, 1, 0]]))
    tensor(0.8333)
    """
    check_f_options(beta, average, empty)
    hits, predicted, present = f_counts(*predicted_and_truth(sets, target), by=average)
    return f_mean(hits, predicted, present, beta, average, empty)


def exact_match(sets: Any, target: Any) -> Tensor:
    """Share of the rows whose set is exactly the set of present labels.

    >>> import torch
    >>> from shortlist.labels import LabelSets
    >>> exact_match(LabelSets([0, 2, 3], [0, 1, 1], num_labels=3), torch.tensor([[1, 1, 0], [0, 1, 1]]))
    tensor(0.5000)
    """
    return exact_rows(*predicted_and_truth(sets, target)).mean().float()


class Predicted:
    """The known labels that were predicted: their row, their label, and whether each is present."""

    def __init__(self, rows: Tensor, labels: Tensor, truth: Truth) -> None:
        if not truth.is_all_known:
            known = truth.is_known(rows, labels)
            rows, labels = rows[known], labels[known]
        self.rows, self.labels = rows, labels
        self.hit = truth.is_present(self.rows, self.labels)


def predicted_and_truth(sets: Any, target: Any) -> tuple[Predicted, Truth]:
    truth, sets = truth_of(sets, target), sets.present
    rows = torch.repeat_interleave(torch.arange(len(sets)), torch.from_numpy(sets.sizes))
    return Predicted(rows, torch.from_numpy(np.array(sets.indices, dtype=np.int64)), truth), truth


def counts_of_rows(sets: Any, target: Any) -> tuple[Truth, tuple[Tensor, Tensor, Tensor]]:
    """The truth, and `f_counts` by "sample". Where no single label is unknown, the few present labels are sought in the
    sets, which may hold most of very many labels, and are not unfolded."""
    truth, sets = truth_of(sets, target), sets.present
    if truth.unknown is not None:
        return truth, f_counts(*predicted_and_truth(sets, target), by="sample")
    rows, labels = truth.rows.numpy(), truth.labels.numpy()
    first, end, most = sets.offsets[rows], sets.offsets[rows + 1], max(len(sets.indices) - 1, 0)
    last = end
    indices = sets.indices if len(sets.indices) else np.array([-1])
    for _ in range(int(sets.sizes.max(initial=0)).bit_length()):  # by halves: the first that is not below the label
        middle = (first + end) // 2
        below = (first < end) & (indices[np.minimum(middle, most)] < labels)
        first, end = np.where(below, middle + 1, first), np.where(below, end, middle)
    hit = (first < last) & (indices[np.minimum(first, most)] == labels)
    hits = torch.bincount(truth.rows[torch.from_numpy(hit)], minlength=truth.num_rows)
    known = truth.known_per_row > 0
    return truth, (hits[known], torch.from_numpy(sets.sizes)[known], truth.present_per_row[known])


def truth_of(sets: Any, target: Any) -> Truth:
    """The target that sets are compared with."""
    sizes = set_sizes(sets)
    names, true_names = getattr(sets, "vocabulary", None), getattr(target, "vocabulary", None)
    if names and true_names and names != true_names:
        first = next((pair for pair in zip(names, true_names, strict=False) if pair[0] != pair[1]), None)
        raise ShortlistError(f"sets and target have different vocabularies; first difference (set, target): {first}")
    return Truth.of(target.cpu() if isinstance(target, Tensor) else target, (len(sizes), sets.num_labels))


def set_sizes(sets: Any) -> Tensor:
    if not isinstance(sets, LabelSets):
        raise ShortlistError(
            f"sets must be shortlist.labels.LabelSets, as a set rule predicts, got {type(sets).__name__}"
        )
    return torch.from_numpy(sets.sizes)


def size_histogram(sizes: Tensor, num_labels: int) -> Tensor:
    """How many sets have 0, 1, ..., L labels."""
    return torch.bincount(sizes, minlength=num_labels + 1)


def coverage_rows(predicted: Predicted, truth: Truth) -> Tensor:
    present = truth.present_per_row
    hits = torch.bincount(predicted.rows[predicted.hit], minlength=truth.num_rows)
    return torch.where(present > 0, hits / present.clamp(min=1).double(), 1.0)[truth.known_per_row > 0]


def vote_rows(sets: Any, votes: Any) -> Tensor:
    """The share of the votes that each set covers, of the rows that have votes."""
    sizes = set_sizes(sets)
    given = as_tensor(votes, "votes").cpu()
    if given.shape != (len(sizes), sets.num_labels):
        raise ShortlistError(
            f"votes of shape {tuple(given.shape)} do not fit {len(sizes)} sets of {sets.num_labels} labels"
        )
    shares = given.double()
    shares = check_votes(torch.where((shares == -1).all(-1, keepdim=True), 0.0, shares))
    rows = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
    inside = shares[rows, torch.from_numpy(np.array(sets.indices, dtype=np.int64))]
    total = shares.sum(-1)
    covered = torch.zeros_like(total).index_add(0, rows, inside)
    return (covered / total)[total > 0]


def exact_rows(predicted: Predicted, truth: Truth) -> Tensor:
    hits, size, present = f_counts(predicted, truth, by="sample")
    return ((hits == size) & (hits == present)).double()


def f_counts(predicted: Predicted, truth: Truth, *, by: str) -> tuple[Tensor, Tensor, Tensor]:
    """Hits, predicted and present labels of every row of which something is known ("sample"), or of every class."""
    if by == "sample":
        keys, present, length = predicted.rows, truth.rows, truth.num_rows
    else:
        keys, present, length = predicted.labels, truth.labels, truth.num_labels
    hits, size, there = (torch.bincount(which, minlength=length) for which in (keys[predicted.hit], keys, present))
    if by == "sample":
        known = truth.known_per_row > 0
        hits, size, there = hits[known], size[known], there[known]
    return hits, size, there


def f_mean(hits: Tensor, predicted: Tensor, present: Tensor, beta: float, average: str, empty: str) -> Tensor:
    if average == "all":
        hits, predicted, present = hits.sum(), predicted.sum(), present.sum()
    return f_values(hits, predicted, present, beta, empty).nanmean().float()


def f_values(hits: Tensor, predicted: Tensor, present: Tensor, beta: float, empty: str) -> Tensor:
    """F-scores, with NaN, 0 or 1 where nothing is present and nothing predicted."""
    weight = beta**2
    score = (1 + weight) * hits.double() / (weight * present + predicted)
    nothing = {"skip": float("nan"), "zero": 0.0, "one": 1.0}[empty]
    return torch.where(predicted + present > 0, score, nothing)


def check_f_options(beta: float, average: str, empty: str) -> None:
    check_choice(average, "average", F_AVERAGES)
    check_choice(empty, "empty", F_EMPTY)
    check_positive(beta, "beta")
