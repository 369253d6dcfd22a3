"""The custom backward of the smooth top-k paper (Berrada et al. 2018, Algorithm 2 and B.2.2).

``delta_j = d sigma_j / d e_i`` obeys ``delta_j = sigma_(j-1) - e_i delta_(j-1)``. Its positive and negative parts are
accumulated apart, in log space. Where they nearly cancel (e_i among the largest), the recursion is replaced by the
paper's p-th order approximation ``sum_(q=0..p) (-1)^q sigma_(j+q) / e_i^(q+1)``, p about 0.2 k, whose error is not
controlled. (The paper's equation 60 prints e_i^q; its own equation 62 gives e_i^(q+1).)
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Algorithm = Callable[[Tensor, int], Tensor]  # (log_e, degree) -> log sigma_0..degree

# the relative difference of the two parts under which the paper calls an entry unstable (its epsilon, B.2.2)
UNSTABLE = 1e-5


class LogSums(torch.autograd.Function):
    """``(log sigma_(k-1), log sigma_k)`` of ``exp(log_e)`` by any algorithm, with the paper's gradient."""

    @staticmethod
    def forward(ctx: Any, log_e: Tensor, k: int, algorithm: Algorithm) -> tuple[Tensor, Tensor]:
        ctx.k, ctx.order = k, max(1, round(0.2 * k))
        # more coefficients than asked for: the approximation needs sigma_(k+p), where the row has that many
        sums = algorithm(log_e, min(k + ctx.order, log_e.shape[-1]))
        ctx.save_for_backward(log_e, sums)
        return sums[k - 1].clone(), sums[k].clone()

    @staticmethod
    def backward(ctx: Any, grad_below: Tensor, grad_at: Tensor) -> tuple[Tensor, None, None]:
        log_e, sums = ctx.saved_tensors
        below, at = marginals(log_e, sums, ctx.k, ctx.order)
        return grad_below[:, None] * below + grad_at[:, None] * at, None, None


def marginals(log_e: Tensor, sums: Tensor, k: int, order: int) -> tuple[Tensor, Tensor]:
    """Return ``d log sigma_(k-1) / d log_e`` and ``d log sigma_k / d log_e``, each ``(batch, n)``."""
    positive = sums[0][:, None].expand_as(log_e)  # delta_1 = 1
    negative = torch.full_like(log_e, -torch.inf)
    below = torch.zeros_like(log_e)  # sigma_0 = 1 has no gradient
    for j in range(1, k + 1):
        if j > 1:
            positive, negative = torch.logaddexp(sums[j - 1][:, None], log_e + negative), log_e + positive
        if j == k - 1:
            below = _marginal(log_e, sums, j, order, positive, negative)
    return below, _marginal(log_e, sums, k, order, positive, negative)


def _marginal(log_e: Tensor, sums: Tensor, j: int, order: int, positive: Tensor, negative: Tensor) -> Tensor:
    """``e_i delta_j / sigma_j`` from the two parts of delta_j, or from the approximation where they nearly cancel."""
    gap = positive - negative
    result = (log_e + positive + torch.log(-torch.expm1(-gap)) - sums[j][:, None]).exp()
    rows, columns = torch.nonzero(gap < UNSTABLE * (1 + positive.abs()), as_tuple=True)
    if len(rows):
        x, s = log_e[rows, columns], sums[:, rows]
        result[rows, columns] = sum(
            (-1) ** q * (s[j + q] - s[j] - q * x).exp() for q in range(min(order, len(sums) - 1 - j) + 1)
        )
    return result
