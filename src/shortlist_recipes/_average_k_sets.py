"""What the recipe average-k measures of a trained model: its sets, their accuracy and their sizes."""

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from shortlist.metrics import functional as M
from shortlist.sets import AverageK
from shortlist_recipes.cells import Numbers, Trained

GROUPS = ("few", "medium", "many")
LARGEST = 20  # sets this large or larger share one bar of the histograms
BY_SOFTMAX = ("cross-entropy", "noised-topk")  # losses of scores that compete within their row


def set_accuracies(trained: Trained) -> Numbers:
    """Average-k accuracy and set sizes on test data, the threshold from validation data; by shots, too."""
    metric = str(trained.config.stop.metric)
    k = float(metric.partition("@")[2])
    counts = trained.parts["train"].label_counts()
    target = trained.parts["test"].target.numpy()
    weight = weights_of_test(trained)
    group = M.shot_group_of(counts).numpy()[target]

    inside, sizes = _inside_and_sizes(trained, AverageK(k, link="softmax"))
    # of the loss itself
    own_link: Literal["softmax", "sigmoid"] = "softmax" if trained.config.objective.name in BY_SOFTMAX else "sigmoid"
    by_own_link, _ = _inside_and_sizes(trained, AverageK(k, link=own_link))
    best = trained.history.best
    numbers: dict[str, Any] = {
        "accuracy": float(inside @ weight),
        **{name: float(value) for name, value in M.shot_groups(_per_class(inside, target, counts), counts).items()},
        "by own link": float(by_own_link @ weight),
        "mean size": float(sizes @ weight),
        "validation": None if best is None else best[metric],
        "sizes": _histogram(sizes, weight),
    }
    for number, name in enumerate(GROUPS):
        chosen = group == number
        numbers[f"sizes {name}"] = _histogram(sizes[chosen], weight[chosen]) if chosen.any() else None
    return numbers


def weights_of_test(trained: Trained) -> NDArray[np.float64]:
    """How much each test image counts; they sum to 1.

    Where the training data was made long-tailed, the test data keeps all its images and is weighted as if it were as
    long-tailed: the same expectation as from a smaller test set, with less noise.
    """
    target = trained.parts["test"].target.numpy()
    if not trained.parts["train"].corruptions:
        return np.full(len(target), 1 / len(target))
    counts = trained.parts["train"].label_counts().double().numpy()
    weight: NDArray[np.float64] = (counts / np.bincount(target, minlength=len(counts)).clip(min=1))[target]
    return weight / weight.sum()


def _per_class(inside: NDArray[np.float64], target: NDArray[np.int64], counts: torch.Tensor) -> torch.Tensor:
    """The mean of each class; NaN where a class has no test images."""
    of_class = np.bincount(target, minlength=len(counts))
    found = np.bincount(target, weights=inside, minlength=len(counts)) / of_class.clip(min=1)
    return torch.from_numpy(np.where(of_class > 0, found, np.nan))


def _inside_and_sizes(trained: Trained, rule: AverageK) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Whether each test image's label is in its set, and how large the set is."""
    sets = rule.fit(trained.scores("validation")).predict(trained.scores("test"))
    target = trained.parts["test"].target.numpy()
    inside = sets.to_dense()[np.arange(len(target)), target]
    return inside.astype(np.float64), sets.sizes.astype(np.float64)


def _histogram(sizes: NDArray[np.float64], weight: NDArray[np.float64]) -> list[float]:
    """The share of sets of 0, 1, 2, ... labels; the last is of all larger ones."""
    shares = np.bincount(sizes.clip(max=LARGEST).astype(np.int64), weights=weight, minlength=LARGEST + 1)
    return [float(share) for share in shares / weight.sum()]
