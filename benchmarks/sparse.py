"""Sparse targets against the whole label matrix (int8), and the memory of fitting on sparse features and labels.

``python -m benchmarks.sparse`` prints the table; ``--help`` says how to write it and how to choose cases. A fit here is
one of few epochs at a given learning rate: what it holds at once does not grow with either.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy import sparse

import shortlist.functional as F
from benchmarks.harness import Case, MemoryCase, SpeedCase, Step
from benchmarks.run import parser, run
from shortlist.estimators import SetClassifier
from shortlist.labels import SparseLabels

SPEED = "Time of a loss of a sparse target"
MEMORY = "Memory of SetClassifier.fit on sparse data beyond its inputs"
LABELS_A_ROW, FEATURES_A_ROW = 5, 100

LOSSES = {"binary": F.binary_loss, "asymmetric": F.asymmetric_loss, "two_way": F.two_way_loss}


def loss_step(name: str, rows: int, labels: int, whole: bool) -> Step:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(rows, labels, generator=generator).requires_grad_()
    present = torch.randint(labels, (rows, LABELS_A_ROW), generator=generator)
    matrix = torch.zeros(rows, labels, dtype=torch.int8).scatter_(1, present, 1)
    target = matrix if whole else SparseLabels.from_dense(matrix)
    return lambda: torch.autograd.grad(LOSSES[name](scores, target), scores)


def _csr(rows: int, columns: int, each: int, random: np.random.Generator, values: Any) -> Any:
    """Made rows with so many entries; the columns' shares fall like those of words."""
    share = 1 / (np.arange(columns) + 10)
    indices = random.choice(columns, size=(rows, each), p=share / share.sum())
    matrix = sparse.csr_matrix((values, indices.ravel(), np.arange(0, rows * each + 1, each)), shape=(rows, columns))
    matrix.sum_duplicates()
    return matrix


def fit_step(rows: int, features: int, labels: int, hidden: tuple[int, ...]) -> Step:
    random = np.random.default_rng(0)
    each = min(FEATURES_A_ROW, features // 4)
    x = _csr(rows, features, each, random, random.random(rows * each, dtype=np.float32))
    y = _csr(rows, labels, LABELS_A_ROW, random, np.ones(rows * LABELS_A_ROW, dtype=np.int8))
    y.data[:] = 1
    model = SetClassifier(hidden=hidden, epochs=2, lr=0.003, batch_size=256, solver="adamw", random_state=0)
    return lambda: model.fit(x, y)


def cases(quick: bool = False) -> list[Case]:
    rows, labels = (4, 300) if quick else (256, 100_000)
    found: list[Case] = [
        SpeedCase(
            SPEED, name, (rows, labels), None, partial(loss_step, name, rows, labels, False), "the whole int8 matrix",
            partial(loss_step, name, rows, labels, True), 0.9,
        )
        for name in LOSSES
    ]  # fmt: skip
    shapes: list[tuple[str, int, int, int, tuple[int, ...], float]] = [
        ("hidden=(256,)", 20_000, 50_000, 10_000, (256,), 2000.0),
        ("linear", 20_000, 5_000, 4_000, (), 1000.0),
    ]
    for name, examples, columns, count, hidden, megabytes in shapes:
        size = (60, 40, 12) if quick else (examples, columns, count)
        scores = 4e-6 * size[0] * size[2]
        warm_up = partial(fit_step, 60, 40, 12, hidden)
        ours = partial(fit_step, *size, hidden)
        found.append(MemoryCase(MEMORY, name, (size[0], size[2]), None, ours, warm_up, megabytes / scores))
    return [replace(case, goal=None) for case in found] if quick else found


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser("benchmarks.sparse", "sparse targets and features").parse_args(arguments)
    run(cases(options.quick), options, "python -m benchmarks.sparse")


if __name__ == "__main__":
    main()
