"""The Summation Algorithm for elementary symmetric polynomials (Berrada et al. 2018, Algorithm 3).

``sigma_j(e_1..e_i) = sigma_j(e_1..e_(i-1)) + e_i sigma_(j-1)(e_1..e_(i-1))``: one label after another, all degrees j at
once. As in the paper it adds plain exponentials, so it overflows at small temperatures (the paper's Table 5).
"""

import torch
from torch import Tensor


def summation(log_e: Tensor, degree: int) -> Tensor:
    """Return ``log sigma_j(exp(log_e))`` for j = 0..degree, shape ``(degree + 1, batch)``.

    Autograd can differentiate it; where no gradient is recorded, one buffer is updated in place.

    >>> summation(torch.zeros(1, 4), 2).exp().round()     # 1, 4 choose 1, 4 choose 2
    tensor([[1.],
            [4.],
            [6.]])
    """
    e = log_e.exp().T.contiguous()  # (n, batch)
    sums = torch.zeros(degree + 1, e.shape[1], dtype=e.dtype, device=e.device)
    sums[0] = 1
    if torch.is_grad_enabled() and e.requires_grad:
        first = sums[:1]
        for e_i in e.unbind():
            sums = torch.cat((first, sums[1:] + e_i * sums[:-1]))
    else:
        for i, e_i in enumerate(e.unbind()):
            top = min(i + 1, degree)  # higher degrees are still 0
            sums[1 : top + 1] += e_i * sums[:top]
    return sums.log()
