"""psi_c, and what completing labels keeps and fills."""

import math

import pytest
import torch

from shortlist.imcl import complete, squash

X = torch.linspace(-30, 30, 601, dtype=torch.float64)


@pytest.mark.parametrize("c", [0.5, 1.0, 2.0, 10.0])
def test_it_is_the_formula(c):
    expected = (1 + 1 / c) * torch.sigmoid(2 * X - math.log(c)) - 1 / c
    torch.testing.assert_close(squash(X, c), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("c", [0.5, 1.0, 2.0, 10.0])
def test_it_grows_from_minus_1_over_c_to_1_and_is_0_at_0(c):
    y = squash(X, c)
    assert (y.diff() >= 0).all()
    assert (squash(X[200:401], c).diff() > 0).all()
    assert squash(torch.zeros(()), c) == 0
    assert squash(torch.tensor(1e30), c) == 1
    assert squash(torch.tensor(-1e30), c).item() == pytest.approx(-1 / c)


def test_c_1_is_tanh():
    torch.testing.assert_close(squash(X, 1.0), X.tanh())


def test_its_gradient_is_exact_and_finite_far_out():
    x = torch.randn(20, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: squash(t, 2.0), x)
    far = torch.tensor([-1e4, 1e4], requires_grad=True)
    squash(far, 2.0).sum().backward()
    assert far.grad.tolist() == [0.0, 0.0]


def test_known_labels_are_never_overwritten_and_unknown_ones_always_are():
    torch.manual_seed(0)
    target, values = torch.randint(-1, 2, (50, 9)), torch.randn(50, 9)
    done = complete(target, values, c=4.0)
    assert (done[target == 1] == 1).all()
    assert (done[target == 0] == -0.25).all()
    assert torch.equal(done[target == -1], values[target == -1])


@pytest.mark.parametrize("c", [0.0, -1.0, float("inf"), float("nan")])
def test_c_must_be_positive_and_finite(c):
    with pytest.raises(ValueError, match="c must be a positive finite number"):
        squash(torch.zeros(1), c)


def test_shapes_that_differ_are_an_error():
    with pytest.raises(ValueError, match=r"target has shape \(2, 3\), values have \(2, 4\)"):
        complete(torch.zeros(2, 3), torch.zeros(2, 4))
