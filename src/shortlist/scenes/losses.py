"""Losses of whole images: one row of candidates each, (pairs x predicates), however many pairs an image has."""

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist.functional import lml_loss, truncated_entropy_loss

RowLoss = Callable[[Tensor, Tensor, int], Tensor]  # scores and label matrix, (rows, candidates), k -> (rows,)


def lml_losses(scores: Tensor, entries: Tensor, pair_counts: Sequence[int], k: float) -> Tensor:
    """The LML loss of each image, all of whose candidates are projected together: (images,).

    Args:
        scores: (pairs, predicates), image after image.
        entries: (M, 2): the recorded relations, a pair and a predicate each.
        pair_counts: how many pairs each image has.
        k: how many relations are predicted per image; below 1, what share of the image's pairs (see `k_of`). An image
            with no more candidates has loss 0.

    >>> scores = torch.tensor([[2.0, 1.0], [0.0, -1.0], [3.0, 3.0], [3.0, 3.0]])
    >>> lml_losses(scores, torch.tensor([[0, 1], [3, 0]]), [2, 2], k=2)
    tensor([0.4741, 0.6931])
    """
    return _by_image(partial(lml_loss, reduction="none"), k, scores, entries, pair_counts)


def truncated_entropy_losses(scores: Tensor, entries: Tensor, pair_counts: Sequence[int], k: float) -> Tensor:
    """The truncated top-k entropy of each image over all of its candidates; arguments as in `lml_losses`.

    >>> scores = torch.tensor([[2.0, 1.0], [0.0, -1.0]])
    >>> truncated_entropy_losses(scores, torch.tensor([[0, 1]]), [2], k=2)
    tensor([0.4076])
    """
    return _by_image(partial(truncated_entropy_loss, reduction="none"), k, scores, entries, pair_counts)


def k_of(k: float, pairs: int) -> int:
    """How many relations are predicted of an image with so many pairs of objects: k, or that share of them, at least 1.

    >>> k_of(20, 6), k_of(0.25, 6), k_of(0.25, 380)
    (20, 2, 95)
    """
    if k >= 1:
        return int(k)
    return max(1, math.floor(k * pairs + 0.5))


def softmax_losses(scores: Tensor, chosen: Tensor, pair_counts: Sequence[int]) -> Tensor:
    """The sum over an image's pairs of the cross-entropy of the chosen column: (images,).

    Args:
        scores: (pairs, predicates + 1); the last column is "no relation".
        chosen: (pairs,), from `draw_predicates`.
        pair_counts: how many pairs each image has.

    >>> softmax_losses(torch.zeros(3, 2), torch.tensor([0, 1, 1]), [2, 1])
    tensor([1.3863, 0.6931])
    """
    losses = F.cross_entropy(scores, chosen, reduction="none")
    image = torch.arange(len(pair_counts), device=scores.device).repeat_interleave(
        torch.tensor(pair_counts, device=scores.device), output_size=len(scores)
    )
    return losses.new_zeros(len(pair_counts)).index_add(0, image, losses)


def draw_predicates(entries: Tensor, pairs: int, predicates: int) -> Tensor:
    """One recorded predicate of each pair, drawn where there are several; ``predicates`` where there is none.

    >>> draw_predicates(torch.tensor([[1, 4], [1, 6]]), pairs=3, predicates=9).tolist() in ([9, 4, 9], [9, 6, 9])
    True
    """
    order = torch.argsort(entries[:, 0] + torch.rand(len(entries), dtype=torch.float64, device=entries.device))
    pair, predicate = entries[order].unbind(1)
    first = torch.ones_like(pair, dtype=torch.bool)
    first[1:] = pair[1:] != pair[:-1]
    chosen = torch.full((pairs,), predicates, dtype=torch.int64, device=entries.device)
    chosen[pair[first]] = predicate[first]
    return chosen


def _by_image(loss: RowLoss, k: float, scores: Tensor, entries: Tensor, pair_counts: Sequence[int]) -> Tensor:
    """Images with equally many pairs become the rows of one matrix: nothing is padded."""
    pairs, predicates = scores.shape
    target = torch.zeros(pairs, predicates, dtype=torch.int8, device=scores.device)
    target[entries[:, 0], entries[:, 1]] = 1
    counts = torch.tensor(pair_counts, dtype=torch.int64)
    by_size = torch.argsort(counts, stable=True)
    sizes, images = counts[by_size].unique_consecutive(return_counts=True)
    if len(sizes) > 1:  # put images of one size side by side; one gather, so that backward is one scatter
        first = (counts.cumsum(0) - counts)[by_size]
        sorted_counts = counts[by_size]
        within = torch.arange(pairs) - (sorted_counts.cumsum(0) - sorted_counts).repeat_interleave(sorted_counts)
        rows = (within + first.repeat_interleave(sorted_counts)).to(scores.device)
        scores, target = scores[rows], target[rows]
    lengths = (sizes * images).tolist()
    losses = []
    for size, number, own, marks in zip(
        sizes.tolist(), images.tolist(), scores.split(lengths), target.split(lengths), strict=True
    ):
        rows = own.reshape(number, size * predicates)
        losses.append(loss(rows, marks.reshape(rows.shape), k_of(k, size)) if size else rows.sum(1))
    if not losses:
        return scores.sum(1)
    return torch.cat(losses)[torch.argsort(by_size).to(scores.device)]
