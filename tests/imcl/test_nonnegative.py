"""Batched nonnegative least squares against scipy, one problem at a time."""

import numpy as np
import pytest
import torch
from scipy.optimize import nnls

from shortlist.imcl import nonnegative_least_squares


def solved(atoms, targets, start=None):
    """(M, t, D) atoms and (M, D) targets -> the residuals' norms and the coefficients."""
    atoms, targets = torch.from_numpy(atoms), torch.from_numpy(targets)
    moments = (atoms @ targets.unsqueeze(-1)).squeeze(-1)
    x = nonnegative_least_squares(atoms @ atoms.mT, moments, targets.norm(dim=1), start)
    return (targets - (x.unsqueeze(1) @ atoms).squeeze(1)).norm(dim=1).numpy(), x.numpy()


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 12])
@pytest.mark.parametrize("kind", ["independent", "dependent", "zeros", "correlated"])
def test_residuals_are_those_of_scipy(count, kind):
    random = np.random.default_rng(count)
    atoms, targets = random.normal(size=(300, count, 8)), random.normal(size=(300, 8))
    if kind == "dependent":
        atoms = random.normal(size=(300, count, 2)) @ random.normal(size=(300, 2, 8))
        atoms[::3, -1] = 3 * atoms[::3, 0]
    elif kind == "zeros":
        atoms[random.random((300, count)) < 0.5] = 0.0
    elif kind == "correlated":
        atoms = atoms[:, :1] + 0.05 * atoms
    norms, x = solved(atoms, targets)
    assert_minimum(atoms, targets, x)
    for row in range(300):
        best, left = nnls(atoms[row].T, targets[row])
        if best.max(initial=0) < 1e6:  # among dependent atoms scipy can go astray: coefficients of 1e15 that cancel
            assert norms[row] == pytest.approx(left, rel=1e-9, abs=1e-9)
        if kind == "independent" and count <= 6:
            np.testing.assert_allclose(x[row], best, atol=1e-9)


def assert_minimum(atoms, targets, x):
    """No coefficient is negative, none would gain by growing, and none that is used by shrinking: the problem is
    convex, so that this is a proof."""
    slopes = np.einsum("mtd,md->mt", atoms, targets - np.einsum("mt,mtd->md", x, atoms))
    slopes /= np.maximum(np.linalg.norm(atoms, axis=2), 1e-300)
    assert (x >= 0).all()
    assert slopes.max() < 1e-6
    assert slopes[x > 0].min(initial=0.0) > -1e-6


def test_a_start_changes_nothing_but_the_time():
    random = np.random.default_rng(0)
    atoms, targets = random.normal(size=(200, 5, 8)), random.normal(size=(200, 8))
    _, before = solved(atoms[:, :4], targets)
    start = torch.nn.functional.pad(torch.from_numpy(before), (0, 1))
    np.testing.assert_allclose(solved(atoms, targets, start)[1], solved(atoms, targets)[1], atol=1e-9)


@pytest.mark.parametrize("count", [2, 3, 6])
def test_near_duplicates_lose_nothing(count):
    random = np.random.default_rng(1)
    atoms = np.repeat(random.normal(size=(200, 1, 8)), count, axis=1)
    atoms = atoms * (1 + 1e-8 * random.normal(size=atoms.shape))
    targets = atoms[:, 0] + 0.1 * random.normal(size=(200, 8))
    norms, x = solved(atoms, targets)
    assert (x >= 0).all()
    for row in range(200):
        assert norms[row] <= nnls(atoms[row].T, targets[row])[1] * (1 + 1e-6)
