"""TorchCP's conformal sets, as plain torch code of its formulas: TorchCP itself does not install beside a CPU torch.

The score of every label of every row, the quantile of the true labels' scores, and the labels whose score is at most
that. Ranks are undone by one scatter, where TorchCP sorts a second time.
"""

import math

import torch
from torch import Tensor


def formula_sets(score: str, scores: Tensor, target: Tensor, new: Tensor, alpha: float) -> Tensor:
    """Membership (rows, labels) of the sets of new rows, calibrated on the others; aps, raps, saps are randomised."""
    true = _of_all(score, scores.softmax(-1)).gather(1, target[:, None])[:, 0]
    rank = math.ceil((len(true) + 1) * (1 - alpha))
    limit = true.sort().values[rank - 1] if rank <= len(true) else torch.tensor(math.inf)
    return _of_all(score, new.softmax(-1)) <= limit


def _of_all(score: str, p: Tensor) -> Tensor:
    if score == "lac":
        return 1 - p
    if score == "margin":
        best, label = p.topk(2, dim=-1)
        others = best[:, :1].expand_as(p).scatter(1, label[:, :1], best[:, 1:])
        return others - p
    ordered, label = p.sort(dim=-1, descending=True)
    rank = torch.arange(1, p.shape[1] + 1)
    if score == "top-k":
        found = rank.to(p.dtype).expand_as(p)
    elif score == "saps":
        u = torch.rand(len(p), 1)
        found = ordered[:, :1] + (rank - 2 + u) * 0.2
        found[:, :1] = u * ordered[:, :1]
    else:
        found = ordered.cumsum(-1) - ordered * torch.rand(len(p), 1)
        if score == "raps":
            found = found + 0.01 * (rank - 5).clamp(min=0)
    return torch.empty_like(p).scatter_(1, label, found)
