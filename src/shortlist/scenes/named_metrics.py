"""The metrics of scenes by name, as ``metrics.named`` asks for them: scores, the recorded relations and k."""

from torch import Tensor

from shortlist.scenes.containers import Relations
from shortlist.scenes.found import found_relations
from shortlist.scenes.recall import image_recalls, predicate_recalls


def recall(scores: Tensor, relations: Relations, k: int, *, constrained: bool = True) -> Tensor:
    inputs, found = found_relations(scores, relations, (k,), constrained)
    return image_recalls(inputs, found[0]).mean().float()


def recall_unconstrained(scores: Tensor, relations: Relations, k: int) -> Tensor:
    return recall(scores, relations, k, constrained=False)


def mean_recall(scores: Tensor, relations: Relations, k: int, *, constrained: bool = True) -> Tensor:
    inputs, found = found_relations(scores, relations, (k,), constrained)
    total, count = predicate_recalls(inputs, found[0])
    return (total / count)[count > 0].mean().float()


def mean_recall_unconstrained(scores: Tensor, relations: Relations, k: int) -> Tensor:
    return mean_recall(scores, relations, k, constrained=False)
