"""Sums over subsets and their slopes as means over points of a circle, against the tree of products."""

import pytest
import torch
from torch import Tensor

import shortlist.functional as F
from shortlist import kernels
from shortlist.functional._contour import marginal_slopes, swap_sums
from shortlist.functional._frame import split
from shortlist.functional.subsets import _Marginals, swap


def rows(kind: str, n: int, k: int) -> Tensor:
    s = torch.randn(4, n, generator=torch.Generator().manual_seed(n + k), dtype=torch.float64)
    if kind == "equal":
        s = torch.zeros_like(s)
    elif kind == "ties":
        s = s.round()
    elif kind == "saturated":
        s *= 50
    elif kind == "gap":
        s[:, :k] += 300
    elif kind == "masked":
        s[:, k + 1 :: 2] = float("-inf")
    return s


@pytest.mark.parametrize("kind", ["plain", "equal", "ties", "saturated", "gap", "masked"])
@pytest.mark.parametrize(("n", "k"), [(3000, 5), (1000, 1), (200, 50), (30, 5), (2000, 20), (6, 5), (7, 7)])
@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_sums_and_slopes_are_those_of_the_products(kind: str, n: int, k: int, scale: float) -> None:
    scores = rows(kind, n, k).requires_grad_()
    products = swap(split(scores, k), k, scale / k)
    both = products.log_sum(), products.log_sum(1)
    (slopes,) = torch.autograd.grad((both[0] - both[1]).sum(), scores)
    found = swap_sums(scores.detach().clone(), k, scale / k, (1.0, -1.0))
    for one, expected in zip(found.log_sums, both, strict=True):
        torch.testing.assert_close(one, expected.detach(), rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(found.slopes * (scale / k), slopes, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["plain", "equal", "ties", "saturated", "gap", "masked"])
@pytest.mark.parametrize(("n", "k"), [(3000, 5), (1000, 1), (200, 50), (30, 5), (2000, 20), (6, 5), (7, 7)])
def test_slopes_of_marginals_are_those_of_the_products(kind: str, n: int, k: int) -> None:
    scores = rows(kind, n, k)
    direction = torch.randn(scores.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    (expected,) = torch.func.vjp(_Marginals(k).twin, scores)[1](direction)
    found = marginal_slopes(scores.clone(), k, direction)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-13)


def test_compiles_to_one_graph_with_its_gradient() -> None:
    torch._dynamo.reset()
    k = 2
    scores, target = rows("plain", 150, k).requires_grad_(), torch.tensor([1, 40, -1, 0])

    def both(s: Tensor) -> Tensor:
        return F.smooth_topk_loss(s, target, k) + F.topk_hinge_loss(s, target, k) + F.log_subset_sum(s, k).sum()

    with kernels.use("torch"):
        expected = both(scores)
        (slope,) = torch.autograd.grad(expected, scores)
        value = torch.compile(both, fullgraph=True, backend="aot_eager")(scores)
        (gradient,) = torch.autograd.grad(value, scores)
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(gradient, slope)
