"""The frame that LML and the subset sums share, in PyTorch: a row split into its top k and the rest, and their balance.

    v_j = e^(high - s_j) <= 1 (top),   r_j = e^(s_j - low) <= 1 (rest),   gap = high - low,
    high = the k-th largest score, low = the next largest
    x = e^(delta - gap/2), w = e^(-delta - gap/2):   sum r x/(1 + r x) = sum v w/(1 + v w)

so many labels are expected to enter the top as to leave it. Every number is a ratio to the nearer pivot: offsets and
saturated rows cost no digits.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

_MINUS_INF = float("-inf")


class Split(NamedTuple):
    """Rows split into top and rest; ``top`` and ``rest`` keep the graph of the scores, the pivots are constants."""

    top: Tensor  # (..., width) scores of the top labels; -inf in the places of a row with smaller k
    rest: Tensor  # (..., n) scores, -inf for labels that are not in the rest
    high: Tensor  # (..., 1)
    low: Tensor  # (..., 1)
    spare: Tensor  # (..., 1) usable labels beyond k; below 0 the row's numbers are harmless and mean nothing


def most_finite(dtype: torch.dtype) -> float:
    """What +inf counts as: huge, and still a number after a subtraction."""
    return torch.finfo(dtype).max / 4


def split(scores: Tensor, k: int | Tensor) -> Split:
    """Split rows at their k-th largest score; k may be a tensor with one number per row."""
    n = scores.shape[-1]
    width = min(k, n) if isinstance(k, int) else n
    scores = torch.where(scores > most_finite(scores.dtype), most_finite(scores.dtype), scores)
    if isinstance(k, int):
        wanted = torch.full_like(scores[..., :1], k, dtype=torch.int64)
    else:
        wanted = k.unsqueeze(-1)
    spare = n - (scores == _MINUS_INF).sum(-1, keepdim=True) - wanted
    scores = torch.where(spare < 0, 0.0, scores)
    index = scores.detach().topk(width, dim=-1).indices
    in_top = torch.arange(width, device=scores.device) < wanted
    top = torch.where(in_top, scores.gather(-1, index), _MINUS_INF)
    is_top = torch.zeros_like(scores, dtype=torch.bool).scatter(-1, index, in_top.expand(index.shape))
    rest = scores.masked_fill(is_top, _MINUS_INF)
    high = torch.where(in_top, top.detach(), torch.inf).amin(-1, keepdim=True)
    low = rest.detach().amax(-1, keepdim=True)
    low = torch.where(low > _MINUS_INF, low, high)  # an empty rest: any pivot
    return Split(top, rest, high, low, spare)


def balance(r: Tensor, v: Tensor, gap: Tensor, steps: int) -> Tensor:
    """Solve for delta by Newton on log(sum rest) - log(sum top) inside its bracket; (..., 1), in the type of v."""
    half, tiny = gap / 2, torch.finfo(r.dtype).tiny
    low = -half - math.log(r.shape[-1])
    high = half + math.log(v.shape[-1])
    delta = start = torch.clamp(0.5 * (_sum(v, v) / _sum(r, v).clamp(min=tiny)).log(), low, high)
    for _ in range(steps):
        entering, leaving = r * (delta - half).exp().to(r.dtype), v * (-delta - half).exp()
        entering, leaving = entering / (1 + entering), leaving / (1 + leaving)
        mean_in, mean_out = _sum(entering, v).clamp(min=tiny), _sum(leaving, v).clamp(min=tiny)
        slope = 2 - _sum(entering * entering, v) / mean_in - _sum(leaving * leaving, v) / mean_out
        delta = torch.clamp(delta - (mean_in / mean_out).log() / slope, low, high)
    return torch.where(gap > 100, start, delta)  # so far apart that no denominator differs from 1


def _sum(x: Tensor, like: Tensor) -> Tensor:
    return x.sum(-1, keepdim=True, dtype=like.dtype)


def wide(x: Tensor) -> Tensor:
    """In float64 where the device has it."""
    return x.float() if x.device.type == "mps" else x.double()
