"""Which recorded relations are found where classes, and boxes, have to be found: against an answer counted by hand."""

import pytest
import torch

from shortlist.scenes import placed_shapes, predicted_graphs, recorded_graphs
from shortlist.scenes.found import found_relations, scored_pairs, with_classes
from shortlist.scenes.graphs import agreement
from shortlist.scenes.matching import box_overlaps
from shortlist.scenes.named_metrics import mean_recall, recall
from shortlist.scenes.recall import image_recalls
from tests.scenes.test_given import detections


def answers(data, seed=0):
    """Scores of all pairs, and a class of every object that is right more often than not."""
    generator = torch.Generator().manual_seed(seed)
    batch, _ = data.inputs.batch(torch.arange(len(data)))
    guess = torch.randint(0, 6, batch.classes.shape, generator=generator)
    keep = (torch.rand(len(guess), generator=generator) < 0.8) & (batch.classes < 6)
    classes = torch.where(keep, batch.classes, guess)
    scores = torch.randn(len(batch.subjects), data.num_labels, generator=generator)
    return with_classes(scores, classes[batch.subjects], classes[batch.objects])


def found_by_hand(data, matrix, k, constrained):
    """Every recorded relation of every image, and whether one of the k best triples is it."""
    found = []
    scores, classes = scored_pairs(matrix, data.num_labels)
    first = 0
    for image in range(len(data)):
        own = data.inputs.subset([image])
        boxes, truth = own.boxes, own.recorded or own
        pairs = [(s, o) for s in range(len(boxes)) for o in range(len(boxes)) if s != o]
        triples = []
        for at, (s, o) in enumerate(pairs):
            row = scores[first + at]
            predicates = [int(row.argmax())] if constrained else range(len(row))
            triples += [(-float(row[p]), s, o, p, *classes[first + at].tolist()) for p in predicates]
        first += len(pairs)
        best = sorted(triples)[:k]
        overlap = box_overlaps(boxes, truth.boxes) if len(boxes) else None
        for _, s, o, p in truth.answers_of_relations().tolist():
            kinds = int(truth.classes[s]), int(truth.classes[o])
            found.append(any(
                (predicate, kind, other) == (p, *kinds) and overlap[subject, s] >= 0.5 and overlap[thing, o] >= 0.5
                for _, subject, thing, predicate, kind, other in best
            ))  # fmt: skip
    return found


@pytest.mark.parametrize("constrained", [True, False])
@pytest.mark.parametrize("task", ["sgcls", "sgdet"])
def test_found_relations_are_those_counted_by_hand(task, constrained, tmp_path):
    given = {"detections": detections(placed_shapes(12), tmp_path / "found.npz")} if task == "sgdet" else {}
    data = placed_shapes(12, task=task, **given)
    matrix = answers(data)
    inputs, found = found_relations(matrix, data.answers, (3, 20), constrained)
    for k, hits in zip((3, 20), found, strict=True):
        expected = found_by_hand(data, matrix, k, constrained)
        assert hits.tolist() == expected
    assert 0 < sum(expected) < len(expected)
    assert recall(matrix, data.answers, 20, constrained=constrained) == image_recalls(inputs, found[1]).mean().float()


def test_with_right_classes_sgcls_finds_what_predcls_finds():
    given, decided = placed_shapes(12), placed_shapes(12, task="sgcls")
    batch, _ = given.inputs.batch(torch.arange(12))
    scores = torch.randn(len(batch.subjects), 6, generator=torch.Generator().manual_seed(1))
    right = with_classes(scores, batch.classes[batch.subjects], batch.classes[batch.objects])
    assert recall(right, decided.answers, 5) >= recall(scores, given.answers, 5)  # shapes may lie upon each other
    wrong = with_classes(scores, (batch.classes[batch.subjects] + 1) % 6, batch.classes[batch.objects])
    assert recall(wrong, decided.answers, 5) < recall(right, decided.answers, 5)
    assert 0 < mean_recall(right, decided.answers, 5) < 1


def test_a_part_of_the_images_is_answered_as_in_the_whole(tmp_path):
    path = detections(placed_shapes(12), tmp_path / "found.npz")
    data = placed_shapes(12, task="sgdet", detections=path)
    assert data.answers.candidates is not None
    chosen = data.subset([7, 2])
    assert torch.equal(chosen.inputs.recorded.boxes, placed_shapes(12).subset([7, 2]).inputs.boxes)
    matrix = answers(chosen)
    found = found_relations(matrix, chosen.answers, (5,), True)[1][0].tolist()
    assert found == found_by_hand(chosen, matrix, 5, True)


def test_graphs_have_the_found_classes_and_say_what_is_recorded_too(tmp_path):
    path = detections(placed_shapes(12), tmp_path / "found.npz")
    data = placed_shapes(12, task="sgdet", detections=path)
    matrix = answers(data)
    found = found_relations(matrix, data.answers, (8,), True)[1][0]
    begin = 0
    for graph, right in zip(predicted_graphs(data, matrix, 8), recorded_graphs(data), strict=True):
        are_right, are_found = agreement(graph, right)
        assert sorted(are_found) == sorted(found[begin : begin + len(right.relations)].tolist())
        assert any(are_right) == any(are_found)
        assert {one.name for one in graph.objects} <= {*placed_shapes(1).inputs.class_names}
        begin += len(right.relations)
    assert begin == len(found)
