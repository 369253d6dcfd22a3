"""Coefficients of products of many (1 + x_j t): a balanced tree of truncated products, positive terms only."""

import torch
import torch.nn.functional as F
from torch import Tensor

_FEW = 8  # up to this degree coefficients are separate tensors: no copies, and no factor to take out


def product_coefficients(x: Tensor, degree: int) -> tuple[Tensor, Tensor]:
    """Coefficients 0..degree of prod_j (1 + x_j t) over the last dimension, x >= 0, and the log of a factor.

    The factor, taken out, keeps every coefficient in [0, 1] at any degree. It is a constant for autograd, whose
    derivatives of the coefficients are themselves sums of positive terms: exact, to any order.

    >>> c, log_scale = product_coefficients(torch.tensor([1.0, 2.0, 3.0]), 3)
    >>> (c * log_scale.exp().unsqueeze(-1)).round().tolist()
    [1.0, 6.0, 11.0, 6.0]
    """
    few: list[Tensor] = [torch.ones_like(x), x]  # polynomials along the last dimension, one tensor per coefficient
    while few[0].shape[-1] > 1 and (len(few) <= _FEW // 2 + 1 or degree <= _FEW):
        few = _multiply_few(*_halves(few), degree)
    p = torch.stack(few, dim=-1)
    log_scale = x.new_zeros(x.shape[:-1])
    while p.shape[-2] > 1:
        half = p.shape[-2] // 2
        odd = p[..., 2 * half :, :]  # the one left over, if any, waits for the next round
        p = _multiply_many(p[..., :half, :], p[..., half : 2 * half, :], degree)
        p = torch.cat((p, F.pad(odd, (0, p.shape[-1] - odd.shape[-1]))), dim=-2)
        most = p.detach().amax(-1, keepdim=True)
        p = p / most
        log_scale = log_scale + most.log().sum((-2, -1))
    p = p[..., 0, : degree + 1]
    return F.pad(p, (0, degree + 1 - p.shape[-1])), log_scale


def _halves(p: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """The first and the second half of the polynomials; of an odd number, the last is paired with the constant 1."""
    size = p[0].shape[-1]
    half = (size + 1) // 2
    if size % 2:
        p = [F.pad(c, (0, 1), value=float(i == 0)) for i, c in enumerate(p)]
    return [c[..., :half] for c in p], [c[..., half:] for c in p]


def _multiply_few(a: list[Tensor], b: list[Tensor], degree: int) -> list[Tensor]:
    """The products, coefficient by coefficient."""
    out = []
    for i in range(min(len(a) + len(b) - 1, degree + 1)):
        total = None
        for j in range(max(0, i - len(b) + 1), min(i, len(a) - 1) + 1):
            total = a[j] * b[i - j] if total is None else torch.addcmul(total, a[j], b[i - j])
        assert total is not None
        out.append(total)
    return out


def _multiply_many(a: Tensor, b: Tensor, degree: int) -> Tensor:
    """The same with the coefficients along the last dimension."""
    size = min(degree + 1, a.shape[-1] + b.shape[-1] - 1)
    out = F.pad(a[..., :1] * b[..., :size], (0, max(size - b.shape[-1], 0)))
    for i in range(1, min(a.shape[-1], size)):
        term = a[..., i : i + 1] * b[..., : size - i]
        out = out + F.pad(term, (i, size - i - term.shape[-1]))
    return out
