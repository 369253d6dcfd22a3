"""The LML projection by d-point bracketing (Amos et al. 2019, Algorithm 1 and Module 1).

``y = sigmoid(x + nu)`` with ``sum y = k``: sample d values of nu in the bracket at once, keep the pair around the root,
repeat. The d samples need a ``batch x d x n`` buffer, and the first bracket (the k-th and (k+1)-th largest score, give
or take 7) does not hold the root when very many labels tie. The paper takes d = 100 on a GPU and d = 10 on a CPU.
"""

from typing import Any

import torch
from torch import Tensor

SATURATION = 7.0  # the paper's Delta
TOLERANCE = 1e-6  # width of the bracket at which to stop
MOST_ROUNDS = 30  # where the spacing of floating-point numbers at nu is wider than TOLERANCE


class Bracketing(torch.autograd.Function):
    """The projection and its implicit derivative."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, k: int, points: int) -> Tensor:
        y = torch.sigmoid(x + _dual(x, k, points)[:, None])
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (y,) = ctx.saved_tensors
        inverse_h = y * (1 - y)  # 1 / (1/y + 1/(1-y))
        d_nu = (inverse_h * grad).sum(-1, keepdim=True) / inverse_h.sum(-1, keepdim=True)
        return inverse_h * (grad - d_nu), None, None


def lml_by_bracketing(x: Tensor, k: int, points: int = 100) -> Tensor:
    """Project each row of ``x`` onto the points of the unit cube that sum to k.

    >>> lml_by_bracketing(torch.tensor([[1.0, 0.0]]), 1)     # sigmoid of half the difference
    tensor([[0.6225, 0.3775]])
    """
    return Bracketing.apply(x, k, points)


def _dual(x: Tensor, k: int, points: int) -> Tensor:
    """The nu of every row."""
    largest = x.topk(k + 1, dim=-1).values
    low, high = -largest[:, k - 1] - SATURATION, -largest[:, k] + SATURATION
    grid = torch.linspace(0, 1, points, dtype=x.dtype, device=x.device)
    for _ in range(MOST_ROUNDS):
        if bool(((high - low) <= TOLERANCE).all()):
            break
        nu = torch.lerp(low[:, None], high[:, None], grid)  # (batch, d)
        g = torch.sigmoid(x[:, None, :] + nu[:, :, None]).sum(-1) - k
        below = ((g < 0).sum(-1, keepdim=True) - 1).clamp(0, points - 2)  # g increases with nu
        low, high = nu.gather(1, below)[:, 0], nu.gather(1, below + 1)[:, 0]
    return (low + high) / 2
