"""The first k labels of every row, in one order on every device: by score, equal scores by label number."""

import torch
from torch import Tensor


def top_labels(scores: Tensor, k: int, unknown: Tensor | None = None) -> Tensor:
    """Labels (n, k), best first; of equal scores the lower label comes first, and unknown labels come last.

    ``torch.topk`` leaves the order of ties open, so its answer is put in order, and the rare rows where a tie crosses
    the k-th place are sorted in full.
    """
    best = min(k + 1, scores.shape[1])
    if unknown is None:
        keys, down = scores, True  # as they are: a copy of very many scores takes longer than to find the best
    else:
        keys, down = (-scores).masked_fill_(unknown, float("nan")), False  # after everything, -inf scores included
    values, labels = keys.topk(best, dim=-1, largest=down)
    if best > k:
        crossed = (values[:, k - 1] == values[:, k]).nonzero()[:, 0]
        labels = labels[:, :k]
        if len(crossed):
            labels[crossed] = torch.sort(keys[crossed], dim=-1, stable=True, descending=down).indices[:, :k]
    labels = labels.sort(dim=-1).values
    order = torch.sort(keys.gather(1, labels), dim=-1, stable=True, descending=down).indices
    return labels.gather(1, order)
