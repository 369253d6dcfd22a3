"""A linear model fitted to all rows at once by L-BFGS: no learning rate, no epochs, the same weights every time.

What is minimised is the sum of the rows' losses plus half the strength times the squared weights; biases are free. So
the strength is scikit-learn's ``1 / C``. A loss that is a sum over labels (binary cross-entropy) falls apart into one
small problem per label: these are solved side by side, each with its own curvature and step, and leave when done.
``Curvature`` tells the solver beforehand how the columns go together, which saves most of its steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

_MEMORY = 10  # pairs of steps and gradient changes that describe the curvature
_MOST_COLUMNS = 2048  # whose curvature is worth the time it takes
_SMALLEST_AXIS = 1e-6  # beside the largest: below, it is rounding
_SMALLEST_STEP, _SMALLEST_GAIN = 1e-6, 1e-8  # what float32 can still tell from nothing

# scores and target -> the loss of each problem, (L,) or (1,), and its gradient by the scores
Loss = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


@dataclass
class Solution:
    """Weights (D + 1, L), the biases in the last row; how many evaluations it took."""

    weights: Tensor
    evaluations: int


def binary_columns(scores: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Binary cross-entropy, summed over the rows that know the label: one problem per label."""
    present, known = target == 1, target != -1
    losses = torch.nn.functional.softplus(torch.where(present, -scores, scores))
    gradient = torch.sigmoid(scores) - present.to(scores.dtype)
    if not bool(known.all()):
        losses, gradient = losses * known, gradient * known
    return losses.sum(0, dtype=torch.float64), gradient


