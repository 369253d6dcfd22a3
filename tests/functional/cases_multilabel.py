"""The multi-label, partial-label and average-K losses in one table: how they are called and what they must say."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

import shortlist.functional as F
from tests.functional import oracles_multilabel as oracles
from tests.functional.harness import random_scores

some_scores = partial(random_scores, dtype=torch.float64)


@dataclass(frozen=True)
class Case:
    """``call(scores, target, **options)``; ``oracle(scores, target)``, mean reduction.

    ``by``: what "mean" counts ("entry", "row", or "batch" where rows are coupled); ``indices``: class-index targets.
    """

    call: Callable[..., Tensor]
    oracle: Callable[..., Tensor]
    by: str
    indices: bool = False


def average_k(scores: Tensor, target: Tensor, **options: Any) -> Tensor:
    """Proposals made from the same scores, so that one gradient covers both heads."""
    return F.average_k_loss(scores, -0.5 * scores, target, 2.3, **options)


CASES = {
    "two_way": Case(F.two_way_loss, oracles.two_way, "batch"),
    "two_way_sample": Case(
        lambda s, t, **o: F.two_way_loss(s, t, way="sample", **o),
        lambda s, t: oracles.two_way(s, t, way="sample"),
        "row",
    ),
    "lsep": Case(F.lsep_loss, oracles.lsep, "row"),
    "warp_exact": Case(lambda s, t, **o: F.warp_loss(s, t, exact=True, **o), oracles.warp_exact, "row"),
    "rml": Case(F.rml_loss, oracles.rml, "row"),
    "multilabel_softmax": Case(F.multilabel_softmax_loss, oracles.multilabel_softmax, "row"),
    "partial_binary": Case(F.partial_binary_loss, oracles.partial_binary, "row"),
    "binary": Case(F.binary_loss, oracles.binary, "entry"),
    "asymmetric": Case(F.asymmetric_loss, oracles.asymmetric, "entry"),
    "partial_selective": Case(
        lambda s, t, **o: F.partial_selective_loss(s, t, likelihood_topk=1, **o),
        lambda s, t: oracles.partial_selective(s, t, likelihood_topk=1),
        "entry",
    ),
    "assume_negative": Case(F.assume_negative_loss, oracles.assume_negative, "row", indices=True),
    "expected_positive": Case(
        lambda s, t, **o: F.expected_positive_loss(s, t, 1.7, **o),
        lambda s, t: oracles.expected_positive(s, t, 1.7),
        "batch",
        indices=True,
    ),
    "average_k": Case(average_k, lambda s, t: oracles.average_k(s, -0.5 * s, t, 2.3), "batch", indices=True),
}
MATRIX = [name for name, case in CASES.items() if not case.indices]
INDICES = [name for name, case in CASES.items() if case.indices]
ROWWISE = [name for name, case in CASES.items() if case.by != "batch"]
COUPLED = [name for name, case in CASES.items() if case.by == "batch"]


def some_target(name: str, rows: int, labels: int, seed: int = 1) -> Tensor:
    """Indices with an unknown row; or a matrix with an all-unknown, an all-absent and an all-present row and column."""
    generator = torch.Generator().manual_seed(seed)
    if CASES[name].indices:
        target = torch.randint(0, labels, (rows,), generator=generator)
        target[rows // 2] = -1
        return target
    target = torch.randint(-1, 2, (rows, labels), generator=generator)
    for i, value in enumerate((-1, 0, 1)):
        target[:, i] = value
    for i, value in enumerate((-1, 0, 1)):
        target[i] = value
    return target
