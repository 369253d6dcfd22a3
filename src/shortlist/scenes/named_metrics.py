"""The metrics of scenes by name, as ``metrics.named`` asks for them: scores, the recorded relations and k."""

import warnings
from functools import partial

from torch import Tensor

from shortlist.errors import ShortlistError, ShortlistWarning
from shortlist.scenes.containers import Relations
from shortlist.scenes.found import found_relations, scored_images
from shortlist.scenes.recall import image_recalls, predicate_recalls
from shortlist.scenes.recorded import recorded_images


def recall(scores: Tensor, relations: Relations, k: int, *, constrained: bool = True) -> Tensor:
    inputs, found = found_relations(scores, relations, (k,), constrained)
    return image_recalls(inputs, found[0]).mean().float()


def mean_recall(scores: Tensor, relations: Relations, k: int, *, constrained: bool = True) -> Tensor:
    inputs, found = found_relations(scores, relations, (k,), constrained)
    total, count = predicate_recalls(inputs, found[0])
    return (total / count)[count > 0].mean().float()


def zero_shot_recall(scores: Tensor, relations: Relations, k: int, *, constrained: bool = True) -> Tensor:
    """Of relations whose classes and predicate no training image has together."""
    if relations.unseen is None:
        raise ShortlistError(
            "zero-shot recall needs to know the relations of the training images: measure it with shortlist evaluate "
            "RUN, of a run that this version has trained"
        )
    inputs, found = found_relations(scores, relations, (k,), constrained)
    at = relations.unseen
    if not bool(at.any()):
        warnings.warn(
            f"nothing is zero-shot here: training images have the classes and predicates of all {len(at)} recorded "
            "relations, so that zero-shot recall is not a number",
            ShortlistWarning,
            stacklevel=2,
        )
    inputs = inputs._replace(pair=inputs.pair[at], predicate=inputs.predicate[at], image=inputs.image[at])
    return image_recalls(inputs, found[0][at]).mean().float()


def _public(scores: Tensor, relations: Relations, k: int, name: str, constrained: bool) -> Tensor:
    """As the public evaluators count: every record, however often it is there."""
    from shortlist.scenes.graph_recall import SceneGraphRecall  # needs torchmetrics

    scenes = relations.scenes
    if scenes is None:
        raise ShortlistError("counting as the public evaluators do needs the scenes themselves: use Dataset.answers")
    metric = SceneGraphRecall([k], constrained=constrained, counting="public")
    for answer, truth in zip(scored_images(scenes, scores), recorded_images(scenes.recorded or scenes), strict=True):
        metric.update(answer, truth)
    return metric.compute()[f"{name}@{k}"]


recall_unconstrained, mean_recall_unconstrained, zero_shot_recall_unconstrained = (
    partial(metric, constrained=False) for metric in (recall, mean_recall, zero_shot_recall)
)
recall_public, mean_recall_public = (
    partial(_public, name=name, constrained=True) for name in ("recall", "mean-recall")
)
recall_public_unconstrained, mean_recall_public_unconstrained = (
    partial(_public, name=name, constrained=False) for name in ("recall", "mean-recall")
)
