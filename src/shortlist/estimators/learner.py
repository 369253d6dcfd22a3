"""The model behind a SetClassifier."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from shortlist.models import build_backbone
from shortlist.objectives import build
from shortlist.training.learner import Learner

# PyTorch has one random generator and one usual dtype for all threads, so that only one of them trains at a time
_TURN = threading.RLock()


@contextmanager
def own_torch() -> Iterator[None]:
    """PyTorch as training needs it, whatever the program around has set: gradients, single precision, and for this
    thread alone."""
    with _TURN, torch.inference_mode(False), torch.enable_grad():
        usual = torch.get_default_dtype()
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(usual)


def new_learner(model: dict[str, Any], target: Tensor | None = None, seed: int = 0) -> Learner:
    """The model with new weights; for prediction only, without a target."""
    with own_torch(), torch.random.fork_rng([]):
        torch.manual_seed(seed)
        network: dict[str, Any] = {"name": "mlp", "hidden": model["hidden"], "dropout": model["dropout"]}
        if model.get("similarities"):
            network = {"name": "similarities", "landmarks": model["hidden"][0]}
            network["with_columns"] = model.get("with_columns", False)
        backbone: Any = build_backbone(in_shape=(model["in_features"],), **network)
        objective = build(
            model["objective"],
            model["options"],
            in_features=backbone.out_features,
            num_labels=model["num_labels"],
            train_target=target,
        )
    return Learner(backbone, objective).eval()
