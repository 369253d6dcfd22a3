"""Which recorded relations are among the k best of their images: PredCls, SGCls and SGDet.

Where classes have to be found (SGCls, SGDet), scores of pairs have two more columns: the classes that were found of
subject and object. They stand in one matrix so that batches, and the shares of processes, are joined as usual.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from shortlist.errors import ShortlistError
from shortlist.scenes.containers import Relations, Scenes
from shortlist.scenes.matching import ScoredGraph
from shortlist.scenes.recall import SceneInputs, found_at, scene_inputs


class ScoredPairs(NamedTuple):
    """What a run says of every pair."""

    scores: Tensor  # (pairs, predicates)
    classes: Tensor | None  # int64 (pairs, 2): those that were found of subject and object; None: they are given


def with_classes(scores: Tensor, subjects: Tensor, objects: Tensor) -> Tensor:
    """Scores and found classes as one matrix.

    >>> matrix = with_classes(torch.zeros(1, 3), torch.tensor([4]), torch.tensor([7]))
    >>> matrix, scored_pairs(matrix, 3).classes
    (tensor([[0., 0., 0., 4., 7.]]), tensor([[4, 7]]))
    """
    return torch.cat([scores, torch.stack([subjects, objects], 1).to(scores.dtype)], 1)


def scored_pairs(matrix: Tensor, predicates: int) -> ScoredPairs:
    """What a run's scores of pairs are."""
    if matrix.shape[1] == predicates + 2:
        return ScoredPairs(matrix[:, :predicates], matrix[:, predicates:].round().long())
    if matrix.shape[1] != predicates:
        raise ShortlistError(
            f"scores of pairs have a column for each of {predicates} predicates, and two more where classes were "
            f"found; got {matrix.shape[1]}"
        )
    return ScoredPairs(matrix, None)


def scored_images(scenes: Scenes, matrix: Tensor) -> Iterator[ScoredGraph]:
    """What a run's scores of all pairs say of each image. Where classes had to be found, an object without a pair has
    none, and is background."""
    values, found = scored_pairs(matrix, scenes.num_predicates)
    objects, pairs, classes = scenes.object_offsets.diff(), scenes.pairs(), scenes.classes
    each = objects * (objects - 1)
    if found is not None:
        subject = pairs[:, 0] + scenes.object_offsets[:-1].repeat_interleave(each)
        classes = torch.full_like(classes, len(scenes.class_names)).index_copy(0, subject, found[:, 0])
    of_objects = (part.split(objects.tolist()) for part in (scenes.boxes, classes))
    of_pairs = (part.split(each.tolist()) for part in (pairs, values))
    for parts in zip(*of_objects, *of_pairs, strict=True):
        yield ScoredGraph(*parts)


def found_relations(
    scores: Tensor, relations: Relations, ks: Sequence[int], constrained: bool
) -> tuple[SceneInputs, Tensor]:
    """Whether each recorded relation is found in the k best triples, bool (len(ks), M), and their images and predicates
    for `image_recalls` and `predicate_recalls`.

    Where classes have to be found, a relation is found by a triple of its predicate and its two classes whose boxes
    both overlap those of the relation (overlap over union of at least 0.5).
    """
    candidates = relations.candidates
    if candidates is None:
        inputs = scene_inputs(scores, relations.entries, relations.offsets)
        return inputs, found_at(inputs, ks, constrained)
    predicates = scores.shape[1] - 2
    values, classes = scored_pairs(scores, predicates)
    assert classes is not None
    right = (classes[candidates.pair] == candidates.classes[candidates.relation]).all(1)
    relation, pair = candidates.relation[right], candidates.pair[right]
    predicate = candidates.predicate[relation]
    inputs = scene_inputs(values, torch.stack([pair, predicate], 1), relations.offsets)
    found = found_at(inputs, ks, constrained)
    place = torch.searchsorted(inputs.pair * predicates + inputs.predicate, pair * predicates + predicate)
    hits = torch.zeros(len(ks), len(candidates.predicate), dtype=torch.int64)
    hits = hits.index_add(1, relation, found[:, place].long()) > 0
    recorded = torch.zeros_like(candidates.predicate)  # a recorded relation has no pair of its own
    return SceneInputs(inputs.scores, recorded, candidates.predicate, candidates.image, inputs.offsets), hits
