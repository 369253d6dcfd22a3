"""The one epoch of the optimizer ``lbfgs``: the head of a linear model, fitted to all rows at once."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from shortlist.data import Dataset, split
from shortlist.errors import ShortlistError
from shortlist.labels.sparse_labels import dense_labels
from shortlist.models.similarities import Similarities
from shortlist.training.head_columns import Scales
from shortlist.training.history import Record
from shortlist.training.learner import Learner, features_of
from shortlist.training.linear_head import FULL_BATCH, Choice, choose_head, loss_of
from shortlist.training.settings import TrainSettings

_LONG_SEARCH, _SEARCHED = 10**8, 5 * 10**7  # stored numbers times labels: beyond the first, rows of the second choose


def check_at_once(learner: Learner, settings: TrainSettings) -> None:
    """Raise an error where the settings ask for what has no meaning without steps, or the model is not linear."""
    if next(learner.backbone.parameters(), None) is not None:
        raise ShortlistError("optimizer lbfgs fits a linear head: its backbone has no weights (identity, similarities)")
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


def choose_at_once(learner: Learner, dataset: Dataset, settings: TrainSettings, landmarks: int = 0) -> Choice:
    """What the head is fitted to, and how strongly its weights are drawn to zero. That is the optimizer's
    ``weight_decay``; where it is not given, three folds choose it, and whether columns are taken as they are or each by
    its own spread; with ``landmarks`` also whether similarities to so many rows take their place. Sparse columns, of
    counted words and the like, are taken as they are; where they hold very much, a share of the rows chooses."""
    strength, layer = settings.optimizer.weight_decay, learner.backbone
    compared: int | Similarities = landmarks
    sparse = dataset.has_sparse_inputs
    products = dataset.inputs.nnz * dataset.num_labels if sparse else 0
    if strength is None and products > _LONG_SEARCH:
        share = split(dataset, [round(len(dataset) * _SEARCHED / products)], seed=settings.seed, stratify=True)[0]
        rest = dense_labels(dataset.target), dataset.vocabulary, dataset.is_single, settings.seed
        return choose_at_once(learner, share, settings).of_more(dataset.inputs, *rest)
    if isinstance(layer, Similarities):
        rows, compared = inputs_of(dataset), copy.deepcopy(layer).cpu()
    else:
        rows = dataset.inputs if sparse else features_of(learner, dataset, torch.arange(len(dataset)))
    return choose_head(
        loss_of(learner.objective), rows, dense_labels(dataset.target), dataset.vocabulary,
        "auto" if strength is None else strength,
        scales=Scales() if strength is not None or sparse else scales_of(rows, dataset),
        landmarks=compared, single=dataset.is_single, seed=settings.seed,
    )  # fmt: skip


def fit_at_once(learner: Learner, dataset: Dataset, settings: TrainSettings, choice: Choice | None = None) -> Record:
    """Fit the head in place, as was chosen, or is now. The mean loss, and what was used.

    >>> from shortlist.models import build_backbone
    >>> from shortlist.objectives import build
    >>> data = Dataset(torch.eye(4).repeat(8, 1), torch.arange(4).repeat(8), tuple("abcd"))
    >>> objective = build("cross-entropy", in_features=4, num_labels=4)
    >>> learner = Learner(build_backbone("identity", in_shape=(4,)), objective)
    >>> settings = TrainSettings(optimizer={"name": "lbfgs", "weight_decay": 1.0})
    >>> round(fit_at_once(learner, data, settings)["loss"], 2)
    0.25
    """
    fitted = (choose_at_once(learner, dataset, settings) if choice is None else choice).fit()
    head = {"head.weight": fitted.weights, "head.bias": fitted.biases}
    learner.objective.load_state_dict({**learner.objective.state_dict(), **head})
    with torch.no_grad():
        loss = sum(
            float(learner(*dataset.batch(rows), rows)) * len(rows) for rows in torch.arange(len(dataset)).split(1024)
        )
    return {"loss": loss / len(dataset), "lr": 1.0, "weight_decay": fitted.weight_decay, "stretch": fitted.stretch}


def start_similarities(layer: Similarities, dataset: Dataset, seed: int) -> None:
    """Take the landmarks from the training data."""
    if dataset.has_sparse_inputs:
        raise ShortlistError("similarities are of dense features, these are sparse: set backbone=identity or mlp")
    rows = inputs_of(dataset)
    scales = scales_of(rows, dataset)
    scale = scales.one if layer.one_scale and scales.one is not None else scales.own
    scale = torch.ones(rows.shape[1]) if scale is None else scale
    found = Similarities.to_some(rows, len(layer.landmarks), scale, seed)
    if found is None:
        raise ShortlistError("most training rows are equal: similarities to them say nothing, set backbone=identity")
    layer.load_state_dict(found.state_dict())


def inputs_of(dataset: Dataset) -> Tensor:
    """All inputs, flat."""
    return torch.cat([dataset.batch(rows)[0].flatten(1) for rows in torch.arange(len(dataset)).split(1024)])


def scales_of(rows: Tensor, dataset: Dataset) -> Scales:
    """Columns of a table have their own scales already, rare categories small ones; others are standardised."""
    common = dataset.common_scale
    if common is None:
        return Scales.standard(rows)
    return Scales(one=None if (common == 1).all() else torch.from_numpy(common))
