"""Clusters of classes whose calibration scores are alike: each class by the quantiles of its scores, then k-means."""

import numpy as np
from numpy.typing import NDArray

SHARE = 3  # every third row of a class helps to form the clusters, the others calibrate them
LEAST = 4  # rows that a class needs for quantiles of its own
_QUANTILES = (0.5, 0.6, 0.7, 0.8, 0.9)
_ROUNDS = 100


def forms_clusters(labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows form the clusters: the first, fourth, ... of each class in the order in which they came. The order
    says nothing about a row, so that the others remain exchangeable with new rows."""
    order = np.argsort(labels, kind="stable")
    _, first, counts = np.unique(labels[order], return_index=True, return_counts=True)
    place = np.empty(len(labels), np.int64)
    place[order] = np.arange(len(labels)) - np.repeat(first, counts)
    return np.asarray(place % SHARE == 0)


def cluster_classes(values: NDArray[np.float64], labels: NDArray[np.int64], clusters: int) -> dict[int, int]:
    """The cluster 0, 1, ... of every class with enough rows; classes that are not in it share a cluster of their own.

    >>> values = np.repeat([0.1, 0.12, 0.9, 0.88], 5)
    >>> cluster_classes(values, np.repeat([3, 5, 6, 9], 5), clusters=2)
    {3: 0, 5: 0, 6: 1, 9: 1}
    """
    classes, counts = np.unique(labels, return_counts=True)
    classes = classes[counts >= LEAST]
    if not len(classes):
        return {}
    points = np.array([np.quantile(values[labels == one], _QUANTILES) for one in classes])
    # starts spread along the order of the means: the same clusters every time, with no random numbers
    order = np.argsort(points.mean(-1), kind="stable")
    clusters = min(clusters, len(classes))
    centres = points[order[(np.arange(clusters) * 2 + 1) * len(classes) // (2 * clusters)]]
    nearest = np.zeros(len(classes), np.int64)
    for _ in range(_ROUNDS):
        distances = ((points[:, None] - centres[None]) ** 2).sum(-1)
        nearest = distances.argmin(-1)
        members = [points[nearest == one] for one in range(clusters)]
        moved = np.array([own.mean(0) if len(own) else old for own, old in zip(members, centres, strict=True)])
        if np.array_equal(moved, centres):
            break
        centres = moved
    return {int(one): int(cluster) for one, cluster in zip(classes, nearest, strict=True)}
