"""Sums over k-subsets of labels: log sigma_k(e^s) and the chance of each label to be in the subset.

A k-subset is the top set with i of its members swapped for i of the rest, so the sum is an inner product of the
coefficients of two polynomials with positive coefficients only: no logarithm inside, no cancellation (see the
mathematics page of the documentation).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from shortlist.checks import apply_mask, check_k, check_scores, compute_type, in_compute_type, values_visible
from shortlist.errors import ShortlistError
from shortlist.functional._contour import marginal_slopes, swap_sums
from shortlist.functional._frame import Split, balance, huge, split, wide
from shortlist.functional._native import Native, can_be_lean
from shortlist.functional._polynomials import product_coefficients
from shortlist.kernels import native_serves, ops, triton_serves

_CHUNK = 1 << 17  # labels differentiated twice at a time


class Swap(NamedTuple):
    """Both polynomials of a row: S_d = sum_i V_{i+d} R_i, each up to the factor e^log_scale; the tilt is e^log_tilt."""

    V: Tensor
    R: Tensor
    log_scale: Tensor
    log_tilt: Tensor

    def log_sum(self, smaller: int = 0) -> Tensor:
        """log S_0 (subsets of size k), or log S_1 (of size k - 1), without the top's own scores."""
        degree = self.V.shape[-1] - 1
        total = (self.V[..., smaller:] * self.R[..., : degree + 1 - smaller]).sum(-1)
        return total.log() + self.log_scale - smaller * self.log_tilt


def swap(parts: Split, k: int, scale: float = 1.0) -> Swap:
    """The swap polynomials of rows split at their k-th largest score, for scores multiplied by ``scale``."""
    v = wide((parts.high - parts.top) * scale).exp()
    r = ((parts.rest - parts.low) * scale).exp()
    with torch.no_grad():
        gap = wide(parts.high - parts.low) * scale
        delta = balance(r, v, gap, steps=2)  # close enough
        log_tilt = (-delta - gap / 2).clamp(-60, 60)  # any tilt is exact; this one stays in range
    V, log_v = product_coefficients(v * log_tilt.exp(), k)
    R, log_r = product_coefficients(r * (-gap - log_tilt).exp().to(r.dtype), k)
    return Swap(V, wide(R), log_v + wide(log_r), log_tilt.squeeze(-1))