def softmax_rows(scores: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Softmax cross-entropy of class indices as one problem: the mean over rows with a known label, times all rows."""
    known = target >= 0
    at = target.clamp(min=0)[:, None]
    logs = scores.log_softmax(1)
    losses, gradient = -logs.gather(1, at)[:, 0], logs.exp().scatter_add_(1, at, -torch.ones_like(logs[:, :1]))
    if not bool(known.all()):
        share = known * (len(target) / max(1, int(known.sum())))
        losses, gradient = losses * share, gradient * share[:, None]
    return losses.sum(dtype=torch.float64)[None], gradient


def whole(loss: Callable[[Tensor, Tensor], Tensor]) -> Loss:
    """Any mean loss of scores as one problem: times the number of rows, with autograd's gradient."""

    def evaluate(scores: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            scores = scores.detach().requires_grad_()
            value = loss(scores, target) * len(scores)
            (gradient,) = torch.autograd.grad(value, scores)
        return value.detach().double()[None], gradient

    return evaluate


def take(inputs: Any, rows: Tensor) -> Any:
    """These rows of a tensor or a CSR matrix; the same object where they are all of them."""
    if len(rows) == inputs.shape[0]:
        return inputs
    return inputs[rows] if isinstance(inputs, Tensor) else inputs[rows.numpy()]


def times(inputs: Any, weights: Tensor) -> Tensor:
    """Rows of features, a tensor or a CSR matrix, times weights and plus biases: scores."""
    if isinstance(inputs, Tensor):
        return torch.addmm(weights[-1], inputs, weights[:-1])
    return torch.from_numpy(np.asarray(inputs @ weights[:-1].numpy())) + weights[-1]


def _transposed_times(inputs: Any, gradient: Tensor) -> Tensor:
    """The gradient by weights and biases, from the gradient by the scores."""
    if isinstance(inputs, Tensor):
        by_weights = inputs.T @ gradient
    else:
        by_weights = torch.from_numpy(np.asarray(inputs.T @ gradient.numpy()))
    return torch.cat([by_weights, gradient.sum(0, keepdim=True)])


class Curvature:
    """How the loss bends where nothing is known yet: the covariance of the columns times the variance of each label.

    Its inverse turns a gradient into nearly the step that Newton's method would make. Rows that are a random part of
    those it was made from bend alike, so that one serves all folds and all strengths.
    """

    def __init__(self, inputs: Tensor) -> None:
        rows, columns = inputs.shape
        mean = inputs.mean(0, dtype=torch.float64)
        if rows < columns:  # no more axes than rows, and along all others nothing bends
            centred = inputs - mean.to(inputs.dtype)
            values, of_rows = torch.linalg.eigh((centred @ centred.T).double() / rows)
            large = values > _SMALLEST_AXIS * values[-1:]
            values = values[large]
            axes = centred.T.double() @ of_rows[:, large] / (rows * values).sqrt()
        else:
            products = (inputs.T @ inputs).double() / rows
            values, axes = torch.linalg.eigh(products - torch.outer(mean, mean))
        self.mean, self.values, self.axes = mean.float(), values.clamp(min=0).float(), axes.float()

    @classmethod
    def of(cls, inputs: Any) -> Curvature | None:
        """None where it does not pay: for sparse matrices, whose products are quick, and for very many columns."""
        pays = isinstance(inputs, Tensor) and inputs.shape[1] <= _MOST_COLUMNS
        return cls(inputs) if pays else None

    def bends(self, variance: Tensor, decay: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """How much the loss bends along each axis, along all others, and for the biases, (..., L) each."""
        along = (self.values[:, None] * variance + decay).clamp(min=1e-6)
        return along, decay.clamp(min=1e-6), variance.clamp(min=1e-6)

    def divide(self, gradient: Tensor, bends: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """The gradient by weights and biases, divided by rows times the curvature plus decay."""
        by_weights, by_bias = gradient[:-1], gradient[-1:]
        by_weights = by_weights - self.mean[:, None] * by_bias  # as if the columns had a mean of zero
        along = self.axes.T @ by_weights
        weights = self.axes @ (along / bends[0])
        if self.axes.shape[1] < self.axes.shape[0]:
            weights += (by_weights - self.axes @ along) / bends[1]
        return torch.cat([weights, by_bias / bends[2] - self.mean @ weights])


@torch.no_grad()
def fit_linear(
    inputs: Any,
    target: Tensor,
    start: Tensor,
    loss: Loss,
    strength: Tensor | float,
    curvature: Curvature | None = None,
    *,
    tolerance: float = 1e-3,
    most: int = 200,
) -> Solution:
    """Weights that minimise the loss with this strength of decay (one, or one per label), from ``start`` on.

    It ends when no problem's gradient is larger than ``tolerance`` times what it is at zero weights, or after ``most``
    evaluations.

    >>> x, y = torch.tensor([[-1.0], [1.0], [2.0], [-2.0]]), torch.tensor([[0], [1], [0], [0]])
    >>> fit_linear(x, y, torch.zeros(2, 1), binary_columns, 1.0).weights.T
    tensor([[ 0.358..., -1.17...]])
    """
    found = start.clone()
    decay = torch.as_tensor(strength, dtype=start.dtype).expand(start.shape[1]).clone()
    here, goal = start.clone(), target
    active = torch.arange(start.shape[1])
    value, gradient = _evaluate(inputs, goal, here, loss, decay)
    whole_problem = value.shape[0] != start.shape[1]
    limit = tolerance * _size_at_zero(inputs, target, start, loss, len(value))
    likely = log_odds(target, start.shape[1]).sigmoid()
    variance = target.shape[0] * likely * (1 - likely)
    memory = _Memory(curvature, variance, decay)
    direction = memory.direction(gradient, value)
    step = torch.ones_like(value)
    done = torch.zeros(len(value), dtype=torch.bool)
    evaluations = 1
    while evaluations < most:
        slope = _dot(direction, gradient, value)
        trial = here + step.to(here.dtype) * direction
        new_value, new_gradient = _evaluate(inputs, goal, trial, loss, decay)
        evaluations += 1
        accepted = (new_value <= value + 1e-4 * step * slope) & ~done
        everywhere = bool(accepted.all())
        if everywhere:
            memory.add(trial - here, new_gradient - gradient, value)
            gain, shorter = value - new_value, step
            here, gradient, value = trial, new_gradient, new_value
        else:
            kept = accepted.to(here.dtype)
            memory.add((trial - here) * kept, (new_gradient - gradient) * kept, value)
            # where a step went too far: the minimum of the parabola through value, slope and new value, within bounds
            shorter = -slope / (2 * (new_value - value - slope * step)).clamp(min=1e-300) * step
            shorter = torch.where(torch.isfinite(shorter), shorter.clamp(0.1, 0.5), 0.1) * step
            gain = value - new_value
            here, gradient = torch.where(accepted, trial, here), torch.where(accepted, new_gradient, gradient)
            value = torch.where(accepted, new_value, value)
        standstill = accepted & (gain <= _SMALLEST_GAIN * value.abs())
        done |= standstill | (_norm(gradient, value) <= limit) | (~accepted & (shorter < _SMALLEST_STEP))
        if bool(done.all()):
            break
        fresh = memory.direction(gradient, value)
        direction = fresh if everywhere else torch.where(accepted, fresh, direction)
        step = torch.where(accepted, 1.0, shorter)
        if not whole_problem and int(done.sum()) * 4 >= len(done):
            found[:, active[done]] = here[:, done]
            left = ~done
            active, goal, decay, limit = active[left], goal[:, left], decay[left], limit[left]
            here, gradient, direction = here[:, left], gradient[:, left], direction[:, left]
            value, step, done = value[left], step[left], done[left]
            memory.keep(left)
    found[:, active] = here
    return Solution(found, evaluations)


def _evaluate(inputs: Any, target: Tensor, weights: Tensor, loss: Loss, decay: Tensor) -> tuple[Tensor, Tensor]:
    value, by_scores = loss(times(inputs, weights), target)
    gradient = _transposed_times(inputs, by_scores)
    decayed = weights[:-1] * decay
    gradient[:-1] += decayed
    return value + 0.5 * _dot(weights[:-1], decayed, value), gradient


def _size_at_zero(inputs: Any, target: Tensor, start: Tensor, loss: Loss, problems: int) -> Tensor:
    """How large the gradient is for weights of zero and the biases that fit them best."""
    origin = torch.zeros_like(start)
    origin[-1] = log_odds(target, start.shape[1])
    gradient = _evaluate(inputs, target, origin, loss, start.new_zeros(1))[1]
    return _norm(gradient, torch.zeros(problems, dtype=torch.float64)).clamp(min=1e-6)


def _dot(left: Tensor, right: Tensor, like: Tensor) -> Tensor:
    """The inner product of each problem."""
    products = left * right
    if like.shape[0] == products.shape[1]:
        return products.sum(0, dtype=torch.float64)
    return products.sum(dtype=torch.float64)[None]


def _norm(values: Tensor, like: Tensor) -> Tensor:
    return _dot(values, values, like).sqrt()


def _quick_dot(left: Tensor, right: Tensor, like: Tensor) -> Tensor:
    """The same in single precision: enough for a direction, and on small data a third of the time."""
    if like.shape[0] == left.shape[1]:
        return (left * right).sum(0)
    return torch.dot(left.reshape(-1), right.reshape(-1))


class _Memory:
    """The last steps and gradient changes, and the quasi-Newton direction they make (the two-loop recursion)."""

    def __init__(self, curvature: Curvature | None, variance: Tensor, decay: Tensor) -> None:
        self.pairs: list[tuple[Tensor, Tensor, Tensor]] = []
        self.scale: Tensor | None = None
        self.curvature = curvature
        self.bends = None if curvature is None else curvature.bends(variance, decay)

    def add(self, step: Tensor, change: Tensor, like: Tensor) -> None:
        curvature, size = _dot(step, change, like), _dot(change, self._divided(change), like)
        useful = curvature > 1e-10 * size
        rho = torch.where(useful, 1 / curvature.clamp(min=1e-30), 0.0).to(step.dtype)
        self.pairs = [*self.pairs[1 - _MEMORY :], (step, change, rho)]
        scale = curvature / size.clamp(min=1e-300)
        before = torch.ones_like(scale) if self.scale is None else self.scale
        self.scale = torch.where(useful, scale, before)

    def direction(self, gradient: Tensor, like: Tensor) -> Tensor:
        found, shares = gradient.clone(), []
        for step, change, rho in reversed(self.pairs):
            share = rho * _quick_dot(step, found, like)
            found -= share * change
            shares.append(share)
        found = self._divided(found)
        if self.scale is not None:
            found *= self.scale.to(found.dtype)
        elif self.curvature is None:
            found /= _norm(gradient, like).clamp(min=1e-12).to(found.dtype)  # a first step of length one
        for (step, change, rho), share in zip(self.pairs, reversed(shares), strict=True):
            found += step * (share - rho * _quick_dot(change, found, like))
        return -found

    def _divided(self, gradient: Tensor) -> Tensor:
        if self.curvature is None or self.bends is None:
            return gradient
        return self.curvature.divide(gradient, self.bends)

    def keep(self, left: Tensor) -> None:
        if self.bends is not None:
            along, others, biases = self.bends
            self.bends = along[:, left], others[left], biases[left]
        self.pairs = [(step[:, left], change[:, left], rho[left]) for step, change, rho in self.pairs]
        if self.scale is not None:
            self.scale = self.scale[left]


def log_odds(target: Tensor, num_labels: int) -> Tensor:
    """Biases to start from: how often each label is present, as a score."""
    if target.ndim == 1:
        counts = torch.bincount(target[target >= 0], minlength=num_labels).double() + 0.5
        return (counts / counts.sum()).log().float()
    present, known = (target == 1).sum(0).double(), (target != -1).sum(0).double()
    return ((present + 0.5) / (known - present + 0.5)).log().float()
