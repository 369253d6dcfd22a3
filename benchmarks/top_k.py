"""The top-k family: against PyTorch's own losses, against peers from PyPI, and against the published algorithms.

``python -m benchmarks.top_k`` prints the table; ``--help`` says how to write it and how to choose cases.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

import shortlist.functional as F
from benchmarks import peers
from benchmarks.harness import Case, MemoryCase, Setup, SpeedCase, Step
from benchmarks.run import parser, run
from shortlist import kernels
from shortlist_recipes.published.bracketing import lml_by_bracketing
from shortlist_recipes.published.divide_and_conquer import divide_and_conquer
from shortlist_recipes.published.smooth_topk import smooth_topk_loss as published_smooth_topk_loss
from shortlist_recipes.published.summation import summation

Shape = tuple[int, int]
ShapedSetup = Callable[[Shape], Step]
Size = Callable[[int, int], Shape]  # the shape asked for, or a small one in a quick run

BUILT_IN = "Against PyTorch's own"
TWINS = "PyTorch twins (no native kernels) against peers"
PUBLISHED = "Against the published algorithms"
MEMORY = "Memory beyond the scores"
TWIN_MEMORY = "Memory beyond the scores: PyTorch twins and peers"

DRAWS = 5
softmax = partial(torch.softmax, dim=-1)
noised = partial(F.noised_topk_loss, n_samples=DRAWS)


def cases(quick: bool = False) -> list[Case]:
    """Every row of the table; `quick` shrinks the sizes and drops the goals, which are for the real ones."""
    size: Size = (lambda rows, labels: (min(rows, 8), min(labels, 150))) if quick else (lambda *shape: shape)
    found = [*_built_in(size), *_twins(size), *_published(size), *_memory(size)]
    return [replace(case, goal=None) for case in found] if quick else found


# --- steps: made inputs, then one forward and backward pass ---


def loss_step(loss: Callable[[Tensor, Tensor], Tensor], shape: Shape, ascending: bool = False) -> Step:
    """Scores and targets to a number and its gradient."""
    scores, target = _inputs(shape, ascending)
    return lambda: torch.autograd.grad(loss(scores, target), scores)


def layer_step(layer: Callable[[Tensor], Tensor], shape: Shape, ascending: bool = False) -> Step:
    """Scores to an output of any shape, and back from a fixed random gradient."""
    scores, _ = _inputs(shape, ascending)
    with torch.no_grad():
        upstream = torch.randn_like(layer(scores))
    return lambda: torch.autograd.grad(layer(scores), scores, upstream)


def peer_step(make: Callable[[int], Callable[[Tensor, Tensor], Tensor]], shape: Shape) -> Step:
    """A peer's loss, made once for this number of labels, before the clock runs."""
    return loss_step(make(shape[1]), shape)


def draw_step(shape: Shape) -> Step:
    """Only the random numbers that the noised loss needs."""
    return lambda: torch.randn(DRAWS, *shape)


def twin_step(setup: ShapedSetup, shape: Shape) -> Step:
    """The same step without native kernels."""
    step = setup(shape)

    def twin() -> object:
        with kernels.use("torch"):
            return step()

    return twin


def _inputs(shape: Shape, ascending: bool = False) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(shape, generator=generator)
    if ascending:
        scores = scores.sort(-1).values
    return scores.requires_grad_(), torch.randint(shape[1], shape[:1], generator=generator)


# --- the rows ---


def _built_in(size: Size) -> list[Case]:
    def loss(name: str, function: Callable[..., Tensor], shape: Shape, k: int, goal: float | None) -> Case:
        ours, reference = partial(loss_step, partial(function, k=k), shape), partial(loss_step, cross_entropy, shape)
        return SpeedCase(BUILT_IN, name, shape, k, ours, "F.cross_entropy", reference, goal)

    def layer(name: str, function: Callable[..., Tensor], shape: Shape, k: int, goal: float | None) -> Case:
        ours, reference = partial(layer_step, partial(function, k=k), shape), partial(layer_step, softmax, shape)
        return SpeedCase(BUILT_IN, name, shape, k, ours, "torch.softmax", reference, goal)

    shape = size(256, 1000)
    sorted_rows = partial(loss_step, partial(F.smooth_topk_loss, k=5), shape, ascending=True)
    draws = partial(loss_step, partial(noised, k=5), shape)
    many = size(16, 100_000)
    many_sorted = partial(layer_step, partial(F.lml, k=1000), many, ascending=True)
    return [
        loss("smooth_topk", F.smooth_topk_loss, size(256, 100), 5, 1.4),
        loss("smooth_topk", F.smooth_topk_loss, shape, 5, 1.2),
        loss("smooth_topk", F.smooth_topk_loss, size(256, 10_000), 5, 1.0),
        loss("smooth_topk", F.smooth_topk_loss, shape, 20, 1.8),
        loss("smooth_topk", F.smooth_topk_loss, shape, 100, 8.0),
        # every label is a new largest one: the worst order for finding the top k in one pass
        replace(loss("smooth_topk, rows ascending", F.smooth_topk_loss, shape, 5, None), ours=sorted_rows),
        # labels in the order of their frequency: neighbours have neighbouring ranks
        layer("lml", F.lml, many, 1000, None),
        replace(layer("lml, rows ascending", F.lml, many, 1000, None), ours=many_sorted),
        layer("lml", F.lml, shape, 5, 1.25),
        layer("lml", F.lml, size(256, 10_000), 5, 1.5),
        layer("lml", F.lml, size(64, 100_000), 5, 1.5),
        loss("lml_loss", F.lml_loss, shape, 5, 1.5),
        loss("truncated_entropy", F.truncated_entropy_loss, shape, 5, 2.0),
        loss("topk_hinge", F.topk_hinge_loss, shape, 5, None),
        layer("subset_marginals", F.subset_marginals, shape, 5, None),
        SpeedCase(BUILT_IN, "noised_topk", shape, 5, draws, "torch.randn alone", partial(draw_step, shape), 1.5),
    ]


