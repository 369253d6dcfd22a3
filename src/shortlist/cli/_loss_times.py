"""The time of each loss on random scores."""

from collections.abc import Callable

import torch
from torch import Tensor

from shortlist import functional as F
from shortlist.labels import from_indices
from shortlist.timing import fastest

_ROWS = 256
Loss = Callable[..., Tensor]  # of scores, class indices and label matrix
_LOSSES: dict[str, Loss] = {
    "cross-entropy": lambda scores, target, matrix: torch.nn.functional.cross_entropy(scores, target),
    "smooth-topk": lambda scores, target, matrix: F.smooth_topk_loss(scores, target, 5),
    "topk-hinge": lambda scores, target, matrix: F.topk_hinge_loss(scores, target, 5),
    "truncated-entropy": lambda scores, target, matrix: F.truncated_entropy_loss(scores, target, 5),
    "lml": lambda scores, target, matrix: F.lml_loss(scores, target, 5),
    "noised-topk": lambda scores, target, matrix: F.noised_topk_loss(scores, target, 5),
    "average-k": lambda scores, target, matrix: F.average_k_loss(scores, scores, target, 5),
    "binary": lambda scores, target, matrix: F.binary_loss(scores, matrix),
    "two-way": lambda scores, target, matrix: F.two_way_loss(scores, matrix),
    "asymmetric": lambda scores, target, matrix: F.asymmetric_loss(scores, matrix),
}


def shape_of(quick: bool) -> tuple[int, int]:
    return (_ROWS, 100 if quick else 1000)


def loss_times(quick: bool = False, only: str | None = None) -> dict[str, float]:
    """Milliseconds of the fastest forward and backward pass; cross-entropy is always there to compare with."""
    rows, labels = shape_of(quick)
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(rows, labels, generator=generator).requires_grad_()
    target = torch.randint(labels, (rows,), generator=generator)
    matrix = from_indices(target, labels)
    chosen = {name: loss for name, loss in _LOSSES.items() if not only or only in name}
    if not chosen:
        return {}
    chosen = {"cross-entropy": _LOSSES["cross-entropy"], **chosen}
    steps = [_step(loss, scores, target, matrix) for loss in chosen.values()]
    seconds = fastest(steps, 0.0 if quick else 0.3 * len(steps))
    return {name: 1000 * time for name, time in zip(chosen, seconds, strict=True)}


def _step(loss: Loss, *inputs: Tensor) -> Callable[[], None]:
    def step() -> None:
        inputs[0].grad = None
        loss(*inputs).backward()

    return step