def _sums_and_marginals(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """log sigma_k of each row, in float64, and its marginals: by the kernel, or as the twins have it."""
    if native_serves(scores) or triton_serves("subset_sums", scores, k):
        return ops.subset_sums(scores, k, True)
    held, dead, certain, is_nan = _held(scores, k)
    sums = swap_sums(held, k, 1.0, (1.0, 0.0))
    del held
    log_sum = (sums.top + sums.log_sums[0]).masked_fill_(dead, float("-inf")).masked_fill_(is_nan, torch.nan)
    marginals = sums.slopes.masked_fill_(certain, 0.0).masked_fill_((scores > float("-inf")) & certain, 1.0)
    return log_sum, marginals.masked_fill_(is_nan.unsqueeze(-1), torch.nan)


def _held(scores: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Scores that `swap_sums` takes; which rows have fewer than k usable labels, nothing to choose, a NaN."""
    usable = (scores > float("-inf")).sum(-1)
    dead, is_nan = usable < k, scores.isnan().any(-1)
    held = scores.masked_fill(dead.unsqueeze(-1), 0.0).clamp_(max=huge(scores))
    return held, dead, (usable <= k).unsqueeze(-1), is_nan


@dataclass(eq=False, slots=True)
class _LogSubsetSum(Native):
    """log sigma_k of each row, in float64; the kernel computes the marginals, its gradient, with it."""

    k: int
    operator: ClassVar[str] = "subset_sums"
    gives_away: ClassVar[bool] = True
    lean: ClassVar[bool] = True

    def options(self) -> tuple[Any, ...]:
        return (self.k,)

    def forward(self, scores: Tensor) -> tuple[Tensor, ...]:
        log_sum, marginals = _sums_and_marginals(scores, self.k)
        return log_sum, marginals, log_sum == float("-inf")

    def backward(self, upstream: Tensor, kept: tuple[Any, ...], in_place: bool, *_: Tensor) -> tuple[Tensor]:
        marginals, dead = kept  # a row without a subset of this size has nothing to learn
        upstream = torch.where(dead, 0.0, upstream).to(marginals.dtype).unsqueeze(-1)
        return (marginals.mul_(upstream) if in_place else marginals * upstream,)

    def formula(self, upstream: Tensor, scores: Tensor) -> tuple[Tensor]:
        kept = _Marginals(self.k)(in_compute_type(scores)), self.forward(scores)[-1]
        return _LogSubsetSum.backward(self, upstream, kept, False)

    def twin(self, scores: Tensor) -> Tensor:
        """-inf for rows with fewer than k usable labels."""
        parts = split(scores, self.k)
        out = wide(parts.top).sum(-1) + swap(parts, self.k).log_sum()
        out = torch.where(parts.spare.squeeze(-1) < 0, float("-inf"), out)
        return torch.where(scores.isnan().any(-1), torch.nan, out)


class _Again(_LogSubsetSum):
    """The same of float16 scores, which have no room for small marginals: backward computes them, times `upstream`."""

    __slots__ = ()
    gives_away: ClassVar[bool] = False

    def forward(self, scores: Tensor) -> tuple[Tensor, ...]:
        log_sum, _ = ops.subset_sums(scores, self.k, False)
        return log_sum, log_sum == float("-inf")

    def backward(self, upstream: Tensor, kept: tuple[Any, ...], in_place: bool, *tensors: Tensor) -> tuple[Tensor]:
        return (ops.subset_gradient(tensors[0], torch.where(kept[0], 0.0, upstream).float(), self.k),)


@dataclass(eq=False, slots=True)
class _Marginals(Native):
    k: int
    operator: ClassVar[str] = "subset_sums"
    lean: ClassVar[bool] = True

    def options(self) -> tuple[Any, ...]:
        return (self.k,)

    def forward(self, scores: Tensor) -> tuple[Tensor, ...]:
        return (_sums_and_marginals(scores, self.k)[1],)

    def backward(self, upstream: Tensor, kept: tuple[Any, ...], in_place: bool, scores: Tensor) -> tuple[Tensor]:
        by_native = self.k <= ops.SLOPE_DEGREE and native_serves(scores)
        if by_native or triton_serves("subset_slopes", scores, self.k):
            return (ops.subset_slopes(scores, upstream, self.k),)
        if not can_be_lean(scores, True):
            return self.formula(upstream, scores)
        held, _, certain, is_nan = _held(in_compute_type(scores), self.k)
        slopes = marginal_slopes(held, self.k, upstream.to(held.dtype))
        slopes.masked_fill_(certain, 0.0).masked_fill_(is_nan.unsqueeze(-1), torch.nan)
        return (slopes.to(scores.dtype),)

    def formula(self, upstream: Tensor, scores: Tensor) -> tuple[Tensor]:
        def pull(s: Tensor, u: Tensor) -> Tensor:
            twice = torch.func.vjp(lambda x: self.twin(in_compute_type(x)), s)
            return twice[1](u.to(compute_type(s.dtype)))[0]

        if not values_visible(scores, upstream) or scores.shape[0] == 0:
            return (pull(scores, upstream),)
        rows = max(1, _CHUNK // scores.shape[1])  # a few rows at a time: the tree keeps many times their memory
        pieces = zip(scores.split(rows), upstream.split(rows), strict=True)
        return (torch.cat([pull(s, u) for s, u in pieces]),)

    def twin(self, scores: Tensor) -> Tensor:
        """The gradient of the log sum; 1 for every usable label of a row that has fewer than k of them."""
        results: Any = torch.func.vjp(_LogSubsetSum(self.k).twin, scores)
        log_sum, pull = results
        marginals = pull(torch.ones_like(log_sum))[0].masked_fill(log_sum.isnan().unsqueeze(-1), torch.nan)
        certain = (scores > float("-inf")).to(scores.dtype)
        return torch.where((log_sum == float("-inf")).unsqueeze(-1), certain, marginals.to(scores.dtype))


def log_subset_sum(scores: Tensor, k: int, *, mask: Tensor | None = None) -> Tensor:
    """log of the sum over all k-subsets of labels of e^(sum of the subset's scores); shape of the rows.

    Formula:
        log sigma_k(e^s) = log sum_{|S| = k} exp(sum_{j in S} s_j)

    Its gradient is `subset_marginals`. Exact for any k, temperature and offset. A row with fewer than k usable
    labels (mask, -inf) has no k-subset: -inf, with a zero gradient.

    Reference:
        Berrada, Zisserman, Kumar, "Smooth Loss Functions for Deep Top-k Classification", ICLR 2018, section 4.

    Example:
        >>> log_subset_sum(torch.log(torch.tensor([1.0, 2.0, 3.0])), k=2).exp()  # 1*2 + 1*3 + 2*3
        tensor(11.0000)
    """
    flat, k = _rows(scores, k, mask)
    made = _Again if flat.dtype == torch.float16 and triton_serves("subset_sums", flat, k) else _LogSubsetSum
    return made(k)(flat).to(scores.dtype).reshape(scores.shape[:-1])


def subset_marginals(scores: Tensor, k: int, *, mask: Tensor | None = None) -> Tensor:
    """The chance of each label to be in a k-subset drawn with probability proportional to e^(sum of its scores).

    Formula:
        p_j = d log sigma_k(e^s) / d s_j,   sum_j p_j = k

    Softmax at k = 1. Where a row has no more than k usable labels (mask, -inf), each of them is certainly in: 1.

    Reference:
        Berrada, Zisserman, Kumar, "Smooth Loss Functions for Deep Top-k Classification", ICLR 2018, appendix C.

    Example:
        >>> subset_marginals(torch.log(torch.tensor([1.0, 2.0, 3.0])), k=2)  # (2+3)/11, (2+6)/11, (3+6)/11
        tensor([0.4545, 0.7273, 0.8182])
    """
    flat, k = _rows(scores, k, mask)
    return _Marginals(k)(flat).to(scores.dtype).reshape(scores.shape)


def multi_crop_probabilities(crop_scores: Tensor, k: int) -> Tensor:
    """Top-k prediction from several crops of one image: subset marginals averaged over the crops.

    Softmax says how likely a label is to be *first*; for a top-k answer, average how likely it is to be *among the k*.
    ``crop_scores`` is (..., crops, L); the result (..., L) sums to k, and its k largest entries are the prediction.

    Reference:
        Berrada, Zisserman, Kumar, "Smooth Loss Functions for Deep Top-k Classification", ICLR 2018, appendix C.

    Example:
        >>> crops = torch.tensor([[4.0, 1.0, 0.0], [0.0, 3.0, 1.0]])
        >>> multi_crop_probabilities(crops, k=2).topk(2).indices
        tensor([1, 0])
    """
    check_scores(crop_scores, "crop_scores")
    if crop_scores.ndim < 2 or crop_scores.shape[-2] == 0:
        raise ShortlistError(f"crop_scores must have shape (..., crops, labels), got {tuple(crop_scores.shape)}")
    return subset_marginals(crop_scores, k).mean(-2)


def _rows(scores: Tensor, k: int, mask: Tensor | None) -> tuple[Tensor, int]:
    check_scores(scores)
    k = check_k(k, scores.shape[-1], "the number of labels")
    scores = apply_mask(scores, mask)
    return scores.reshape(-1, scores.shape[-1]), k