def _twins(size: Size) -> list[Case]:
    def twin(name: str, ours: Setup, against: str, reference: Setup, shape: Shape, k: int = 5) -> Case:
        around = partial(kernels.use, "torch")
        return SpeedCase(TWINS, name, shape, k, ours, against, reference, 1.0, around)

    found = []
    for shape, k in [
        *[(size(256, labels), 5) for labels in (100, 1000, 10_000)],
        *[(size(256, 1000), k) for k in (20, 100)],
    ]:
        ours = partial(loss_step, partial(F.smooth_topk_loss, k=k), shape)
        theirs = partial(peer_step, partial(peers.smooth_topk, k=k), shape)
        found.append(twin("smooth_topk", ours, "difftopk", theirs, shape, k))
    for shape in (size(256, 1000), size(256, 10_000)):
        ours = partial(loss_step, partial(noised, k=5), shape)
        theirs = partial(peer_step, partial(peers.noised_topk, k=5, draws=DRAWS), shape)
        found.append(twin("noised_topk", ours, "pytopk", theirs, shape))
        counts = torch.arange(1, shape[1] + 1)  # as peers.noised_topk counts them
        ours = partial(loss_step, partial(noised, k=5, class_counts=counts, scale=50.0), shape)
        theirs = partial(peer_step, partial(peers.noised_topk, k=5, draws=DRAWS, imbalanced=True), shape)
        found.append(twin("noised_topk, imbalanced", ours, "pytopk", theirs, shape))
    for shape in (size(256, 1000), size(256, 10_000), size(64, 100_000)):
        ours = partial(layer_step, partial(F.lml, k=5), shape)
        theirs = partial(layer_step, partial(peers.budget_sparsemax, k=5), shape)
        found.append(twin("lml", ours, "entmax.budget_bisect", theirs, shape))
    return found


def _published(size: Size) -> list[Case]:
    def smooth(against: str, algorithm: Callable[..., Tensor], custom: bool, shape: Shape, k: int = 5) -> Case:
        rival = partial(published_smooth_topk_loss, k=k, algorithm=algorithm, custom_backward=custom)
        ours, theirs = partial(loss_step, partial(F.smooth_topk_loss, k=k), shape), partial(loss_step, rival, shape)
        return SpeedCase(PUBLISHED, "smooth_topk", shape, k, ours, against, theirs)

    def lml(points: int, shape: Shape) -> Case:
        ours = partial(layer_step, partial(F.lml, k=5), shape)
        theirs = partial(layer_step, partial(lml_by_bracketing, k=5, points=points), shape)
        return SpeedCase(PUBLISHED, "lml", shape, 5, ours, f"bracketing, d={points}", theirs)

    found = []
    for shape in (size(256, 100), size(256, 1000), size(256, 10_000)):
        found += [
            smooth("summation, autograd", summation, False, shape),
            smooth("summation, custom backward", summation, True, shape),
            smooth("divide and conquer, autograd", divide_and_conquer, False, shape),
            smooth("divide and conquer, custom backward", divide_and_conquer, True, shape),
        ]
    for k in (20, 100):
        found.append(smooth("divide and conquer, custom backward", divide_and_conquer, True, size(256, 1000), k))
    # d = 100 needs 100 times the memory of the scores, so it is asked for the smaller size only
    return [*found, lml(100, size(256, 1000)), lml(10, size(256, 1000)), lml(10, size(256, 10_000))]


def _memory(size: Size) -> list[Case]:
    ours: dict[str, ShapedSetup] = {
        "smooth_topk": partial(loss_step, partial(F.smooth_topk_loss, k=5)),
        "lml": partial(layer_step, partial(F.lml, k=5)),
        "lml_loss": partial(loss_step, partial(F.lml_loss, k=5)),
        "truncated_entropy": partial(loss_step, partial(F.truncated_entropy_loss, k=5)),
        "topk_hinge": partial(loss_step, partial(F.topk_hinge_loss, k=5)),
        "noised_topk": partial(loss_step, partial(noised, k=5)),
        "log_subset_sum": partial(layer_step, partial(F.log_subset_sum, k=5)),
        "subset_marginals": partial(layer_step, partial(F.subset_marginals, k=5)),
    }
    twins: dict[str, ShapedSetup] = {name: partial(twin_step, step) for name, step in ours.items()}
    theirs: dict[str, ShapedSetup] = {
        "(F.cross_entropy)": partial(loss_step, cross_entropy),
        "(torch.softmax)": partial(layer_step, softmax),
        "(difftopk)": partial(peer_step, partial(peers.smooth_topk, k=5)),
        "(pytopk)": partial(peer_step, partial(peers.noised_topk, k=5, draws=DRAWS)),
        "(entmax.budget_bisect)": partial(layer_step, partial(peers.budget_sparsemax, k=5)),
    }

    def case(group: str, name: str, step: ShapedSetup, goal: float | None) -> Case:
        shape = size(64, 100_000)
        return MemoryCase(group, name, shape, 5, partial(step, shape), partial(step, (8, 150)), goal)

    return [
        *[case(MEMORY, name, step, 3.0) for name, step in ours.items()],
        *[case(TWIN_MEMORY, name, step, None) for name, step in {**twins, **theirs}.items()],
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run this suite from the command line."""
    options = parser("benchmarks.top_k", "Time and memory of the top-k family.").parse_args(arguments)
    run(cases(options.quick), options, "python -m benchmarks.top_k")


if __name__ == "__main__":
    main()
