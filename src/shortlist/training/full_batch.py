"""A linear model fitted to all rows at once by L-BFGS: no learning rate, no epochs, the same weights every time.

What is minimised is the sum of the rows' losses, each times the row's weight where rows have some, plus half the
strength times the squared weights; biases are free. So the strength is scikit-learn's ``1 / C``. A loss that is a sum
over labels (binary cross-entropy) falls apart into one small problem per label: these are solved side by side, each
with its own curvature and step, and leave when done. Dense columns are first `Turned` to their principal axes, which
saves most of its steps; sparse ones that are many more than rows are fitted by sums of rows (`SumsOfRows`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from shortlist.errors import ShortlistError
from shortlist.training.search_spaces import AllWeights, Array, SumsOfRows, space_of

_MEMORY = 10  # pairs of steps and gradient changes that describe the curvature
_MOST_COLUMNS = 2048  # that are worth the time it takes to turn them
_SMALLEST_AXIS = 1e-6  # beside the largest: below, it is rounding
_CLOSER = 0.3  # times a first gradient that is small already, or times the tolerance: what it has to become
_SMALLEST_STEP, _SMALLEST_GAIN = 1e-6, 1e-8  # what float32 can still tell from nothing

# scores, target, weights of rows or None -> the loss of each problem, (L,) or (1,), and its gradient by the scores
Loss = Callable[[Tensor, Tensor, Tensor | None], tuple[Tensor, Tensor]]


@dataclass
class Solution:
    """Weights (D + 1, L), the biases in the last row; how many evaluations it took."""

    weights: Tensor
    evaluations: int


def binary_columns(scores: Tensor, target: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Binary cross-entropy, summed over the rows that know the label: one problem per label."""
    present, known = target == 1, target != -1
    losses = torch.nn.functional.softplus(torch.where(present, -scores, scores))
    gradient = torch.sigmoid(scores) - present.to(scores.dtype)
    if not bool(known.all()):
        losses, gradient = losses * known, gradient * known
    if weights is not None:
        losses, gradient = losses * weights[:, None], gradient * weights[:, None]
    return losses.sum(0, dtype=torch.float64), gradient


