"""Scene graphs: the share of an image's recorded relations among its k best triples, averaged over images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from shortlist.checks import check_scores, in_compute_type, whole
from shortlist.errors import ShortlistError
from shortlist.metrics.inputs import as_scores, as_tensor

_AT_ONCE = 1 << 22  # values that are copied at once, where images of one size do not stand side by side


class SceneInputs(NamedTuple):
    """Checked inputs; every relation once, in the order of its pair and predicate."""

    scores: Tensor  # (pairs, predicates)
    pair: Tensor  # (M,)
    predicate: Tensor  # (M,)
    image: Tensor  # (M,)
    offsets: Tensor  # (images + 1,)


def scene_recall_at_k(
    scores: Any, relations: Any, k: int, *, offsets: Any = None, constrained: bool = True
) -> Tensor:
    """Mean over images of the share of the image's recorded relations among its k best triples.

    Args:
        scores: (pairs, predicates): a score for every predicate of every ordered pair of objects, image after image.
        relations: int (M, 2): a row of ``scores`` and a predicate for each recorded relation, in any order; one that is
            recorded twice counts once. A label matrix of the scores' shape becomes this by ``(matrix == 1).nonzero()``.
        k: how many triples an image is answered with.
        offsets: (images + 1,): where each image's pairs begin; None means that there is one image.
        constrained: a pair is answered with its best predicate only.

    Images without relations are left out. An image with no more candidates than k finds all of them. Of equal scores
    the earlier pair comes first, then the lower predicate.

    >>> scores = torch.tensor([[5.0, 4.0], [1.0, 3.0]])
    >>> relations = torch.tensor([[0, 0], [0, 1], [1, 1]])
    >>> scene_recall_at_k(scores, relations, 2), scene_recall_at_k(scores, relations, 2, constrained=False)
    (tensor(0.6667), tensor(0.6667))
    >>> scene_recall_at_k(scores, relations, 2, offsets=torch.tensor([0, 1, 2]), constrained=False)
    tensor(1.)
    """
    inputs = scene_inputs(scores, relations, offsets)
    rows = image_recalls(inputs, found_at(inputs, (k,), constrained)[0])
    return rows.mean().float() if len(rows) else torch.tensor(float("nan"))


def scene_mean_recall_at_k(
    scores: Any, relations: Any, k: int, *, offsets: Any = None, constrained: bool = True
) -> Tensor:
    """The same for each predicate by itself, averaged over the predicates: rare ones count as much as frequent ones.

    The recall of a predicate is the mean over the images that have it of the share of its relations that are found;
    arguments as in `scene_recall_at_k`.

    >>> scores = torch.tensor([[5.0, 4.0], [1.0, 3.0]])
    >>> scene_mean_recall_at_k(scores, torch.tensor([[0, 0], [0, 1], [1, 1]]), 2)
    tensor(0.7500)
    """
    inputs = scene_inputs(scores, relations, offsets)
    total, count = predicate_recalls(inputs, found_at(inputs, (k,), constrained)[0])
    return (total / count)[count > 0].mean().float()


def scene_inputs(scores: Any, relations: Any, offsets: Any = None) -> SceneInputs:
    """The inputs, if they fit together."""
    scores = as_tensor(scores, "scores")
    check_scores(scores)
    if scores.ndim != 2 or not scores.shape[1]:
        raise ShortlistError(f"scores must have the shape (pairs, predicates), got {tuple(scores.shape)}")
    scores = in_compute_type(scores)
    pairs, predicates = scores.shape
    found = as_tensor(relations, "relations").to(scores.device)
    if found.ndim != 2 or found.shape[1] != 2 or found.is_floating_point() or found.dtype == torch.bool:
        raise ShortlistError(
            f"relations must be whole numbers of shape (M, 2), a row of the scores and a predicate each, "
            f"got {found.dtype} of shape {tuple(found.shape)}; (label_matrix == 1).nonzero() is this"
        )
    found = found.long()
    bad = ((found < 0) | (found >= torch.tensor([pairs, predicates], device=found.device))).any(1)
    if bool(bad.any()):
        row = int(bad.nonzero()[0])
        raise ShortlistError(
            f"relations[{row}] is {found[row].tolist()}, outside scores of shape {(pairs, predicates)}"
        )
    starts = torch.tensor([0, pairs]) if offsets is None else as_tensor(offsets, "offsets").long()
    starts = starts.to(scores.device)
    if starts.ndim != 1 or len(starts) < 1 or starts[0] != 0 or starts[-1] != pairs or bool((starts.diff() < 0).any()):
        raise ShortlistError(f"offsets must rise from 0 to the {pairs} rows of the scores, got {_short(starts)}")
    once = (found[:, 0] * predicates + found[:, 1]).unique()
    pair = once // predicates
    return SceneInputs(scores, pair, once % predicates, torch.searchsorted(starts, pair, right=True) - 1, starts)


def found_at(inputs: SceneInputs, ks: Sequence[int], constrained: bool) -> Tensor:
    """Whether each relation is among its image's k best triples, bool (len(ks), M): one top-k per image for all k.

    A relation is found if its score is above the k-th best, or equal to it and early enough among its equals: no index
    has to be looked up, and ties cost something only where they cross the k-th place.
    """
    for k in ks:
        whole(k, "k", 1)
    scores, pair, predicate, image, offsets = inputs
    width = scores.shape[1]
    if constrained:
        values, place = scores.amax(1), pair
        own = scores[pair]
        answered = (own == values[pair, None]).int().argmax(1) == predicate  # the first of its best predicates
    else:
        values, place, offsets = scores.reshape(-1), pair * width + predicate, offsets * width
        answered = torch.ones_like(pair, dtype=torch.bool)
    value = values[place]
    found = torch.empty(len(ks), len(pair), dtype=torch.bool, device=scores.device)
    limits_of_ks = _limits(values, offsets, ks)
    if limits_of_ks is None:
        as_scores(scores)  # says where the NaN is
        raise AssertionError("a top-k found NaN that is not there")
    for row, (limit, above, crossed) in enumerate(zip(*limits_of_ks, strict=True)):
        limits = limit[image]
        found[row] = answered & (value >= limits)
        for at in (found[row] & crossed[image] & (value == limits)).nonzero()[:, 0].tolist():
            start = int(offsets[image[at]])
            earlier = (values[start : int(place[at])] == value[at]).sum()
            found[row, at] = bool(earlier < ks[row] - above[image[at]])
    return found


def image_recalls(inputs: SceneInputs, found: Tensor) -> Tensor:
    """The recall of each image that has relations, float64."""
    images = len(inputs.offsets) - 1
    total = torch.bincount(inputs.image, minlength=images)
    hits = torch.bincount(inputs.image[found], minlength=images)
    return hits[total > 0].double() / total[total > 0]


def predicate_recalls(inputs: SceneInputs, found: Tensor) -> tuple[Tensor, Tensor]:
    """For each predicate the sum of its recalls over the images that have it, float64, and how many these are."""
    predicates = inputs.scores.shape[1]
    both, inverse, total = (inputs.image * predicates + inputs.predicate).unique(
        return_inverse=True, return_counts=True
    )
    share = torch.bincount(inverse[found], minlength=len(both)).double() / total
    predicate = both % predicates
    sums = torch.zeros(predicates, dtype=torch.float64, device=share.device).index_add(0, predicate, share)
    return sums, torch.bincount(predicate, minlength=predicates)


def _limits(values: Tensor, offsets: Tensor, ks: Sequence[int]) -> tuple[Tensor, Tensor, Tensor] | None:
    """Of each k and image: the k-th best value (-inf where there are no more than k), how many are above it, and
    whether the next one is equal to it. None where a value is NaN: it comes first, so that looking for it is free."""
    most, images = max(ks), len(offsets) - 1
    limit = torch.full((len(ks), images), float("-inf"), dtype=values.dtype, device=values.device)
    above = torch.zeros((len(ks), images), dtype=torch.int64, device=values.device)
    crossed = torch.zeros((len(ks), images), dtype=torch.bool, device=values.device)
    for chosen, rows in _alike(values, offsets):
        size = rows.shape[1]
        top = rows.topk(min(most + 1, size), dim=-1).values
        if bool(top[:, 0].isnan().any()):
            return None
        for row, k in enumerate(ks):
            if k < size:
                limit[row, chosen] = top[:, k - 1]
                above[row, chosen] = (top[:, :k] > top[:, k - 1 : k]).sum(1)
                crossed[row, chosen] = top[:, k] == top[:, k - 1]
    return limit, above, crossed


def _alike(values: Tensor, offsets: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Images with equally many candidates, and their values as a matrix; neighbours are not copied."""
    sizes = offsets.diff().cpu()
    for size in sizes.unique().tolist():
        if size == 0:
            continue
        alike = (sizes == size).nonzero()[:, 0]
        first, last = int(offsets[alike[0]]), int(offsets[alike[-1] + 1])
        if last - first == size * len(alike):
            yield alike, values[first:last].view(len(alike), size)
            continue
        for chosen in alike.split(max(1, _AT_ONCE // size)):
            yield chosen, torch.stack([values[start : start + size] for start in offsets[chosen].tolist()])


def _short(values: Tensor) -> str:
    numbers = values.tolist()
    return str(numbers) if len(numbers) <= 8 else f"[{', '.join(map(str, numbers[:8]))}, ...]"
