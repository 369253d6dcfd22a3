"""The model behind a SetClassifier."""

from typing import Any

import torch
from torch import Tensor

from shortlist.models import build_backbone
from shortlist.objectives import build
from shortlist.training.learner import Learner


def new_learner(model: dict[str, Any], target: Tensor | None = None, seed: int = 0) -> Learner:
    """The model with new weights; for prediction only, without a target."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        network: dict[str, Any] = {"name": "mlp", "hidden": model["hidden"], "dropout": model["dropout"]}
        if model.get("similarities"):
            network = {"name": "similarities", "landmarks": model["hidden"][0]}
        backbone: Any = build_backbone(in_shape=(model["in_features"],), **network)
        objective = build(
            model["objective"],
            model["options"],
            in_features=backbone.out_features,
            num_labels=model["num_labels"],
            train_target=target,
        )
    return Learner(backbone, objective).eval()
