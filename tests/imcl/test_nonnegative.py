"""Batched nonnegative least squares against scipy, one problem at a time."""

import numpy as np
import pytest
import torch
from scipy.optimize import nnls

from shortlist.imcl import nonnegative_least_squares
from shortlist.imcl.nonnegative import fit


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


# ---- the same from dictionary rows, by every kernel


def problems(kind, count, rows=60, columns=21):
    """A target, a dictionary and what each row may use of it, some of it nothing."""
    random = np.random.default_rng(count)
    target, dictionary = random.normal(size=(rows, columns)), random.normal(size=(30, columns))
    picked = np.stack([random.permutation(30)[:count] for _ in range(rows)])
    if kind == "dependent":
        dictionary = random.normal(size=(30, 2)) @ random.normal(size=(2, columns))
    elif kind == "zeros":
        dictionary[::2] = 0.0
    elif kind == "twice":
        picked[:, -1] = picked[:, 0]
    elif kind == "fewer":
        picked[random.random(picked.shape) < 0.5] = -1
    elif kind == "huge and tiny":
        dictionary *= np.logspace(-100, 100, 30)[:, None]
        target *= np.logspace(100, -100, rows)[:, None]
    return target, dictionary, picked


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 9])
@pytest.mark.parametrize("kind", ["plain", "dependent", "zeros", "twice", "fewer", "huge and tiny"])
def test_a_fit_is_the_minimum_with_every_kernel(kernel, count, kind):
    target, dictionary, picked = problems(kind, count)
    x, residual = fit(*map(torch.from_numpy, (target, dictionary, picked)))
    x, residual = x.numpy(), residual.numpy()
    assert (x >= 0).all()
    assert (x[picked < 0] == 0).all()
    for row in range(len(target)):
        size = np.linalg.norm(target[row])
        atoms = dictionary[picked[row]] * (picked[row] >= 0)[:, None]
        np.testing.assert_allclose(residual[row], target[row] - x[row] @ atoms, atol=1e-12 * size)
        unit = atoms / np.maximum(np.linalg.norm(atoms, axis=1, keepdims=True), 1e-300)
        left = nnls(unit.T, target[row] / size)[1] * size
        assert np.linalg.norm(residual[row]) <= left * (1 + 1e-9) + 1e-9 * size


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_a_fit_takes_a_dictionary_of_another_type_or_layout(kernel, dtype):
    target, dictionary, picked = map(torch.from_numpy, problems("fewer", 3))
    target, dictionary = target.float(), dictionary.to(dtype)
    expected = fit(target, dictionary.float(), picked)
    for other in (dictionary, dictionary.float().T.contiguous().T):
        for a, b in zip(fit(target.T.contiguous().T, other, picked), expected, strict=True):
            assert torch.equal(a, b)


def test_a_fit_of_nothing_and_by_nothing(kernel):
    x, residual = fit(torch.ones(0, 3), torch.ones(4, 3), torch.zeros(0, 2, dtype=torch.int64))
    assert x.shape == (0, 2)
    assert residual.shape == (0, 3)
    x, residual = fit(torch.ones(2, 3), torch.ones(4, 3), torch.full((2, 2), -1))
    assert x.tolist() == [[0.0, 0.0]] * 2
    assert residual.tolist() == [[1.0, 1.0, 1.0]] * 2
