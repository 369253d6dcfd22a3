"""Coefficients of products of many (1 + x_j t): a balanced tree of truncated products, positive terms only."""

import torch
import torch.nn.functional as F
from torch import Tensor


def _multiply(a: Tensor, b: Tensor, degree: int) -> Tensor:
    """Coefficients 0..degree of the product of polynomials along the last dimension."""
    size = min(degree + 1, a.shape[-1] + b.shape[-1] - 1)
    if a.shape[-1] <= 9:  # one gather and one sum of products
        padded = F.pad(b, (a.shape[-1] - 1, max(size - b.shape[-1], 0)))
        shift = torch.arange(size, device=a.device)[:, None] - torch.arange(a.shape[-1], device=a.device)
        return (padded[..., shift + a.shape[-1] - 1] * a.unsqueeze(-2)).sum(-1)
    out = F.pad(a[..., :1] * b, (0, size - b.shape[-1])) if size >= b.shape[-1] else a[..., :1] * b[..., :size]
    for i in range(1, min(a.shape[-1], size)):
        term = a[..., i : i + 1] * b[..., : size - i]
        out = out + F.pad(term, (i, size - i - term.shape[-1]))
    return out


def product_coefficients(x: Tensor, degree: int) -> tuple[Tensor, Tensor]:
    """Coefficients 0..degree of prod_j (1 + x_j t) over the last dimension, x >= 0, and the log of a factor.

    The factor, taken out, keeps every coefficient in [0, 1] at any degree. It is a constant for autograd, whose
    derivatives of the coefficients are themselves sums of positive terms: exact, to any order.

    >>> c, log_scale = product_coefficients(torch.tensor([1.0, 2.0, 3.0]), 3)
    >>> (c * log_scale.exp().unsqueeze(-1)).round().tolist()
    [1.0, 6.0, 11.0, 6.0]
    """
    log_scale = x.new_zeros(x.shape[:-1])
    p = torch.stack((torch.ones_like(x), x), dim=-1)
    while p.shape[-2] > 1:
        if p.shape[-2] % 2:
            one = (torch.arange(p.shape[-1], device=x.device) == 0).to(p.dtype)
            p = torch.cat((p, one.expand_as(p[..., :1, :])), dim=-2)
        p = _multiply(p[..., 0::2, :], p[..., 1::2, :], degree)
        most = p.detach().amax(-1, keepdim=True)
        p = p / most
        log_scale = log_scale + most.log().sum((-2, -1))
    p = p[..., 0, : degree + 1]
    return F.pad(p, (0, degree + 1 - p.shape[-1])), log_scale
