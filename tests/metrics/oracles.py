"""The metrics from their definitions, one row at a time in plain Python, independent of the code under test."""

import math
from collections.abc import Iterator

import numpy as np


def random_cases(seed: int, count: int, *, unknown: float = 0.2) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Scores and label matrices of many shapes: with ties, infinities, empty rows and columns, unknown entries."""
    rng = np.random.default_rng(seed)
    for case in range(count):
        n, num_labels = rng.integers(1, 12, size=2)
        scores = rng.normal(size=(n, num_labels))
        if case % 2:
            scores = np.round(scores)  # many ties
        if case % 5 == 0:
            scores[rng.random(scores.shape) < 0.1] = rng.choice([-np.inf, np.inf])
        target = (rng.random(scores.shape) < rng.choice([0.05, 0.3, 0.9])).astype(np.int64)
        if case % 3:
            target[rng.random(scores.shape) < unknown] = -1
        if case % 7 == 0:
            target[rng.integers(n)] = -1
        yield scores.astype(rng.choice([np.float32, np.float64])), target


def ranking(scores: np.ndarray, target: np.ndarray) -> list[int]:
    """Known labels of one row, best first, of equal scores the lower label first."""
    return sorted(np.flatnonzero(target >= 0).tolist(), key=lambda label: (-scores[label], label))


def average_precision(scores: np.ndarray, target: np.ndarray) -> float:
    """Mean over the present entries of the precision at their score; NaN without one."""
    known, present = scores[target >= 0], scores[target == 1]
    return float(np.mean([(present >= s).sum() / (known >= s).sum() for s in present])) if len(present) else math.nan


def precision_at_k(scores: np.ndarray, target: np.ndarray, k: int) -> float:
    first = ranking(scores, target)[:k]
    return sum(target[label] == 1 for label in first) / len(first) if first else math.nan


def recall_at_k(scores: np.ndarray, target: np.ndarray, k: int) -> float:
    first, present = ranking(scores, target)[:k], (target == 1).sum()
    return sum(target[label] == 1 for label in first) / present if present else math.nan


def ndcg_at_k(scores: np.ndarray, target: np.ndarray, k: int) -> float:
    gain = sum(
        1 / math.log2(2 + place) for place, label in enumerate(ranking(scores, target)[:k]) if target[label] == 1
    )
    best = sum(1 / math.log2(2 + place) for place in range(min(k, int((target == 1).sum()))))
    return gain / best if best else math.nan


def average_k_accuracy(values: np.ndarray, labels: np.ndarray, k: float) -> float:
    """Accuracy expected when the M best of all linked scores are in and ties at the last place are drawn at random."""
    wanted = math.floor(k * len(values) + 0.5)
    if wanted == 0:
        return 0.0
    last = sorted(values.ravel().tolist(), reverse=True)[wanted - 1]
    share = (wanted - (values > last).sum()) / (values == last).sum()
    of_label = values[np.arange(len(labels)), labels]
    return float(np.mean((of_label > last) + (of_label == last) * share))
