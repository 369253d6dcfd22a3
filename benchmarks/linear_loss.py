"""Losses on top of a linear layer by blocks (`F.linear_loss`), against the same loss of whole scores.

``python -m benchmarks.linear_loss`` prints the table; ``--help`` says how to write it and how to choose cases. Memory
includes the gradient of the weight, 51 MB at 64 features and 200,000 labels.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

import shortlist.functional as F
from benchmarks.harness import Case, MemoryCase, SpeedCase, Step
from benchmarks.run import parser, run

MEMORY = "Memory of a linear layer's loss beyond its inputs"
SPEED = "Time of a linear layer's loss"
LABELS_A_ROW = 5
MEGABYTES = {"two_way": 250, "average_k": 250}  # at most, at the usual size; the others 150

Shape = tuple[int, int, int]  # rows, features, labels
LOSSES: dict[str, tuple[Callable[..., Tensor], bool, dict[str, Any]]] = {  # function, of class indices, options
    "smooth_topk": (F.smooth_topk_loss, True, {"k": 5}),
    "lml_loss": (F.lml_loss, True, {"k": 5}),
    "truncated_entropy": (F.truncated_entropy_loss, True, {"k": 5}),
    "binary": (F.binary_loss, False, {}),
    "asymmetric": (F.asymmetric_loss, False, {}),
    "lsep": (F.lsep_loss, False, {}),
    "two_way": (F.two_way_loss, False, {}),
    "average_k": (F.average_k_loss, True, {"k": 5}),
}


def step(name: str, shape: Shape, by_blocks: bool = True) -> Step:
    """Made inputs; then one loss and its gradients by features, weight and bias."""
    loss, of_indices, options = LOSSES[name]
    rows, size, labels = shape
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(rows, size, generator=generator).mul_(size**-0.5).requires_grad_()
    heads = [torch.randn(labels, size, generator=generator).requires_grad_() for _ in range(1 + (name == "average_k"))]
    target = torch.randint(labels, (rows,) if of_indices else (rows, LABELS_A_ROW), generator=generator)
    if not of_indices:
        target = torch.zeros(rows, labels, dtype=torch.int8).scatter_(1, target, 1)

    def whole() -> object:
        return torch.autograd.grad(
            loss(*[linear(features, weight) for weight in heads], target, **options), [features, *heads]
        )

    def blocks() -> object:
        weight = heads[0] if len(heads) == 1 else (heads[0], heads[1])
        return torch.autograd.grad(
            F.linear_loss(loss, features, weight, target, **options), [features, *heads]
        )

    return blocks if by_blocks else whole


def cases(quick: bool = False) -> list[Case]:
    shape: Shape = (8, 4, 50) if quick else (1024, 64, 200_000)
    huge: Shape = (8, 4, 60) if quick else (256, 128, 1_000_000)
    small, found = (4, 4, 50), list[Case]()

    def memory(name: str, shape: Shape, megabytes: float) -> Case:
        scores = 4e-6 * shape[0] * shape[2]
        ours, warm_up, k = partial(step, name, shape), partial(step, name, small), LOSSES[name][2].get("k")
        return MemoryCase(MEMORY, name, (shape[0], shape[2]), k, ours, warm_up, megabytes / scores)

    for name in LOSSES:
        found.append(memory(name, shape, MEGABYTES.get(name, 150.0)))
    found.append(memory("smooth_topk", huge, 1.2 * 4e-6 * huge[1] * huge[2]))
    for name in LOSSES:
        ours, whole = partial(step, name, shape), partial(step, name, shape, by_blocks=False)
        goal = 2.0 if name in ("two_way", "average_k") else 1.2
        found.append(SpeedCase(SPEED, name, shape, LOSSES[name][2].get("k"), ours, "whole scores", whole, goal))
    return [replace(case, goal=None) for case in found] if quick else found


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser("benchmarks.linear_loss", "losses of linear layers by blocks").parse_args(arguments)
    run(cases(options.quick), options, "python -m benchmarks.linear_loss")


if __name__ == "__main__":
    main()
