"""The losses of a label matrix, and of one observed label per row, against PyTorch's own.

python -m benchmarks.multilabel
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, one_hot

import shortlist.functional as F
from benchmarks.harness import Case, MemoryCase, SpeedCase, Step
from benchmarks.run import run_suite

Shape = tuple[int, int]
Loss = Callable[[Tensor, Tensor], Tensor]

GROUP = "Multi-label losses"
MEMORY = "Multi-label losses: memory beyond the scores"
BCE = "BCE with logits"
PRESENT = 10  # labels per row, on average
MANY = 0.03  # share of labels present, where there are many
UNKNOWN = 0.3
K = 5.0


def _matrix(shape: Shape, share: float, unknown: float) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(shape, generator=generator).requires_grad_()
    target = (torch.rand(shape, generator=generator) < share).float()
    return scores, torch.where(torch.rand(shape, generator=generator) < unknown, -1.0, target)


def matrix_step(loss: Loss, shape: Shape, share: float | None = None, unknown: float = 0.0) -> Step:
    """Scores and a label matrix of float32 (what PyTorch's loss takes) to a number and its gradient."""
    scores, target = _matrix(shape, PRESENT / shape[1] if share is None else share, unknown)
    return lambda: torch.autograd.grad(loss(scores, target), scores)


def index_step(loss: Loss, shape: Shape, matrix: bool = False) -> Step:
    """One label per row, as an index or as a matrix."""
    scores, _ = _matrix(shape, 0.0, 0.0)
    index = torch.randint(shape[1], shape[:1], generator=torch.Generator().manual_seed(1))
    target = one_hot(index, shape[1]).float() if matrix else index
    return lambda: torch.autograd.grad(loss(scores, target), scores)


def average_k_step(shape: Shape) -> Step:
    return _two_heads(lambda sets, proposals, index, _: F.average_k_loss(sets, proposals, index, K), shape)


def both_entropies_step(shape: Shape) -> Step:
    """Binary cross-entropy on one head, cross-entropy on the other."""
    return _two_heads(
        lambda sets, proposals, index, matrix: (
            binary_cross_entropy_with_logits(sets, matrix) + cross_entropy(proposals, index)
        ),
        shape,
    )


def _two_heads(loss: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor], shape: Shape) -> Step:
    sets, _ = _matrix(shape, 0.0, 0.0)
    proposals = torch.randn(shape, generator=torch.Generator().manual_seed(2)).requires_grad_()
    index = torch.randint(shape[1], shape[:1], generator=torch.Generator().manual_seed(1))
    matrix = one_hot(index, shape[1]).float()
    return lambda: torch.autograd.grad(loss(sets, proposals, index, matrix), (sets, proposals))


STEPS: dict[str, tuple[Callable[[Shape], Step], float]] = {  # name -> (step, goal)
    "two_way": (partial(matrix_step, F.two_way_loss), 2.0),
    "two_way, many present": (partial(matrix_step, F.two_way_loss, share=MANY), 2.0),
    "asymmetric": (partial(matrix_step, F.asymmetric_loss), 2.0),
    "asymmetric, gamma 2.5": (partial(matrix_step, partial(F.asymmetric_loss, gamma_neg=2.5)), 2.0),
    "binary": (partial(matrix_step, F.binary_loss), 2.0),
    "partial_binary, unknowns": (partial(matrix_step, F.partial_binary_loss, unknown=UNKNOWN), 2.0),
    "partial_selective, unknowns": (partial(matrix_step, F.partial_selective_loss, unknown=UNKNOWN), 2.0),
    "lsep": (partial(matrix_step, F.lsep_loss), 2.0),
    "lsep, many present": (partial(matrix_step, F.lsep_loss, share=MANY), 2.0),
    "multilabel_softmax": (partial(matrix_step, F.multilabel_softmax_loss), 2.0),
    "assume_negative": (partial(index_step, F.assume_negative_loss), 2.0),
    "assume_negative, matrix": (partial(index_step, F.assume_negative_loss, matrix=True), 2.0),
    "expected_positive": (partial(index_step, partial(F.expected_positive_loss, k=K)), 2.0),
    "warp": (partial(matrix_step, F.warp_loss), 8.0),
    "warp, many present": (partial(matrix_step, F.warp_loss, share=MANY), 8.0),
    "warp, exact": (partial(matrix_step, partial(F.warp_loss, exact=True)), 8.0),
    "warp, exact, many present": (partial(matrix_step, partial(F.warp_loss, exact=True), share=MANY), 8.0),
    "rml": (partial(matrix_step, F.rml_loss), 4.0),
    "rml, many present": (partial(matrix_step, F.rml_loss, share=MANY), 8.0),
}


def cases(quick: bool = False) -> list[Case]:
    """Every row of the table; `quick` shrinks the sizes."""
    shapes = [(8, 50), (4, 150)] if quick else [(256, 1000), (64, 100_000)]
    found: list[Case] = []
    for shape in shapes:
        reference = partial(matrix_step, binary_cross_entropy_with_logits, shape)
        for name, (step, goal) in STEPS.items():
            found.append(SpeedCase(GROUP, name, shape, None, partial(step, shape), BCE, reference, goal))
        ours, theirs = partial(average_k_step, shape), partial(both_entropies_step, shape)
        found.append(SpeedCase(GROUP, "average_k", shape, int(K), ours, "both cross-entropies", theirs, 3.0))
    few = (8, 20) if quick else (256, 100)  # a small batch: more of its time is spent around the kernel
    step, goal = STEPS["rml"]
    reference = partial(matrix_step, binary_cross_entropy_with_logits, few)
    found.append(SpeedCase(GROUP, "rml", few, None, partial(step, few), BCE, reference, goal))
    shape, small = shapes[-1], (8, 150)
    for name, (step, _) in STEPS.items():
        found.append(MemoryCase(MEMORY, name, shape, None, partial(step, shape), partial(step, small), 4.0))
    ours, warm_up = partial(average_k_step, shape), partial(average_k_step, small)
    found.append(MemoryCase(MEMORY, "average_k, both heads", (2, *shape), int(K), ours, warm_up, 4.0))
    return found


main = partial(run_suite, "benchmarks.multilabel", __doc__, cases)

if __name__ == "__main__":
    main()
