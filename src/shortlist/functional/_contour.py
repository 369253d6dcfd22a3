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
from collections.abc import Iterator
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


class _Circle(NamedTuple):
    """Rows as products over points of the circle."""

    labels: Tensor  # (rows, near) the labels of the largest scores, int32
    looked_at: Tensor  # and u_j of the first k, x_j of the others
    x: Tensor  # (rows, n) of the far labels, 0 for those that are looked at
    t: Tensor  # (points,) half of the circle: the other half is conjugate
    powers: Tensor  # (terms, points) (-t)^i / i
    log_scale: Tensor  # (rows, 1) what was taken out of the product
    log_tilt: Tensor
    high: Tensor  # (rows,) the k-th largest score
    top: Tensor  # (rows,) the sum of the k largest

    def blocks(self) -> Iterator[tuple[slice, Tensor]]:
        """Some points at a time: 1 / (1 + y t) of what is looked at, (rows, near, 2 points) real."""
        step = _points_at_once(self.looked_at)
        for start in range(0, len(self.t), step):
            at = slice(start, start + step)  # no name for what is given away: its memory is the next one's
            yield (
                slice(2 * start, 2 * (start + step)),
                torch.view_as_real((self.looked_at.unsqueeze(-1) * self.t[at]).add_(1).reciprocal_()).flatten(-2),
            )

    def degrees(self) -> Tensor:
        return torch.arange(1, len(self.powers) + 1, dtype=self.log_tilt.dtype, device=self.x.device)

    def series(self, share: Tensor) -> Tensor:
        """The coefficients of the far labels' slopes: (rows, terms)."""
        return (share @ self.powers.T).real.mul_(-self.degrees())

    def levers(self, share: Tensor) -> tuple[Tensor, Tensor]:
        """What the real parts in `blocks` are multiplied with for the real part of the sum over points of share t / (1
        + y t): for the labels that enter, and for those that leave, whose points are conjugate. (rows, 2 points, 1)."""
        both = (share * self.t).conj(), share * self.t.conj()
        entering, leaving = (torch.view_as_real(one.resolve_conj()).flatten(-2).unsqueeze(-1) for one in both)
        return entering, leaving


