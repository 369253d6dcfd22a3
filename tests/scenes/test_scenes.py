"""The ragged container: pairs, entries, subsets, and what it refuses."""

from dataclasses import replace

import pytest
import torch

from shortlist.data import split
from shortlist.scenes import RelationScorer, SceneLML, Scenes
from shortlist.training.learner import Learner, score
from tests.scenes.made import made_scenes


def by_hand(scenes, image):
    """The pairs of an image, one by one, and its set of (subject, object, predicate)."""
    count = int(scenes.object_offsets[image + 1] - scenes.object_offsets[image])
    first, last = scenes.relation_offsets[image : image + 2].tolist()
    pairs = [(s, o) for s in range(count) for o in range(count) if s != o]
    return pairs, {tuple(row) for row in scenes.relations[first:last].tolist()}


def test_a_batch_has_every_ordered_pair_of_different_objects_and_every_relation_once():
    scenes = made_scenes().inputs
    rows = [4, 1, 3, 2, 0]
    batch, entries = scenes.batch(torch.tensor(rows))
    expected, related, start, first = [], set(), 0, 0
    for image in rows:
        pairs, relations = by_hand(scenes, image)
        related |= {(first + pairs.index((s, o)), p) for s, o, p in relations}
        expected += [(start + s, start + o) for s, o in pairs]
        first, start = first + len(pairs), start + batch.counts[rows.index(image)]
    assert list(zip(batch.subjects.tolist(), batch.objects.tolist(), strict=True)) == expected
    assert set(map(tuple, entries.tolist())) == related
    assert len(entries) == len(related)


def test_boxes_of_a_batch_are_shares_of_the_image_even_where_its_size_is_unknown_or_wrong():
    scenes = made_scenes().inputs
    for sizes in (torch.full((6, 2), -1), torch.full((6, 2), 3)):
        batch, _ = replace(scenes, sizes=sizes).batch(torch.arange(6))
        assert batch.boxes.min() >= 0
        assert batch.boxes.max() == 1


def test_a_subset_of_images_is_what_these_images_are():
    scenes = made_scenes(features=3).inputs
    part = scenes.subset(torch.tensor([5, 1]))
    alone, _ = scenes.batch(torch.tensor([5, 1]))
    again, _ = part.batch(torch.tensor([0, 1]))
    for name in ("boxes", "classes", "subjects", "objects", "features"):
        assert torch.equal(getattr(alone, name), getattr(again, name))


def test_scenes_split_like_any_data_and_keep_their_names():
    data = made_scenes((2, 3, 2, 4, 3, 2))
    first, second = split(data, (4, 2), seed=1)
    assert sorted([*first.ids, *second.ids]) == sorted(data.ids)
    assert first.kind == "scenes"
    for row, name in enumerate(first.ids):
        assert torch.equal(first.inputs.subset([row]).boxes, data.inputs.subset([data.ids.index(name)]).boxes)


def test_the_labels_of_an_image_are_its_predicates():
    data = made_scenes()
    for image in range(len(data)):
        assert set(data.target[image].nonzero()[:, 0].tolist()) == {p for _, _, p in by_hand(data.inputs, image)[1]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes": torch.tensor([0, 9])}, "object 1 has the class 9: allowed are 0..1"),
        ({"boxes": torch.tensor([[0.0, 0, 1, 1], [5, 5, 4, 9]])}, "object 1 has the box .* xmin < xmax"),
        ({"boxes": torch.tensor([[0.0, 0, 1, 1], [5, 5, float("nan"), 9]])}, "object 1 has the box"),
        ({"relations": torch.tensor([[0, 0, 0]])}, "relation 0 is .* two of them"),
        ({"relations": torch.tensor([[0, 1, 4]])}, r"predicate one of 0\.\.0"),
        ({"relation_offsets": torch.tensor([0, 2])}, "relation_offsets must rise from 0 to 1"),
        ({"features": torch.zeros(3, 2)}, r"features must have the shape \(2, -1\)"),
    ],
)
def test_what_does_not_fit_together_is_an_error(change, message):
    at = torch.tensor
    arguments = {
        "boxes": at([[0.0, 0, 1, 1], [2, 2, 4, 4]]), "classes": at([0, 1]), "object_offsets": at([0, 2]),
        "relations": at([[0, 1, 0]]), "relation_offsets": at([0, 1]), "class_names": ("man", "hat"),
        "num_predicates": 1, "sizes": at([[9, 9]]),
    }  # fmt: skip
    Scenes(**arguments)
    with pytest.raises(ValueError, match=message):
        Scenes(**{**arguments, **change})


def test_images_with_many_boxes_are_scored_few_at_a_time():
    data = made_scenes((40,) * 6, relations=0)
    learner = Learner(RelationScorer(data.inputs.shape, embedding=2, context=2, hidden=2), SceneLML(2, 3))
    pairs = []
    learner.backbone.register_forward_pre_hook(lambda _, given: pairs.append(len(given[0].subjects)))
    assert len(score(learner, data)) == sum(pairs) == 6 * 40 * 39
    assert max(pairs) <= 4096
