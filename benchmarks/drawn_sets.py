"""Data drawn at random, for ``python -m benchmarks.defaults --sets drawn-0,drawn-1``: its number decides how many rows,
columns and labels a set has, what columns look like and how labels come about. So nobody picked them, and numbers that
nothing was chosen by are a fair judge.
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

KINDS = ("plain", "scales", "spectrum", "heavy", "binary", "one-hot", "counts", "mixed", "words")


def drawn(number: int, more_rows: int) -> tuple[Any, Any, int]:
    """Features, labels (classes, or a matrix of 1 and 0) and how many rows to learn from; there are ``more_rows`` to
    judge by."""
    chance = np.random.default_rng([17, number])
    few = round(np.exp(chance.uniform(np.log(60), np.log(2000))))
    columns = round(np.exp(chance.uniform(np.log(2), np.log(min(2000, 200_000 / few)))))
    several = chance.random() < 0.4
    kind = KINDS[chance.integers(len(KINDS) if columns >= 30 else len(KINDS) - 1)]
    columns = max(2, columns // 6) if kind == "one-hot" else columns
    num_labels = round(np.exp(chance.uniform(np.log(2 + several), np.log(min(20, few / 15)))))
    rows = few + more_rows

    # causes that columns share, and what each column has of its own
    rank = round(np.exp(chance.uniform(0, np.log(columns + 1))))
    shared = chance.choice([0.0, 0.5, 0.9])
    causes = chance.normal(size=(rows, rank))
    latent = np.sqrt(shared) * causes @ chance.normal(size=(rank, columns)) / np.sqrt(rank)
    latent += np.sqrt(1 - shared) * chance.normal(size=(rows, columns))

    # labels by some of the columns, straight or bent
    told = chance.permutation(columns)[: max(1, round(columns * np.exp(chance.uniform(np.log(0.02), 0))))]
    scores = latent[:, told] @ chance.normal(size=(len(told), num_labels))
    if chance.random() < 0.35:
        bent = np.tanh(latent[:, told] @ chance.normal(size=(len(told), 30)) / np.sqrt(len(told)) * 2)
        scores = 0.3 * scores / scores.std() + bent @ chance.normal(size=(30, num_labels))
    scores *= chance.uniform(1.5, 8) / scores.std()
    scores += chance.normal(size=num_labels) * chance.uniform(0, 1.5)  # some labels are rare
    if several:
        scores -= chance.uniform(0, 3)
        labels = (scores + chance.logistic(size=scores.shape) > 0).astype(np.int64)
        labels = labels[:, labels.mean(0) > 0.005]  # in three training rows at least, mostly
    else:
        labels = (scores + chance.gumbel(size=scores.shape)).argmax(1)
        wrong = chance.random(rows) < chance.choice([0, 0.1])
        labels[wrong] = chance.integers(num_labels, size=wrong.sum())
        labels = np.unique(labels, return_inverse=True)[1]
    return _columns(latent, kind, chance), labels, few


def _columns(latent: Any, kind: str, chance: np.random.Generator) -> Any:
    """What is seen of them."""
    count = latent.shape[1]
    if kind == "scales":
        return latent * 10 ** chance.uniform(-2, 2, count) + 10 * chance.normal(size=count)
    if kind == "spectrum":  # of one kind, some wider
        return latent * np.arange(1, count + 1) ** -chance.uniform(0.3, 1.5)
    if kind == "heavy":
        return np.sinh(chance.uniform(1, 2) * latent)
    if kind == "binary":
        return (latent > chance.normal(0.7, 0.7, count)).astype(np.float64)
    if kind == "one-hot":
        cuts = np.sort(chance.normal(size=(5, count)), axis=0)
        levels = sum((latent > cut).astype(np.int64) for cut in cuts)
        return np.concatenate([levels == level for level in range(6)], axis=1).astype(np.float64)
    if kind == "counts":
        return chance.poisson(np.exp(0.7 * latent)).astype(np.float64)
    if kind == "mixed":  # numbers in units of their own beside 0 and 1
        numbers = latent * 10 ** chance.uniform(0, 3, count)
        return np.where(np.arange(count) < (count + 1) // 2, numbers, latent > chance.normal(0.7, 0.7, count))
    if kind == "words":
        return csr_matrix(chance.poisson(np.exp(1.2 * latent - 1)).astype(np.float64))
    return latent