def _circle(scores: Tensor, k: int, scale: float) -> tuple[_Circle, Tensor]:
    """Of rows (rows, n) with at least k scores above -inf and none at +inf, whose memory is used up; and the product,
    (rows, points), as its share in a mean over the circle."""
    n, double = scores.shape[-1], scores.dtype == torch.float64
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
    del log_u, log_x
    x.mul_((-gap - log_tilt).exp_().to(x.dtype))
    own, index = (high.squeeze(-1).clone(), wide(best[:, :k]).sum(-1)), index.int()
    del best, high, low

    count = points(k, 1e-17 if double else 1e-10)
    # between the roots of unity: -1, where a factor 1 + y t may vanish, is none of them
    angle = (torch.arange(count // 2, dtype=gap.dtype, device=gap.device) + 0.5) * (2 * math.pi / count)
    t = torch.polar(torch.ones_like(angle), angle)
    terms = (doubled if double else single) if near < n else 0
    degrees = torch.arange(1, terms + 1, dtype=gap.dtype, device=gap.device).unsqueeze(-1)
    powers = torch.polar(1 / degrees.expand(terms, len(t)), (angle + math.pi) * degrees)
    product, log_scale = _products(looked_at, t, k)
    product.mul_(2 / count)
    if terms:
        far = (_power_sums(x.clone(), x, terms).to(t.dtype) @ powers).neg_()
        largest = far[:, :1].real.clone()
        product.mul_(far.sub_(largest).exp_())
        log_scale.add_(largest)
    return _Circle(index, looked_at, x, t, powers, log_scale, log_tilt, *own), product


def _power_sums(power: Tensor, x: Tensor, terms: int) -> Tensor:
    """The sums over labels of power x^i, i = 0 .. terms - 1: (rows, terms). Uses up the memory of ``power``."""
    sums = [power.sum(-1)]
    for _ in range(1, terms):
        sums.append(power.mul_(x).sum(-1))
    return wide(torch.stack(sums, -1))


def swap_sums(scores: Tensor, k: int, scale: float, signs: tuple[float, float]) -> Swapped:
    """Of rows (rows, n) with at least k scores above -inf and none at +inf; their memory is used up."""
    if k == 1:  # softmax
        high = scores.amax(-1, keepdim=True)
        p = scores.sub_(high).mul_(scale).exp_()
        total = p.sum(-1, keepdim=True)
        log_sum, top = wide(total.squeeze(-1)).log(), high.squeeze(-1)
        return Swapped((log_sum, torch.zeros_like(log_sum)), p.mul_(signs[0] / total), top, wide(top))
    circle, share = _circle(scores, k, scale)
    sums = share.real.sum(-1, keepdim=True), (share * circle.t).real.sum(-1, keepdim=True)
    log_sum = (sums[0].log() + circle.log_scale).squeeze(-1)
    log_smaller = (sums[1].log() + circle.log_scale - circle.log_tilt).squeeze(-1)
    share.mul_(signs[0] / sums[0] + (signs[1] / sums[1]) * circle.t)
    series, (entering, leaving) = circle.series(share), circle.levers(share)
    del share
    into, out = _zeros(circle.looked_at[:, k:]), _zeros(circle.looked_at[:, :k])
    for at, part in circle.blocks():
        into.baddbmm_(part[:, k:], entering[:, at])
        out.baddbmm_(part[:, :k], leaving[:, at])
        del part
    del entering, leaving
    exact = torch.cat((out.neg_(), into), dim=-2).squeeze(-1).mul_(circle.looked_at)
    exact[:, :k] += sum(signs)
    x, labels, high, top = circle.x, circle.labels, circle.high, circle.top
    del circle, into, out
    slopes = _series(x, series).scatter_(-1, labels.long(), exact.to(x.dtype))
    return Swapped((log_sum, log_smaller), slopes, high, top)


def marginal_slopes(scores: Tensor, k: int, direction: Tensor) -> Tensor:
    """How the slopes of log S_0 by the scores change when the scores move in this direction; otherwise as above.

    With y_j(t) = x_j t / (1 + x_j t), the chance p_j = mean E y_j changes by mean E ((D - mean E D) y_j + d_j y_j (1 -
    y_j)), where D(t) = sum_j d_j y_j(t) is how fast the share E(t) grows; a label of the top leaves where others enter.
    """
    if k == 1:
        p = scores.softmax(-1)
        flow = p * direction
        return flow.addcmul_(p, flow.sum(-1, keepdim=True), value=-1)
    circle, share = _circle(scores, k, 1.0)
    x, t, terms, labels = circle.x, circle.t, len(circle.powers), circle.labels.long()
    share /= share.real.sum(-1, keepdim=True)
    moved = wide(direction.gather(-1, labels)).mul_(circle.looked_at)
    moves, found = moved.unsqueeze(-2), []
    for _, part in circle.blocks():
        found.append((moves[..., k:] @ part[:, k:], moves[..., :k] @ part[:, :k]))
        del part
    enter, leave = (torch.cat(parts, dim=-1).unflatten(-1, (-1, 2)).squeeze(1) for parts in zip(*found, strict=True))
    grows = torch.view_as_complex(enter.contiguous()) * t - (torch.view_as_complex(leave.contiguous()) * t).conj()
    del found, enter, leave
    if terms:
        grows = grows - (_power_sums(direction * x, x, terms) * circle.degrees()).to(t.dtype) @ circle.powers
    pull = share * (grows - (share * grows).real.sum(-1, keepdim=True))
    levers = *circle.levers(pull), *circle.levers(share)
    series = circle.series(pull), circle.series(share) * circle.degrees()
    del grows, pull, share
    into, out, own_into, own_out = (_zeros(circle.looked_at[:, at]) for at in 2 * (slice(k, None), slice(k)))
    for at, part in circle.blocks():
        into.baddbmm_(part[:, k:], levers[0][:, at])
        out.baddbmm_(part[:, :k], levers[1][:, at])
        square = torch.view_as_complex(part.unflatten(-1, (-1, 2)))
        square.square_()
        own_into.baddbmm_(part[:, k:], levers[2][:, at])
        own_out.baddbmm_(part[:, :k], levers[3][:, at])
        del part, square
    exact = torch.cat((out.neg_(), into), dim=-2).squeeze(-1).mul_(circle.looked_at)
    exact.addcmul_(torch.cat((own_out, own_into), dim=-2).squeeze(-1), moved)
    del levers, into, out, own_into, own_out
    return _series(x, *series, direction).scatter_(-1, labels, exact.to(x.dtype))


def _zeros(looked_at: Tensor) -> Tensor:
    return torch.zeros_like(looked_at).unsqueeze(-1)


def _points_at_once(looked_at: Tensor) -> int:
    """Not more numbers than rows of a thousand scores have."""
    return -(-150 // looked_at.shape[-1])


def _series(x: Tensor, first: Tensor, second: Tensor | None = None, times: Tensor | None = None) -> Tensor:
    """sum_i (first_i + second_i times) x^(i+1) by Horner's rule, as large as x is."""
    total, first = torch.zeros_like(x), first.to(x.dtype)
    second = None if second is None else second.to(x.dtype)
    for degree in range(first.shape[-1] - 1, -1, -1):
        torch.addcmul(first[:, degree : degree + 1], total, x, out=total)
        if second is not None and times is not None:
            total.addcmul_(times, second[:, degree : degree + 1])
    return total.mul_(x)


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


def _products(looked_at: Tensor, t: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Both products at these points, (rows, points), and the logarithm of what was taken out of them: the k of the top
    have the conjugate point. A factor is 1 + y t over 1 + y, the most that it is: t + (1 - t) / (1 + y)."""
    over, parts = (looked_at + 1).reciprocal_(), []
    some = _points_at_once(looked_at)
    for at, beside in zip(t.split(some), (1 - t).split(some), strict=True):
        factors = (over.unsqueeze(-1) * beside).add_(at)
        parts.append(factors[:, :k].prod(-2).conj() * factors[:, k:].prod(-2))
        del factors
    return torch.cat(parts, dim=-1), over.log_().sum(-1, keepdim=True).neg_()
