"""The one epoch of the optimizer ``lbfgs``: the head of a linear model, fitted to all rows at once."""

from __future__ import annotations

import torch

from shortlist.data import Dataset
from shortlist.errors import ShortlistError
from shortlist.labels.sparse_labels import dense_labels
from shortlist.training.history import Record
from shortlist.training.learner import Learner, features_of
from shortlist.training.linear_head import FULL_BATCH, fit_head, loss_of
from shortlist.training.settings import TrainSettings

_ALIKE = 1.1  # times as wide a column may spread as another one for their own scales to be one scale


def check_at_once(learner: Learner, settings: TrainSettings) -> None:
    """Raise an error where the settings ask for what has no meaning without steps, or the model is not linear."""
    if next(learner.backbone.parameters(), None) is not None:
        raise ShortlistError("optimizer lbfgs fits a linear model: its backbone has no weights (identity)")
    if learner.objective.name not in FULL_BATCH:
        raise ShortlistError(
            f"optimizer lbfgs fits a smooth loss of one head, one of {', '.join(FULL_BATCH)}: the objective is "
            f"{learner.objective.name!r}, choose another optimizer"
        )
    plain = TrainSettings()
    for key in ("accumulate", "schedule", "ema", "devices", "precision", "augment", "imbalance"):
        if getattr(settings, key) != getattr(plain, key):
            raise ShortlistError(f"optimizer lbfgs fits all rows at once, on one device: remove {key}")
    if settings.optimizer.lr != 1.0:
        raise ShortlistError("optimizer lbfgs finds the length of its steps: remove optimizer.lr")
    if settings.epochs not in (None, 1):
        raise ShortlistError(f"optimizer lbfgs fits all rows at once, in one epoch: remove epochs: {settings.epochs}")


def fit_at_once(learner: Learner, dataset: Dataset, settings: TrainSettings) -> Record:
    """Fit the head in place. The strength is the optimizer's ``weight_decay``; where it is not given, three folds
    choose it, and whether columns are taken as they are or each by its own spread; sparse ones are taken as they are.
    The mean loss, and what was used.

    >>> from shortlist.models import build_backbone
    >>> from shortlist.objectives import build
    >>> data = Dataset(torch.eye(4).repeat(8, 1), torch.arange(4).repeat(8), tuple("abcd"))
    >>> objective = build("cross-entropy", in_features=4, num_labels=4)
    >>> learner = Learner(build_backbone("identity", in_shape=(4,)), objective)
    >>> settings = TrainSettings(optimizer={"name": "lbfgs", "weight_decay": 1.0})
    >>> round(fit_at_once(learner, data, settings)["loss"], 2)
    0.25
    """
    objective = learner.objective
    stays_sparse = hasattr(dataset.inputs, "tocsr")  # counted words and the like: taken as they are
    features = dataset.inputs if stays_sparse else features_of(learner, dataset, torch.arange(len(dataset)))
    target, names = dense_labels(dataset.target), dataset.vocabulary
    strength, common = settings.optimizer.weight_decay, None
    standardises = strength is None and not stays_sparse
    if standardises:
        mean, spread = features.mean(0), features.std(0, correction=0)
        spread = torch.where(spread > 0, spread, 1.0)
        features = (features - mean) / spread
        alike = bool(spread.max() < _ALIKE * spread.min())
        common = None if alike else (spread / spread.square().mean().sqrt()).numpy()
    fitted = fit_head(
        loss_of(objective), features, target, names, "auto" if strength is None else strength,
        common_scale=common, landmarks=0, single=dataset.is_single, seed=settings.seed,
    )  # fmt: skip
    weight, bias = fitted.weights, fitted.biases
    if standardises:
        weight = weight / spread
        bias = bias - weight @ mean
    objective.load_state_dict({**objective.state_dict(), "head.weight": weight, "head.bias": bias})
    with torch.no_grad():
        loss = sum(
            float(learner(*dataset.batch(rows), rows)) * len(rows) for rows in torch.arange(len(dataset)).split(1024)
        )
    return {"loss": loss / len(dataset), "lr": 1.0, "weight_decay": fitted.weight_decay, "stretch": fitted.stretch}
