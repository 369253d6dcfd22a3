"""Rows and labels that the tests of SetClassifier fit it to, and the best of what it tried."""

from typing import Any

import numpy as np
from sklearn.datasets import make_blobs, make_multilabel_classification
from sklearn.preprocessing import StandardScaler

from shortlist.estimators import SetClassifier

X, Y = make_blobs(300, 6, centers=8, cluster_std=2.0, random_state=0)
X = (X / 6).astype(np.float32)
MX, MY = make_multilabel_classification(300, 12, n_classes=5, n_labels=2, random_state=0)
MX = (MX / 5).astype(np.float32)
NAMES = np.array(["ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen"])


def classifier(objective: str = "cross-entropy", **params: Any) -> SetClassifier:
    return SetClassifier(objective, **{"epochs": 5, "lr": 0.05, "random_state": 0, **params})


SCALES = "between the two", "one for all columns", "each column's own"  # as they are tried on columns of one kind


def best_tried(model: SetClassifier, rows: int) -> dict[str, Any]:
    """What has the smallest held-out loss less one per right row, plus doubts about strength and scale; of what was
    tried on all three folds."""

    def cost(one: dict[str, Any]) -> float:
        doubt = np.log10(one["weight_decay"] / 10**0.5) ** 2
        doubt += 0.5 * SCALES.index(one["scale"]) if one["scale"] in SCALES else 0
        return float(rows * (one["loss"] - one["precision_at_1"]) + doubt)

    return min((one for one in model.selection_ if one["folds"] == 3), key=cost)


def scaled(x: Any, scale: str) -> Any:
    standard = StandardScaler().fit(x)
    kept = standard.scale_ ** dict(zip(SCALES, (0.5, 1, 0), strict=True))[scale]  # of the spread of columns
    return standard.transform(x) * kept / np.sqrt(np.mean(kept**2))
