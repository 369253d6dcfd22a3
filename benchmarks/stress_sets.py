"""Made-up data of many kinds, for ``python -m benchmarks.defaults --sets stress``: one trouble of real tables each.

Every set is (features, labels): labels are class numbers, or a matrix of 1 and 0. Each can be made with any number of
``rows``, so that few rows to learn from can be judged on many.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.datasets import make_classification, make_multilabel_classification

Made = tuple[Any, Any]


def _classes(seed: int, change: Callable[[Any, np.random.Generator], Any], rows: int, **options: Any) -> Made:
    """make_classification, its columns changed."""
    options = {"n_features": 20, "n_informative": 8, "n_classes": 3, "flip_y": 0.05, **options}
    features, labels = make_classification(rows, random_state=seed, **options)
    return change(features, np.random.default_rng(seed)), labels


def _labels(
    seed: int, columns: int, labels: int, rank: int, share: float, kind: str = "dense", noise: float = 1.0, *, rows: int
) -> Made:
    """Several labels per row: a few hidden causes make both the columns and the labels, whose shares differ much."""
    chance = np.random.default_rng(seed)
    causes = chance.normal(size=(rows, rank))
    features = causes @ chance.normal(size=(rank, columns)) / np.sqrt(rank)
    features = features + noise * chance.normal(size=(rows, columns))
    scores = causes @ chance.normal(size=(rank, labels)) + chance.normal(size=(rows, labels))
    shares = share * chance.gamma(1.0, size=labels).clip(0.05, 4)
    cuts = [np.quantile(scores[:, label], 1 - min(shares[label], 0.6)) for label in range(labels)]
    present = (scores > cuts).astype(np.int64)
    if kind == "counts":
        features = chance.poisson(np.exp(0.7 * features - 0.5).clip(max=1e4)).astype(np.float64)
    elif kind == "binary":
        features = (features > 1).astype(np.float64)
    elif kind == "sparse":
        features = csr_matrix(np.where(features > 1.5, np.ceil(features - 1.5), 0.0))
    return features, present


def _one_hot(seed: int, columns: int, levels: int, *, rows: int) -> Made:
    """Categories, one column per level, of which some are rare."""
    chance = np.random.default_rng(seed)
    weights = chance.dirichlet(np.full(levels, 0.7), size=columns)
    picked = np.stack([chance.choice(levels, rows, p=weights[column]) for column in range(columns)], axis=1)
    effects = chance.normal(size=(columns, levels, 4))
    scores = sum(effects[column, picked[:, column]] for column in range(columns))
    labels = (scores + chance.gumbel(size=(rows, 4))).argmax(1)
    return np.concatenate([np.eye(levels)[picked[:, column]] for column in range(columns)], axis=1), labels


def _units(seed: int, *, rows: int) -> Made:
    """Ten numbers in units of their own beside 44 columns of 0 and 1, as covtype has them; seven classes, some rare."""
    chance = np.random.default_rng(seed)
    numbers = chance.normal(size=(rows, 10))
    soil, area = chance.choice(40, rows, p=chance.dirichlet(np.full(40, 0.5))), chance.integers(4, size=rows)
    scores = numbers @ chance.normal(size=(10, 7)) + chance.normal(size=(40, 7))[soil]
    scores += chance.normal(size=(4, 7))[area] + np.log(chance.dirichlet(np.ones(7)))
    labels = np.unique((scores + chance.gumbel(size=(rows, 7))).argmax(1), return_inverse=True)[1]
    numbers = numbers * 10 ** chance.uniform(0, 3.5, 10) + 1000
    return np.concatenate([numbers, np.eye(4)[area], np.eye(40)[soil]], axis=1), labels


def _topics(seed: int, words: int, classes: int, length: int, tf_idf: bool, *, rows: int) -> Made:
    """Short texts as sparse counts of words, or as tf-idf with rows of length 1; one class each."""
    chance = np.random.default_rng(seed)
    usual = 1 / np.arange(1, words + 1)
    topics = np.stack([usual * chance.lognormal(0, 1.2, words) for _ in range(classes)])
    topics /= topics.sum(1, keepdims=True)
    labels = chance.choice(classes, rows, p=chance.dirichlet(np.full(classes, 3.0)))
    counts = np.stack([chance.multinomial(max(3, chance.poisson(length)), topics[label]) for label in labels])
    if not tf_idf:
        return csr_matrix(counts.astype(np.float64)), labels
    weighted = np.log1p(counts) * (np.log((1 + rows) / (1 + (counts > 0).sum(0))) + 1)
    return csr_matrix(weighted / np.linalg.norm(weighted, axis=1, keepdims=True)), labels


def _poisson(seed: int, *, rows: int) -> Made:
    return make_multilabel_classification(rows, 40, n_classes=8, n_labels=3, random_state=seed)


def _same(features: Any, chance: np.random.Generator) -> Any:
    return features


def _scales(features: Any, chance: np.random.Generator) -> Any:
    return features * 10 ** chance.uniform(-4, 4, features.shape[1]) + 100 * chance.normal(size=features.shape[1])


def _spectrum(features: Any, chance: np.random.Generator) -> Any:
    """As principal components are: one kind, each smaller than the one before."""
    centred = features - features.mean(0)
    return centred @ np.linalg.svd(centred, full_matrices=False)[2].T


def _heavy(features: Any, chance: np.random.Generator) -> Any:
    return np.sinh(1.5 * features / features.std(0))


def _slips(features: Any, chance: np.random.Generator) -> Any:
    return np.where(chance.random(features.shape) < 0.005, 1000 * features, features)


def _doubles(features: Any, chance: np.random.Generator) -> Any:
    """Each column thrice, and five that never change."""
    return np.concatenate([features, features, 10 * features, np.full((len(features), 5), 7.0)], axis=1)


def _correlated(features: Any, chance: np.random.Generator) -> Any:
    mixed = features @ chance.normal(size=(features.shape[1], 60))
    return mixed + 0.3 * chance.normal(size=mixed.shape)


def _integers(features: Any, chance: np.random.Generator) -> Any:
    return np.floor(np.exp(0.8 * features / features.std(0) + 1))


def _unit_rows(features: Any, chance: np.random.Generator) -> Any:
    return features / np.linalg.norm(features, axis=1, keepdims=True)


STRESS: dict[str, partial[Made]] = {
    "plain": partial(_classes, 11, _same, rows=600),
    "scales": partial(_classes, 12, _scales, rows=600),
    "spectrum": partial(_classes, 13, _spectrum, rows=600, n_features=60, n_informative=12, n_classes=5),
    "heavy-tails": partial(_classes, 14, _heavy, rows=600),
    "slips": partial(_classes, 15, _slips, rows=600, n_classes=2),
    "doubles": partial(_classes, 16, _doubles, rows=600),
    "correlated": partial(_classes, 17, _correlated, rows=600, n_classes=4),
    "integers": partial(_classes, 18, _integers, rows=600),
    "unit-rows": partial(_classes, 19, _unit_rows, rows=1200, n_features=64, n_informative=20, n_classes=6),
    "tiny": partial(_classes, 20, _same, rows=120, n_classes=2),
    "micro-array": partial(_classes, 21, _same, rows=160, n_features=1000, n_informative=30, n_classes=2),
    "needles": partial(_classes, 22, _same, rows=600, n_features=300, n_informative=4, n_redundant=0, n_classes=3),
    "separable": partial(_classes, 23, _same, rows=600, class_sep=3.0, flip_y=0.0, n_classes=4),
    "noisy-2": partial(_classes, 24, _same, rows=400, flip_y=0.4, n_classes=2),
    "rare-classes": partial(_classes, 25, _same, rows=1000, n_classes=4, weights=[0.85, 0.1, 0.03, 0.02]),
    "many-classes": partial(_classes, 26, _same, rows=1500, n_features=40, n_informative=15, n_classes=25),
    "one-hot": partial(_one_hot, 27, 10, 8, rows=800),
    "words": partial(_topics, 28, 1500, 8, 20, False, rows=800),
    "tf-idf": partial(_topics, 29, 1500, 10, 15, True, rows=1000),
    "units": partial(_units, 38, rows=1000),
    "labels-few-rows": partial(_labels, 30, 30, 6, 5, 0.3, rows=200),
    "labels-many": partial(_labels, 31, 60, 60, 8, 0.06, rows=1000),
    "labels-wide": partial(_labels, 32, 500, 10, 6, 0.2, noise=2.0, rows=400),
    "labels-rare-2": partial(_labels, 33, 40, 15, 6, 0.03, rows=1200),
    "labels-counts": partial(_labels, 34, 50, 12, 6, 0.15, "counts", rows=800),
    "labels-binary": partial(_labels, 35, 120, 12, 8, 0.15, "binary", rows=800),
    "labels-sparse": partial(_labels, 36, 800, 20, 8, 0.1, "sparse", rows=1000),
    "labels-poisson": partial(_poisson, 37, rows=800),
}
