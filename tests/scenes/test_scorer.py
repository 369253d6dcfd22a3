"""The relation scorer and its parts."""

import math

import pytest
import torch

from shortlist.models import build_backbone
from shortlist.objectives import build
from shortlist.scenes import RelationScorer, log_frequencies
from shortlist.scenes.context import LeftRightContext
from shortlist.scenes.geometry import PAIR_NUMBERS, pair_geometry
from tests.scenes.made import learnable_scenes, made_scenes


def test_context_is_the_lstm_over_the_objects_of_each_image_from_left_to_right():
    torch.manual_seed(0)
    counts, context = [3, 0, 5, 1], LeftRightContext(4, 6)
    objects, middle = torch.randn(9, 4), torch.rand(9)
    found = context(objects, middle, counts)
    start = 0
    for count in counts:
        order = start + middle[start : start + count].argsort()
        if count:
            expected = context.lstm(objects[order][:, None])[0][:, 0]
            torch.testing.assert_close(found[order], expected)
        start += count


def test_moving_an_object_across_another_changes_what_both_see():
    torch.manual_seed(0)
    context, objects = LeftRightContext(4, 6), torch.randn(3, 4)
    one = context(objects, torch.tensor([0.1, 0.5, 0.9]), [3])
    same = context(objects, torch.tensor([0.2, 0.6, 0.7]), [3])
    other = context(objects, torch.tensor([0.6, 0.5, 0.9]), [3])
    assert torch.equal(one, same)
    assert not torch.allclose(one[0], other[0])


def test_pair_geometry_is_what_the_boxes_say():
    torch.manual_seed(0)
    corner = torch.rand(4, 2) / 2
    boxes = torch.cat([corner, corner + 0.05 + torch.rand(4, 2) / 3], 1)
    found = pair_geometry(boxes, torch.tensor([0, 3]), torch.tensor([1, 2]))
    assert found.shape == (2, PAIR_NUMBERS)
    for row, (s, o) in enumerate([(0, 1), (3, 2)]):
        a, b = boxes[s].tolist(), boxes[o].tolist()
        width, height, w, h = a[2] - a[0], a[3] - a[1], b[2] - b[0], b[3] - b[1]
        dx, dy = (b[0] + b[2] - a[0] - a[2]) / 2, (b[1] + b[3] - a[1] - a[3]) / 2
        shared = max(0, min(a[2], b[2]) - max(a[0], b[0])) * max(0, min(a[3], b[3]) - max(a[1], b[1]))
        around = (max(a[2], b[2]) - min(a[0], b[0])) * (max(a[3], b[3]) - min(a[1], b[1]))
        expected = [
            dx / width, dy / height, dx / w, dy / h, math.log(w / width), math.log(h / height),
            shared / (width * height), shared / (w * h), shared / (width * height + w * h - shared),
            math.log(width * height), math.log(w * h), math.log(around),
            min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3]),
        ]  # fmt: skip
        clamped = [max(-4, min(4, value)) for value in expected[:4]] + expected[4:]
        torch.testing.assert_close(found[row], torch.tensor(clamped))


