"""Sums over k-subsets with their gradient in few operations: the twin of the kernels where nothing is differentiated
twice.

In the frame of `_frame`, with x_j = r_j e^-gap / c of the rest and u_j = v_j c of the top, a sum over subsets is one
coefficient of a product, and a coefficient is the mean of the product over points t of the unit circle:

    S_d = sum_i V_(i+d) R_i = mean over t of  prod_rest (1 + x_j t)  prod_top (1 + u_j / t)  t^d

The tilt c makes t = 1 the saddle point: S_d is no small part of what is added up, and no digit is lost. Some tens of
points are exact: beyond them the coefficients that a mean over so many points adds are below the rounding. Slopes are
means over the same points,

    d log S_d / d x_j = mean over t of  E_d(t) t / (1 + x_j t),   E_d the share of t in S_d

Of a row's labels, only the few largest of the rest are looked at point by point. The others have x_j <= 1/7 or 1/3 (at
most k enter): their logarithms and slopes are series in x_j, a few sums and a polynomial for all points.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from shortlist.functional._frame import wide

_STEPS = 3  # of Newton's method towards the saddle point


class Swapped(NamedTuple):
    """Of each row: log S_0 and log S_1 less the top's own scores, and the slopes of sum_d signs_d log S_d by the scores
    (by the scores times ``scale``), as large as the scores are."""

    log_sums: tuple[Tensor, Tensor]
    slopes: Tensor
    high: Tensor  # (rows,) the k-th largest score
    top: Tensor  # (rows,) the sum of the k largest


def points(k: int, digits: float) -> int:
    """How many points leave less than ``digits`` of a number of entering labels with a mean of up to k: by Chernoff."""
    mean, count = 1.2 * k + 1, k + 8
    while count * (1 + math.log(mean / count)) - mean > math.log(digits):
        count += 2
    return count + count % 2


def swap_sums(scores: Tensor, k: int, scale: float, signs: tuple[float, float]) -> Swapped:
    """Of rows (rows, n) with at least k scores above -inf and none at +inf; their memory is used up."""
    n, double = scores.shape[-1], scores.dtype == torch.float64
    if k == 1:  # softmax
        high = scores.amax(-1, keepdim=True)
        p = scores.sub_(high).mul_(scale).exp_()
        total = p.sum(-1, keepdim=True)
        log_sum, top = wide(total.squeeze(-1)).log(), high.squeeze(-1)
        return Swapped((log_sum, torch.zeros_like(log_sum)), p.mul_(signs[0] / total), top, wide(top))
    times_k, single, doubled = (8, 9, 18) if k <= 8 else (4, 16, 34)  # labels that are looked at, terms of the series
    near = min(n, k + times_k * k + 1)
    best, index = scores.topk(near, dim=-1)
    high = best[:, k - 1 : k]
    low = best[:, k : k + 1] if n > k else high
    low = torch.where(low > float("-inf"), low, high)
    gap = wide(high - low) * scale
    x = scores.sub_(low).mul_(scale).exp_().scatter_(-1, index, 0.0)  # of the far ones alone
    log_u, log_x = wide((high - best[:, :k]) * scale), wide((best[:, k:] - low) * scale) - gap
    log_tilt = _tilt(log_u, log_x, x, gap)
    looked_at = torch.cat((log_u + log_tilt, log_x - log_tilt), dim=-1).exp_()
    x.mul_((-gap - log_tilt).exp_().to(x.dtype))

    count = points(k, 1e-17 if double else 1e-10)
    angle = torch.arange(count // 2 + 1, dtype=gap.dtype, device=gap.device) * (2 * math.pi / count)
    t = torch.polar(torch.ones_like(angle), angle)  # the other half of the circle is conjugate
    times = torch.full_like(angle, 2.0 / count)
    times[:: count // 2] = 1.0 / count  # the first and the last are their own conjugates
    terms = (doubled if double else single) if near < n else 0
    step = -(-256 // near)  # points at a time: about as many numbers as the scores have
    log_product = torch.cat([_log_product(looked_at, at, k) for at in t.split(step)], dim=-1)
    if terms:
        sums, power = [x.sum(-1)], x.clone()
        for _ in range(1, terms):
            sums.append(power.mul_(x).sum(-1))
        del power
        degrees = torch.arange(1, terms + 1, dtype=gap.dtype, device=gap.device).unsqueeze(-1)
        table = torch.polar(1 / degrees.expand(terms, len(t)), (angle + math.pi) * degrees)  # (-t)^i / i
        log_product = log_product - wide(torch.stack(sums, -1)).to(t.dtype) @ table
    at_one = log_product[:, :1].real
    product = (log_product - at_one).exp_() * times
    parts = [(product * t**d).real.sum(-1, keepdim=True) for d in (0, 1)]
    log_sums = [(part.log() + at_one - d * log_tilt).squeeze(-1) for d, part in enumerate(parts)]

    share = product * (signs[0] / parts[0] + (signs[1] / parts[1]) * t)
    entering, leaving = _slopes(looked_at, share, t, step)
    exact = torch.cat((sum(signs) - leaving[:, :k], entering[:, k:]), dim=-1).to(x.dtype)
    slopes = x
    if terms:  # by Horner's rule
        series = ((share @ table.T).real * -degrees.T).to(x.dtype)
        slopes = x * series[:, -1:]
        for degree in range(terms - 2, -1, -1):
            slopes.add_(series[:, degree : degree + 1]).mul_(x)
    own = high.squeeze(-1), wide(best[:, :k]).sum(-1)
    return Swapped((log_sums[0], log_sums[1]), slopes.scatter_(-1, index, exact), *own)


def _tilt(log_u: Tensor, log_x: Tensor, far: Tensor, gap: Tensor) -> Tensor:
    """log c where half a label more is expected to leave than to enter: between the saddle points of S_0 and S_1. The
    far labels enter by their first two moments. Nothing depends on its last digits."""
    first = wide(far.sum(-1, keepdim=True))
    spread = wide(torch.linalg.vecdot(far, far, dim=-1).unsqueeze(-1)) / first.clamp(min=1e-300)
    log_tilt = -log_u.exp().sum(-1, keepdim=True).log_()
    for _ in range(_STEPS):
        leaving, entering = (log_u + log_tilt).sigmoid_(), (log_x - log_tilt).sigmoid_()
        share = (-gap - log_tilt).exp_()
        out, near = leaving.sum(-1, keepdim=True), entering.sum(-1, keepdim=True)
        into = near + first * share / (1 + spread * share) + 0.5
        steady = leaving.square_().sum(-1, keepdim=True) / out + (entering.square_().sum(-1, keepdim=True) + 0.5) / into
        log_tilt = log_tilt + ((into / out).log_() / (2 - steady)).clamp_(-8, 8)
    return log_tilt


def _log_product(looked_at: Tensor, t: Tensor, k: int) -> Tensor:
    """The logarithm of both products at these points, (rows, points): the k of the top have the conjugate point."""
    logs = (looked_at.unsqueeze(-1) * t).add_(1).log_()
    return logs[:, :k].sum(-2).conj() + logs[:, k:].sum(-2)


def _slopes(looked_at: Tensor, share: Tensor, t: Tensor, step: int) -> Tensor:
    """y times the mean of share t / (1 + y t) for each y, and the same at the conjugate points: (2, rows, labels)."""
    both = torch.stack((share, share.conj()), dim=-1) * t.unsqueeze(-1)
    total: Tensor | float = 0.0
    for at, part in zip(t.split(step), both.split(step, dim=-2), strict=True):
        total = total + ((looked_at.unsqueeze(-1) * at).add_(1).reciprocal_() @ part).real
    return torch.as_tensor(total).movedim(-1, 0) * looked_at
