"""Elementary symmetric polynomials by divide and conquer in log space (Berrada et al. 2018, Algorithm 1 and B.2.1).

Expand ``prod_i (X + 1/e_i)`` up to the wanted degree by multiplying neighbours, level by level; its coefficient of X^j
times ``prod e`` is ``sigma_j(e)``. Every number is kept as its logarithm, every addition is a log-sum-exp.
"""

import torch
from torch import Tensor


def divide_and_conquer(log_e: Tensor, degree: int) -> Tensor:
    """Return ``log sigma_j(exp(log_e))`` for j = 0..degree, shape ``(degree + 1, batch)``.

    >>> divide_and_conquer(torch.zeros(1, 4), 2).exp().round()     # 1, 4 choose 1, 4 choose 2
    tensor([[1.],
            [4.],
            [6.]])
    """
    roots = -log_e.T  # (n, batch): log 1/e_i
    polynomials = torch.stack((roots, torch.zeros_like(roots)))  # X + 1/e_i as (coefficient, polynomial, batch)
    left_over = []  # the last polynomial of a level with an odd number of them
    while polynomials.shape[1] > 1:
        half = polynomials.shape[1] // 2
        if polynomials.shape[1] % 2:
            left_over.append(polynomials[:, -1:])
        polynomials = _multiply(polynomials[:, :half], polynomials[:, half : 2 * half], degree)
    for polynomial in left_over:
        polynomials = _multiply(polynomials, polynomial, degree)
    return polynomials[:, 0] + log_e.sum(-1)


def _multiply(a: Tensor, b: Tensor, degree: int) -> Tensor:
    """Products of polynomials with log coefficients, cut off above `degree`."""
    degree_a, degree_b = len(a) - 1, len(b) - 1
    backwards = b.flip(0)
    product = []
    for c in range(min(degree, degree_a + degree_b) + 1):
        low, high = max(0, c - degree_b), min(c, degree_a)  # the i with a_i and b_(c-i) both there
        pairs = a[low : high + 1] + backwards[degree_b - c + low : degree_b - c + high + 1]
        product.append(pairs.logsumexp(0) if high > low else pairs[0])
    return torch.stack(product)