def test_frequencies_are_the_shares_of_the_training_pairs():
    data = made_scenes(seed=3)
    scenes = data.inputs
    shares = log_frequencies(scenes, prior_pairs=1e-9).exp().view(4, 4, 4)
    pairs, related, none = torch.zeros(4, 4), torch.zeros(4, 4, 3), torch.zeros(4, 4)
    for image in range(len(data)):
        first, last = scenes.object_offsets[image : image + 2].tolist()
        begin, end = scenes.relation_offsets[image : image + 2].tolist()
        recorded = {tuple(row) for row in scenes.relations[begin:end].tolist()}
        for s in range(last - first):
            for o in range(last - first):
                if s != o:
                    kind = scenes.classes[first + s], scenes.classes[first + o]
                    pairs[kind] += 1
                    own = {p for a, b, p in recorded if (a, b) == (s, o)}
                    none[kind] += not own
                    for predicate in own:
                        related[(*kind, predicate)] += 1
    seen = pairs > 0
    torch.testing.assert_close(shares[..., :3][seen], (related / pairs[..., None])[seen], atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(shares[..., 3][seen], (none / pairs)[seen], atol=1e-6, rtol=1e-5)


def test_classes_that_never_met_get_the_shares_of_all_pairs():
    data = made_scenes((2,), seed=1)
    table = log_frequencies(data.inputs).view(4, 4, 4)
    met = data.inputs.classes.tolist()
    others = [(a, b) for a in range(4) for b in range(4) if {a, b} != set(met) and a != b]
    assert len({tuple(table[pair].tolist()) for pair in others}) == 1
    assert table.isfinite().all()


def test_training_starts_at_the_frequencies():
    data = made_scenes()
    scorer = RelationScorer(data.inputs.shape).eval()
    scorer.start_from(data.inputs)
    batch, _ = data.batch(torch.arange(len(data)))
    features = scorer(batch)
    for name in ("scene-lml", "scene-truncated-entropy"):
        scores = build(name, in_features=scorer.out_features, num_labels=3)(features)
        assert torch.equal(scores, features.frequency[:, :3])


def test_word_vectors_are_where_classes_start_and_features_of_boxes_count():
    data = made_scenes(features=5, words=7)
    assert data.in_shape == (4, 3, 7, 5)
    scorer = build_backbone("relations", in_shape=data.in_shape).eval()
    scorer.start_from(data.inputs)
    assert torch.equal(scorer.embedding.weight, data.inputs.word_vectors)
    batch, _ = data.batch(torch.tensor([0]))
    other = type(batch)(**{**batch.__dict__, "features": batch.features + 1})
    assert not torch.allclose(scorer(batch).values, scorer(other).values)
    with pytest.raises(ValueError, match="5 features per box, the images have none"):
        scorer(type(batch)(**{**batch.__dict__, "features": None}))


def test_an_image_is_scored_the_same_in_any_company():
    data = made_scenes()
    torch.manual_seed(0)
    scorer = RelationScorer(data.inputs.shape).eval()
    together = scorer(data.batch(torch.tensor([4, 1]))[0]).values
    torch.testing.assert_close(together[6:], scorer(data.batch(torch.tensor([1]))[0]).values)


@pytest.mark.parametrize("name", ["scene-softmax", "scene-lml", "scene-truncated-entropy"])
def test_every_objective_learns_what_the_boxes_say_beyond_the_frequencies(name):
    from shortlist.metrics.functional import scene_recall_at_k

    data = learnable_scenes()
    torch.manual_seed(0)
    scorer = RelationScorer(data.inputs.shape, embedding=8, context=8, hidden=32, dropout=0.0)
    scorer.start_from(data.inputs)
    objective = build(name, {"k": 4} if name != "scene-softmax" else {}, in_features=32, num_labels=3)
    optimizer = torch.optim.AdamW([*scorer.parameters(), *objective.parameters()], lr=0.02)
    batch, entries = data.batch(torch.arange(len(data)))

    def recall():
        with torch.no_grad():
            return float(scene_recall_at_k(objective(scorer(batch)), entries, 2, offsets=data.answers.offsets))

    before = recall()
    for _ in range(30):
        optimizer.zero_grad()
        objective.loss(scorer(batch), entries).backward()
        optimizer.step()
    assert recall() > before + 0.05


@pytest.mark.parametrize("option", [{"hidden": 0}, {"dropout": 1.0}])
def test_options_out_of_range_are_errors(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        build_backbone("relations", in_shape=(4, 3, 0, 0), **option)


def test_features_and_images_have_other_backbones():
    with pytest.raises(ValueError, match=r"takes scenes .* use 'identity' or 'mlp' for features"):
        build_backbone("relations", in_shape=(128,))