def softmax_rows(scores: Tensor, target: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Softmax cross-entropy of class indices as one problem: the mean over rows with a known label, times all rows."""
    unknown = len(target) > 0 and int(target.min()) < 0
    at = (target.clamp(min=0) if unknown else target)[:, None]
    shares = scores - scores.amax(1, keepdim=True)
    right = shares.gather(1, at)
    total = shares.exp_().sum(1, keepdim=True)
    losses, gradient = (total.log() - right)[:, 0], shares.div_(total).scatter_add_(1, at, torch.full_like(total, -1))
    if unknown or weights is not None:
        share = (target >= 0) * (torch.ones(len(target)) if weights is None else weights)
        share = share * (total_weight(target, weights) / max(float(share.sum()), 1e-30)) if unknown else share
        losses, gradient = losses * share, gradient * share[:, None]
    return losses.sum(dtype=torch.float64)[None], gradient


def whole(loss: Callable[..., Tensor]) -> Loss:
    """Any mean loss of scores as one problem: times the number of rows, with autograd's gradient."""

    def evaluate(scores: Tensor, target: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            scores = scores.detach().requires_grad_()
            mean = loss(scores, target) if weights is None else loss(scores, target, weights)
            value = mean * total_weight(target, weights)
            (gradient,) = torch.autograd.grad(value, scores)
        return value.detach().double()[None], gradient

    return evaluate


def total_weight(target: Tensor, weights: Tensor | None) -> float:
    """Of all rows; each weighs 1 where nothing else is said."""
    return float(len(target)) if weights is None else float(weights.sum())


def take(inputs: Any, rows: Tensor) -> Any:
    """These rows of a tensor or a CSR matrix; the same object where they are all of them."""
    if len(rows) == inputs.shape[0]:
        return inputs
    if not isinstance(inputs, Tensor):
        return inputs[rows.numpy()]
    return inputs[rows] if inputs.is_contiguous() else inputs.T.index_select(1, rows).T  # in the order they are in


def times(inputs: Any, weights: Tensor) -> Tensor:
    """Rows of features, a tensor or a CSR matrix, times weights and plus biases: scores."""
    return torch.from_numpy(np.asarray(_array(inputs) @ weights[:-1].numpy())).add_(weights[-1])


def _array(inputs: Any) -> Any:
    """NumPy multiplies by a few columns up to four times as fast as PyTorch, and small arrays take it less time."""
    return inputs.numpy() if isinstance(inputs, Tensor) else inputs


@dataclass(frozen=True)
class Turned:
    """Columns along their principal axes, ``(inputs - centre) @ axes``, and the variance along each. They are held
    column by column, which is how NumPy multiplies them by few weights in the least time.

    Decay asks the same of turned weights, so that the scores that fit best are the same ones. But how the loss bends is
    nearly known there: along each axis by its variance times that of each label. Divided by this, a gradient is nearly
    the step that Newton's method would make. Rows that are a random part of those it was made from bend alike, so that
    one serves all folds and all strengths; and where there are fewer rows than columns, there are fewer axes.
    """

    columns: Tensor
    centre: Tensor
    axes: Tensor
    variances: Tensor

    @classmethod
    def of(cls, inputs: Any) -> Turned | None:
        """None where it does not pay: for sparse matrices, whose products are quick, and for very many columns."""
        if not isinstance(inputs, Tensor) or inputs.shape[1] > _MOST_COLUMNS:
            return None
        rows, columns = inputs.shape
        centre = inputs.mean(0, dtype=torch.float64).to(inputs.dtype)
        centred = inputs - centre
        wide = rows < columns
        exact = centred.double() if wide else centred
        squares = (exact @ exact.T if wide else exact.T @ exact).double()
        if not float(squares.trace()) <= torch.finfo(inputs.dtype).max:
            raise ShortlistError(
                f"the inputs hold numbers from {float(inputs.min()):.3g} to {float(inputs.max()):.3g}, whose squares "
                "are beyond single precision: divide them, or standardise the columns"
            )
        if wide:  # no more axes than rows, and along all others nothing bends
            values, of_rows = torch.linalg.eigh(squares)
            large = values > _SMALLEST_AXIS * values[-1:].clamp(min=1e-30)
            values = values[large]
            axes = exact.T @ (of_rows[:, large] / values.sqrt())
        else:
            values, axes = torch.linalg.eigh(squares)
        axes = axes.to(inputs.dtype).contiguous()
        return cls((axes.T @ centred.T).T, centre, axes, (values / rows).clamp(min=0).to(inputs.dtype))

    def head(self, weights: Tensor, biases: Tensor) -> tuple[Tensor, Tensor]:
        """Weights and biases of these columns as those of the inputs."""
        weights = self.axes @ weights
        return weights, biases - self.centre @ weights


@torch.no_grad()
def fit_linear(
    inputs: Any,
    target: Tensor,
    start: Tensor,
    loss: Loss,
    strength: Tensor | float,
    variances: Tensor | None = None,
    weights: Tensor | None = None,
    *,
    tolerance: float = 1e-3,
    most: int = 200,
) -> Solution:
    """Weights that minimise the loss with this strength of decay (one, or one per label), from ``start`` on; rows may
    have ``weights``, too: one of 2 counts like two rows.

    The ``variances`` of columns that are `Turned` save most of the steps. It ends when no problem's gradient is larger
    than ``tolerance`` times what it is at zero weights (`_Memory.size`), or after ``most`` evaluations. A start that is
    nearly so good is still improved on: where rows can nearly be told apart the loss hardly bends, and weights that
    suit one strength would pass for those of the next.

    >>> x, y = torch.tensor([[-1.0], [1.0], [2.0], [-2.0]]), torch.tensor([[0], [1], [0], [0]])
    >>> fit_linear(x, y, torch.zeros(2, 1), binary_columns, 1.0).weights.T
    tensor([[ 0.358..., -1.17...]])
    """
    goal, found = target, start.numpy().copy()
    space = space_of(_array(inputs), found)
    here, active = space.start, np.arange(start.shape[1])
    decay = np.full(start.shape[1], strength, found.dtype)
    with np.errstate(over="ignore", invalid="ignore"):  # weights that were found for columns on another scale
        value, gradient = _evaluate(space, goal, here, loss, decay, weights)
    problems = len(value)
    odds = log_odds(target, start.shape[1], weights)
    zero = np.zeros_like(here)
    zero[:, -1] = odds  # weights of zero, and the biases that fit them best
    value_there, gradient_there = _evaluate(space, goal, zero, loss, decay, weights)
    better = value <= value_there
    here, gradient = np.where(better, here, zero), np.where(better, gradient, gradient_there)
    value = np.where(better, value, value_there)
    likely = odds.sigmoid()
    variance = (total_weight(target, weights) * likely * (1 - likely)).numpy()
    memory = _Memory(None if variances is None else _bends(variances.numpy(), variance, decay), here, problems)
    limit = tolerance * memory.size(gradient_there)
    limit = np.clip(_CLOSER * memory.size(gradient), _CLOSER * limit, limit)
    direction = memory.direction(gradient)
    step, done = np.ones(problems), np.zeros(problems, dtype=bool)
    evaluations = 1
    while evaluations < most:
        slope = _dot(direction, gradient, len(step))
        trial = here + step.astype(here.dtype) * direction
        new_value, new_gradient = _evaluate(space, goal, trial, loss, decay, weights)
        evaluations += 1
        accepted = (new_value <= value + 1e-4 * step * slope) & ~done
        everywhere = bool(accepted.all())
        gain, shorter = value - new_value, step
        if everywhere:
            memory.add(trial - here, new_gradient - gradient)
            here, gradient, value = trial, new_gradient, new_value
        else:
            memory.add((trial - here) * accepted, (new_gradient - gradient) * accepted)
            # where a step went too far: the minimum of the parabola through value, slope and new value, within bounds
            shorter = -slope / np.maximum(2 * (new_value - value - slope * step), 1e-300) * step
            shorter = np.where(np.isfinite(shorter), shorter.clip(0.1, 0.5), 0.1) * step
            here, gradient = np.where(accepted, trial, here), np.where(accepted, new_gradient, gradient)
            value = np.where(accepted, new_value, value)
        standstill = accepted & (gain <= _SMALLEST_GAIN * np.abs(value))
        done |= standstill | (memory.size(gradient) <= limit) | (~accepted & (shorter < _SMALLEST_STEP))
        if done.all():
            break
        fresh = memory.direction(gradient)
        direction = fresh if everywhere else np.where(accepted, fresh, direction)
        step = np.where(accepted, 1.0, shorter)
        if problems > 1 and done.sum() * 4 >= len(done):
            found[:, active[done]] = space.of(done).head(here.compress(done, -1))
            left = ~done
            active, goal, decay, limit = active[left], goal[:, torch.from_numpy(left)], decay[left], limit[left]
            here, gradient, direction = (each.compress(left, -1) for each in (here, gradient, direction))
            value, step, done = value[left], step[left], done[left]
            space = space.of(left)
            memory.keep(left)
    found[:, active] = space.head(here)
    return Solution(torch.from_numpy(found), evaluations)


def _evaluate(
    space: AllWeights | SumsOfRows, target: Tensor, place: Array, loss: Loss, decay: Array, weights: Tensor | None
) -> tuple[Array, Array]:
    value, by_scores = loss(torch.from_numpy(space.scores(place)), target, weights)
    gradient, decayed = space.gradient(by_scores.numpy()), place[:, :-1] * decay
    gradient[:, :-1] += decayed
    return value.numpy() + 0.5 * _dot(place[:, :-1], decayed, len(value)), gradient


def _dot(left: Array, right: Array, problems: int) -> Array:
    """The inner product of each problem: one for every label, or one in all."""
    products = left[0] * right[-1]
    if problems == products.shape[1]:
        return products.sum(0, dtype=np.float64)
    return products.sum(dtype=np.float64, keepdims=True)[0]


def _norm(values: Array, problems: int) -> Array:
    return np.sqrt(np.maximum(_dot(values, values, problems), 0))


def _bends(variances: Array, of_labels: Array, decay: Array) -> Array:
    """How much the loss bends by each weight and bias, (D + 1, L)."""
    return np.concatenate([variances[:, None] * of_labels + decay, of_labels[None]]).clip(1e-6)


class _Memory:
    """The last steps and gradient changes, and the quasi-Newton direction they make (L-BFGS in its compact form: the
    products of steps and later changes are a triangle for each problem, whose rows and columns are in any order)."""

    def __init__(self, bends: Array | None, like: Array, problems: int) -> None:
        self.bends, self.used, self.oldest = bends, 0, 0
        self.steps, self.changes = (np.empty((_MEMORY, *like.shape), like.dtype) for _ in range(2))
        self.triangle = np.zeros((problems, _MEMORY, _MEMORY))
        self.scale = np.ones(problems)

    def add(self, step: Array, change: Array) -> None:
        curvature = _dot(step, change, len(self.scale))
        size = _dot(change, self._divided(change), len(self.scale))
        useful = curvature > 1e-10 * size
        if not useful.all():
            step, change = step * useful, change * useful
        at, self.oldest, self.used = self.oldest, (self.oldest + 1) % _MEMORY, min(self.used + 1, _MEMORY)
        self.steps[at], self.changes[at] = step, change
        self.triangle[:, at] = 0
        self.triangle[:, : self.used, at] = self._dots(self.steps[: self.used], change)
        self.triangle[:, at, at] = np.where(useful, curvature, 1.0)
        self.scale = np.where(useful, curvature / np.maximum(size, 1e-300), self.scale)

    def direction(self, gradient: Array) -> Array:
        if not self.used:
            found = -self._divided(gradient)
            if self.bends is None:  # a first step of length one
                found /= np.maximum(_norm(gradient, len(self.scale)), 1e-12).astype(found.dtype)
            return found
        steps, changes, triangle = self.steps[: self.used], self.changes[: self.used], self.triangle
        triangle = triangle[:, : self.used, : self.used]
        shares = np.linalg.solve(triangle, self._dots(steps, gradient)[..., None])[..., 0]
        found = self._divided(gradient - self._mixed(changes, shares)) * self.scale.astype(gradient.dtype)
        left = triangle.diagonal(0, 1, 2) * shares - self._dots(changes, found)
        shares = np.linalg.solve(triangle.transpose(0, 2, 1), left[..., None])[..., 0]
        return -(found + self._mixed(steps, shares))

    def size(self, gradient: Array) -> Array:
        """How large the gradient of each problem is; where it is nearly known how the loss bends, by what a step could
        still gain. Along axes on which rows hardly differ a small gradient is a long way from its end."""
        return np.sqrt(np.maximum(_dot(gradient, self._divided(gradient), len(self.scale)), 1e-12))

    def _divided(self, gradient: Array) -> Array:
        return gradient if self.bends is None else gradient / self.bends

    def _dots(self, several: Array, one: Array) -> Array:
        """The inner products of each problem, (problems, several). Single precision is enough for a direction."""
        if len(self.scale) == one.shape[-1]:
            return np.stack([np.einsum("dl,dl->l", each[0], one[-1]) for each in several], axis=1)
        if len(one) == 1:  # one product for all
            return (several.reshape(len(several), -1) @ one.ravel())[None]
        return np.stack([np.vdot(each[0], one[-1]) for each in several])[None]

    def _mixed(self, several: Array, shares: Array) -> Array:
        """The sum of several, each problem with shares of its own."""
        shares = shares.astype(several.dtype)
        if len(self.scale) == several.shape[-1]:
            return sum(each * share for each, share in zip(several, shares.T, strict=True))
        return (shares[0] @ several.reshape(len(several), -1)).reshape(several.shape[1:])

    def keep(self, left: Array) -> None:
        self.bends = None if self.bends is None else self.bends.compress(left, -1)
        self.steps, self.changes = self.steps.compress(left, -1), self.changes.compress(left, -1)
        self.triangle, self.scale = self.triangle[left], self.scale[left]


def log_odds(target: Tensor, num_labels: int, weights: Tensor | None = None) -> Tensor:
    """Biases to start from: how often each label is present, as a score."""
    if target.ndim == 1:
        known = target >= 0
        each = None if weights is None else weights[known].double()
        counts = torch.bincount(target[known], each, minlength=num_labels).double() + 0.5
        return (counts / counts.sum()).log().float()
    present, known = ((told if weights is None else told * weights[:, None]).sum(0).double() for told in
                      (target == 1, target != -1))  # fmt: skip
    return ((present + 0.5) / (known - present + 0.5)).log().float()
