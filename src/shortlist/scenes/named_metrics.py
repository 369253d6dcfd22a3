"""The metrics of scenes by name, as ``metrics.named`` asks for them: scores, the recorded relations and k."""

from torch import Tensor

from shortlist.scenes.containers import Relations
from shortlist.scenes.recall import scene_mean_recall_at_k, scene_recall_at_k


def recall(scores: Tensor, relations: Relations, k: int) -> Tensor:
    return scene_recall_at_k(scores, relations.entries, k, offsets=relations.offsets)


def recall_unconstrained(scores: Tensor, relations: Relations, k: int) -> Tensor:
    return scene_recall_at_k(scores, relations.entries, k, offsets=relations.offsets, constrained=False)


def mean_recall(scores: Tensor, relations: Relations, k: int) -> Tensor:
    return scene_mean_recall_at_k(scores, relations.entries, k, offsets=relations.offsets)


def mean_recall_unconstrained(scores: Tensor, relations: Relations, k: int) -> Tensor:
    return scene_mean_recall_at_k(scores, relations.entries, k, offsets=relations.offsets, constrained=False)
