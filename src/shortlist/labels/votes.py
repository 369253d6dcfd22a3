"""Votes of several people on each example: as shares of the labels, and from questions about two labels.

Shares are soft targets: each row sums to 1, and says how likely the label is that one more person would give. A row
without a vote is unknown, -1 throughout. The losses of one label take them (and are then the expected loss), the binary
loss takes them label by label, `shortlist.sets.Conformal` calibrates on them with ``labels="votes"``, and
`shortlist.metrics.functional.vote_coverage` judges sets by them.
"""

from typing import Any, Literal, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shortlist.checks import check_choice
from shortlist.errors import ShortlistError
from shortlist.labels.label_set_inputs import check_num_labels, first_true

ANSWERS = ("given", "guessed", "neither", "both")


@overload
def from_votes(counts: Tensor) -> Tensor: ...
@overload
def from_votes(counts: Any) -> NDArray[Any]: ...
def from_votes(counts: Any) -> Any:
    """The share of each label in the votes of its row: from counts, or from weights that are not negative.

    ``counts`` has the shape (..., labels). A row of zeros has no vote and becomes unknown: -1 throughout. Shares are
    float32 (float64 where the counts are), torch for torch and otherwise numpy.

    >>> from_votes([[3, 1, 0], [0, 0, 0]])
    array([[ 0.75,  0.25,  0.  ], [-1.  , -1.  , -1.  ]], dtype=float32)
    """
    if isinstance(counts, Tensor):
        wide = torch.float64 if counts.device.type != "mps" else torch.float32
        kind = torch.float64 if counts.dtype == torch.float64 else torch.float32
        votes = check_votes(counts).to(wide)
        votes = votes / votes.amax(-1, keepdim=True).clamp(min=1)  # a sum of huge weights is no infinity
        total = votes.sum(-1, keepdim=True)
        return torch.where(total > 0, votes / torch.where(total > 0, total, 1.0), -1.0).to(kind)
    array = check_votes(counts.toarray() if hasattr(counts, "tocsr") else counts)
    votes = array / np.maximum(array.max(-1, keepdims=True), 1)
    total = votes.sum(-1, keepdims=True)
    shares = np.where(total > 0, votes / np.where(total > 0, total, 1.0), -1.0)
    return shares.astype(np.float64 if array.dtype == np.float64 else np.float32)


def check_votes(votes: Any) -> Any:
    """The votes as a tensor or an array, if they are finite numbers that are not negative, (..., labels)."""
    if not isinstance(votes, Tensor):
        try:
            votes = np.asarray(votes)
        except ValueError as error:  # rows of different lengths
            raise ShortlistError(f"votes are numbers, one for each label of a row: {error}") from None
    is_number = not votes.is_complex() if isinstance(votes, Tensor) else votes.dtype.kind in "biuf"
    if votes.ndim == 0 or not is_number or votes.shape[-1] == 0:
        raise ShortlistError(
            f"votes are numbers, one for each label of a row, got shape {tuple(votes.shape)} of {votes.dtype}"
        )
    bad = ~((votes >= 0) & (votes < float("inf")))
    if bool(bad.any()):
        at = first_true(bad.cpu().numpy() if isinstance(bad, Tensor) else bad)
        raise ShortlistError(
            f"votes{list(at)} is {votes[at].item()}: the votes for a label are a finite number that is not negative"
        )
    return votes


def from_pair_answers(
    answers: Any,
    given: Any,
    guessed: Any,
    num_labels: int,
    *,
    both: Literal["half", "each", "none"] = "half",
    neither: Literal["none", "others"] = "none",
) -> NDArray[np.float64]:
    """The votes in answers to "is it the given label, the guessed one, neither, or both?".

    Args:
        answers: how often each answer was chosen: (N, 4), in the order given, guessed, neither, both.
        given, guessed: the two labels that were asked about, class indices (N,).
        num_labels: how many labels there are.
        both: what this answer becomes: "half" a vote for either label, a whole vote for "each", or no vote ("none").
        neither: no vote ("none"): nobody said which other label it is; or one vote shared by all "others" alike.

    Returns votes (N, num_labels), for `from_votes`. A row with no vote left becomes unknown there.

    >>> from_pair_answers([[2, 2, 0, 1]], given=[0], guessed=[2], num_labels=3)
    array([[2.5, 0. , 2.5]])
    >>> from_pair_answers([[1, 0, 2, 0]], given=[0], guessed=[1], num_labels=4, neither="others")
    array([[1., 0., 1., 1.]])
    """
    num_labels = check_num_labels(num_labels, None)
    for name, value, allowed in (("both", both, ("half", "each", "none")), ("neither", neither, ("none", "others"))):
        check_choice(value, name, allowed)
    counts = np.asarray(check_votes(_without_torch(answers)), dtype=np.float64)
    if counts.ndim != 2 or counts.shape[1] != len(ANSWERS):
        raise ShortlistError(f"answers have the columns {', '.join(ANSWERS)}, got shape {counts.shape}")
    pair = [_labels(name, labels, len(counts), num_labels) for name, labels in (("given", given), ("guessed", guessed))]
    votes = np.zeros((len(counts), num_labels))
    rows = np.arange(len(counts))
    share = {"half": 0.5, "each": 1.0, "none": 0.0}[both]
    for column, labels in enumerate(pair):
        np.add.at(votes, (rows, labels), counts[:, column] + share * counts[:, 3])
    if neither == "others":
        others = np.ones_like(votes, dtype=bool)
        for labels in pair:
            others[rows, labels] = False
        votes += others * (counts[:, 2] / np.maximum(others.sum(1), 1))[:, None]
    return votes


def _without_torch(value: Any) -> Any:
    return value.detach().cpu().numpy() if isinstance(value, Tensor) else value


def _labels(name: str, labels: Any, rows: int, num_labels: int) -> NDArray[np.int64]:
    found = np.asarray(_without_torch(labels))
    if found.shape != (rows,) or (found.dtype.kind not in "iu" and found.size):
        raise ShortlistError(f"{name} holds one class index for each of {rows} rows, got {found.shape} {found.dtype}")
    wide = found.astype(np.int64)
    bad = np.flatnonzero((wide < 0) | (wide >= num_labels))
    if len(bad):
        raise ShortlistError(f"{name}[{bad[0]}] is {wide[bad[0]]}: allowed are 0..{num_labels - 1}")
    return wide
