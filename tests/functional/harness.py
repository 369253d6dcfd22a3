"""The losses in one table (how they are called, what they must say) and what "equal to the oracle" means."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

import shortlist.functional as F
from tests import oracles

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-9, torch.float16: 2**-11 + 1e-5, torch.bfloat16: 2**-8 + 1e-5}
FLOATS = [torch.float32, torch.float64]


@dataclass(frozen=True)
class Loss:
    """``call(scores, target, k, **options)`` and ``exact(row, present labels, k, usable labels)``."""

    call: Callable[..., Tensor]
    exact: Callable[..., tuple[float, np.ndarray]]
    takes_matrix: bool = False


def _noised(scores: Tensor, target: Tensor, k: int, **options: Any) -> Tensor:
    """With noise too small to matter: what it does with noise is test_noised_topk's business."""
    return F.noised_topk_loss(scores, target, k, epsilon=1e-30, n_samples=2, **options)


LOSSES = {
    "lml_loss": Loss(F.lml_loss, lambda row, present, k, usable: oracles.lml(row, k, usable).loss(present), True),
    "truncated_entropy_loss": Loss(F.truncated_entropy_loss, oracles.truncated_entropy, True),
    "smooth_topk_loss": Loss(
        F.smooth_topk_loss, lambda row, present, k, usable: oracles.smooth_topk(row, *present, k, 1.0, 1.0, usable)
    ),
    "topk_hinge_loss": Loss(
        F.topk_hinge_loss, lambda row, present, k, usable: oracles.topk_hinge(row, *present, k, 1.0, usable)
    ),
    "noised_topk_loss": Loss(
        _noised, lambda row, present, k, usable: oracles.topk_hinge_without_noise(row, *present, k, usable)
    ),
}
MATRIX_LOSSES = [name for name, loss in LOSSES.items() if loss.takes_matrix]


def value_and_gradient(
    function: Callable[..., Tensor], scores: Tensor, *args: Any, **options: Any
) -> tuple[Tensor, Tensor]:
    """The value, and the gradient of its sum."""
    leaf = scores.detach().clone().requires_grad_()
    value = function(leaf, *args, **options)
    (gradient,) = torch.autograd.grad(value.sum(), leaf)
    return value.detach(), gradient


def assert_losses(actual: Tensor, exact: Tensor, floor: float = 0.0) -> None:
    """|error| <= tolerance (|exact| + floor), up to underflow; what overflows the type must be inf."""
    exact = exact.double()
    overflows = exact.to(actual.dtype).isinf()
    assert torch.equal(actual[overflows].double(), exact.to(actual.dtype)[overflows].double())
    error = (actual.double() - exact)[~overflows].abs()
    allowed = TOLERANCE[actual.dtype] * (exact[~overflows].abs() + floor) + torch.finfo(actual.dtype).tiny
    assert bool((error <= allowed).all()), f"losses {actual.tolist()}, exact {exact.tolist()}"


def assert_gradients(actual: Tensor, exact: Tensor, size: Tensor | None = None) -> None:
    """In every row, max |error| <= tolerance * max |exact| (or of ``size``), up to underflow."""
    error = (actual.double() - exact).abs().amax(-1)
    size = (exact if size is None else size).abs().amax(-1)
    allowed = TOLERANCE[actual.dtype] * size + torch.finfo(actual.dtype).tiny
    assert bool((error <= allowed).all()), f"worst row: error {error.max()}, allowed {allowed[error.argmax()]}"


def present_labels(target: Tensor) -> list[tuple[int, ...]]:
    """Per row, the labels that are present: of class indices or of a label matrix."""
    if target.ndim == 1:
        return [(int(y),) for y in target]
    return [tuple(row.eq(1).nonzero().flatten().tolist()) for row in target]


def exactly(loss: Loss, scores: Tensor, target: Tensor, k: int, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    return oracles.over_rows(lambda row, y, usable: loss.exact(row, y, k, usable), scores, present_labels(target), mask)


def random_scores(*shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0, seed: int = 0) -> Tensor:
    """Normal scores, the same whatever the type (up to rounding)."""
    return (torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * scale).to(dtype)


def random_target(rows: int | Sequence[int], labels: int, seed: int = 1) -> Tensor:
    shape = (rows,) if isinstance(rows, int) else tuple(rows)
    return torch.randint(labels, shape, generator=torch.Generator().manual_seed(seed))


def random_matrix(*shape: int, seed: int = 2) -> Tensor:
    """A label matrix of 1, 0 and -1 with at least one present label per row."""
    generator = torch.Generator().manual_seed(seed)
    matrix = torch.randint(-1, 2, shape, generator=generator)
    return matrix.scatter(-1, torch.randint(shape[-1], (*shape[:-1], 1), generator=generator), 1)
