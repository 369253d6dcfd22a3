"""A backbone and an objective as one module: inputs to loss in training, inputs to scores in prediction."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from shortlist.data import Dataset
from shortlist.errors import ShortlistError
from shortlist.labels.sparse_labels import dense_labels
from shortlist.nn.sparse_linear import SparseLinear
from shortlist.objectives import Objective
from shortlist.training.crops import combined, crops_of, larger

BATCH_SCORES = 1 << 22  # of a batch: 16 MB, memory that the next batch has again; 1,024 rows of up to 4,096 labels


class Learner(nn.Module):
    """Calling it gives the loss, so that data-parallel wrappers see the whole computation."""

    def __init__(self, backbone: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.backbone = backbone
        self.objective = objective

    def forward(self, inputs: Tensor, target: Any, index: Tensor) -> Tensor:
        target = target if self.objective.takes_sparse else dense_labels(target)
        return self.objective.loss(self.features(inputs), target, index)

    def scores(self, inputs: Tensor) -> Tensor:
        return self.objective(self.features(inputs))

    def features(self, inputs: Tensor, whole: bool = False) -> Tensor:
        """What the backbone makes of the inputs. Sparse ones stay so where it takes them, and their features, if the
        backbone only passes them on, where the objective does; unless ``whole`` rows are wanted."""
        sparse = isinstance(inputs, Tensor) and inputs.is_sparse
        if sparse and not getattr(self.backbone, "takes_sparse", False):
            inputs = inputs.to_dense()
        features: Tensor = self.backbone(inputs)
        if sparse and features.is_sparse and (whole or not self.objective.takes_sparse):
            features = features.to_dense()
        return features

    def expect_sparse(self, in_features: int) -> None:
        """Arrange the first layer, that of the backbone or the objective's, for sparse inputs."""
        for module in self.modules():
            if isinstance(module, SparseLinear) and module.in_features == in_features:
                module.lie_by_columns()

    def weights(self) -> dict[str, Tensor]:
        """The state as tensors that share no memory, so that any file format can hold them."""
        state = self.state_dict()
        for name, value in state.items():
            if not isinstance(value, Tensor):
                raise ShortlistError(f"the state {name!r} must be a tensor to be saved, it is {type(value).__name__}")
        return {name: value.detach().to("cpu", copy=True).contiguous() for name, value in state.items()}


def score(
    learner: Learner, dataset: Dataset, batch_size: int = 1024, context: Any = nullcontext, crops: int = 1
) -> Tensor:
    """The scores of every example, float32 (N, L) on the CPU; ``context`` makes the precision's autocast context. With
    5 or 10 ``crops`` of each image, those of all of them together."""
    parts = list(score_batches(learner, dataset, batch_size, context, crops))
    return torch.cat(parts) if parts else torch.empty(0, learner.objective.num_labels)


@torch.no_grad()
def score_batches(
    learner: Learner, dataset: Dataset, batch_size: int = 1024, context: Any = nullcontext, crops: int = 1
) -> Iterator[Tensor]:
    """``score`` batch by batch, in order; batches are smaller where there are very many labels."""
    dataset = dataset.normalised_for(learner.backbone)
    size, kind = dataset.in_shape[1:], next(learner.parameters()).dtype
    batch_size = batch_rows(learner, dataset.rows_each, batch_size, crops)
    dataset = larger(dataset) if crops > 1 else dataset
    device = next(learner.parameters()).device
    asked = getattr(learner.objective.config, "k", None)
    k = int(asked) if asked is not None and float(asked).is_integer() else 1
    was_training = learner.training
    learner.eval()
    try:
        for rows in torch.arange(len(dataset)).split(batch_size) if len(dataset) else ():
            inputs = dataset.batch(rows)[0].to(device)
            inputs = inputs.to(kind) if isinstance(inputs, Tensor) and inputs.is_floating_point() else inputs
            with context():
                if crops == 1:
                    yield learner.scores(inputs).float().cpu()
                else:
                    found = learner.scores(crops_of(inputs, size, crops).flatten(0, 1)).float().cpu()
                    yield combined(found.unflatten(0, (len(rows), crops)), learner.objective.link, k)
    finally:
        learner.train(was_training)


def batch_rows(learner: Learner, rows_each: int = 1, batch_size: int = 1024, crops: int = 1) -> int:
    """How many examples ``score`` looks at together: fewer where there are very many labels, or where one is like
    ``rows_each`` rows of features."""
    most = max(1, BATCH_SCORES // (crops * learner.objective.num_labels))
    return max(1, min(max(1, batch_size // crops), most) // rows_each)


@torch.no_grad()
def features_of(
    learner: Learner, dataset: Dataset, rows: Tensor, batch_size: int = 256, context: Any = nullcontext
) -> Tensor:
    """The features of these examples by the backbone in evaluation mode, float32 (len(rows), D) on the CPU."""
    dataset = dataset.normalised_for(learner.backbone)
    device = next(learner.parameters()).device
    was_training = learner.backbone.training
    learner.backbone.eval()
    parts = []
    for some in rows.split(batch_size):
        with context():
            parts.append(learner.features(dataset.batch(some)[0].to(device), whole=True).float().cpu())
    learner.backbone.train(was_training)
    return torch.cat(parts) if parts else torch.empty(0, learner.objective.in_features)


@contextmanager
def encoding(learner: Learner, dataset: Dataset, context: Any = nullcontext) -> Iterator[None]:
    """Within this block the objective's loss may ask for the features of training examples, with a gradient."""
    dataset = dataset.normalised_for(learner.backbone)

    def encode(rows: Tensor) -> Tensor:
        weight = next(learner.parameters())
        inputs = dataset.batch(rows.cpu())[0].to(weight.device)
        inputs = inputs.to(weight.dtype) if inputs.is_floating_point() else inputs  # tokens are numbers of words
        with context():
            return learner.features(inputs, whole=True)

    learner.objective.encode = encode
    try:
        yield
    finally:
        learner.objective.encode = None
