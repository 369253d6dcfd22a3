"""All losses in one table (how they are called, what they must say) and what "equal to the oracle" means."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

import shortlist.functional as F
from tests import oracles
from tests.functional import oracles_multilabel as multilabel

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-9, torch.float16: 2**-11 + 1e-5, torch.bfloat16: 2**-8 + 1e-5}
FLOATS = [torch.float32, torch.float64]


@dataclass(frozen=True)
class Loss:
    """Of the top-k family: ``call(scores, target, k, **options)``, ``exact(row, present labels, k, usable labels)``."""

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


K = 3  # of the top-k family in `CASES`
some_scores = partial(random_scores, dtype=torch.float64)


@dataclass(frozen=True)
class Case:
    """``call(scores, target, **options)``; ``exact(scores, target)``: the mean and its gradient.

    ``by``: what "mean" counts ("entry", "row", or "batch" where rows are coupled). ``targets``: "index", "matrix", and
    "single", a matrix with at most one present label per row. ``topk``: of the top-k family, in which every score of a
    row counts, only present labels are observed, and a label at -inf is out of its row.
    """

    call: Callable[..., Tensor]
    exact: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
    by: str
    targets: tuple[str, ...] = ("matrix",)
    topk: bool = False
    counts_known: bool = False  # a row counts if it has a known label; else if it has a present one

    @property
    def reductions(self) -> list[str]:
        return ["mean", "sum"] if self.by == "batch" else ["mean", "sum", "none"]


def _topk(name: str) -> Case:
    loss = LOSSES[name]

    def exact(scores: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        seen = target >= 0 if target.ndim == 1 else (target == 1).any(-1)
        losses, slopes = exactly(loss, scores[seen], target[seen], K)
        gradient = torch.zeros(scores.shape, dtype=torch.float64)
        gradient[seen] = slopes / int(seen.sum())
        return losses.mean(), gradient

    targets = ("index", "matrix") if loss.takes_matrix else ("index",)
    return Case(lambda s, t, **o: loss.call(s, t, K, **o), exact, "row", targets, topk=True)


def _case(
    call: Callable[..., Tensor], oracle: Callable[..., Tensor], by: str, *targets: str, counts_known: bool = False
) -> Case:
    exact = partial(value_and_gradient, oracle)
    return Case(call, exact, by, targets or ("matrix",), counts_known=counts_known)


def average_k(scores: Tensor, target: Tensor, **options: Any) -> Tensor:
    """Proposals made from the same scores, so that one gradient covers both heads."""
    return F.average_k_loss(scores, -0.5 * scores, target, 2.3, **options)


CASES = {
    **{name.removesuffix("_loss"): _topk(name) for name in LOSSES},
    "two_way": _case(F.two_way_loss, multilabel.two_way, "batch"),
    "two_way_sample": _case(
        lambda s, t, **o: F.two_way_loss(s, t, way="sample", **o),
        lambda s, t: multilabel.two_way(s, t, way="sample"),
        "row",
    ),
    "lsep": _case(F.lsep_loss, multilabel.lsep, "row"),
    "warp_exact": _case(lambda s, t, **o: F.warp_loss(s, t, exact=True, **o), multilabel.warp_exact, "row"),
    "rml": _case(F.rml_loss, multilabel.rml, "row"),
    "multilabel_softmax": _case(F.multilabel_softmax_loss, multilabel.multilabel_softmax, "row"),
    "partial_binary": _case(F.partial_binary_loss, multilabel.partial_binary, "row", counts_known=True),
    "binary": _case(F.binary_loss, multilabel.binary, "entry"),
    "asymmetric": _case(F.asymmetric_loss, multilabel.asymmetric, "entry"),
    "partial_selective": _case(
        lambda s, t, **o: F.partial_selective_loss(s, t, likelihood_topk=1, **o),
        lambda s, t: multilabel.partial_selective(s, t, likelihood_topk=1),
        "entry",
    ),
    "assume_negative": _case(F.assume_negative_loss, multilabel.assume_negative, "row", "index", "single"),
    "expected_positive": _case(
        lambda s, t, **o: F.expected_positive_loss(s, t, 1.7, **o),
        lambda s, t: multilabel.expected_positive(s, t, 1.7),
        "batch", "index", "single",
    ),
    "average_k": _case(
        average_k, lambda s, t: multilabel.average_k(s, -0.5 * s, t, 2.3), "batch", "index", "single"
    ),
}  # fmt: skip


def some_target(name: str, rows: int, labels: int, seed: int = 1, kind: str | None = None) -> Tensor:
    """Indices with an unknown row; or a matrix with rows and columns that are all unknown, all absent, all present.

    Of the top-k family a matrix of random labels, two rows without a present one.
    """
    generator = torch.Generator().manual_seed(seed)
    if (kind or CASES[name].targets[0]) == "index":
        target = torch.randint(0, labels, (rows,), generator=generator)
        target[rows // 2] = -1
        return target
    target = torch.randint(-1, 2, (rows, labels), generator=generator)
    if CASES[name].topk:
        target[:, 0] = 1
        target[0] = 0
        target[rows // 2] = -1
        return target
    for i, value in enumerate((-1, 0, 1)):
        target[:, i] = value
    for i, value in enumerate((-1, 0, 1)):
        target[i] = value
    return target
