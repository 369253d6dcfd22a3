"""Linear evaluation: logistic regression on frozen features, over many strengths of regularisation."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from shortlist.data import Dataset
from shortlist.labels import from_indices

STRENGTHS = tuple(float(strength) for strength in np.logspace(-6, 5, 45))


def of_classes(dataset: Dataset, classes: Sequence[int]) -> Dataset:
    """The examples of these classes, which are numbered anew in this order.

    >>> data = Dataset(torch.eye(3), torch.tensor([2, 0, 1]), ("cat", "dog", "owl"))
    >>> owls = of_classes(data, [2, 1])
    >>> owls.target, owls.vocabulary
    (tensor([0, 1]), ('owl', 'dog'))
    """
    number = torch.full((dataset.num_labels,), -1)
    number[list(classes)] = torch.arange(len(classes))
    chosen = (dataset.target >= 0) & (number[dataset.target.clamp(min=0)] >= 0)
    smaller = dataset.subset(chosen)
    names = tuple(dataset.vocabulary[label] for label in classes)
    return replace(smaller, target=number[smaller.target], vocabulary=names, groups=None, group_names=None, truth=None)


def as_label_matrix(dataset: Dataset) -> Dataset:
    """With the label matrix of its class indices, which multi-label losses take."""
    return replace(dataset, target=from_indices(dataset.target, dataset.num_labels), truth=None)


@torch.no_grad()
def features_of(backbone: nn.Module, dataset: Dataset, batch_size: int = 512) -> NDArray[np.float32]:
    backbone.eval()
    device = next((parameter.device for parameter in backbone.parameters()), torch.device("cpu"))
    rows = torch.arange(len(dataset)).split(batch_size)
    found = [backbone(dataset.batch(some)[0].to(device)).float().cpu() for some in rows]
    return np.asarray(torch.cat(found))


def evaluate_linearly(
    parts: dict[str, tuple[NDArray[np.float32], NDArray[np.int64]]],
    *,
    strengths: Sequence[float] = STRENGTHS,
    max_iter: int = 50,
) -> dict[str, Any]:
    """Accuracy on test data of the strength that is best on validation data, of the one that is best on test data, and
    of all of them, and how many did not converge in ``max_iter`` steps; L-BFGS on the training data, each strength
    from the solution of the next stronger one.

    ``parts``: train, validation and test, each with its features and classes. The strength is that of half the squared
    weights beside the *sum* of the training losses (1 / C of scikit-learn).

    >>> x, y = np.repeat(np.eye(2, dtype="f4"), 20, axis=0), np.repeat([0, 1], 20)
    >>> evaluate_linearly({part: (x, y) for part in ("train", "validation", "test")}, strengths=(0.1, 1.0))["chosen"]
    1.0
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    x, y = parts["train"]
    mean = x.mean(0)
    scale = float(np.sqrt(((x - mean) ** 2).mean())) or 1.0  # one for all features: their proportions stay
    scaled = {part: ((features - mean) / scale, classes) for part, (features, classes) in parts.items()}
    model = LogisticRegression(warm_start=True, max_iter=max_iter)
    accuracies: dict[float, tuple[float, float]] = {}
    unconverged = 0
    for strength in sorted(strengths, reverse=True):
        model.set_params(C=1 / strength)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # it is counted
            model.fit(scaled["train"][0], y)
        unconverged += int(model.n_iter_.max() >= max_iter)
        validation, test = (float(model.score(*scaled[part])) for part in ("validation", "test"))
        accuracies[strength] = validation, test
    # the strongest of equally good ones
    chosen = max(sorted(strengths, reverse=True), key=lambda strength: accuracies[strength][0])
    return {
        "chosen": accuracies[chosen][1],
        "best on test": max(test for _, test in accuracies.values()),
        "log strength": float(np.log10(chosen)),
        "not converged": float(unconverged),
        "curve": [accuracies[strength][1] for strength in sorted(strengths)],
    }
