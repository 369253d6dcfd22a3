"""Joint nonnegative pursuit from its definition, one example at a time, with scipy's solver."""

import numpy as np
from scipy.optimize import nnls


def gains(residuals, dictionaries, weights):
    """The gain of every dictionary row."""
    total = np.zeros(len(dictionaries[0]))
    for residual, dictionary, weight in zip(residuals, dictionaries, weights, strict=True):
        squares = (dictionary**2).sum(1)
        found = np.maximum(0.0, dictionary @ residual) ** 2
        total += weight * np.divide(found, squares, out=np.zeros_like(found), where=squares > 0)
    return total


def fit(dictionary, picked, target):
    """Coefficients of the picked rows, and what they leave over."""
    if not picked:
        return np.zeros(0), target
    coefficients, _ = nnls(dictionary[picked].T, target)
    return coefficients, target - dictionary[picked].T @ coefficients


def check(found, row, targets, dictionaries, pursuit, exclude=-1, tolerance=1e-9):
    """Raise where what was found for a row is not what the definition asks for.

    Each pick must have the largest gain left (to rounding: rows of equal gain are equally right), the search must go on
    exactly as long as it should, and residuals must be those of the least squares solution.
    """
    weights = (pursuit.label_weight, pursuit.feature_weight)
    picked = [int(index) for index in found.indices[row] if index >= 0]
    assert found.indices[row, len(picked) :].tolist() == [-1] * (pursuit.k - len(picked))
    assert len(set(picked)) == len(picked)
    assert exclude not in picked
    size = max(1.0, *(w * (t @ t) for w, t in zip(weights, targets, strict=True)))
    for step in range(pursuit.k):
        before = picked[:step]
        residuals = [fit(d, before, t)[1] for d, t in zip(dictionaries, targets, strict=True)]
        gain = gains(residuals, dictionaries, weights)
        gain[[*before, *([exclude] if exclude >= 0 else [])]] = -1.0
        largest = gain.max(initial=-1.0)
        if step == len(picked):
            assert largest < pursuit.threshold + tolerance * size, f"stopped before a gain of {largest}"
            break
        assert gain[picked[step]] >= largest - tolerance * size, f"pick {step} has {gain[picked[step]]} of {largest}"
        assert largest >= pursuit.threshold - tolerance * size
    sides = ((found.label_coefficients, found.label_residual), (found.feature_coefficients, found.feature_residual))
    for (coefficients, residual), dictionary, target in zip(sides, dictionaries, targets, strict=True):
        used = coefficients[row].numpy().astype(np.float64)
        assert (used >= 0).all()
        assert (used[len(picked) :] == 0).all()
        _, best = fit(dictionary, picked, target)
        scale = tolerance * max(1.0, np.abs(target).max())
        np.testing.assert_allclose(residual[row].numpy(), best, atol=10 * scale, rtol=0)
        made = target - dictionary[picked].T @ used[: len(picked)] if picked else target
        np.testing.assert_allclose(made, best, atol=10 * scale, rtol=0)  # the coefficients are those of the residual
