"""Which backbone ``auto`` is: settled on the training rows, before a run is made."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from shortlist.data import Dataset
from shortlist.models.similarities import MOST_LANDMARKS
from shortlist.named import Named
from shortlist.runs.config import RunConfig
from shortlist.runs.setup import build_learner
from shortlist.training.at_once import choose_at_once
from shortlist.training.head_columns import landmarks_for
from shortlist.training.linear_head import FULL_BATCH, Choice

TRIED = "backbones_tried"  # of a run's facts


def settled_backbone(
    config: RunConfig, facts: Mapping[str, Any], train_set: Dataset, allow_import: Sequence[str] = ()
) -> tuple[RunConfig, Choice | None]:
    """The config with the backbone that the run has, as large as it is; and how its head is fitted, where that was
    found on the way."""
    name, options, choice = config.backbone.name, config.backbone.options, None
    if name == "similarities":
        options["landmarks"] = min(int(options.get("landmarks", MOST_LANDMARKS)), len(train_set))
    if name == "auto":
        config = config.model_copy(update={"backbone": Named.of("identity")})
        name = "identity"
        if may_have_similarities(config, train_set):
            began = time.perf_counter()
            learner = build_learner(config, facts, allow_import, train_set)
            landmarks = landmarks_for(len(train_set), train_set.in_features, train_set.num_labels, train_set.is_single)
            choice = choose_at_once(learner, train_set, config, landmarks)
            choice = replace(choice, seconds=time.perf_counter() - began)
            layer = choice.columns.layer
            if layer is not None:
                name, options = "similarities", {"landmarks": len(layer.landmarks), "one_scale": layer.one_scale}
                options |= {"with_columns": True} if choice.with_columns is not None else {}
    return config.model_copy(update={"backbone": Named.of(name, **options)}), choice


def may_have_similarities(config: RunConfig, data: Dataset) -> bool:
    """Whether similarities are worth a try: for dense features, of which a head is fitted at once by a strength
    that is left open."""
    fitted_at_once = config.optimizer.name == "lbfgs" and config.optimizer.weight_decay is None
    dense = data.kind == "features" and not hasattr(data.inputs, "tocsr")
    return fitted_at_once and dense and config.objective.name in FULL_BATCH


def tried(choice: Choice | None) -> dict[str, Any] | None:
    """What both backbones reached on held-out rows, as JSON; None where one alone was tried."""
    if choice is None or choice.beside is None:
        return None
    return dict(zip(("identity", "similarities"), choice.beside, strict=True))


def in_words(backbone: Named, tried: Mapping[str, Mapping[str, float]]) -> str:
    """What was chosen, and by what.

    >>> reached = {"loss": 2.5, "precision_at_1": 0.7}, {"loss": 2.25, "precision_at_1": 0.75}
    >>> in_words(Named.of("similarities", landmarks=300), dict(zip(("identity", "similarities"), reached)))
    'similarities to 300 training rows: better than a linear model of the columns on each of three folds (loss 2.25 and
    first label right in 75.0\u202f%; its own 2.5 and 70.0\u202f%)'
    """
    linear, similar = (
        f"{one['loss']:.4g} and first label right in {100 * one['precision_at_1']:.1f}\u202f%"
        for one in (tried["identity"], tried["similarities"])
    )
    reached = f"loss {similar}; its own {linear.replace('first label right in ', '')}"
    if backbone.name == "similarities":
        rows = f"similarities to {backbone.options['landmarks']} training rows"
        if backbone.options.get("with_columns"):
            rows = f"the mean of a linear model's scores and of those by {rows}"
        return f"{rows}: better than a linear model of the columns on each of three folds ({reached})"
    return f"a linear model of the columns: similarities to training rows are not better on each fold ({reached})"
