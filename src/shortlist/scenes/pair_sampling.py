"""Some of an image's pairs for a training step: all related ones, and unrelated ones drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class SampledPairs(NamedTuple):
    """Some of the pairs of a batch, in their order, and the relations among them."""

    rows: Tensor  # (kept,): which pairs
    entries: Tensor  # (M, 2): the relations, of rows of the kept pairs
    pair_counts: tuple[int, ...]  # kept pairs of each image


def sample_pairs(entries: Tensor, pair_counts: Sequence[int], others: float) -> SampledPairs:
    """All related pairs of each image, and ``others`` times as many unrelated ones, drawn anew at every call.

    Neural Motifs draws pairs only where a batch has more than 256 for each image, and then at most a quarter of them
    related: with up to 16 objects it trains on all pairs, as we do without drawing.

    >>> chosen = sample_pairs(torch.tensor([[0, 4], [7, 1]]), [6, 6], others=3)
    >>> chosen.pair_counts, chosen.entries.tolist() in [[[0, 4], [at, 1]] for at in (4, 5)]
    ((4, 4), True)
    """
    device = entries.device
    counts = torch.tensor(pair_counts, device=device)
    total = int(counts.sum())
    image = torch.arange(len(counts), device=device).repeat_interleave(counts)
    related = torch.zeros(total, dtype=torch.bool, device=device)
    related[entries[:, 0]] = True
    wanted = (torch.bincount(image[related], minlength=len(counts)) * (1 + others)).ceil()
    drawn = torch.rand(total, dtype=torch.float64, device=device)
    drawn[related] -= 1  # before all others
    order = torch.argsort(image.double() * 4 + drawn)
    place = torch.arange(total, device=device) - (counts.cumsum(0) - counts)[image]
    kept = torch.zeros(total, dtype=torch.bool, device=device)
    kept[order[place < wanted[image]]] = True
    rows = kept.nonzero()[:, 0]
    new = kept.cumsum(0) - 1
    return SampledPairs(
        rows,
        torch.stack([new[entries[:, 0]], entries[:, 1]], 1),
        tuple(torch.bincount(image[rows], minlength=len(counts)).tolist()),
    )
